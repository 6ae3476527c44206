"""The report on a replayed or recorded run: one page with a table of figures and the pictures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contact_estimation.io.elapsed import ForwardTime
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording, Samples
from contact_estimation.io.row_file import RowFile
from contact_estimation.io.survey import missing_words
from contact_estimation.robot import Arm
from contact_estimation.viz import plots
from contact_estimation.viz.curves import Curves
from contact_estimation.viz.html import Page
from contact_estimation.viz.picture import peak_picture
from contact_estimation.viz.player import Box
from contact_estimation.viz.reference import Reference
from contact_estimation.viz.scores import Scores
from contact_estimation.viz.summary import summary_table

#: Caption of each figure.
_FORCE = (
    "Force of the environment on the robot, TCP axes. Truth or measurement is the force at the tool; an estimate also "
    "shows the force of a contact on a link. Bands: 2 sigma; a wide band may leave the axes, which fit the curves."
)
_STIFFNESS = "Norm of the stiffness vector while in contact; bands: 2 sigma."
_POINT = (
    "Contact point on the robot (solid; bands: 2 sigma of the point in the tool; truth dashed) and rest position of "
    "the environment (dotted), base frame, from the first point."
)
_TCP = "Position of the TCP by the joint positions, base frame, from the first one."
_INNOVATION = (
    "Normalised innovation squared (NIS) over its 95 % bound. The noise of the torques stands for friction and model "
    "errors, which last for seconds. From one sample to the next they hardly change, so that the NIS is far below 1."
)
_TIMING = "Wall-clock time from a sample to its stored estimate, on this machine."


class Table(NamedTuple):
    """A table of a report.

    Attributes:
        heading: above it.
        caption: what it shows.
        header: of its columns.
        rows: cells.
    """

    heading: str
    caption: str
    header: list[str]
    rows: list[list[object]]


@dataclass(frozen=True)
class ReplayedRun:
    """What a report is about: one recording and what observers made of it.

    Attributes:
        arm: the robot.
        recording: what was replayed, in memory or in a file.
        curves: observer -> curves of its estimates, one per sample of the recording; one observer at least.
        reference: of :func:`~contact_estimation.viz.reference.reference_of`; None where the recording has none.
        scores: observer -> scores of its estimates.
    """

    arm: Arm
    recording: Samples
    curves: Mapping[str, Curves]
    reference: Reference | None
    scores: Mapping[str, Scores]

    @classmethod
    def of(
        cls, arm: Arm, recording: Recording, logs: Mapping[str, EstimateLog], reference: Reference | None
    ) -> ReplayedRun:
        """Take logs in memory, observer -> its estimates, one per sample of the recording."""
        scores = {name: Scores.of(log.columns(), reference) for name, log in logs.items()}
        return cls(arm, recording, {name: Curves.of(log) for name, log in logs.items()}, reference, scores)


class _Motion:
    """What the pictures need of a recording: TCP and true contact point on disk, and one row's joint positions.

    Attributes:
        t0: stamp of the first sample [s].
        duration: [s].
        time: of the wanted row, since the first sample [s].
        q: joint positions (n,) [rad] of the wanted row.
        point: (N, 3) true contact point [m], base frame; None where the recording has none.
        tcp: (N, 3) position of the TCP [m], base frame.
    """

    def __init__(self, arm: Arm, recording: Samples, row: int) -> None:
        self.t0, self.time, self.q = float(recording.head.t[0]), 0.0, np.zeros(arm.n)
        self.tcp, self.point, done, last = RowFile(tail=(3,)), None, 0, self.t0
        time = ForwardTime()
        for block in recording.blocks():
            t = time.stamps(block.t)
            self.tcp.append(arm.tcp_poses(block.q)[0])
            if "contact_point" in block.truth:
                self.point = self.point or RowFile(tail=(3,))
                self.point.append(block.truth["contact_point"])
            if done <= row < done + len(block):
                self.time, self.q = float(t[row - done] - self.t0), block.q[row - done]
            done, last = done + len(block), float(t[-1])
        self.duration = last - self.t0


@dataclass(frozen=True)
class ReportExtras:
    """What a report says beyond the run itself.

    Attributes:
        subtitle: below the title; by default the recording's source and length.
        command: how to make the report again, printed at its end.
        boxes: bodies in the picture of the arm.
        tables: before the other tables.
        page_3d: name of the 3-D page beside the report, if there is one.
    """

    subtitle: str = ""
    command: str = ""
    boxes: Sequence[Box] = ()
    tables: Sequence[Table] = ()
    page_3d: str = ""


def replay_report(path: Path | str, run: ReplayedRun, title: str, extras: ReportExtras = ReportExtras()) -> Path:
    """Write the report: the arm at its largest force, tables of figures, then curves.

    Args:
        path: the HTML file.
        run: what it shows.
        title: of the page.
        extras: what else it says.

    Returns:
        The path.
    """
    recording, first = run.recording, next(iter(run.curves.values()))
    count, peak = len(first), first.peak
    motion = _Motion(run.arm, recording, -1 if peak is None else peak.row)
    page = Page(title, extras.subtitle or f"{recording.head.source}: {count} samples, {motion.duration:.1f} s")
    if peak is not None:
        page.image(*peak_picture(run.arm, motion.q, motion.time, first.observer, peak, extras.boxes))
    if extras.page_3d:
        page.link("The same in 3-D, with a time slider", extras.page_3d)
    for table in extras.tables:
        page.heading(table.heading)
        page.paragraph(table.caption, note=True)
        page.table(table.header, table.rows)
    _add_accuracy(page, run)
    _add_figures(page, run, motion)
    if extras.command:
        page.heading("Make it again")
        page.code(extras.command)
    return page.write(path)


def _add_accuracy(page: Page, run: ReplayedRun) -> None:
    """Add the table of scores, and in words what was invalid, touched and contradictory."""
    page.heading("Accuracy of the whole run")
    page.table(*summary_table({name: own.figures() for name, own in run.scores.items()}))
    page.paragraph(_explain(run.reference), note=True)
    for name, own in run.scores.items():
        if reasons := own.reasons.counts():
            page.paragraph(
                f"{name}: {sum(reasons.values())} estimates are invalid and left out: "
                + "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(5))
            )
        if lines := run.curves[name].touched_links():
            page.paragraph(f"{name}, links that were touched: " + "; ".join(lines))
        if lines := own.mismatches():
            page.paragraph(f"{name}, model and data disagree: " + "; ".join(lines))


def _add_figures(page: Page, run: ReplayedRun, motion: _Motion) -> None:
    """Add the curves of all observers."""
    runs, reference, t0 = run.curves, run.reference, motion.t0
    t, truth = next(iter(runs.values())).curve("t") - t0, None if motion.point is None else motion.point[:]
    figures = [("Force", plots.force_figure(runs, t0, reference), _FORCE)]
    if reference is not None:
        caption = f"Estimated minus {reference.label} force along the TCP's z."
        figures.append(("", plots.error_figure(runs, t0, reference), caption))
    for heading, figure, caption in [
        *figures,
        ("Stiffness", plots.stiffness_figure(runs, t0, reference), _STIFFNESS),
        ("TCP", plots.tcp_figure(t, motion.tcp[:]), _TCP),
        ("Contact point", plots.contact_point_figure(runs, t0, truth), _POINT),
        ("Innovation", plots.innovation_figure(runs, t0), f"{_INNOVATION} {_nis(runs)}"),
        ("Timing", plots.timing_figure(runs), _TIMING),
    ]:
        if heading:
            page.heading(heading)
        if figure is None:
            page.paragraph("None of the observers estimates this.", note=True)
        else:
            page.figure(figure, caption)


def _nis(runs: Mapping[str, Curves]) -> str:
    """Median NIS per degree of freedom of each observer that has one."""
    medians = {
        name: float(np.nanmedian(run.curve("nis_per_dof"))) for name, run in runs.items() if run.has("nis_per_dof")
    }
    return "Median per degree of freedom: " + ", ".join(f"{name} {median:.3f}" for name, median in medians.items())


def _explain(reference: Reference | None) -> str:
    if reference is None:
        return "The recording has neither a measured wrench nor truth: estimates are shown without errors."
    truth = reference.label == "truth"
    source = "the simulation's truth" if truth else "the force/torque sensor, as it reads, not tared"
    way, links = ("", ", and no link is pushed") if truth else ("along the TCP's z ", "")
    known = reference.stiffness_label
    stiffness = f" Stiffness is compared with {reference.stiffness:.0f} N/m ({known})." if known else ""
    gaps = f" The reference is {missing_words(reference.missing)}; it is left out." if reference.missing else ""
    return (
        f"Force columns are RMS errors against {source}. In contact: it pushes {way}with more than "
        f"{reference.contact_force:.3g} N; free: with less than {reference.free_force:.3g} N{links}. Stiffness is the "
        f"median in contact; settled: time from the first contact until it stays within 20 %.{stiffness}{gaps}"
    )
