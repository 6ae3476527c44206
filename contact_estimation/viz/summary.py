"""Figures of an observer's error on a recording, against a simulation's truth or a measured wrench."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_estimation.io.recording import Recording

#: In contact: the reference force along the TCP's z, low-passed at 5 Hz, exceeds the first [N]; free: below the other.
#: Less, in proportion, where a simulation's truth stays below twice the first.
CONTACT_FORCE, FREE_FORCE = 10.0, 6.0
_CUTOFF = 5.0  # [Hz]
_WITHIN, _HOLD = 0.2, 0.5  # a stiffness has settled when it stays this close (relative) for this long [s]

#: Columns of the summary table: heading -> factor and where :func:`summarise` has it.
_FIGURES: dict[str, tuple[float, tuple[str, ...]]] = {
    "z in contact [N]": (1, ("force", "contact", "rmse_z")),
    "xy in contact [N]": (1, ("force", "contact", "rmse_xy")),
    "z free [N]": (1, ("force", "free", "rmse_z")),
    "stiffness [kN/m]": (1e-3, ("stiffness", "median")),
    "error [%]": (100, ("stiffness", "error")),
    "settled [s]": (1, ("stiffness", "settled_s")),
    "mode changes": (1, ("mode_changes",)),
    "step median [µs]": (1, ("step_us", "p50")),
    "step 99 % [µs]": (1, ("step_us", "p99")),
}


@dataclass(frozen=True)
class Reference:
    """What estimates are compared with. A measured force is compared as the sensor gave it, not tared.

    Attributes:
        label: "truth" or "measured".
        force: (N, 3) [N] on the robot, TCP axes.
        contact: (N,) bool, where the reference force shows contact.
        free: (N,) bool, where it shows none.
        stiffness: [N/m] in contact, NaN where none is known.
        stiffness_label: where the stiffness comes from.
    """

    label: str
    force: np.ndarray
    contact: np.ndarray
    free: np.ndarray
    stiffness: float
    stiffness_label: str


def reference_of(
    recording: Recording, tcp_position: np.ndarray | None = None, tcp_rotation: np.ndarray | None = None
) -> Reference | None:
    """Take the reference of a recording.

    Args:
        recording: n joints, N samples.
        tcp_position: (N, 3) [m] of the TCP in the base. With it and the rotation the stiffness of a measured contact is
            the least-squares slope of force on position along the mean contact force.
        tcp_rotation: (N, 3, 3) of the TCP's axes in the base.

    Returns:
        The reference, or None where the recording carries neither truth nor a measured force.
    """
    truth = recording.truth.get("wrench_tcp")
    wrench = truth if truth is not None else recording.wrench_tcp
    if wrench is None or np.isnan(wrench[:, :3]).all():
        return None
    force = wrench[:, :3]
    zero = np.zeros(3) if truth is not None else recording.wrench_zero[:3]
    push = np.abs(_low_pass(np.nan_to_num(force[:, 2] - zero[2]), recording.period))
    known = np.isfinite(force).all(axis=1)
    # A truth has no noise to be told from: a task of a few newtons is scored by half of its largest force.
    share = min(push.max() / (2.0 * CONTACT_FORCE), 1.0) if truth is not None and push.max() > 1.0 else 1.0
    contact, free = known & (push > share * CONTACT_FORCE), known & (push < share * FREE_FORCE)
    stiffness, label = float("nan"), ""
    if "stiffness" in recording.truth and contact.any():
        stiffness = float(np.median(np.linalg.norm(recording.truth["stiffness"][contact], axis=1)))
        label = "truth"
    elif tcp_position is not None and tcp_rotation is not None and np.count_nonzero(contact) > 10:
        in_base = np.einsum("nij,nj->ni", tcp_rotation, force)
        normal = in_base[contact].mean(axis=0)
        normal /= np.linalg.norm(normal)
        slope = np.polyfit(tcp_position[contact] @ normal, in_base[contact] @ normal, 1)[0]
        stiffness, label = float(-slope), "measured, least squares in contact"
    return Reference("truth" if truth is not None else "measured", force, contact, free, stiffness, label)


def _low_pass(values: np.ndarray, period: float) -> np.ndarray:
    """Second-order Butterworth forwards and backwards (gain 1 / (1 + (f / cutoff)^4), no phase), over mirrored ends.

    In numpy, because importing scipy.signal takes as long as replaying half a minute.
    """
    if len(values) < 2:
        return values
    spectrum = np.fft.rfft(np.concatenate([values, values[::-1]]))
    spectrum /= 1.0 + (np.fft.rfftfreq(2 * len(values), period) / _CUTOFF) ** 4
    return np.fft.irfft(spectrum, 2 * len(values))[: len(values)]


def summarise(columns: Mapping[str, np.ndarray], reference: Reference | None) -> dict[str, Any]:
    """Say in figures how well one observer did.

    Args:
        columns: of its log.
        reference: what to compare with.

    Returns:
        samples, valid; ``mismatch``: lines of :func:`mismatches`; ``step_us`` (p50, p99); ``mode_changes``, how often
        the committed mode of valid estimates changed, where there are modes; with a reference ``force`` (RMSE and bias
        [N] of the TCP's z and xy, in contact and free) and ``stiffness`` [N/m]: median in contact, relative error of
        the median, seconds from the first contact until the estimate stays within 20 % for half a second (None:
        never). Parts that cannot be told are None.
    """
    valid = columns["valid"]
    steps = columns["step_time"][np.isfinite(columns["step_time"])] * 1e6
    figures: dict[str, Any] = {"samples": len(valid), "valid": int(np.count_nonzero(valid))}
    figures["mismatch"] = mismatches(columns) if "mismatch" in columns else []
    figures |= dict.fromkeys(("force", "stiffness", "step_us", "mode_changes"))
    if columns["mode_probability"].shape[1]:
        modes = columns["mode"][valid]
        figures["mode_changes"] = int(np.count_nonzero(modes[1:] != modes[:-1]))
    if len(steps):
        figures["step_us"] = {"p50": float(np.median(steps)), "p99": float(np.percentile(steps, 99))}
    if reference is None:
        return figures
    error = columns["force"] - reference.force
    figures["force"] = {"reference": reference.label}
    for name, mask in (("contact", reference.contact & valid), ("free", reference.free & valid)):
        chosen = error[mask]
        figures["force"][name] = (
            None
            if not len(chosen)
            else {"rmse_z": _rms(chosen[:, 2]), "rmse_xy": _rms(chosen[:, :2]), "bias_z": float(chosen[:, 2].mean())}
        )
    mask = reference.contact & valid
    if "stiffness" in columns and mask.any():
        figures["stiffness"] = _stiffness_figures(columns, reference, mask)
    return figures


def summary_table(figures: Mapping[str, dict[str, Any]]) -> tuple[list[str], list[list[object]]]:
    """Make header and rows of the table of ``figures``: observer -> what ``summarise`` gave."""
    rows: list[list[object]] = [
        [name, f"{values['valid']}/{values['samples']}", *figure_columns(values).values()]
        for name, values in figures.items()
    ]
    return ["observer", "valid", *_FIGURES], rows


def figure_columns(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """Take what the summary table shows from the ``figures`` of one observer: heading -> value."""
    found = {}
    for heading, (factor, where) in _FIGURES.items():
        value: Any = figures
        for key in where:
            value = None if value is None else value.get(key)
        found[heading] = None if value is None else factor * value
    return found


def touched_links(columns: Mapping[str, np.ndarray]) -> list[str]:
    """Say which links each contact touched, for how long, and where that was told as a point.

    Args:
        columns: of an observer's log.

    Returns:
        A line per contact and link, the longest touch first.
    """
    links, seconds = columns["contact_link"], float(np.median(np.diff(columns["t"]))) if len(columns["t"]) > 1 else 0.0
    lines = []
    for i in range(links.shape[1]):
        for link, samples in Counter(links[:, i].tolist()).most_common():
            if not link:
                continue
            points = columns["contact_point_base"][links[:, i] == link, i]
            points = points[np.isfinite(points).all(axis=1)]
            place = ", ".join(f"{value:.3f}" for value in np.median(points, axis=0)) if len(points) else ""
            where = f"median point ({place}) m in the base frame" if place else "too uncertain for a point"
            lines.append(f"{link} for {samples * seconds:.2f} s, {where}")
    return lines


def mismatches(columns: Mapping[str, np.ndarray]) -> list[str]:
    """Say how model and data disagreed, and for how long, the longest first.

    Args:
        columns: of an observer's log.
    """
    seconds = float(np.median(np.diff(columns["t"]))) if len(columns["t"]) > 1 else 0.0
    kinds = _kinds(columns["mismatch"].tolist())
    return [f"{words} ({count * seconds:.2f} s)" for words, count in kinds.most_common() if words]


def _kinds(words: list[str]) -> Counter[str]:
    """Count words; those that differ in their numbers only are one, named by the last of them."""
    kinds: dict[str, list[str]] = {}
    for text in words:
        kinds.setdefault(re.sub(r"[-+.\d]+", "#", text), []).append(text)
    return Counter({texts[-1]: len(texts) for texts in kinds.values()})


def invalid_reasons(columns: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, Counter[str]]:
    """Count how often each reason made an estimate invalid.

    Args:
        columns: observer -> columns of its log.

    Returns:
        Observer -> count of each reason, without observers that have none. Reasons that differ in their numbers only
        are one, named by the last of them.
    """
    found = {}
    for name, c in columns.items():
        if kinds := _kinds(c["reason"][~c["valid"]].tolist()):
            found[name] = kinds
    return found


def _stiffness_figures(columns: Mapping[str, np.ndarray], reference: Reference, mask: np.ndarray) -> dict[str, Any]:
    median = float(np.median(columns["stiffness"][mask]))
    known = 0.0 < reference.stiffness < np.inf
    figures = {"median": median, "reference": reference.stiffness if known else None, "error": None, "settled_s": None}
    if known:
        figures["error"] = median / reference.stiffness - 1.0
        close = np.abs(columns["stiffness"] / reference.stiffness - 1.0) < _WITHIN
        figures["settled_s"] = _settled(columns["t"], close, int(np.argmax(reference.contact)))
    return figures


def _settled(t: np.ndarray, good: np.ndarray, start: int) -> float | None:
    """Seconds from sample ``start`` to the first from which ``good`` holds for ``_HOLD`` seconds."""
    bad = np.flatnonzero(~good[start:]) + start
    begins = np.concatenate([[start], bad + 1])
    ends = np.concatenate([bad, [len(t) - 1]])
    for begin, end in zip(begins, ends):
        if begin < len(t) and t[min(end, len(t) - 1)] - t[begin] >= _HOLD:
            return float(t[begin] - t[start])
    return None


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))
