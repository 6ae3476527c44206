"""Explorations of random surfaces by a simulated arm with ideal velocity tracking, scored against the planted truth."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.explore import Exploration, Explorer, ExploreSettings
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import homogeneous
from contact_estimation.jobs import Executor, gather
from contact_estimation.jobs.executor import Serial
from contact_estimation.robot import Arm, load_arm
from contact_estimation.studies.probing.experiment import Progress
from contact_estimation.studies.probing.score import PAPER, errors_text, named_errors
from contact_estimation.studies.probing.sensorless import ARMS
from contact_estimation.studies.probing.simulated_probe import (
    Guess,
    Motion,
    SpatialProbe,
    Truth,
    contact_wrench,
    surface_angles,
)

#: Height [m] over the surface at which an exploration starts.
_CLEARANCE = 0.006
#: Condition number of J J^T (metres and radians) beyond which joint rates for a given twist are out of proportion.
_MAX_CONDITION = 1e5


class ArmTool:
    """Moves the TCP of an arm by commanded twists: resolved rates within joint limits.

    Args:
        arm: the robot.
        posture: joint positions (n,) [rad] at the start.
        pose: pose (4, 4) of the TCP in the world at the start; it says where the arm stands.
    """

    def __init__(self, arm: Arm, posture: ArrayLike, pose: np.ndarray) -> None:
        self.arm, self.q = arm, np.array(posture, dtype=float)
        position, rotation = arm.tcp_pose(self.q)
        self._base = pose @ np.linalg.inv(homogeneous(rotation, position))

    @property
    def pose(self) -> np.ndarray:
        """Pose (4, 4) of the TCP in the world."""
        position, rotation = self.arm.tcp_pose(self.q)
        return np.asarray(self._base @ homogeneous(rotation, position))

    def move(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Move, slowed down where a joint would be too fast.

        Args:
            twist: commanded twist (6,) [m/s, rad/s], world axes.
            dt: for how long [s].

        Returns:
            the twist (6,) carried out.

        Raises:
            IdentificationError: a joint reached its limit, or the arm a singular posture.
        """
        turn = self._base[:3, :3]
        jacobian = self.arm.tcp_jacobian(self.q)
        jacobian = np.vstack([turn @ jacobian[:3], turn @ jacobian[3:]])
        gram = jacobian @ jacobian.T
        if np.linalg.cond(gram) > _MAX_CONDITION:
            raise IdentificationError("the arm came to a singular posture while probing; start from another posture")
        dq = jacobian.T @ np.linalg.solve(gram, twist)
        limit = np.where(self.arm.velocity_limit > 0.0, self.arm.velocity_limit, np.inf)
        dq /= max(1.0, np.max(np.abs(dq) / limit))
        self.q = self.q + dt * dq
        if np.any(self.q < self.arm.lower) or np.any(self.q > self.arm.upper):
            raise IdentificationError("a joint reached its limit while probing; start from another posture")
        return np.asarray(jacobian @ dq)


