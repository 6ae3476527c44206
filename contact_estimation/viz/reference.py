"""What estimates are compared with: a simulation's truth, or a measured force. It is taken block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from contact_estimation.io.recording import Recording, Samples
from contact_estimation.io.row_file import BLOCK, RowFile, Rows
from contact_estimation.io.survey import missing_words

#: In contact: the reference force, low-passed at 5 Hz, exceeds the first [N]; free: below the other. Of a truth it is
#: the norm; of a sensor the component along the TCP's z, because gravity turns into the others with the tool.
#: Less, in proportion, where a simulation's truth stays below twice the first.
CONTACT_FORCE, FREE_FORCE = 10.0, 6.0
#: Where a simulation loads a joint by more [Nm], a link is pushed though no force acts at the tool: not free.
FREE_TORQUE = 1.0
_CUTOFF = 5.0  # [Hz]
#: Time [s] beyond a block that its low-pass sees: its impulse response has decayed to 1e-19 there.
_MARGIN = 2.0
#: Fewest samples in contact for a least-squares stiffness.
_MIN_CONTACT = 10

#: q (N, n) -> position (N, 3) [m] and rotation (N, 3, 3) of the TCP in the base.
TcpPoses: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Reference:
    """What estimates are compared with. A measured force is compared as the sensor gave it, not tared.

    Attributes:
        label: "truth" or "measured".
        force: (N, 3) [N] on the robot, TCP axes; a file of rows, as the next three.
        contact: (N,) bool, where the reference force shows contact.
        free: (N,) bool, where nothing touches the arm, as far as the reference tells.
        stiff: (N,) bool, where what is in contact has a stiffness: not where a force of the simulation pushes.
        stiffness: [N/m] in contact, NaN where none is known.
        stiffness_label: where the stiffness comes from.
        missing: share of the samples without a reference force (NaN in it); they are neither contact nor free.
        contact_force: [N] above which it is contact.
        free_force: [N] below which it is free.
    """

    label: str
    force: Rows
    contact: Rows
    free: Rows
    stiff: Rows
    stiffness: float
    stiffness_label: str
    missing: float
    contact_force: float
    free_force: float

    @property
    def description(self) -> str:
        """The label, and for which share of the time the reference is missing."""
        return self.label + (f", {missing_words(self.missing)}" if self.missing else "")


def reference_of(recording: Samples, tcp_poses: TcpPoses | None = None) -> Reference | None:
    """Take the reference of a recording.

    Args:
        recording: in memory or in a file.
        tcp_poses: of the arm. With them the stiffness of a measured contact is the least-squares slope of force on
            position along the mean contact force.

    Returns:
        The reference, or None where the recording carries neither truth nor a measured force.
    """
    head = recording.head
    simulated = "wrench_tcp" in head.truth
    if not simulated and head.wrench_tcp is None:
        return None
    push = _Push(recording, np.zeros(3)) if simulated else _Push(recording, head.wrench_zero[2:3])
    if not push.known:
        return None
    # A truth has no noise to be told from: a task of a few newtons is scored by half of its largest force.
    largest = max(float(part.max()) for part in push.blocks()) if simulated else math.inf
    share = min(largest / (2.0 * CONTACT_FORCE), 1.0) if largest > 1.0 else 1.0
    limits = share * CONTACT_FORCE, share * FREE_FORCE
    contact, free, stiff, norms, slope = RowFile(bool), RowFile(bool), RowFile(bool), [], _Slope()
    missing = 0
    for block, size in zip(recording.blocks(), push.blocks()):
        force = _force(block)
        known = np.isfinite(force).all(axis=1)
        missing += np.count_nonzero(~known)
        closed = known & (size > limits[0])
        contact.append(closed)
        free.append(known & (size < limits[1]) & _links_are_free(block))
        if "stiffness" in block.truth:
            norm = np.linalg.norm(block.truth["stiffness"], axis=1)
            closed = closed & (norm > 0.0)
            norms.append(norm[closed])
        elif tcp_poses is not None and closed.any():
            position, rotation = tcp_poses(block.q[closed])
            slope.add(position, np.einsum("nij,nj->ni", rotation, force[closed]))
        stiff.append(closed)
    stiffness, label = float("nan"), ""
    if any(map(len, norms)):
        stiffness, label = float(np.median(np.concatenate(norms))), "truth"
    elif slope.count > _MIN_CONTACT:
        stiffness, label = -slope.along_mean_force(), "measured, least squares in contact"
    name, share = "truth" if simulated else "measured", missing / len(push.force)
    return Reference(name, push.force, contact, free, stiff, stiffness, label, share, *limits)


def _force(block: Recording) -> np.ndarray:
    wrench = block.truth.get("wrench_tcp", block.wrench_tcp)
    assert wrench is not None
    return wrench[:, :3]


def _links_are_free(block: Recording) -> np.ndarray:
    """Return (m,) whether the simulation's external joint torque is that of a free arm; true without such a torque."""
    torque = block.truth.get("tau_ext", np.zeros((len(block), 1)))
    free: np.ndarray = np.abs(torque).max(axis=1) < FREE_TORQUE
    return free


