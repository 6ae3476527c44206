"""What a calibration cannot know, or has wrong, makes it doubtful: a shared scale, a late torque, another robot."""

import dataclasses

import numpy as np
import pytest
from fit.calibration.planted import PAYLOAD, TRUTH, free_motion

from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.doubts import doubts
from contact_estimation.robot import load_arm

SETTINGS = CalibrationSettings()


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def calibrated(arm, *recordings, settings=SETTINGS):
    """What is identified, and what is doubtful about it."""
    found = identify(arm, recordings, settings)
    return found, doubts(arm, found, settings)


def late(recording, seconds):
    """The recording with its torque late by a time."""
    tau = np.column_stack([np.interp(recording.t - seconds, recording.t, column) for column in recording.tau.T])
    return dataclasses.replace(recording, tau=tau)


@pytest.mark.parametrize("seed, speed", [(0, 1.0), (1, 1.0), (3, 1.7)])
def test_a_recording_of_the_robot_is_not_doubted(arm, seed, speed):
    assert calibrated(arm, free_motion(arm, seed=seed, speed=speed))[1] == []


@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize("scale", [0.85, 1.15])
def test_a_scale_of_all_joints_is_no_payload(arm, scale, payload):
    """The joints without gravity keep a scale of 1, which must not turn into a load."""
    recording = free_motion(arm, seed=1, payload=payload)
    tau = recording.tau * np.array(TRUTH.torque_scale) / scale
    found, told = calibrated(arm, dataclasses.replace(recording, tau=tau))
    mass, std = found.value("payload")[0], found.std("payload")[0]
    assert abs(mass - payload * PAYLOAD[0]) < 1.96 * std < 0.3
    np.testing.assert_allclose(1 / found.value("gain")[found.weighed], scale, rtol=0.03)
    assert len(told) == 1 and "does not show the scale, which stays 1" in told[0]
    assert float(told[0].split()[3]) == pytest.approx(scale, abs=0.02)


def test_a_scale_of_one_joint_is_named(arm):
    recording = free_motion(arm, seed=1)
    tau = recording.tau * [1.0, 1 / 0.88, 1.0, 1.0, 1.0, 1.0]
    told = calibrated(arm, dataclasses.replace(recording, tau=tau))[1]
    assert any("times the torque of shoulder_lift_joint: another robot" in doubt for doubt in told), told


@pytest.mark.parametrize("seconds, word", [(0.005, "late"), (0.02, "late"), (-0.01, "early")])
def test_a_late_torque_is_told_with_its_delay(arm, seconds, word):
    told = [doubt for doubt in calibrated(arm, late(free_motion(arm, seed=1), seconds))[1] if "ms" in doubt]
    assert len(told) == 1 and f"ms {word} beside the positions" in told[0]
    delay, std = (float(told[0].split()[k]) for k in (3, 5))
    assert delay == pytest.approx(1e3 * abs(seconds), abs=max(1.96 * std, 1.0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_robot_that_is_not_refused_is_doubted(seed):
    """Fast motion: gravity shows too few scales for a refusal."""
    recording = free_motion(load_arm("ur10e"), seed=seed, payload=False, speed=2.0)
    told = calibrated(load_arm("ur16e"), recording, settings=CalibrationSettings(max_scale_error=0.9))[1]
    assert any("the links of robot 'ur16e' do not fit" in doubt for doubt in told), told


def test_a_payload_that_depends_on_what_is_kept_is_doubted(arm):
    """The planted scales and rotor inertias are not those that are kept; the payload takes their part."""
    found, told = calibrated(arm, free_motion(arm, seed=0), settings=CalibrationSettings(identify=["payload"]))
    assert abs(found.value("payload")[0] - PAYLOAD[0]) > 1.0
    assert any("the payload would be" in doubt for doubt in told), told


def test_a_load_that_is_not_identified_is_doubted(arm):
    told = calibrated(arm, free_motion(arm, seed=0), settings=CalibrationSettings(identify=["armature", "asymmetry"]))[
        1
    ]
    assert any("a tool that is not there" in doubt for doubt in told), told