class SimulatedTool(ArmTool):
    """An arm whose probe touches one simulated surface.

    Args:
        arm: the robot.
        posture: joint positions (n,) [rad] at the start.
        pose: pose (4, 4) of the TCP in the world at the start.
        truth: planted parameters of one run.
        probe: noise of the sensors.
        rng: its generator.
    """

    def __init__(
        self,
        arm: Arm,
        posture: ArrayLike,
        pose: np.ndarray,
        truth: Truth,
        probe: SpatialProbe,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(arm, posture, pose)
        self._truth, self._probe, self._rng = truth, probe, rng
        self._bristles = np.zeros_like(truth.tips)

    def _motion(self, twist: np.ndarray, wrench: np.ndarray) -> Motion:
        pose = self.pose
        return Motion(pose[None, :3, 3], pose[None, :3, :3], twist[None], wrench[None])

    def sense(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Return the true wrench (6,), tool axes, after a motion with ``twist`` (6,) for ``dt`` [s]."""
        motion = self._motion(twist, np.zeros(6))
        wrench, self._bristles, _ = contact_wrench(self._truth, motion, self._bristles, dt)
        return np.asarray(wrench[0])

    def measure(self, twist: np.ndarray, wrench: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return pose (4, 4), twist (6,) and wrench (6,) with noise."""
        got = self._probe.measure(self._motion(twist, wrench), self._rng)
        return homogeneous(got.rotation[0], got.position[0]), got.twist[0], got.wrench[0]


def explore_many(
    settings: ProbingSettings,
    runs: int,
    seed: int,
    progress: Progress | None = None,
    robot: str = "ur16e",
    goal: ExploreSettings | None = None,
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Explore random surfaces.

    Args:
        settings: priors and noise.
        runs: number of surfaces.
        seed: of everything random.
        progress: called after each.
        robot: name of the arm.
        goal: targets and limits, default the shipped ones.
        executor: where; default this process.

    Returns:
        reached_pct (all intervals below target), within_pct (errors within the paper's accuracy), medians of time,
        strokes and errors, and the largest force.
    """
    function = functools.partial(_explore_surface, settings, runs, seed, robot, goal or ExploreSettings())
    found, errors = zip(*gather((executor or Serial()).run(function, range(runs)), progress))
    return {
        "example": "spatial",
        "explored": runs,
        "seed": seed,
        "reached_pct": 100.0 * float(np.mean([f.reached for f in found])),
        "within_pct": 100.0 * float(np.mean(np.all(np.array(errors) < PAPER, axis=1))),
        "seconds": float(np.median([f.seconds for f in found])),
        "seconds_max": float(np.max([f.seconds for f in found])),
        "strokes": float(np.median([len(f.strokes) for f in found])),
        **named_errors(np.median(errors, axis=0)),
        "max_force": float(np.max([f.max_force for f in found])),
    }


def _explore_surface(
    settings: ProbingSettings, runs: int, seed: int, robot: str, goal: ExploreSettings, run: int
) -> tuple[Exploration, np.ndarray]:
    """Explore one of the surfaces that :func:`explore_many` draws; returns what was found, and its errors."""
    probe, rng = SpatialProbe(settings), np.random.default_rng([seed, run])
    truth, guess = probe.draw(runs, np.random.default_rng(seed))
    found = explore_one(_arm(robot), ARMS[robot].posture, truth, guess, run, probe, goal, rng)
    return found, _errors(found, truth, guess, run)


_arm = functools.lru_cache(load_arm)


def explore_one(
    arm: Arm,
    posture: ArrayLike,
    truth: Truth,
    guess: Guess,
    run: int,
    probe: SpatialProbe,
    goal: ExploreSettings,
    rng: np.random.Generator,
) -> Exploration:
    """Explore surface number ``run`` of a draw with a simulated arm that starts at ``posture``."""
    above = guess.pose(run)
    above[:3, 3] += _CLEARANCE * guess.surface[run][:, 2]
    tool = SimulatedTool(arm, posture, above, truth.run(run), probe, rng)
    return Explorer(tool, guess.tips[run, 0], guess.surface[run], probe.settings, goal).run()


def _errors(result: Exploration, truth: Truth, guess: Guess, run: int) -> np.ndarray:
    """Tip [m], orientation [rad], stiffness [N/m] and friction errors of an exploration."""
    mean = result.estimate.mean
    angles = surface_angles(guess.surface[[run]], truth.normal[[run]])[0]
    tip, turned = np.linalg.norm(mean[:3] - truth.tips[run, 0]), np.linalg.norm(mean[3:5] - angles)
    return np.array([tip, turned, abs(mean[6] - truth.stiffness[run]), abs(mean[7] - truth.friction[run])])


def summary(result: dict[str, Any]) -> str:
    """Return the result as text."""
    return (
        f"{result['explored']} explorations: {result['reached_pct']:.0f} % reached every target, "
        f"{result['within_pct']:.0f} % within the paper's accuracy\n"
        f"  {result['seconds']:.1f} s and {result['strokes']:.0f} strokes (median; longest "
        f"{result['seconds_max']:.1f} s), largest force {result['max_force']:.0f} N\n"
        f"  median errors   {errors_text(result)}"
    )
