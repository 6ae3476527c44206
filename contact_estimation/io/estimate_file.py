"""Estimates on their way to an archive: a block of them is in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contact_estimation.io.archive import Archive
from contact_estimation.io.export import EstimateLog, truth_columns
from contact_estimation.io.row_file import BLOCK

if TYPE_CHECKING:
    from contact_estimation.filters.observer import Estimate
    from contact_estimation.io.recording import Samples


class EstimateFile:
    """Collects an observer's estimates and saves what :meth:`EstimateLog.save` does, in constant memory.

    Args:
        observer: its name.
        path: the archive, which :meth:`save` makes.
        block: number of estimates that are in memory at once.
    """

    def __init__(self, observer: str, path: Path, block: int = BLOCK) -> None:
        self.path, self._log, self._archive = path, EstimateLog(observer, block), Archive()

    def append(self, stamp_ns: int, estimate: Estimate, step_time: float = float("nan")) -> None:
        """Add the estimate after a sample; see :meth:`EstimateLog.append`.

        Args:
            stamp_ns: [ns].
            estimate: after the sample.
            step_time: [s] of the step; NaN where it was not measured.
        """
        if self._log.full:
            self._flush()
        self._log.append(stamp_ns, estimate, step_time)

    def _flush(self) -> None:
        self._archive.add(self._log.columns())
        self._log.clear()

    def save(self, recording: Samples) -> Path:
        """Write the archive with the ``recording``'s truth, making its folder.

        Raises:
            OSError: it cannot be written.
        """
        self._flush()
        for block in recording.blocks():
            self._archive.add(truth_columns(block.truth))
        return self._archive.save(self.path, self._log.names())
