"""The papers' offline fit finds a planted contact, and says why where it cannot."""

import dataclasses

import numpy as np
import pytest
from presses import press

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.fit.paper import PaperWeights, fit_paper
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace, to_mapping


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def samples(arm):
    return press(arm, 2500, position_noise=1e-6, torque_noise=0.05, depth=0.006)


@pytest.fixture(scope="module")
def recording(arm, samples):
    columns = [np.array([getattr(s, name) for s in samples]) for name in ("stamp_ns", "q", "dq", "tau")]
    return Recording(columns[0], arm.joint_names, *columns[1:], "simulated press")


def start(**contact):
    """The physical EKF with nothing estimated online, whose contact is the start of the fit."""
    mapping = to_mapping(load_observer_settings("ekf"))
    mapping["contacts"][0].update({"estimate": [], "stiffness": [0.0, 0.0, 1e4]} | contact)
    noise = mapping["process_noise"] | {"unknown_torque": 0.5, "unknown_torque_share": 0.0}
    return replace(load_observer_settings("ekf"), **(mapping | {"process_noise": noise}))


@pytest.mark.parametrize(
    "weights", [PaperWeights(), PaperWeights(rest=0.0)], ids=["printed", "without the rest's term"]
)
def test_planted_contact_is_found(arm, recording, samples, weights):
    """25 kN/m from a start of 10; on friction-free data the printed regularisers do no harm."""
    found = fit_paper(arm, start(), SensorSettings(), recording, weights, passes=2, pairs=800)
    assert found.passes[-1] == pytest.approx(25e3, rel=0.03) and len(found.passes) == 2
    np.testing.assert_allclose(found.stiffness, [0, 0, 25e3], atol=750)
    np.testing.assert_allclose(found.point, 0, atol=1e-3)
    assert found.rest[2] == pytest.approx(samples[0].rest[2], abs=1e-4)


def test_two_contacts_are_refused(arm, recording):
    one = start()
    two = dataclasses.replace(one, contacts=[one.contacts[0], dataclasses.replace(one.contacts[0], name="other")])
    with pytest.raises(ConfigError, match="with one contact, found an observer of kind 'ekf' with 2 contacts"):
        fit_paper(arm, two, SensorSettings(), recording)


def test_bad_samples_are_refused_with_their_time(arm, recording):
    q = recording.q.copy()
    q[700, 2] = np.nan
    with pytest.raises(
        RecordingError,
        match=r"simulated press: the sample at 1.402 s cannot be used.*position of "
        r"elbow_joint",
    ):
        fit_paper(arm, start(), SensorSettings(), dataclasses.replace(recording, q=q))


def test_too_short_a_recording_is_refused(arm, recording):
    short = Recording(
        recording.stamps_ns[:5], arm.joint_names, recording.q[:5], recording.dq[:5], recording.tau[:5], "five samples"
    )
    with pytest.raises(RecordingError, match="five samples: 5 samples are too few"):
        fit_paper(arm, start(), SensorSettings(), short)
