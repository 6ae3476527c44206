"""The log of an observer's estimates as columns: filled sample by sample during replay, saved as ``.npz``."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.archive import Archive

if TYPE_CHECKING:
    from contact_estimation.filters.observer import ContactPlace, Estimate

#: Columns every log has -> shape of one row (``n``: joints, ``c``: contacts, ``m``: modes). Docs: :class:`EstimateLog`.
COLUMNS: dict[str, tuple[int | str, ...]] = {
    "stamps_ns": (),
    "t": (),
    "valid": (),
    "step_time": (),
    "nis": (),
    "nis_dof": (),
    "force": (3,),
    "torque_tcp": (3,),
    "force_base": (3,),
    "force_covariance": (3, 3),
    "tau_ext": ("n",),
    "mode_probability": ("m",),
    "contact_probability": ("c",),
    "contact_stiffness": ("c", 3),
    "contact_rest": ("c", 3),
    "contact_point_tcp": ("c", 3),
    "contact_point_base": ("c", 3),
    "contact_covariance": ("c", 9, 9),
    "contact_link_probability": ("c",),
    "contact_normal": ("c", 3),
    "unexplained": ("n",),
}
_TYPES = {"stamps_ns": np.int64, "valid": bool, "nis_dof": np.int64}
#: Words per sample, and words per contact.
_WORDS, _CONTACT_WORDS = ("mode", "reason", "mismatch"), "contact_link"


class WordColumn:
    """One word (or tuple of words) per sample; each distinct one is kept once, because there are few.

    Args:
        capacity: number of samples N.
    """

    def __init__(self, capacity: int) -> None:
        self._numbers: dict[Any, int] = {}
        self._codes = np.zeros(capacity, np.int32)

    def put(self, row: int, word: Any) -> None:
        """Set the word of a row; a row without one has the first word of all."""
        self._codes[row] = self._numbers.setdefault(word, len(self._numbers))

    def column(self, count: int, width: int | None = None) -> np.ndarray:
        """Return (count,) words, or (count, width) of tuples; a shorter tuple is filled up with empty words."""
        if width is None:
            words = np.array(list(self._numbers), dtype=object)
        else:
            filled = [[*words, *[""] * (width - len(words))] for words in self._numbers]
            words = np.array(filled, dtype=object).reshape(len(filled), width)
        return words[self._codes[:count]]


class EstimateLog:
    """Keep the estimates of one observer, one row per sample.

    Args:
        observer: its name.
        capacity: number of samples to allocate.

    Columns (keys of :meth:`columns` and of the saved archive); rows of invalid estimates hold NaN:
        ``stamps_ns`` (N,) int64 and ``t`` (N,) [s]: the samples' stamps. ``valid`` (N,) bool and ``reason`` (N,) words.
        ``step_time`` (N,) [s]: wall-clock time the sample took. ``nis``, ``nis_dof`` (N,): normalised innovation
        squared. ``force`` (N, 3) [N] and ``torque_tcp`` (N, 3) [Nm] on the robot, TCP axes; ``force_covariance``
        (N, 3, 3) [N^2]; ``force_base`` (N, 3) [N]; ``tau_ext`` (N, n) [Nm], and ``unexplained`` (N, n) [Nm] beside it,
        NaN of observers that do not tell it. ``mismatch`` (N,) words: why model and data disagree.
        ``mode`` (N,) words; ``mode_names`` (m,), ``mode_probability`` (N, m).
        ``contact_names`` (c,) and per contact ``contact_probability`` (N, c), ``contact_stiffness`` (N, c, 3) [N/m]
        (the vector K, base axes), ``contact_rest``, ``contact_point_tcp``, ``contact_point_base`` (N, c, 3) [m],
        ``contact_covariance`` (N, c, 9, 9) of [K; rest; point_tcp], ``contact_link`` (N, c) names of the links that are
        touched, empty for none, ``contact_link_probability`` (N, c) of these, ``contact_normal`` (N, c, 3) unit vectors
        in base axes along which the environment pushes, NaN for none.
    Of the first contact, where there is one, also ``stiffness`` (N,) [N/m] = |K|, ``contact_point`` (N, 3) [m] (base)
    and ``rest`` (N, 3) [m].
    """

    def __init__(self, observer: str, capacity: int) -> None:
        self.observer = observer
        self.contact_names: tuple[str, ...] = ()
        self.mode_names: tuple[str, ...] = ()
        self._capacity = int(capacity)
        self._made: dict[str, np.ndarray] = {}
        self._columns: dict[str, np.ndarray] = {}
        self._sizes: dict[str, int] = {}
        self._places: dict[int, ContactPlace] = {}
        self._laws: dict[int, dict[str, dict[str, float]]] = {}
        self.clear()

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether there is no room for another estimate."""
        return self._count == self._capacity

    def clear(self) -> None:
        """Forget the estimates, and keep what is known of contacts and modes."""
        self._count, self._made, self._places, self._laws = 0, {}, {}, {}
        self._columns = {name: self._blank(name) for name in self._columns}
        self._words = {name: WordColumn(self._capacity) for name in _WORDS}
        self._links = WordColumn(self._capacity)

    def append(self, stamp_ns: int, estimate: Estimate, step_time: float = float("nan")) -> None:
        """Add the estimate after a sample.

        Args:
            stamp_ns: the sample's stamp [ns].
            estimate: what the observer knew then.
            step_time: wall-clock time the sample took [s].

        Raises:
            RecordingError: the log is full, or the estimate's contacts or modes are not those of the ones before.
        """
        if self.full:
            raise RecordingError(f"log of {self.observer}: was made for {self._capacity} samples, got one more")
        columns, row = self._columns or self._allocate(estimate), self._count
        self._count, self._made = row + 1, {}
        columns["stamps_ns"][row], columns["step_time"][row] = stamp_ns, step_time
        for name in _WORDS:
            self._words[name].put(row, getattr(estimate, name))
        self._links.put(row, estimate.contact_link if estimate.valid else ())
        if not estimate.valid:
            return
        columns["valid"][row] = True
        columns["nis"][row], columns["nis_dof"][row] = estimate.nis, estimate.nis_dof
        columns["force"][row], columns["torque_tcp"][row] = estimate.force_tcp, estimate.torque_tcp
        columns["force_base"][row], columns["force_covariance"][row] = estimate.force_base, estimate.force_covariance
        columns["tau_ext"][row] = estimate.tau_ext
        if len(estimate.unexplained):
            columns["unexplained"][row] = estimate.unexplained
        if estimate.modes or estimate.contacts:
            self._append_contacts(columns, row, estimate)

    def _append_contacts(self, columns: dict[str, np.ndarray], row: int, estimate: Estimate) -> None:
        if len(estimate.contacts) != len(self.contact_names) or len(estimate.modes) != len(self.mode_names):
            self._widen(estimate)
            columns = self._columns
        if estimate.modes:
            columns["mode_probability"][row] = list(estimate.modes.values())
        for i, contact in enumerate(estimate.contacts):
            columns["contact_probability"][row, i] = contact.probability
            columns["contact_stiffness"][row, i], columns["contact_rest"][row, i] = contact.stiffness, contact.rest
            columns["contact_point_tcp"][row, i] = contact.point_tcp
            columns["contact_point_base"][row, i] = contact.point_base
            columns["contact_covariance"][row, i] = contact.covariance
            columns["contact_normal"][row, i] = contact.normal
            if contact.place is not None and contact.place.links:
                columns["contact_link_probability"][row, i] = contact.place.links[contact.link]
            if contact.place is not None and contact.closed:
                self._places[row] = contact.place
            if contact.law_parameters and contact.closed:
                self._laws.setdefault(row, {})[contact.name] = contact.law_parameters

    def place(self, row: int) -> ContactPlace | None:
        """Return the place of the unknown contact in a row; None without one, and in logs that were loaded."""
        return self._places.get(row)

    def law_parameters(self, row: int, contact: str) -> dict[str, float]:
        """Return the law's own parameters of a closed contact in a row, by name; none in logs that were loaded."""
        return self._laws.get(row, {}).get(contact, {})

    def _allocate(self, estimate: Estimate) -> dict[str, np.ndarray]:
        self._sizes = {"n": len(estimate.tau_ext), "c": 0, "m": 0}
        for name in COLUMNS:
            self._columns[name] = self._blank(name)
        return self._columns

    def _blank(self, name: str) -> np.ndarray:
        shape = (self._capacity, *(self._sizes[size] if isinstance(size, str) else size for size in COLUMNS[name]))
        kind = _TYPES.get(name, float)
        return np.full(shape, np.nan) if kind is float else np.zeros(shape, kind)

    def _widen(self, estimate: Estimate) -> None:
        """Allocate columns of contacts and modes at the first estimate that has them."""
        for letter, names, given in (
            ("c", "contact_names", tuple(c.name for c in estimate.contacts)),
            ("m", "mode_names", tuple(estimate.modes)),
        ):
            known = getattr(self, names)
            if known == given or not given:
                continue
            if known:
                raise RecordingError(f"log of {self.observer}: {names} changed from {known} to {given}")
            setattr(self, names, given)
            self._sizes[letter] = len(given)
            for name, shape in COLUMNS.items():
                if letter in shape:
                    self._columns[name] = self._blank(name)

    def columns(self) -> dict[str, np.ndarray]:
        """Give all columns by name, cut to the rows there are; they are made once, and again after :meth:`append`."""
        if not self._made and self._columns:
            self._made = self._make_columns()
        return dict(self._made)

    def _make_columns(self) -> dict[str, np.ndarray]:
        found = {name: column[: self._count] for name, column in self._columns.items()}
        found["t"] = found["stamps_ns"] / 1e9
        found |= {name: words.column(self._count) for name, words in self._words.items()}
        found[_CONTACT_WORDS] = self._links.column(self._count, len(self.contact_names))
        if self.contact_names:
            found["stiffness"] = np.linalg.norm(found["contact_stiffness"][:, 0], axis=1)
            found |= {"contact_point": found["contact_point_base"][:, 0], "rest": found["contact_rest"][:, 0]}
        return found

    def save(self, path: Path | str, truth: dict[str, np.ndarray] | None = None) -> Path:
        """Write all columns to an ``.npz`` archive, making its folder.

        Args:
            path: the archive.
            truth: a recording's truth, written as :func:`truth_columns` has it.

        Returns:
            The path.
        """
        archive = Archive()
        archive.add(self.columns() | truth_columns(truth or {}))
        return archive.save(path, self.names())

    def names(self) -> dict[str, np.ndarray]:
        """Give what a saved archive has beside the columns: the names of observer, contacts and modes."""
        names = {name: np.array(getattr(self, name), dtype=str) for name in ("contact_names", "mode_names")}
        return {"observer": np.array(self.observer)} | names

    @classmethod
    def load(cls, path: Path | str) -> EstimateLog:
        """Read what :meth:`save` wrote.

        Args:
            path: of the archive.

        Raises:
            RecordingError: not such an archive.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                data = {name: archive[name] for name in archive.files}
            log = cls(str(data["observer"]), len(data["stamps_ns"]))
            log.contact_names = tuple(data["contact_names"].tolist())
            log.mode_names = tuple(data["mode_names"].tolist())
            log._count = log._capacity
            log._columns = {name: data[name] for name in COLUMNS}
            for name in _WORDS:
                for row, word in enumerate(data[name].tolist()):
                    log._words[name].put(row, word)
            for row, links in enumerate(data[_CONTACT_WORDS].tolist()):
                log._links.put(row, tuple(links))
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise RecordingError(
                f"{path} holds no exported estimates ({error}); make them with "
                "'contact-estimation replay RECORDING --export FILE'."
            ) from error
        return log


def truth_columns(truth: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Give a recording's truth the names, shapes and frames of the estimates, with ``truth_`` in front.

    ``truth_force`` (N, 3) [N, TCP axes], ``truth_stiffness`` (N,) [N/m], ``truth_contact_stiffness`` (N, 3)
    [N/m, base axes: the vector K]; all else keeps its name.
    """
    columns = {f"truth_{name}": value for name, value in truth.items()}
    if "wrench_tcp" in truth:
        columns["truth_force"] = truth["wrench_tcp"][:, :3]
    if "stiffness" in truth:
        columns["truth_contact_stiffness"] = truth["stiffness"]
        columns["truth_stiffness"] = np.linalg.norm(truth["stiffness"], axis=1)
    return columns
