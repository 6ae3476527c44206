"""A replay that keeps the few numbers per sample which the scores need."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.export import WordColumn
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import Sink, estimates


def replay_columns(block: Recording, stream: SampleStream, sinks: Iterable[Sink] = ()) -> dict[str, np.ndarray]:
    """Replay a block of a recording for :class:`~contact_estimation.viz.scores.Scores`.

    Args:
        block: N samples of :func:`~contact_estimation.io.replay.fitting_blocks`.
        stream: as the block before left it.
        sinks: get every estimate, too.

    Returns:
        Columns of :class:`~contact_estimation.io.export.EstimateLog`: ``t``, ``valid``, ``reason``, ``step_time``,
        ``force``, ``mode``, ``mismatch``, and ``stiffness`` where there is a contact; ``mode_probability`` is empty.
    """
    count = len(block)
    valid, step_time = np.zeros(count, bool), np.empty(count)
    force, stiffness = np.full((count, 3), np.nan), np.full((count, 3), np.nan)  # of the first contact: K
    words = {name: WordColumn(count) for name in ("mode", "reason", "mismatch")}
    last: Estimate | None = None
    for row, (_, estimate, step_time[row]) in enumerate(estimates(block, stream, sinks)):
        for name, column in words.items():
            column.put(row, getattr(estimate, name))
        if estimate.valid:
            valid[row], force[row], last = True, estimate.force_tcp, estimate
            if estimate.contacts:
                stiffness[row] = estimate.contacts[0].stiffness
    columns = {"t": block.t, "valid": valid, "step_time": step_time, "force": force}
    columns |= {name: column.column(count) for name, column in words.items()}
    columns["mode_probability"] = np.broadcast_to(np.nan, (count, 0 if last is None else len(last.modes)))
    if last is not None and last.contacts:
        columns["stiffness"] = np.linalg.norm(stiffness, axis=1)
    return columns
