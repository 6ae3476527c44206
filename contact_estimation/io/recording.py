"""A recording as arrays: the arm's measurements, and optionally a force/torque sensor or a simulation's truth."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.row_file import BLOCK
from contact_estimation.io.survey import survey

#: Truth a recording may carry -> number of columns (0: one per joint). Base frame unless the name says otherwise:
#: wrench_tcp [N, Nm] on the robot, TCP axes; stiffness vector K [N/m]; rest [m]; contact_point [m]; tau_ext [Nm].
TRUTH_COLUMNS: dict[str, int] = {"wrench_tcp": 6, "stiffness": 3, "rest": 3, "contact_point": 3, "tau_ext": 0}

#: q (N, n) [rad] -> R (N, 3, 3), rotation of the TCP axes in the base frame: turns a force in base axes into TCP axes.
TcpRotation: TypeAlias = Callable[[np.ndarray], np.ndarray]


#: [ns] Stamps stay below this: the year 2262.
STAMP_LIMIT = 2.0**63


class Samples(Protocol):
    """The samples of one arm, in memory (:class:`Recording`) or in a file, of which a block is in memory at once."""

    def __len__(self) -> int:
        """Return the number of samples."""

    @property
    def head(self) -> Recording:
        """The first sample: with all that samples have in common."""

    def blocks(self, rows: int = BLOCK) -> Iterator[Recording]:
        """Give the samples in order, in blocks of at most ``rows``; each call begins anew.

        Raises:
            RecordingError: the file is damaged.
        """

    def read(self) -> Recording:
        """Return all samples.

        Raises:
            RecordingError: the file is damaged, or holds more than the memory.
        """


@dataclass(frozen=True, eq=False)
class Recording:
    """Hold the samples of one arm, in the order they were taken.

    Attributes:
        stamps_ns: (N,) int64 [ns], the samples' stamps.
        joint_names: n names, the columns of ``q``, ``dq`` and ``tau``.
        q: (N, n) joint positions [rad].
        dq: (N, n) joint velocities [rad/s].
        tau: (N, n) joint torques [Nm].
        source: where the recording came from; every error names it.
        wrench_tcp: (N, 6) [N, Nm] measured force and torque of the environment ON the robot, TCP axes, not tared; NaN
            where a part was not measured. None without a sensor.
        wrench_zero: (6,) [N, Nm] the sensor's reading in known free space, zeros where none is known.
        truth: ground truth by name (``TRUTH_COLUMNS``), each (N, columns); empty for real recordings.
        sensors: sensor set (name in config/sensors) that says what ``tau`` is, where the recording tells; else "".
        robot: name of the robot (config/robots), where the recording tells; else "".
        tool: name of the tool (config/tools) behind its flange, where the recording tells; else "".

    Raises:
        RecordingError: shapes do not fit each other, a name is doubled, a truth is unknown, or there is no sample.
            Values are not judged here (a bad sample is data too): :meth:`check` does that.
    """

    stamps_ns: np.ndarray
    joint_names: tuple[str, ...]
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    source: str
    wrench_tcp: np.ndarray | None = None
    wrench_zero: np.ndarray = field(default_factory=lambda: np.zeros(6))
    truth: dict[str, np.ndarray] = field(default_factory=dict)
    sensors: str = ""
    robot: str = ""
    tool: str = ""

    def __post_init__(self) -> None:
        stamps = np.asarray(self.stamps_ns)
        names = tuple(str(name) for name in self.joint_names)
        if stamps.size == 0:
            raise RecordingError(f"{self.source}: holds no sample; record joint states while the arm runs.")
        if len(set(names)) != len(names) or not names:
            raise RecordingError(
                f"{self.source}: joint names must be given and differ, found {', '.join(names) or 'none'}"
            )
        count, n = len(stamps), len(names)
        values: dict[str, Any] = {
            "joint_names": names,
            "stamps_ns": self._shaped("stamps_ns", stamps, (count,), np.int64),
        }
        values |= {name: self._shaped(name, getattr(self, name), (count, n)) for name in ("q", "dq", "tau")}
        if self.wrench_tcp is not None:
            values["wrench_tcp"] = self._shaped("wrench_tcp", self.wrench_tcp, (count, 6))
        values["wrench_zero"] = self._shaped("wrench_zero", self.wrench_zero, (6,))
        if not np.isfinite(values["wrench_zero"]).all():
            raise RecordingError(
                f"{self.source}: the force sensor's reading in free space holds NaN or infinite numbers; give what it "
                "reads there, or leave it out"
            )
        truth = {}
        for name, value in self.truth.items():
            if name not in TRUTH_COLUMNS:
                raise RecordingError(f"{self.source}: unknown truth '{name}'; known: {', '.join(TRUTH_COLUMNS)}")
            truth[name] = self._shaped(f"truth {name}", value, (count, TRUTH_COLUMNS[name] or n))
        values["truth"] = truth
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _shaped(self, name: str, value: Any, shape: tuple[int, ...], dtype: type = float) -> np.ndarray:
        given = np.asarray(value)
        if given.dtype.kind not in "fiub" or (dtype is np.int64 and not np.all(np.abs(given) < STAMP_LIMIT)):
            expected = "stamps [ns] below 2^63" if dtype is np.int64 else "real numbers"
            raise RecordingError(f"{self.source}: {name} must hold {expected}, found {given.dtype} {_glimpse(given)}")
        if dtype is np.int64 and (broken := given[given % 1 != 0]).size:
            raise RecordingError(
                f"{self.source}: stamps_ns are whole nanoseconds, found {_glimpse(broken)}; for seconds give "
                "np.round(t * 1e9).astype('int64')"
            )
        array: np.ndarray = np.ascontiguousarray(given, dtype)
        if array.shape != shape:
            raise RecordingError(f"{self.source}: {name} has shape {array.shape}, expected {shape}")
        return array

    def __len__(self) -> int:
        return len(self.stamps_ns)

    @property
    def head(self) -> Recording:
        """The first sample."""
        return self._cut(slice(1))

    def blocks(self, rows: int = BLOCK) -> Iterator[Recording]:
        """Give the samples in order, in blocks of at most ``rows``."""
        return (self._cut(slice(begin, begin + rows)) for begin in range(0, len(self), rows))

    def read(self) -> Recording:
        """Return the recording itself."""
        return self

    def _cut(self, rows: slice) -> Recording:
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("stamps_ns", "q", "dq", "tau")}
        wrench = None if self.wrench_tcp is None else self.wrench_tcp[rows]
        truth = {name: value[rows] for name, value in self.truth.items()}
        return dataclasses.replace(self, wrench_tcp=wrench, truth=truth, **parts)

    @property
    def t(self) -> np.ndarray:
        """Stamps (N,) [s]."""
        return self.stamps_ns / 1e9

    @property
    def duration(self) -> float:
        """Time from the first to the last stamp [s]."""
        return float(self.stamps_ns[-1] - self.stamps_ns[0]) / 1e9

    @property
    def period(self) -> float:
        """Median time between samples [s]; NaN for a single sample."""
        return float(np.median(np.diff(self.stamps_ns))) / 1e9 if len(self) > 1 else float("nan")

    def reordered(self, joint_names: Iterable[str]) -> Recording:
        """Copy the recording with its columns in the order of ``joint_names``.

        Args:
            joint_names: the joints to keep; others are left out.

        Returns:
            The recording itself where nothing changes.

        Raises:
            RecordingError: a joint is missing; its nearest name in the recording is given.
        """
        joint_names = tuple(joint_names)
        if joint_names == self.joint_names:
            return self
        columns = joint_columns(self.joint_names, joint_names, self.source)
        truth = {name: value if TRUTH_COLUMNS[name] else value[:, columns] for name, value in self.truth.items()}
        return dataclasses.replace(
            self,
            joint_names=joint_names,
            q=self.q[:, columns],
            dq=self.dq[:, columns],
            tau=self.tau[:, columns],
            truth=truth,
        )

    def problems(self, max_gap: float = float("inf")) -> list[str]:
        """Describe what is wrong with the samples: bad numbers, stamps that stand or run back, gaps.

        Args:
            max_gap: longest time between samples [s] that is no gap.

        Returns:
            One sentence per problem, with the place of the first one.
        """
        return survey(self, max_gap).problems

    def check(self, max_gap: float = float("inf")) -> None:
        """Refuse a recording with :meth:`problems`.

        Args:
            max_gap: longest time between samples [s] that is no gap.

        Raises:
            RecordingError: names every problem found.
        """
        found = self.problems(max_gap)
        if found:
            raise RecordingError(f"{self.source}: " + "; ".join(found))


def measured_parts(recording: Samples) -> np.ndarray:
    """Say which components (6,) bool of the wrench a recording has values of."""
    found = np.zeros(6, bool)
    for block in recording.blocks():
        if block.wrench_tcp is None or found.all():
            break
        found |= ~np.isnan(block.wrench_tcp).all(axis=0)
    return found


def _glimpse(array: np.ndarray) -> str:
    text = repr(array.flat[0]) if array.size else "and nothing in it"
    return text if len(text) < 60 else text[:57] + "..."


def given_names(joint_names: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the joint names that a caller gave.

    Raises:
        RecordingError: they are something else, such as the arm or a single word.
    """
    if joint_names is None:
        return None
    if isinstance(joint_names, str) or not isinstance(joint_names, Iterable):
        shown = f"'{joint_names}'" if isinstance(joint_names, str) else f"of type {type(joint_names).__name__}"
        raise RecordingError(f"joint_names is {shown}, expected the names of the joints: give arm.joint_names")
    return tuple(joint_names)


