"""Recordings: shapes, joints by name, and what is wrong with samples."""

import dataclasses

import numpy as np
import pytest
from recordings import JOINTS, small_recording

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.recording import joint_columns
from contact_estimation.io.survey import survey


def test_reordered_moves_every_joint_column():
    recording = small_recording()
    turned = recording.reordered(JOINTS[::-1])
    for name in ("q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(recording, name)[:, ::-1])
    np.testing.assert_array_equal(turned.truth["tau_ext"], recording.truth["tau_ext"][:, ::-1])
    np.testing.assert_array_equal(turned.truth["stiffness"], recording.truth["stiffness"])
    assert recording.reordered(JOINTS) is recording


def test_subset_of_the_recorded_joints():
    assert small_recording().reordered(JOINTS[1:2]).q.shape == (300, 1)


def test_misspelt_joint_names_the_nearest():
    with pytest.raises(RecordingError, match=r"no joint 'elbow_jiont' \(nearest there: 'elbow_joint'\).*--robot"):
        joint_columns(JOINTS, ("shoulder_pan_joint", "elbow_jiont"), "bag")


def test_names_that_are_not_alike_are_no_suggestion():
    with pytest.raises(RecordingError) as error:
        joint_columns(JOINTS, ("axis7",), "bag")
    assert "nearest" not in str(error.value)
    with pytest.raises(RecordingError) as error:
        joint_columns(JOINTS, ("arm_joint_1", "arm_joint_2", "arm_joint_3"), "bag")
    assert "nearest" not in str(error.value)  # of another robot


def test_missing_joint_when_all_others_are_used():
    with pytest.raises(RecordingError, match=r"bag: no joint 'wrist_1_joint' among the recorded joints.*4 joints"):
        joint_columns(JOINTS, (*JOINTS, "wrist_1_joint"), "bag")


def test_doubled_joint():
    with pytest.raises(RecordingError, match=r"elbow_joint is recorded more than once"):
        joint_columns((*JOINTS, "elbow_joint"), JOINTS, "bag")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"q": np.zeros((300, 4))}, r"q has shape \(300, 4\), expected \(300, 3\)"),
        ({"tau": np.zeros((299, 3))}, r"tau has shape \(299, 3\)"),
        ({"wrench_tcp": np.zeros((300, 3))}, r"wrench_tcp has shape \(300, 3\), expected \(300, 6\)"),
        ({"joint_names": ("a", "a", "b")}, "must be given and differ"),
        ({"stamps_ns": np.zeros(0)}, "holds no sample"),
        ({"truth": {"mass": np.zeros((300, 1))}}, "unknown truth 'mass'; known: wrench_tcp"),
        ({"truth": {"rest": np.zeros((300, 1))}}, "truth rest has shape"),
    ],
)
def test_shapes_are_refused(changes, text):
    with pytest.raises(RecordingError, match=text):
        small_recording(**changes)


def with_values(name, row, value):
    recording = small_recording(start_ns=0)
    changed = getattr(recording, name).copy()
    changed[row] = value
    return dataclasses.replace(recording, **{name: changed})


def test_a_good_recording_has_no_problem():
    small_recording().check(max_gap=0.01)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q", "dq", "tau"])
def test_bad_numbers_are_found_with_sample_and_joint(name, value):
    text = rf"1 samples hold NaN or infinite {name} \(first: sample 7, t = 0.0140 s, elbow"
    with pytest.raises(RecordingError, match=text):
        with_values(name, (7, 2), value).check()


def test_infinite_wrench_is_a_problem_but_an_unmeasured_part_is_not():
    with_values("wrench_tcp", (slice(None), slice(3, 6)), np.nan).check()
    with pytest.raises(RecordingError, match=r"1 measured wrenches are infinite"):
        with_values("wrench_tcp", (3, 0), np.inf).check()


def test_stamps_that_repeat_run_back_or_leave_a_gap():
    recording = small_recording(start_ns=0)
    stamps = recording.stamps_ns.copy()
    stamps[10] = stamps[9]
    stamps[50] -= 10_000_000
    stamps[100:] += 300_000_000
    found = dataclasses.replace(recording, stamps_ns=stamps).problems(max_gap=0.1)
    assert [text[: text.index("(")].strip() for text in found] == [
        "1 stamps repeat the one before",
        "1 stamps are earlier than the one before",
        "1 gaps are longer than 0.1 s",
    ]
    assert "sample 10," in found[0] and "sample 50," in found[1] and "sample 100," in found[2] and "0.302 s" in found[2]


def test_times():
    recording = small_recording(start_ns=1_000_000_000)
    assert recording.period == 0.002 and recording.duration == pytest.approx(0.598) and recording.t[0] == 1.0


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds")])
def test_steps_of_seconds_ask_for_the_unit(factor, unit):
    recording = small_recording(start_ns=0)
    stamps = (recording.stamps_ns * factor).astype(np.int64)
    found = dataclasses.replace(recording, stamps_ns=stamps).problems(max_gap=0.1)
    assert found[0].endswith(f"the median step is {2e-3 * factor:g} s: is `t` in {unit}?)")


def test_positions_in_degrees_are_asked_for():
    """A turn beyond the limits is left to arms whose description has narrower limits than their controller."""
    recording, limits = small_recording(), (np.full(len(JOINTS), -np.pi), np.full(len(JOINTS), np.pi))
    q = np.where(np.arange(len(recording))[:, None] < 2, recording.q, 6.0)
    assert not survey(dataclasses.replace(recording, q=q), limits=limits).problems
    q[2:, 1] = -75.0
    (problem,) = survey(dataclasses.replace(recording, q=q), limits=limits).problems
    assert (
        f"{len(q) - 2} positions are more than a turn beyond the joint limits, in degrees? (first: sample 2" in problem
    )
    assert f"{JOINTS[1]} -75 rad" in problem


def test_a_rate_far_too_low_is_a_problem():
    recording = small_recording(start_ns=0)
    slow = dataclasses.replace(recording, stamps_ns=recording.stamps_ns * 16)
    assert "samples come every 32 ms, the sensor set takes at most 12 ms" in survey(slow, 0.1, 0.012).problems[0]
    assert not survey(recording, 0.1, 0.012).problems


def test_stamps_in_seconds_are_refused():
    with pytest.raises(
        RecordingError, match=r"whole nanoseconds, found .*1.002.*; for seconds give np.round\(t \* 1e9"
    ):
        dataclasses.replace(small_recording(), stamps_ns=1.0 + 0.002 * np.arange(300))
    assert dataclasses.replace(small_recording(), stamps_ns=2e6 * np.arange(300)).period == 0.002


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_zero_of_the_force_sensor_that_is_no_number_is_refused(bad):
    """It would make every force of the recording unknown."""
    with pytest.raises(RecordingError, match=r"reading in free space holds NaN.*leave it out"):
        small_recording(wrench_zero=np.array([0.0, bad, 0.0, 0.0, 0.0, 0.0]))
