"""Real recordings: a Panda's excitation is explained, presses of a UR16e are refused."""

import dataclasses

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.validation import cross_validate, shrinkage
from contact_estimation.io.npz import read_npz
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm

SETTINGS = CalibrationSettings()


def test_each_half_of_the_panda_excitation_predicts_the_other():
    arm = load_arm("panda")
    recording = read_npz(shared_file("data/panda_excitation/panda_excitation.npz"), arm.joint_names)
    found = identify(arm, [recording], SETTINGS)
    ratio = shrinkage(cross_validate(arm, found.designs, SETTINGS))
    assert (ratio < 0.3).all() and np.median(ratio) < 0.1, ratio
    assert found.value("payload")[0] == pytest.approx(0.65, abs=0.1)  # the hand


def ur10e(arm, name):
    rows = np.load(shared_file("data/ur10e_identification/ur10e_logs.npz"))[f"identification_data__ur-{name}"]
    return Recording(
        np.round(rows[:, 0] * 1e9).astype(np.int64),
        arm.joint_names,
        rows[:, 1:7],
        rows[:, 7:13],
        arm.motor.torque_from_current(rows[:, 13:19]),
        name,
    )


def test_one_ur10e_log_predicts_another_and_its_load_is_seen():
    arm = load_arm("ur10e")
    logs = [ur10e(arm, name) for name in ("20_02_19_14harm50sec", "20_02_19_15harm50sec")]
    found = identify(arm, logs, SETTINGS)
    assert (shrinkage(cross_validate(arm, found.designs, SETTINGS)) < 0.3).all()
    loaded = identify(arm, [ur10e(arm, "20_02_19_14harm50secLoad")], SETTINGS)
    assert loaded.value("payload")[0] - found.value("payload")[0] > 2.0


@pytest.mark.parametrize("number", [1, 3])
def test_a_press_is_no_free_motion(number):
    arm = load_arm("ur16e")
    press = read_npz(shared_file(f"data/ur16e_press/ur_vertical_{number}.npz"), arm.joint_names)
    with pytest.raises(IdentificationError, match=r"contact at .* the force sensor reads"):
        identify(arm, [press], SETTINGS)
    with pytest.raises(IdentificationError, match=r"shoulder_pan_joint moves over .*condition number"):
        identify(arm, [dataclasses.replace(press, wrench_tcp=None)], SETTINGS)


def test_a_ur10e_read_as_a_ur16e_is_refused():
    arm = load_arm("ur10e")
    with pytest.raises(IdentificationError, match=r"gravity of robot 'ur16e' asks for.*another robot"):
        identify(load_arm("ur16e"), [ur10e(arm, "20_02_19_14harm50sec")], SETTINGS)
