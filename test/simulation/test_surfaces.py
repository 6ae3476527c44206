"""Surfaces: the stiffness and friction a scenario states are those that act."""

import numpy as np
import pytest

from contact_estimation.settings import replace
from contact_estimation.simulation.arm import SimulatedArm
from contact_estimation.simulation.session import Simulation, open_simulation
from contact_estimation.simulation.surfaces import Anchor, Face, PointMemory


@pytest.mark.parametrize("stiffness", [1e3, 1e4, 3e4, 1e5])
def test_stiffness_measured_in_the_press_is_the_one_set(stiffness):
    sim = open_simulation("linear_contact", imperfections="ideal")
    surface = {**sim.scenario.surfaces[0].__dict__, "stiffness": stiffness, "friction": 0.0}
    segments = [
        {"duration": 0.5, "move": [0, 0, -0.0014]},
        {"duration": 0.5, "move": [0, 0, -0.0014]},
        {"duration": 0.5, "move": [0, 0, -0.0020]},
        {"duration": 0.5, "move": [0, 0, -0.0020]},
    ]
    sim = open_simulation("linear_contact", imperfections="ideal", surfaces=[surface], motion=segments)
    samples = list(sim.run())
    # From what can be measured from outside: forward kinematics of q, and the force at the flange.
    poses = [sim.arm.tcp_pose(samples[k].q) for k in (498, 998)]
    force = [(pose[1] @ samples[k].truth["wrench_tcp"][:3])[2] for pose, k in zip(poses, (498, 998))]
    measured = (force[1] - force[0]) / (poses[0][0][2] - poses[1][0][2])
    assert measured == pytest.approx(stiffness, rel=0.01)


def test_friction_holds_below_the_limit_and_slides_at_it():
    face = Face("f", [0, 0, 0], [0, 0, 1], 1e4, friction=0.3)
    memory, step = PointMemory(), 1e-3
    point = np.array([0.0, 0.0, -1e-3])
    for _ in range(5):
        stick = face.touch(point, np.array([1e-3, 0, 0]), memory, step).force
    assert stick[0] == pytest.approx(-0.7e4 * 5e-6)
    for _ in range(1000):
        slide = face.touch(point, np.array([0.02, 0.01, 0]), memory, step).force
    assert np.hypot(*slide[:2]) == pytest.approx(0.3 * slide[2], rel=1e-6)
    assert slide[:2] @ [0.02, 0.01] < 0


def test_face_never_pulls_and_ends_at_its_bounds():
    face = Face("f", [0, 0, 0], [0, 0, 1], 1e4, damping=1e4, bounds=[([1.0, 0, 0], 0.05)], depth=0.01)
    away = face.touch(np.array([0, 0, -1e-4]), np.array([0, 0, 5.0]), PointMemory(), 1e-3)
    assert not away.force.any()
    for point in ([0.06, 0, -1e-3], [0, 0, 1e-3], [0, 0, -0.02]):
        assert not face.touch(np.array(point), np.zeros(3), PointMemory(), 1e-3).closed


def test_hysteresis_loses_energy_and_keeps_the_slope_over_long_travel():
    face = Face("f", [0, 0, 0], [0, 0, 1], 2e4, hysteresis=(8.0, 3e-4))
    memory, down = PointMemory(), np.linspace(0, -4e-3, 801)
    path = np.concatenate([down, down[::-1]])
    speed = np.gradient(path) / 1e-3
    force = np.array(
        [face.touch(np.array([0, 0, z]), np.array([0, 0, v]), memory, 1e-3).force[2] for z, v in zip(path, speed)]
    )
    assert np.sum(force[:-1] * -np.diff(path)) > 0.01
    assert force[600] - force[1001] == pytest.approx(16.0, rel=0.05)  # the same depth, in and out


def test_each_point_has_its_own_hysteresis_and_a_reset_forgets_it():
    """The second of two tool points hangs in the air."""
    sim = open_simulation("linear_contact", imperfections="ideal")
    arm, q, forces = sim.arm, sim.plant.q.copy(), []
    face = Face("f", sim.plant.position, [0, 0, 1], 2e4, hysteresis=(8.0, 3e-4))
    torque = arm.gravity(q) + arm.tcp_jacobian(q)[:3].T @ [0.0, 0.0, -40.0]
    for points in ([[0, 0, 0]], [[0, 0, 0], sim.plant.rotation.T @ [0, 0, 0.1]]):
        plant = SimulatedArm(arm, q, [face], np.array(points), sim.imperfections, 1e-3, np.random.default_rng(0))
        for _ in range(2):
            plant.reset(q)
            forces.append([])
            for _ in range(50):
                plant.step(torque)
                forces[-1].append(plant.wrench_tcp.copy())
    assert np.abs(forces[0]).max() > 10.0
    for other in forces[1:]:
        np.testing.assert_allclose(other, forces[0], atol=1e-9)


