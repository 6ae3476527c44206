"""Curves of a report: what the log has, however it comes, and of every contact the links it touched."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm
from contact_estimation.viz import curves as module
from contact_estimation.viz.curves import Curves


def test_two_contacts_on_one_link_are_told_by_name():
    links = np.full((1000, 2), "", dtype=object)
    links[100:600, 0], links[300:400, 1], links[0:10, 1] = "wrist_3_link", "wrist_3_link", "forearm_link"
    points = np.full((1000, 2, 3), np.nan)
    points[100:600, 0] = [0.5, 0.1, 0.2]
    columns = {"t": np.arange(1000) / 500, "contact_link": links, "contact_point_base": points}
    curves = Curves("contact_imm")
    for rows in (slice(0, 350), slice(350, 1000)):
        part = {name: column[rows] for name, column in columns.items()}
        curves.add_columns(part)
        curves.add_links(part, ("peg", "unknown"))
    assert curves.touched_links() == [
        "wrist_3_link by peg for 1.00 s, median point (0.500, 0.100, 0.200) m in the base frame",
        "wrist_3_link by unknown for 0.20 s, too uncertain for a point",
    ]


@pytest.mark.parametrize("observer", ["contact_imm", "paper_online", "momentum"])
def test_estimates_that_come_one_by_one_give_the_curves_of_the_whole_log(observer, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 300)  # several blocks
    arm = load_arm("ur16e")
    recording = press_recording(arm)
    recording.tau[400:403] = np.nan  # some are not valid
    log, streamed = replay(recording, open_stream(arm, observer)), Curves(observer)
    stream = open_stream(arm, observer)
    for stamp_ns, *sample in zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau):
        streamed.append(stamp_ns, stream.push(stamp_ns, *sample), 1e-5)
    whole, columns = Curves.of(log), log.columns()
    assert len(streamed) == len(whole) == len(recording)
    assert streamed.valid == whole.valid == np.count_nonzero(columns["valid"]) < len(recording)
    for name in ("t", "force", "force_std", "stiffness", "stiffness_std", "contact_point", "rest", "nis_share"):
        assert streamed.has(name) == whole.has(name)
        np.testing.assert_array_equal(streamed.curve(name), whole.curve(name), err_msg=name)
    np.testing.assert_array_equal(streamed.points("force"), columns["force"])
    np.testing.assert_array_equal(streamed.curve("force_std", 2), np.sqrt(columns["force_covariance"][:, 2, 2]))
    if "stiffness" in columns:
        closed = columns["contact_probability"][:, 0] >= 0.5
        np.testing.assert_array_equal(streamed.curve("stiffness"), np.where(closed, columns["stiffness"], np.nan))
        np.testing.assert_array_equal(streamed.points("rest"), columns["rest"])
    sizes = np.nan_to_num(np.linalg.norm(columns["force"], axis=1))
    assert streamed.peak.row == whole.peak.row == np.argmax(sizes) and streamed.peak.size == sizes.max()
    np.testing.assert_array_equal(streamed.peak.estimate.force_tcp, columns["force"][streamed.peak.row])
