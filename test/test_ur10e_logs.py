"""A real UR10e, calibrated from its own logs: free motion names no contact, pushes by hand are seen."""

import sys
from pathlib import Path

import numpy as np
import pytest
from shared import shared_file

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
import ur10e_logs


@pytest.fixture(scope="module")
def logs():
    files = ("ur10e_logs.npz", "ur10e_push_pose_1.npz")
    archive = {}
    for name in files:
        archive |= dict(np.load(shared_file(f"data/ur10e_identification/{name}")))
    return archive


@pytest.fixture(scope="module")
def arm(logs, tmp_path_factory):
    return ur10e_logs.calibrated(logs, tmp_path_factory.mktemp("ur10e"))


def found(logs, arm, name, observers=ur10e_logs.OBSERVERS):
    return ur10e_logs.estimates(arm, ur10e_logs.ur10e_log(logs, arm, name), observers)


#: All that once named a contact, and one of each other kind; ``benchmark/ur10e_logs.py`` has the row of every log.
FREE = (
    "identification_data__ur-20_02_19_14harm50sec",
    "identification_data__ur-20_02_05-20sec_8harm",
    "identification_data__ur-19_12_23_free",
    "validation_data__ur-20_01_17-ptp_10_points",
    "jointwise_motion__ur-20_01_22-joint_2",
    "jointwise_motion__ur-20_01_22-joint_4",
)


@pytest.mark.parametrize("name", FREE)
def test_free_motion_is_free(logs, arm, name):
    """Where a joint sets off from rest, static friction is no push for as long as the joint moves on."""
    contact = ur10e_logs.touching(found(logs, arm, name, ["contact_imm"])["contact_imm"])
    assert contact.mean() < 0.02 and np.count_nonzero(np.diff(contact.astype(int))) <= 2


def test_pushes_by_hand_are_seen(logs, arm):
    columns = found(logs, arm, ur10e_logs.PUSHES)
    pushed = np.linalg.norm(columns["momentum_calibrated"]["force"], axis=1) > ur10e_logs.PUSHED
    assert ur10e_logs.touching(columns["contact_imm"])[pushed].mean() > 0.9
