"""The pressed surface of the adversarial pack is the one its truth states."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.adversary import probing

TIP = np.array([0.01, -0.18])
SURFACE = probing.Surface(TIP, 0.0, np.array([0.11, 0.22]), 5000.0, 0.5)


def pressed(surface, depth, seconds=0.4, speed=0.0):
    """The probe with its tip ``depth`` below the touched place, after ``seconds`` of sliding at ``speed``."""
    goal = np.array([0.1, 0.4 - depth, 0.0])
    probe = probing.Probe(surface, goal)
    for _ in range(round(seconds / probing.STEP)):
        goal = goal + [speed * probing.STEP, 0.0, 0.0]
        probe.step(goal, np.array([speed, 0.0, 0.0]))
    return probe


@pytest.mark.parametrize("depth", [1e-3, 3e-3])
def test_at_rest_the_force_is_stiffness_times_depth(depth):
    probe = pressed(SURFACE, depth)
    tip = probe.data.qpos[:2] + TIP  # the gantry gives way a little
    assert probe.wrench[1] == pytest.approx(5000.0 * (0.22 - tip[1]), rel=1e-3)
    assert 0.22 - tip[1] == pytest.approx(depth, rel=0.02)


def test_out_of_contact_there_is_no_wrench():
    assert pressed(SURFACE, -1e-3).wrench == pytest.approx(np.zeros(3), abs=1e-12)


@pytest.mark.parametrize("speed", [0.03, -0.03])
def test_sliding_friction_is_coulombs_and_opposes_the_motion(speed):
    probe = pressed(SURFACE, 3e-3, speed=speed)
    assert probe.wrench[0] == pytest.approx(-np.sign(speed) * 0.5 * probe.normal_force, rel=2e-3)


def test_friction_is_there_within_the_distance_that_the_filter_waits():
    probe = pressed(SURFACE, 3e-3, seconds=0.1, speed=0.03)  # 3 mm
    assert abs(probe.wrench[0]) == pytest.approx(0.5 * probe.normal_force, rel=2e-3)


def test_the_moment_is_that_of_the_force_at_the_tip():
    fx, fy, moment = pressed(SURFACE, 3e-3, speed=0.03).wrench
    assert moment == pytest.approx(TIP[0] * fy - TIP[1] * fx, rel=1e-9)


def test_a_curved_surface_falls_away_by_the_square_of_the_distance():
    curved = replace(SURFACE, curvature=1.0 / 0.3)
    depth, normal = curved.depth(curved.touch + [0.02, -0.003], 0.0)
    assert depth == pytest.approx(0.003 - 0.02**2 / 0.6, rel=0.02)
    assert normal[0] == pytest.approx(0.02 / 0.3, rel=0.02)


def test_stiffness_jumps_at_four_seconds():
    surface = replace(SURFACE, jump=1.5)
    assert surface.push(2e-3, 4.1) == pytest.approx(1.5 * surface.push(2e-3, 3.9))


def test_a_hertz_contact_meets_the_spring_at_four_millimetres():
    hertz = replace(SURFACE, power=1.5)
    assert hertz.push(4e-3, 0.0) == pytest.approx(SURFACE.push(4e-3, 0.0))
    assert hertz.push(1e-3, 0.0) == pytest.approx(0.5 * SURFACE.push(1e-3, 0.0))


def test_a_recording_stays_in_contact_and_below_fifty_newtons(tmp_path):
    case = probing.write(tmp_path, "clean", np.random.default_rng(3))
    with np.load(tmp_path / "probe.npz") as archive:
        force = np.linalg.norm(archive["wrench"][:, :2], axis=1)
        assert archive["pose"].shape == (200, 3)
    assert np.mean(force[5:] > 2.0) > 0.95
    assert force.max() < 50.0
    assert set(case.truth) == {"tip_x", "tip_y", "phi", "d", "stiffness", "friction"}
