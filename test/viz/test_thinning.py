"""Thinning: no peak and no change is lost, however short, and what is kept of a recording of any length is bounded."""

import json

import numpy as np
import pytest
from chromium import EXECUTABLE, Chromium

from contact_estimation.filters.observer import Estimate
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.viz.frames import RecordedFrames, recorded_frames
from contact_estimation.viz.player import recording_page
from contact_estimation.viz.thinning import MAX_CHANGES, MAX_PERIODS, Thinning, frame_period


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def thin(t, curves, kinds, period, block=1000):
    thinning, rows, drawn = Thinning(float(t[0]), period), [], []
    for begin in range(0, len(t), block):
        part = slice(begin, begin + block)
        chosen = thinning.choose(t[part], curves[part], np.abs(curves[part, 0]), kinds[part])
        rows += (begin + chosen.rows).tolist()
        drawn += (begin + chosen.rows[chosen.drawn]).tolist()
    return thinning, rows, drawn


@pytest.mark.parametrize("block", [1000, 777, 60_000])
def test_every_extreme_and_every_change_is_kept(block):
    rng = np.random.default_rng(3)
    t = np.arange(60_000) / 500.0
    curves, kinds = rng.normal(size=(60_000, 2)), np.full(60_000, "free", dtype=object)
    curves[100:400, 1] = np.nan
    kinds[31_001:31_004], kinds[50_000] = "tip", "invalid"
    _, rows, drawn = thin(t, curves, kinds, 1.0, block)
    for number in range(120):
        part = slice(500 * number, 500 * number + 500)
        for curve in curves.T:
            extremes = {part.start + int(np.nanargmin(curve[part])), part.start + int(np.nanargmax(curve[part]))}
            assert extremes <= {*rows}
        assert part.start in drawn and part.start + int(np.abs(curves[part, 0]).argmax()) in drawn
    assert {31_000, 31_001, 31_003, 31_004, 49_999, 50_000, 50_001} <= {*rows}
    assert rows == sorted({*rows}) and len(rows) < 120 * 8 + 7 + 4 * (60_000 // block + 1)


def test_changes_without_end_are_bounded_and_counted():
    t, curves = np.arange(50_000) / 500.0, np.zeros((50_000, 1))
    kinds = np.array(["free", "tip"] * 25_000, dtype=object)
    thinning, rows, drawn = thin(t, curves, kinds, 1.0, 500)
    assert len(rows) <= 100 * (2 * MAX_CHANGES + 3) and len(drawn) <= 100 * 3
    assert thinning.left_out == 49_999 - 100 * MAX_CHANGES


def estimate(t, force, mode):
    vector = np.array([0.0, 0.0, force])
    joints = np.zeros(6), np.zeros(6), np.zeros(6)
    return Estimate(t, *joints, vector, vector, np.zeros(3), np.eye(3), mode=mode, modes={"free": 0.5, "tip": 0.5})


def long_recording(arm, hours, rate):
    """A peak of one sample at half time, in a mode of its own."""
    count = round(3600 * hours * rate)
    stamps = 1_000_000_000 + (np.arange(count) * (1e9 / rate)).astype(np.int64)
    q = np.tile(arm.settings.ready, (count, 1))
    recording = Recording(stamps, arm.joint_names, q, np.zeros_like(q), np.zeros_like(q), "made")
    log = EstimateLog("made", count)
    for k, stamp in enumerate(stamps.tolist()):
        peak = k == count // 2
        log.append(stamp, estimate(1e-9 * stamp, 77.0 if peak else 5.0 * np.sin(0.01 * k), "tip" if peak else "free"))
    return recording, {"made": log}


def test_a_page_of_hours_is_bounded_and_keeps_the_peak_of_one_sample(arm):
    sizes = []
    for hours in (1.0, 3.0):
        recording, logs = long_recording(arm, hours, 8.0)
        frames = recorded_frames(arm, recording, logs)
        peak = [frame for frame in frames["made"].frames if frame["force"][2] == 77.0]
        assert len(peak) == 1 and peak[0]["mode"] == "tip" and "shapes" in peak[0]
        assert sum("shapes" in frame for frame in frames["made"].frames) <= 3 * MAX_PERIODS + 2
        sizes.append(len(recording_page(arm, "long", frames)))
        rate = 1.0 / frame_period(recording.duration)
        assert f"shown: {rate:.3g} frames per second" in recording_page(arm, "long", frames)
    assert sizes[1] < 1.2 * sizes[0]


def test_blocks_make_the_frames_of_the_whole(arm):
    recording, logs = long_recording(arm, 0.05, 50.0)
    whole = recorded_frames(arm, recording, logs)["made"]
    parts, log = RecordedFrames(arm, float(recording.t[0]), recording.duration), EstimateLog("made", 1000)
    columns = logs["made"].columns()
    row = 0
    for block in recording.blocks(1000):
        log.clear()
        for stamp in block.stamps_ns.tolist():
            force, mode = columns["force"][row, 2], str(columns["mode"][row])
            log.append(stamp, estimate(1e-9 * stamp, force, mode))
            row += 1
        parts.add(block, log)
    assert parts.samples == whole.samples and {f["t"] for f in whole.frames} <= {f["t"] for f in parts.frames}
    assert len(parts.frames) <= len(whole.frames) + 8 * 9


@pytest.mark.skipif(EXECUTABLE is None, reason="no chromium here (Debian's package 'chromium')")
def test_curves_of_an_hour_are_drawn(arm, tmp_path):
    recording, logs = long_recording(arm, 1.0, 8.0)
    page = recording_page(arm, "long", recorded_frames(arm, recording, logs))
    assert json.loads(page.split('id="data">')[1].split("</script>")[0])["period"] > 0.5
    (tmp_path / "page.html").write_text(page)
    ink = """(() => {
      const canvas = document.getElementById("forceplot"), begin = Math.round(0.75 * canvas.width);
      const pixels = canvas.getContext("2d").getImageData(begin, 0, canvas.width - begin, canvas.height).data;
      let count = 0;
      for (let k = 0; k < pixels.length; k += 4) if (pixels[k + 1] > pixels[k] + 60 && pixels[k + 3] > 100) count++;
      return count;
    })()"""
    with Chromium() as browser:
        shown = browser.open((tmp_path / "page.html").as_uri() + "#t=1800")
        shown.wait("window.contactView && contactView.drawn > 0")
        assert shown.run("contactView.shown") == pytest.approx(1800.0, abs=1.3)
        assert shown.run(ink) > 50  # of the green curve
        windows = shown.run("[...document.getElementById('window').options].map((option) => option.text)")
        assert windows == ["10 min", "1 h"]
        drawn = shown.run("contactView.drawn")
        shown.run("document.getElementById('window').value = '3600'; document.getElementById('window').onchange()")
        shown.wait(f"contactView.drawn > {drawn}")
        assert shown.run(ink) == 0  # half an hour fills the left half
        shown.run("seek(3599)")
        shown.wait("contactView.shown > 3500")
        assert shown.run(ink) > 50
