"""A step of the torque between two samples: faults are named, hard contacts are not, in a world that shares no code."""

import sys
from pathlib import Path

import numpy as np
import pytest

from contact_estimation import load_arm, open_stream
from contact_estimation.filters.plausibility.monitor import SignalMonitor
from contact_estimation.filters.settings import load_sensor_settings

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from rigid_body_recording import RATE, START, Push, Recording, RigidBodyArm, World, pushes, random_motion, record

#: [s] of a recording, and sample at which something happens.
DURATION, AT = 1.6, 400


@pytest.fixture(scope="module")
def body():
    return RigidBodyArm("fr3")


def recording_of(body: RigidBodyArm, *plan: Push) -> Recording:
    """An arm that stands still and is pushed."""
    t = np.arange(round(DURATION * RATE)) / RATE
    still = np.repeat([START["fr3"]], len(t), axis=0)
    return record(body, still, pushes(body, plan, t), World())


def told(recording: Recording, tau: np.ndarray) -> list[str]:
    """Return what the monitor says after each sample."""
    arm = load_arm("fr3")
    sensors = load_sensor_settings(arm.settings.sensors, arm.settings.folder)
    monitor, said = SignalMonitor(arm.measured_at(sensors.torque_side), sensors, np.ones(arm.n)), []
    for stamp, q, dq, effort in zip(recording.stamps, recording.q, recording.dq, tau):
        monitor.add(1e-9 * stamp, 1 / RATE, q, dq, effort)
        said.append(monitor.problem)
    return said


@pytest.mark.parametrize("link", [None, 3, 6])
@pytest.mark.parametrize("force", [[0, 0, 25.0], [0, 20.0, 15.0], [-30.0, 10.0, 0]])
def test_an_impact_within_one_sample_is_a_contact(body, force, link):
    hit = Push(AT / RATE, 1.3, np.array(force), rise=1 / RATE, link=link, offset=np.array([0.0, 0.05, 0.05]))
    recording = recording_of(body, hit)
    jump = float(np.abs(np.diff(recording.torque, axis=0)).max())
    assert jump > 1.0  # [Nm] from one sample to the next, three times the noise
    assert set(told(recording, recording.tau)) == {""}


FAULTS = {
    "opposite sign": lambda tau, gravity: -tau,
    "without gravity": lambda tau, gravity: tau - gravity,
    "common factor": lambda tau, gravity: 2.2 * tau,
    "fr3_joint2 and fr3_joint4 exchanged": lambda tau, gravity: tau[:, [0, 3, 2, 1, 4, 5, 6]],
    "fr3_joint4 alone": lambda tau, gravity: tau + 9.0 * np.eye(7)[3],
    "stepped": lambda tau, gravity: tau + np.array([8.0, -9, 7, 8, -5, 6, 5]),
}


@pytest.mark.parametrize("words", FAULTS)
def test_a_fault_within_one_sample_is_named(body, words):
    recording = recording_of(body)
    tau = recording.tau.copy()
    tau[AT:] = FAULTS[words](tau[AT:], recording.gravity[AT:])
    said = told(recording, tau)
    assert set(said[:AT]) == {""}
    assert all(words in text for text in said[AT + round(0.1 * RATE) :]), set(said)


def test_joints_that_come_in_another_order_in_mid_run_are_doubted_behind_the_jump(body):
    """Their positions jump, and are refused for as long as samples may be missing. Behind that nothing is proven."""
    t = np.arange(4 * RATE) / RATE
    theta = random_motion("fr3", t, np.random.default_rng(0), 0.3, 2.0)
    recording = record(body, theta, pushes(body, [], t), World())
    stream = open_stream("fr3", "contact_imm")
    good, begin = [], 2 * RATE
    for k, (stamp, *sample) in enumerate(recording.samples()):
        if k >= begin:
            sample = [values[::-1] for values in sample]
        estimate = stream.push(stamp, *sample)
        good.append(estimate.valid)
    assert all(good[:begin])
    assert stream.monitor.readings.proven.any()
    assert not any(good[begin:])


def test_a_mounting_that_changes_is_named(body):
    recording, turned = recording_of(body), RigidBodyArm("fr3")
    turned.model.gravity.linear = np.array([9.81, 0.0, 0.0])
    turned.data = turned.model.createData()
    tau = recording.tau.copy()
    tau[AT:] += recording_of(turned).gravity[AT:] - recording.gravity[AT:]
    assert "mounted otherwise" in told(recording, tau)[-1]