def joint_columns(available: Iterable[str], wanted: Iterable[str], source: str) -> list[int]:
    """Find the columns of the ``wanted`` joints among the ``available`` ones.

    An arm's driver may put one prefix in front of all of them (``tf_prefix``, ``arm_prefix``).

    Args:
        available: the recorded joints, one per column.
        wanted: the robot's joints.
        source: where the joints were recorded, for errors.

    Raises:
        RecordingError: a joint is missing (the nearest name is given) or stands there twice, or those of several arms
            are there.
    """
    available, wanted = list(available), list(wanted)
    prefixes = joint_prefixes(available, wanted)
    if len(prefixes) > 1:
        raise RecordingError(
            f"{source}: the joints of several arms are there, behind {', '.join(map(repr, prefixes))}; record one arm."
        )
    wanted = ["".join([*prefixes, name]) for name in wanted]
    missing = [name for name in wanted if name not in available]
    if missing:
        unused = [name for name in available if name not in wanted]
        unused = [] if len(missing) == len(wanted) > 1 else unused  # another robot, not a misspelt joint
        near = [
            f"'{name}'" + (f" (nearest there: '{match[0]}')" if match else "")
            for name in missing
            for match in [difflib.get_close_matches(name, unused, n=1)]
        ]
        raise RecordingError(
            f"{source}: no joint {', '.join(near)} among the recorded joints "
            f"{', '.join(available) or '(none)'}; the robot has {len(wanted)} joints: "
            f"{', '.join(wanted)}. Choose the right --robot, or rename the joints where they are "
            "recorded."
        )
    doubled = [name for name in wanted if available.count(name) > 1]
    if doubled:
        raise RecordingError(f"{source}: joint {', '.join(doubled)} is recorded more than once in one message")
    return [available.index(name) for name in wanted]


def joint_prefixes(available: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """List the prefixes behind which all ``wanted`` joints are ``available``; "" alone where they are there as such."""
    if not wanted or not set(wanted).isdisjoint(available):
        return [""] if wanted else []
    found = dict.fromkeys(name.removesuffix(wanted[0]) for name in available if name.endswith(wanted[0]))
    return [prefix for prefix in found if {prefix + name for name in wanted} <= set(available)]
