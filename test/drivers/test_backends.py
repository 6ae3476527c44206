"""Backends: what they read is what was recorded or simulated."""

import numpy as np
import pytest
from recordings import small_recording

from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def bag(arm, tmp_path_factory):
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=(30, arm.n)) for name in ("q", "dq", "tau")}
    truth = {"stiffness": rng.normal(size=(30, 3))}
    recording = small_recording(30, joint_names=arm.joint_names, truth=truth, **numbers)
    return write_bag(tmp_path_factory.mktemp("bag") / "bag", recording), recording


def test_replay_gives_every_sample_once(arm, bag):
    path, recording = bag
    backend = make_backend("replay", arm, recording=str(path))
    backend.connect()
    samples = list(iter(backend.read, None))
    assert [sample.stamp_ns for sample in samples] == recording.stamps_ns.tolist()
    np.testing.assert_array_equal([sample.tau for sample in samples], recording.tau)
    np.testing.assert_array_equal([sample.wrench_tcp for sample in samples], recording.wrench_tcp)
    np.testing.assert_array_equal([sample.truth["stiffness"] for sample in samples], recording.truth["stiffness"])
    backend.close()
    backend.close()


def test_replay_loops(arm, bag):
    path, recording = bag
    backend = make_backend("replay", arm, recording=str(path), loop=True)
    backend.connect()
    stamps = [backend.read().stamp_ns for _ in range(75)]
    assert stamps == (recording.stamps_ns.tolist() * 3)[:75]


def test_simulation_is_seeded_timed_and_has_its_truth(arm):
    def run(seed):
        backend = make_backend("simulated", arm, duration=0.1, seed=seed)
        backend.connect()
        return list(iter(backend.read, None))

    one, same, other = run(3), run(3), run(4)
    assert len(one) == 50 and set(np.diff([sample.stamp_ns for sample in one])) == {2_000_000}
    assert {"wrench_tcp", "stiffness", "rest", "contact_point"} <= set(one[0].truth)
    np.testing.assert_array_equal([s.tau for s in one], [s.tau for s in same])
    assert not np.array_equal([s.tau for s in one], [s.tau for s in other])


def test_what_cannot_be_read_is_named(arm, tmp_path):
    with pytest.raises(ConfigError, match="nearest: 'replay'"):
        make_backend("reply", arm)
    with pytest.raises(ConfigError, match="set the parameter 'recording'"):
        make_backend("replay", arm).connect()
    with pytest.raises(RecordingError, match="no such file"):
        make_backend("replay", arm, recording=str(tmp_path / "none")).connect()
    with pytest.raises(ConfigError, match="there is no task 'presses'"):
        make_backend("simulated", load_arm("fr3"), scenario="presses").connect()


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_a_commanded_simulated_arm_is_the_impedance_it_is_told_to_be(robot):
    """Whether it is position or torque controlled, and however the scenario's own motion is followed."""
    surface, stiffness = 26000.0, np.array([1500.0, 1500.0, 2000.0])
    backend = make_backend(
        "sim",
        load_arm(robot),
        scenario="linear_contact",
        duration=60.0,
        imperfections="ideal",
        impedance_stiffness=stiffness.tolist(),
    )
    backend.connect()

    def press(seconds):
        return np.array([-backend.read().truth["wrench_tcp"][2] for _ in range(round(500 * seconds))])

    before = press(4.0)[-1]
    assert before > 20.0
    start = backend.equilibrium()
    backend.command(start)
    held = press(1.0)
    assert held == pytest.approx(before, abs=1.0)  # taken over without a jump
    backend.command(EquilibriumPose(start.position - [0.0, 0.0, 0.005], start.rotation))
    expected = 0.005 / (1 / stiffness[2] + 1 / surface)
    assert press(4.0)[-1] - held[-1] == pytest.approx(expected, rel=0.02)
    assert make_backend("sim", load_arm(robot)).equilibrium() is None  # not connected