class _Push:
    """Norm of the force's last axes above their ``zero`` [N], low-passed; ``force`` (N, 3) is the recording's.

    Where the force is NaN it is interpolated: a 0 there would end a contact in the samples beside it.
    """

    def __init__(self, recording: Samples, zero: np.ndarray) -> None:
        self.force, self.known, self._zero, periods = RowFile(tail=(3,)), False, zero, []
        for block in recording.blocks():
            force = _force(block)
            self.force.append(force)
            self.known = self.known or not np.isnan(force).all()
            periods.append(block.period)
        self._period = float(np.nanmedian(periods)) if len(recording) > 1 else 0.0

    def blocks(self) -> Iterator[np.ndarray]:
        """Give the push (m,) [N] of each block."""
        for begin in range(0, len(self.force), BLOCK):
            yield np.linalg.norm(self._smooth(begin, min(begin + BLOCK, len(self.force))), axis=1)

    def _smooth(self, begin: int, end: int) -> np.ndarray:
        if not self._period > 0.0:
            return self._raw(slice(begin, end))
        margin = math.ceil(_MARGIN / self._period)
        first = max(begin - margin, 0)
        return _low_pass(self._raw(slice(first, end + margin)), self._period)[begin - first : end - first]

    def _raw(self, rows: slice) -> np.ndarray:
        return _bridged(self.force[rows][:, -len(self._zero) :] - self._zero)


class _Slope:
    """Least-squares slope of force on position (k, 3) along the mean force, from sums."""

    def __init__(self) -> None:
        self.count = 0
        self._origin: np.ndarray | None = None
        self._sums = np.zeros((2, 3))  # position and force
        self._products = np.zeros((2, 3, 3))  # position with position and with force

    def add(self, position: np.ndarray, force: np.ndarray) -> None:
        """Take samples."""
        self._origin = position[0] if self._origin is None else self._origin
        moved = position - self._origin
        self.count += len(position)
        self._sums += moved.sum(axis=0), force.sum(axis=0)
        self._products += moved.T @ moved, moved.T @ force

    def along_mean_force(self) -> float:
        """Return the slope [N/m]."""
        position, force = self._sums / self.count
        normal = force / np.linalg.norm(force)
        spread, common = self._products / self.count - np.array(
            [np.outer(position, position), np.outer(position, force)]
        )
        return float(normal @ common @ normal / (normal @ spread @ normal))


def _bridged(values: np.ndarray) -> np.ndarray:
    """Interpolate the columns of ``values`` (N, axes) over NaN; before and behind all known values the nearest holds.

    A column without a known value becomes 0.
    """
    rows, found = np.arange(len(values)), np.zeros(values.shape)
    for column, filled in zip(values.T, found.T):
        known = np.isfinite(column)
        if known.any():
            filled[:] = np.interp(rows, rows[known], column[known])
    return found


def _low_pass(values: np.ndarray, period: float) -> np.ndarray:
    """Second-order Butterworth forwards and backwards (gain 1 / (1 + (f / cutoff)^4), no phase), over mirrored ends.

    The rows of ``values`` (N, axes) are ``period`` [s] apart.

    In numpy, because importing scipy.signal takes as long as replaying half a minute.
    """
    if len(values) < 2:
        return values
    spectrum = np.fft.rfft(np.concatenate([values, values[::-1]]), axis=0)
    spectrum /= 1.0 + (np.fft.rfftfreq(2 * len(values), period)[:, None] / _CUTOFF) ** 4
    smooth: np.ndarray = np.fft.irfft(spectrum, 2 * len(values), axis=0)[: len(values)]
    return smooth
