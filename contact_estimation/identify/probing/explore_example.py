"""Explorations of random surfaces by a simulated arm, scored against the planted truth."""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing import world_spatial
from contact_estimation.identify.probing.arm_tool import ArmTool
from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.explore import Exploration, Explorer, ExploreSettings
from contact_estimation.identify.probing.score import PAPER
from contact_estimation.identify.probing.sensorless import ARMS
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.robot import Arm, load_arm

#: Height [m] over the surface at which an exploration starts.
_CLEARANCE = 0.006


def explore_many(settings: ProbingSettings, runs: int, seed: int, progress=None, robot: str = "ur16e",
                 goal: ExploreSettings = ExploreSettings()) -> dict:
    """Explore ``runs`` random surfaces; ``progress(done)`` is called after each.

    Returns:
        reached_pct (all intervals below target), within_pct (errors within the paper's accuracy), non_physical_runs,
        medians of time, strokes and errors, and the largest force.
    """
    arm = load_arm(robot)
    truth, guess = world_spatial.draw(settings, runs, np.random.default_rng(seed))
    found, errors = [], []
    for run in range(runs):
        result = explore_one(arm, robot, truth, guess, run, settings, goal, np.random.default_rng([seed, run]))
        found.append(result)
        errors.append(_errors(result, truth, guess, run))
        if progress:
            progress(run + 1)
    errors = np.array(errors)
    within = np.all(errors < [PAPER.tip, PAPER.orientation, PAPER.stiffness, PAPER.friction], axis=1)
    tip, angle, stiffness, friction = np.median(errors, axis=0)
    return {
        "example": "spatial",
        "explored": runs,
        "seed": seed,
        "reached_pct": 100.0 * float(np.mean([f.reached for f in found])),
        "within_pct": 100.0 * float(np.mean(within)),
        "seconds": float(np.median([f.seconds for f in found])),
        "seconds_max": float(np.max([f.seconds for f in found])),
        "strokes": float(np.median([len(f.strokes) for f in found])),
        "tip_error_mm": 1e3 * float(tip),
        "orientation_error_rad": float(angle),
        "stiffness_error": float(stiffness),
        "friction_error": float(friction),
        "max_force": float(np.max([f.max_force for f in found])),
    }


def explore_one(
    arm: Arm,
    robot: str,
    truth,
    guess,
    run: int,
    settings: ProbingSettings,
    goal: ExploreSettings,
    rng: np.random.Generator,
) -> Exploration:
    """Explore surface number ``run`` of a draw with a simulated ``arm``."""
    planted = type(truth)(*(np.asarray(value)[run : run + 1] for value in vars(truth).values()))
    above = guess.pose(run)
    above[:3, 3] += _CLEARANCE * guess.surface[run][:, 2]
    tool = ArmTool(arm, ARMS[robot].posture, above)
    bristles = np.zeros_like(planted.tips)

    def sense(pose, twist, dt):
        nonlocal bristles
        wrench, bristles = world_spatial.contact_wrench(
            planted, pose[None, :3, 3], pose[None, :3, :3], twist[None], bristles, dt
        )
        return wrench[0]

    def measure(pose, twist, wrench):
        got = world_spatial.measure(settings, pose[None, :3, 3], pose[None, :3, :3], twist[None], wrench[None], rng)
        return world_spatial.homogeneous(got["rotation"][0], got["position"][0]), got["twist"][0], got["wrench"][0]

    return Explorer(
        tool, sense, measure, guess.tips[run, 0], guess.surface[run], settings, goal, ExcitationSettings()
    ).run()


def _errors(result, truth, guess, run):
    """Tip [m], orientation [rad], stiffness [N/m] and friction errors of an exploration."""
    mean = result.estimate.mean
    angles = world_spatial.surface_angles(guess.surface[[run]], truth.normal[[run]])[0]
    return [
        np.linalg.norm(mean[:3] - truth.tips[run, 0]),
        np.linalg.norm(mean[3:5] - angles),
        abs(mean[6] - truth.stiffness[run]),
        abs(mean[7] - truth.friction[run]),
    ]


def summary(result: dict) -> str:
    """The result for people."""
    return (
        f"{result['explored']} explorations: {result['reached_pct']:.0f} % reached every target, "
        f"{result['within_pct']:.0f} % within "
        f"the paper's accuracy\n  {result['seconds']:.1f} s and {result['strokes']:.0f} strokes (median; longest "
        f"{result['seconds_max']:.1f} s), largest force {result['max_force']:.0f} N\n"
        f"  median errors   tip {result['tip_error_mm']:.2f} mm, "
        f"orientation {result['orientation_error_rad']:.4f} rad, "
        f"stiffness {result['stiffness_error']:.0f} N/m, friction {result['friction_error']:.4f}"
    )
