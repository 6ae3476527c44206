"""The simulated press obeys its own truth: free flight, contact, noise, repeatability."""

import numpy as np
import pytest
from presses import START, press
from simulated_press import PressSettings, PressSimulation

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def samples(arm):
    """2 mm of approach, then 4 mm into the block, back out and in again; no noise."""
    return press(arm, 1400, clearance=0.002, depth=0.004, period=2.0, damping=0.0, position_noise=0.0, torque_noise=0.0)


def column(samples, name):
    return np.array([getattr(s, name) for s in samples])


def test_the_force_is_the_block_s_spring_and_never_pulls(arm, samples):
    position, rotation = arm.tcp_poses(column(samples, "q"))
    force_base = np.einsum("nij,nj->ni", rotation, column(samples, "force_tcp"))
    depth = column(samples, "rest")[:, 2] - position[:, 2]
    # The force of the last of the sub-steps is that before the position moved on: half a millisecond of motion, 0.25 um
    # here.
    np.testing.assert_allclose(force_base[:, 2], 25e3 * np.maximum(depth, 0), atol=2.5)
    assert np.abs(force_base[:, :2]).max() < 1e-9 and force_base[:, 2].min() >= 0 and force_base[:, 2].max() > 40
    np.testing.assert_array_equal(column(samples, "in_contact"), force_base[:, 2] > 0)


def test_it_starts_free_touches_and_lifts_off(samples):
    contact = column(samples, "in_contact")
    edges = np.flatnonzero(np.diff(contact.astype(int)))
    assert not contact[0] and len(edges) == 3  # in, out, in
    assert 0.2 < edges[0] * 0.002 < 0.8 and edges[1] * 0.002 == pytest.approx(2.0 - edges[0] * 0.002, abs=0.2)


def test_samples_obey_the_equation_of_motion(arm, samples):
    """M ddq + C + G + B dq = tau + J^T f on the published signals."""
    q, dq, tau = (column(samples, name) for name in ("q", "dq", "tau"))
    ddq = np.gradient(dq, 0.002, axis=0)
    for k in range(100, 1300, 97):
        rotation = arm.tcp_pose(q[k])[1]
        push = arm.tcp_jacobian(q[k])[:3].T @ rotation @ samples[k].force_tcp
        left = arm.mass(q[k]) @ ddq[k] + arm.coriolis(q[k], dq[k]) + arm.gravity(q[k]) + arm.motor.viscous * dq[k]
        np.testing.assert_allclose(left, tau[k] + push, atol=0.5)


def test_stamps_are_equidistant_from_the_first_period(samples):
    stamps = column(samples, "stamp_ns")
    assert stamps[0] == 2_000_000 and set(np.diff(stamps)) == {2_000_000}


def test_noise_is_what_was_asked_for_and_repeats_with_its_seed(arm, samples):
    changes = {
        "count": 600,
        "clearance": 0.002,
        "depth": 0.004,
        "period": 2.0,
        "damping": 0.0,
        "position_noise": 1e-4,
        "torque_noise": 0.5,
    }
    noisy, again, other = (press(arm, seed=seed, **changes) for seed in (3, 3, 4))
    q_noise = column(noisy, "q") - column(samples[:600], "q")
    tau_noise = column(noisy, "tau") - column(samples[:600], "tau")
    assert q_noise.std() == pytest.approx(1e-4, rel=0.05) and tau_noise.std() == pytest.approx(0.5, rel=0.05)
    # noise is measured, not felt
    np.testing.assert_array_equal(column(noisy, "force_tcp"), column(samples[:600], "force_tcp"))
    np.testing.assert_array_equal(column(noisy, "q"), column(again, "q"))
    assert (column(noisy, "q") != column(other, "q")).all()


def test_another_rate_gives_the_same_motion(arm):
    slow = press(arm, 100, rate=250.0, substeps=16, position_noise=0.0, torque_noise=0.0)
    fast = press(arm, 200, position_noise=0.0, torque_noise=0.0, substeps=8)
    np.testing.assert_allclose(column(slow, "q"), column(fast, "q")[1::2], atol=2e-5)


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="'stiffness' must be greater than 0"):
        from_mapping(PressSettings, {"start": START, "stiffness": -5}, "press")


def test_damping_adds_to_the_force_on_the_way_in(arm):
    plain, damped = (
        press(arm, 300, period=2.0, depth=0.01, damping=d, position_noise=0.0, torque_noise=0.0) for d in (0.0, 2000.0)
    )
    assert damped[200].force_tcp[2] < plain[200].force_tcp[2] - 2.0  # pushing down is negative along the tool's axis


def test_the_simulation_is_made_for_the_arm_it_is_given():
    arm = load_arm("fr3")
    simulation = PressSimulation(arm, PressSettings(start=[0.0, -0.4, 0.0, -2.2, 0.0, 1.8, 0.8]))
    sample = simulation.step()
    assert sample.q.shape == (7,) and simulation.period == 0.002
