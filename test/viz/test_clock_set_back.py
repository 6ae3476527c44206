"""A recording whose clock was set back in its middle: durations, figures and plots go on from there."""

import dataclasses
import json
import re

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.io.elapsed import ForwardTime
from contact_estimation.io.npz import write_npz
from contact_estimation.io.survey import survey
from contact_estimation.robot import load_arm
from contact_estimation.viz.scores import _Settling


@pytest.fixture(scope="module")
def recording():
    """A press of 2 s whose clock is set back by 1000 s after 400 samples."""
    whole = press_recording(load_arm("ur16e"))
    back = np.where(np.arange(len(whole)) < 400, 0, 10**12)
    return dataclasses.replace(whole, stamps_ns=whole.stamps_ns - back + 2 * 10**12)


def test_steps_back_are_taken_out_across_blocks():
    time, t = ForwardTime(), np.array([5.0, 6.0, 7.0, 2.0, 3.0, 1.0, 2.0])
    assert np.concatenate([time.stamps(t[:3]), time.stamps(t[3:5]), time.stamps(t[5:])]).tolist() == [
        *(5.0, 6.0, 7.0, 7.0, 8.0, 8.0, 9.0)
    ]


def test_samples_out_of_order_set_no_clock_back():
    t = np.array([5.0, 5.004, 5.002, 5.006])
    assert ForwardTime().stamps(t) is t


def test_the_duration_is_never_negative(recording):
    assert survey(recording).duration == pytest.approx(0.002 * (len(recording) - 2))


def test_a_stiffness_settles_after_the_contact(recording):
    """0.2 s before the clock is set back the contact begins; its stiffness is right 0.3 s later."""
    time, t = ForwardTime(), np.concatenate([1e3 + 2e-3 * np.arange(200), 2e-3 * np.arange(600)])
    settling, rows = _Settling(2e4), np.arange(800)
    settling.add(time.stamps(t), np.where(rows < 250, 1e4, 2e4), rows >= 100)
    assert settling.seconds == pytest.approx(0.3, abs=0.004)


def test_the_verbs_tell_it_and_show_what_was_recorded(recording, tmp_path, capsys):
    file = str(write_npz(tmp_path / "press.npz", recording))
    words = ["--robot", "ur16e", "--sensors", "joint_torque", "--out", str(tmp_path / "page.html")]
    assert main(["compare", file, *words, "--observers", "ekf", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["recording"]["duration_s"] == pytest.approx(2.0, abs=0.01)
    settled = told["observers"]["ekf"]["stiffness"]["settled_s"]
    assert settled is None or 0.0 <= settled < 2.0
    assert f"press.npz: {len(recording)} samples, 2.0 s" in (tmp_path / "page.html").read_text()
    assert main(["view", file, *words, "--observer", "ekf"]) == 0
    assert "view: warning: 1 stamps are earlier than the one before (first: sample 400" in capsys.readouterr().err
    times = [float(t) for t in re.findall(r'"t":([-\d.e]+),"valid"', (tmp_path / "page.html").read_text())]
    assert times == sorted(times) and times[0] == 0.0 and times[-1] == pytest.approx(2.0, abs=0.01)
