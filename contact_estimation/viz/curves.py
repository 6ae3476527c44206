"""What a report draws of one observer's estimates: curves on disk, of which one at a time comes into memory.

An estimate is about 2 kB, a row of these curves less than 200 bytes. Nothing is rounded or left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.observer import CLOSED
from contact_estimation.io.elapsed import ForwardTime
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.row_file import BLOCK, RowFile
from contact_estimation.viz.frames import estimate_at

if TYPE_CHECKING:
    from contact_estimation.filters.observer import Estimate

#: Curve -> number of its components. The standard deviations are those of the curves beside them.
_CURVES = {
    "t": 1,
    "step_time": 1,
    "force": 3,
    "force_std": 3,
    "stiffness": 1,
    "stiffness_std": 1,
    "contact_point": 3,
    "contact_point_std": 3,
    "rest": 3,
    "nis_share": 1,
    "nis_per_dof": 1,
}
#: [s] A link that is told for a shorter time is passed while a contact begins or ends.
_BRIEF = 0.1


class Peak(NamedTuple):
    """The estimate with the largest force.

    Attributes:
        row: number of its sample.
        size: of the force [N].
        estimate: without joint positions.
    """

    row: int
    size: float
    estimate: Estimate


class Curves:
    """Collects estimates, and gives their curves (N,), NaN where there is none.

    Curves, each with its component: ``t`` [s], which goes on where the clock was set back, ``step_time`` [s], ``force``
    [N, TCP axes]; of the first contact ``stiffness`` [N/m] while it is closed, ``contact_point`` and ``rest`` [m, base
    frame]; ``force_std``, ``stiffness_std``, ``contact_point_std``; ``nis_share``, the normalised innovation squared
    over its 95 % bound, and ``nis_per_dof``.

    Args:
        observer: its name.

    Attributes:
        valid: number of valid estimates.
        peak: the one with the largest force; None before the first valid one.
    """

    def __init__(self, observer: str) -> None:
        self.observer, self.valid = observer, 0
        self.peak: Peak | None = None
        self._log = EstimateLog(observer, BLOCK)
        self._files = {(name, k): RowFile() for name, size in _CURVES.items() for k in range(size)}
        self._known: set[str] = set()
        self._time = ForwardTime()
        self._contacts: tuple[str, ...] = ()
        self._links: Counter[tuple[str, str]] = Counter()  # samples by contact and link
        self._points: dict[tuple[str, str], RowFile] = {}

    @classmethod
    def of(cls, log: EstimateLog) -> Curves:
        """Take all estimates of a log."""
        curves = cls(log.observer)
        curves._take(log)
        return curves

    def append(self, stamp_ns: int, estimate: Estimate, step_time: float = float("nan")) -> None:
        """Add the estimate after a sample; arguments of :meth:`EstimateLog.append`."""
        if self._log.full:
            self._flush()
        self._log.append(stamp_ns, estimate, step_time)

    def __len__(self) -> int:
        self._flush()
        return len(self._files["t", 0])

    def has(self, name: str) -> bool:
        """Return whether a curve has a finite value."""
        self._flush()
        return name in self._known

    def curve(self, name: str, k: int = 0) -> np.ndarray:
        """Read component ``k`` of a curve (N,)."""
        self._flush()
        values: np.ndarray = self._files[name, k][:]
        return values

    def points(self, name: str) -> np.ndarray:
        """Read a curve of three components (N, 3)."""
        return np.stack([self.curve(name, k) for k in range(_CURVES[name])], axis=1)

    def add_columns(self, columns: Mapping[str, np.ndarray]) -> None:
        """Take the next rows as columns of :class:`EstimateLog`; those it lacks are NaN."""
        count, found = len(columns["t"]), _curves_of(columns)
        found["t"] = self._time.stamps(columns["t"])
        for (name, k), file in self._files.items():
            values = found.get(name)
            if values is None:
                file.append(np.full(count, np.nan))
                continue
            values = values.reshape(count, -1)[:, k]
            file.append(values)
            if np.isfinite(values).any():
                self._known.add(name)

    def touched_links(self) -> list[str]:
        """Say which links each contact touched, for how long, and where that was told as a point.

        Returns:
            A line per link and contact, the longest touch of each contact first; touches shorter than :data:`_BRIEF`
            are left out.
        """
        t = self.curve("t")
        seconds, lines = float(np.median(np.diff(t))) if len(t) > 1 else 0.0, []
        for name in self._contacts:
            own = Counter({link: samples for (contact, link), samples in self._links.items() if contact == name})
            for link, samples in own.most_common():
                if samples * seconds < _BRIEF:
                    continue
                points = self._points[name, link][:]
                place = ", ".join(f"{value:.3f}" for value in np.median(points, axis=0)) if len(points) else ""
                where = f"median point ({place}) m in the base frame" if place else "too uncertain for a point"
                lines.append(f"{link} by {name} for {samples * seconds:.2f} s, {where}")
        return lines

    def _flush(self) -> None:
        if len(self._log):
            self._take(self._log)
            self._log.clear()

    def _take(self, log: EstimateLog) -> None:
        columns, before = log.columns(), len(self._files["t", 0])
        self.add_columns(columns)
        self.add_links(columns, log.contact_names)
        self.valid += int(np.count_nonzero(columns["valid"]))
        if columns["valid"].any():
            sizes = np.nan_to_num(np.linalg.norm(columns["force"], axis=1))
            row = int(np.argmax(sizes))
            if self.peak is None or sizes[row] > self.peak.size:
                self.peak = Peak(before + row, float(sizes[row]), estimate_at(log, columns, row))

    def add_links(self, columns: Mapping[str, np.ndarray], names: Sequence[str]) -> None:
        """Take which links the contacts of the next rows touch.

        Args:
            columns: ``contact_link`` and ``contact_point_base`` of :class:`EstimateLog`.
            names: of the contacts, the second axis of the columns.
        """
        self._contacts, links = tuple(names), columns["contact_link"]
        for i, name in enumerate(names):
            for link in filter(None, set(links[:, i].tolist())):
                rows = links[:, i] == link
                self._links[name, link] += int(np.count_nonzero(rows))
                points = columns["contact_point_base"][rows, i]
                file = self._points.setdefault((name, link), RowFile(tail=(3,)))
                file.append(points[np.isfinite(points).all(axis=1)])


def _curves_of(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the curves (m,) or (m, 3) that there are columns for."""
    found = {name: columns[name] for name in _CURVES if name in columns}
    diagonal = np.arange(3)
    if "force_covariance" in columns:
        found["force_std"] = _root(columns["force_covariance"][:, diagonal, diagonal])
    if "stiffness" in columns:
        # The stiffness of a contact that is open is what the settings expect.
        closed = columns["contact_probability"][:, 0] >= CLOSED
        found["stiffness"] = np.where(closed, columns["stiffness"], np.nan)
        covariance = columns["contact_covariance"][:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            normal = columns["contact_stiffness"][:, 0] / columns["stiffness"][:, None]
        found["stiffness_std"] = _root(np.einsum("ni,nij,nj->n", normal, covariance[:, :3, :3], normal))
        found["contact_point_std"] = _root(covariance[:, 6 + diagonal, 6 + diagonal])
    if "nis" in columns:
        nis, dof = columns["nis"], columns["nis_dof"]
        kinds, which = np.unique(np.maximum(dof, 1), return_inverse=True)
        bounds = np.array([chi_square_quantile(kind, 0.05) for kind in kinds.tolist()])
        used = (dof > 0) & np.isfinite(nis)
        with np.errstate(invalid="ignore"):
            found["nis_share"] = np.where(used & (nis > 0), nis / bounds[which], np.nan)
        found["nis_per_dof"] = np.where(used, nis / np.maximum(dof, 1), np.nan)
    return found


def _root(variance: np.ndarray) -> np.ndarray:
    root: np.ndarray = np.sqrt(np.maximum(variance, 0))
    return root
