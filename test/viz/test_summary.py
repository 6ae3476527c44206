"""Figures of a replay against errors that are known."""

import dataclasses

import numpy as np
import pytest
from recordings import press_recording
from shared import shared_file

from contact_estimation.io.npz import read_npz
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.viz.reference import CONTACT_FORCE, FREE_FORCE, _low_pass, reference_of
from contact_estimation.viz.scores import Scores
from contact_estimation.viz.summary import summarise


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def recording(arm):
    return press_recording(arm, seconds=4.0)


def columns_with(force, stiffness):
    count = len(force)
    return {
        "t": np.arange(count) / 500,
        "valid": np.ones(count, bool),
        "force": force,
        "stiffness": stiffness,
        "step_time": np.linspace(1e-6, 100e-6, count),
        "mode": np.repeat(["free", "contact"], [count // 2, count - count // 2]),
        "mode_probability": np.zeros((count, 2)),
    }


def test_known_errors_come_out(recording):
    reference = reference_of(recording)
    assert reference.label == "truth" and reference.stiffness == 20_000
    count = len(recording)
    force = reference.force[:] + np.array([3.0, -4.0, 2.0])
    stiffness = np.where(np.arange(count) < 800, 5_000.0, 22_000.0)
    figures = summarise(columns_with(force, stiffness), reference)
    for part in ("contact", "free"):
        assert figures["force"][part]["rmse_z"] == pytest.approx(2.0)
        assert figures["force"][part]["bias_z"] == pytest.approx(2.0)
        assert figures["force"][part]["rmse_xy"] == pytest.approx(np.sqrt(12.5))
    assert figures["stiffness"]["median"] == 22_000 and figures["stiffness"]["error"] == pytest.approx(0.1)
    start = np.argmax(reference.contact[:])
    assert figures["stiffness"]["settled_s"] == pytest.approx((800 - start) / 500)
    assert figures["step_us"]["p50"] == pytest.approx(50.5)
    assert figures["mode_changes"] == 1
    assert figures["step_us"]["p99"] == pytest.approx(99.0, rel=1e-2)


def test_a_gentle_simulated_contact_is_scored_too(recording):
    """5 N are contact where the truth says so; a sensor's 5 N are not."""
    scale = 5.0 / np.abs(recording.truth["wrench_tcp"][:, 2]).max()
    gentle = {
        name: scale * value if name in ("wrench_tcp", "tau_ext") else value for name, value in recording.truth.items()
    }
    reference = reference_of(dataclasses.replace(recording, truth=gentle))
    assert np.count_nonzero(reference.contact[:]) > 500 and np.count_nonzero(reference.free[:]) > 100
    assert not (reference.contact[:] & reference.free[:]).any() and reference.stiffness == 20_000
    measured = reference_of(dataclasses.replace(recording, truth={}, wrench_tcp=gentle["wrench_tcp"]))
    assert not measured.contact[:].any()


def test_a_push_from_the_side_or_on_a_link_is_no_free_space():
    """A truth is scored in any direction and anywhere; its pushes have no stiffness to compare with."""
    table, side, link = slice(0, 300), slice(500, 700), slice(800, 900)
    truth = {"wrench_tcp": np.zeros((1000, 6)), "stiffness": np.zeros((1000, 3)), "tau_ext": np.zeros((1000, 1))}
    truth["wrench_tcp"][table, 2], truth["stiffness"][table, 2] = -30.0, 20_000.0
    truth["wrench_tcp"][side, 1] = 40.0
    truth["tau_ext"][link] = 20.0
    recording = Recording(2_000_000 * np.arange(1000), ("a",), *np.zeros((3, 1000, 1)), "pushes", truth=truth)
    reference = reference_of(recording)
    assert reference.contact[:][250] and reference.stiff[:][250]
    assert reference.contact[:][600] and not reference.stiff[:][side].any() and reference.stiffness == 20_000.0
    assert not reference.contact[:][850] and not reference.free[:][link].any()
    assert reference.free[:][400] and reference.free[:][950]


def test_scores_do_not_depend_on_the_blocks(recording):
    reference, rng, count = reference_of(recording), np.random.default_rng(0), len(recording)
    stiffness = np.where(rng.random(count) < 0.003, 5_000.0, 21_000.0)
    columns = columns_with(reference.force[:] + rng.normal(size=(count, 3)), stiffness)
    columns |= {"valid": rng.random(count) < 0.9, "reason": np.full(count, "it fell by 3 m", dtype=object)}
    columns["mode"] = rng.choice(["free", "contact"], count)
    whole, parts = Scores(reference), Scores(reference)
    whole.add(columns)
    for begin in range(0, count, 37):
        parts.add({name: column[begin : begin + 37] for name, column in columns.items()})
    expected, found = whole.figures(), parts.figures()
    assert expected["stiffness"]["settled_s"] is not None and parts.reasons.counts() == whole.reasons.counts()
    for name in ("contact", "free"):
        assert found["force"].pop(name) == pytest.approx(expected["force"].pop(name))
    assert found == expected


def test_the_reference_of_a_long_recording_is_that_of_its_parts(recording):
    """The low-pass of a block sees its neighbours: contact changes where it does in one pass over all samples."""
    force = np.tile(recording.truth["wrench_tcp"], (9, 1))
    long = Recording(
        2_000_000 * np.arange(len(force)), ("a",), *np.zeros((3, len(force), 1)), "long", truth={"wrench_tcp": force}
    )
    reference = reference_of(long)
    push = np.linalg.norm(_low_pass(force[:, :3], 0.002), axis=1)
    np.testing.assert_array_equal(reference.contact[:], push > CONTACT_FORCE)
    np.testing.assert_array_equal(reference.free[:], push < FREE_FORCE)


@pytest.mark.parametrize("kind", ["truth", "measured"])
def test_a_force_that_is_missing_is_left_out_and_told(recording, kind):
    """Samples beside a gap stay what they are: 0 N in the gap would end the contact, and begin free space, there."""
    force = recording.truth["wrench_tcp"].copy()
    parts = {"truth": recording.truth | {"wrench_tcp": force}}
    if kind == "measured":
        parts = {"truth": {}, "wrench_tcp": force}
    whole = reference_of(dataclasses.replace(recording, **parts))
    contact, free = whole.contact[:].copy(), whole.free[:].copy()
    gap = np.zeros(len(force), bool)
    light = int(np.argmax(np.linalg.norm(force[:, :3], axis=1) > 14.0))  # half of it would be no contact
    gap[light : light + 80] = gap[-100:] = True
    force[gap] = np.nan
    broken = reference_of(dataclasses.replace(recording, **parts))
    assert broken.missing == pytest.approx(gap.mean()) and whole.missing == 0.0 and broken.label == kind
    assert broken.description == f"{kind}, missing (NaN) for 9 % of the time" and whole.description == kind
    assert not (broken.contact[:] | broken.free[:])[gap].any()
    assert (broken.contact[:] != contact)[~gap].mean() < 0.002 and (broken.free[:] != free)[~gap].mean() < 0.002
    estimate = np.nan_to_num(recording.truth["wrench_tcp"][:, :3]) + [0.0, 0.0, 2.0]
    figures = summarise(columns_with(estimate, np.full(len(force), np.nan)), broken)["force"]
    assert figures["missing"] == broken.missing and figures["contact"]["rmse_z"] == pytest.approx(2.0)


def test_invalid_rows_do_not_count(recording):
    reference = reference_of(recording)
    columns = columns_with(reference.force[:].copy(), np.full(len(recording), np.nan))
    columns["valid"][::2] = False
    columns["force"][::2] = np.nan
    figures = summarise(columns, reference)
    assert figures["valid"] == len(recording) // 2 and figures["force"]["contact"]["rmse_z"] == 0.0


def test_stiffness_that_never_settles(recording):
    columns = columns_with(reference_of(recording).force[:], np.full(len(recording), 1000.0))
    assert summarise(columns, reference_of(recording))["stiffness"]["settled_s"] is None


def test_without_reference(recording):
    bare = dataclasses.replace(recording, wrench_tcp=None, truth={})
    assert reference_of(bare) is None
    figures = summarise(columns_with(np.zeros((len(recording), 3)), np.ones(len(recording))), None)
    assert figures["force"] is None and figures["stiffness"] is None and figures["samples"] == len(recording)


def test_measured_stiffness_is_the_slope_of_force_on_position(arm, recording):
    measured = dataclasses.replace(recording, truth={})
    reference = reference_of(measured, arm.tcp_poses)
    assert reference.label == "measured" and reference.stiffness == pytest.approx(20_000, rel=1e-3)


def test_contact_and_stiffness_of_the_papers_recording(arm):
    recording = read_npz(shared_file("data/ur16e_press/ur_vertical_3.npz"), arm.joint_names)
    reference = reference_of(recording, arm.tcp_poses)
    assert reference.stiffness == pytest.approx(26_718, rel=0.02)
    assert reference.contact[:].sum() / len(recording) == pytest.approx(0.72, abs=0.05)
