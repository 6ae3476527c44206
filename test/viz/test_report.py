"""The report: complete, self-contained, and right about what is absent."""

import dataclasses
import re

import numpy as np
import pytest
from chromium import EXECUTABLE, Chromium
from recordings import press_recording

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm
from contact_estimation.viz import plots
from contact_estimation.viz.curves import Curves
from contact_estimation.viz.reference import reference_of
from contact_estimation.viz.report import ReplayedRun, ReportExtras, _explain, replay_report
from contact_estimation.viz.scores import Scores
from contact_estimation.viz.summary import summarise, summary_table


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def recording(arm):
    return press_recording(arm)


@pytest.fixture(scope="module")
def logs(arm, recording):
    return {name: replay(recording, open_stream(arm, name)) for name in ("momentum", "paper_online")}


def test_report_is_one_page_that_fetches_nothing(arm, logs, recording, tmp_path):
    run = ReplayedRun.of(arm, recording, logs, reference_of(recording))
    path = replay_report(tmp_path / "r" / "report.html", run, "Replay", ReportExtras(command="replay me"))
    page = path.read_text()
    assert page.count("data:image/png;base64") == 8
    assert not re.search(r"(src|href)=\"?(http|/)", page)
    for text in ("momentum", "paper_online", "1000/1000", "20000 N/m (truth)", "replay me", "against the simulation"):
        assert text in page, text


@pytest.mark.skipif(EXECUTABLE is None, reason="no chromium here (Debian's package 'chromium')")
def test_a_report_is_as_wide_as_a_phone(arm, logs, recording, tmp_path):
    path = replay_report(
        tmp_path / "report.html", ReplayedRun.of(arm, recording, logs, reference_of(recording)), "Replay"
    )
    with Chromium() as browser:
        shown = browser.open(path.as_uri())
        shown.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        shown.wait("document.querySelectorAll('figure').length == 8")
        assert shown.run("document.documentElement.scrollWidth") == 390  # a wide table scrolls by itself


def test_report_without_reference_or_contact(arm, logs, recording, tmp_path):
    bare = dataclasses.replace(recording, wrench_tcp=None, truth={})
    run = ReplayedRun.of(arm, bare, {"momentum": logs["momentum"]}, None)
    page = replay_report(tmp_path / "report.html", run, "Replay").read_text()
    assert "neither a measured wrench nor truth" in page and "None of the observers estimates this." in page


def test_the_report_names_the_forces_that_divide_contact_from_free(recording):
    """A simulation of 5 N is scored by a half and 0.3 of its largest force."""
    gentle = 5.0 / np.abs(recording.truth["wrench_tcp"][:, 2]).max() * recording.truth["wrench_tcp"]
    said = _explain(reference_of(dataclasses.replace(recording, truth=recording.truth | {"wrench_tcp": gentle})))
    contact, free = map(float, re.search(r"more than (\S+) N; free: with less than (\S+) N", said).groups())
    assert contact == pytest.approx(2.5, rel=0.05) and free == pytest.approx(0.6 * contact, rel=0.01)
    assert "more than 10 N; free: with less than 6 N" in _explain(reference_of(recording))


def test_invalid_estimates_are_told(arm, recording, tmp_path):
    tau = recording.tau.copy()
    tau[10:13] = np.nan
    log = replay(dataclasses.replace(recording, tau=tau), open_stream(arm, "momentum"))
    scores = Scores(None)
    scores.add(log.columns())
    assert sum(scores.reasons.counts().values()) == 3
    run = ReplayedRun.of(arm, recording, {"momentum": log}, reference_of(recording))
    page = replay_report(tmp_path / "report.html", run, "Replay").read_text()
    assert "3 estimates are invalid" in page and "997/1000" in page


def test_table_has_the_summarys_figures(logs, recording):
    figures = summarise(logs["momentum"].columns(), reference_of(recording))
    header, rows = summary_table({"momentum": figures})
    row = dict(zip(header, rows[0]))
    assert row["z in contact [N]"] == figures["force"]["contact"]["rmse_z"]
    assert row["stiffness [kN/m]"] == pytest.approx(figures["stiffness"]["median"] / 1e3)
    assert row["error [%]"] == pytest.approx(100 * figures["stiffness"]["error"])


def test_curves_and_bands_are_the_columns(logs, recording):
    columns = {name: log.columns() for name, log in logs.items()}
    runs = {name: Curves.of(log) for name, log in logs.items()}
    fig = plots.force_figure(runs, 0.0, reference_of(recording))
    lines = fig.axes[2].get_lines()
    assert [line.get_label() for line in lines] == ["truth", "momentum", "paper_online"]
    np.testing.assert_array_equal(lines[2].get_ydata(), columns["paper_online"]["force"][:, 2])
    bands = fig.axes[2].collections
    assert len(bands) == 2
    top = bands[1].get_paths()[0].vertices[:, 1].max()
    sigma = np.sqrt(columns["paper_online"]["force_covariance"][:, 2, 2])
    assert top == pytest.approx((columns["paper_online"]["force"][:, 2] + 2 * sigma).max())


def test_an_observer_has_one_colour_in_every_figure(logs, recording):
    runs = {name: Curves.of(log) for name, log in logs.items()}  # momentum first; it has no rest and no innovation
    figures = [
        plots.force_figure(runs, 0.0),
        plots.contact_point_figure(runs, 0.0),
        plots.innovation_figure(runs, 0.0),
        plots.stiffness_figure(runs, 0.0),
        plots.timing_figure(runs),
    ]
    lines = [line for fig in figures for line in fig.axes[0].get_lines() if line.get_label() == "paper_online"]
    colours = {line.get_color() for line in lines}
    assert len(lines) == 5
    assert len(colours) == 1