def test_anchor_pulls_along_its_axes_only():
    anchor = Anchor("a", [0, 0, 0], [1000, 0, 700])
    touch = anchor.touch(np.array([0.01, 0.5, -0.02]), np.zeros(3), np.zeros(3), 1e-3)
    assert np.allclose(touch.force, [-10, 0, 14])
    # As one contact: the force along its own direction, over the displacement there.
    along = touch.force / np.linalg.norm(touch.force)
    assert np.allclose(touch.stiffness, along * np.linalg.norm(touch.force) / -(along @ [0.01, 0.5, -0.02]))
    even = Anchor("b", [0, 0, 0], [1000, 1000, 1000])
    for point in ([0.01, 0.0, -0.02], [0.0, 0.0, 0.0]):  # also where it is at rest
        held = even.touch(np.array(point), np.zeros(3), PointMemory(), 1e-3)
        assert np.linalg.norm(held.stiffness) == pytest.approx(1000)


def test_an_open_anchor_exerts_no_force():
    anchor = Anchor("a", [0, 0, 0], [1000, 0, 700], damping=20.0)
    anchor.holds = False
    touch = anchor.touch(np.array([0.01, 0.5, -0.02]), np.ones(3), PointMemory(), 1e-3)
    assert not touch.closed and not touch.force.any()


def test_truth_obeys_the_papers_law_in_the_scenario():
    sim = open_simulation("linear_contact", imperfections="ideal")
    surface = {**sim.scenario.surfaces[0].__dict__, "damping": 0.0, "friction": 0.0}
    sim = open_simulation("linear_contact", imperfections="ideal", surfaces=[surface])
    for _ in range(2000):
        sample = sim.step()
    truth = sample.truth
    rotation = sim.arm.tcp_pose(sample.q)[1]
    expected = np.linalg.norm(truth["stiffness"]) * (truth["rest"] - truth["contact_point"])
    assert expected[2] > 30
    assert np.allclose(rotation @ truth["wrench_tcp"][:3], expected, atol=1e-6)
    assert np.allclose(sim.arm.tcp_jacobian(sample.q)[:3].T @ expected, truth["tau_ext"], atol=1e-6)


def test_same_seed_same_samples_other_seed_others():
    def tau(seed):
        sim = open_simulation("linear_contact", seed=seed)
        return np.array([sim.step().tau for _ in range(50)])

    assert np.array_equal(tau(1), tau(1))
    assert not np.array_equal(tau(1), tau(2))


def test_placement_error_moves_the_surface_not_the_motion():
    sim = open_simulation("plane", imperfections="ideal", placement_error=[0.0, 0.0, 0.02])
    assert sim.plant.surfaces[0].point[2] - sim.rest[2] == pytest.approx(0.02)


def test_an_arm_no_scenario_knows_starts_in_its_ready_posture():
    from contact_estimation.robot.arm import Arm

    known = open_simulation("plane", imperfections="ideal")
    other = Simulation(known.scenario, Arm(replace(known.arm.settings, name="other")), known.imperfections)
    assert other.plant.q == pytest.approx(known.arm.settings.ready) and other.uses_impedance == known.uses_impedance


def test_a_face_is_drawn_where_it_is():
    normal = np.array([0.6, 0.0, 0.8])
    face = Face("f", [0.1, 0.2, 0.3], normal, 1e4, bounds=[(np.array([0.0, 1.0, 0.0]), 0.05)])
    slab = face.slab()
    corners = slab.position + (np.array(list(np.ndindex(2, 2, 2))) - 0.5) * slab.size @ slab.rotation.T
    heights = (corners - face.point) @ normal
    np.testing.assert_allclose(sorted(set(np.round(heights, 9))), [-slab.size[2], 0.0], atol=1e-9)
    assert (corners - face.point)[:, 1].max() == pytest.approx(0.05)
