"""A replay that keeps the few numbers per sample which the figures need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.export import WordColumn
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import Sink, estimates


def replay_columns(
    recording: Recording,
    stream: SampleStream,
    progress: Callable[[int], object] | None = None,
    sink: Sink | None = None,
) -> dict[str, np.ndarray]:
    """Replay a recording for :func:`~contact_estimation.viz.summary.summarise` and its neighbours.

    A log of everything takes some 2 kB per sample, which is 4 GB for an hour at 500 Hz; these columns take 80 bytes.

    Args:
        recording: N samples; its joints are the robot's, in the robot's order.
        stream: at its start.
        progress: called with the number of samples done, about a hundred times.
        sink: gets every estimate, too.

    Returns:
        Columns of :class:`~contact_estimation.io.export.EstimateLog`: ``t``, ``valid``, ``reason``, ``step_time``,
        ``force``, ``mode``, ``mismatch``, and ``stiffness`` where there is a contact; ``mode_probability`` is empty.

    Raises:
        RecordingError: the joints do not fit, or the observer lacks something in the recording.
    """
    count = len(recording)
    valid, step_time = np.zeros(count, bool), np.empty(count)
    force, stiffness = np.full((count, 3), np.nan), np.full((count, 3), np.nan)  # of the first contact: K
    words = {name: WordColumn(count) for name in ("mode", "reason", "mismatch")}
    last: Estimate | None = None
    for row, (_, estimate, step_time[row]) in enumerate(estimates(recording, stream, progress, sink)):
        for name, column in words.items():
            column.put(row, getattr(estimate, name))
        if estimate.valid:
            valid[row], force[row], last = True, estimate.force_tcp, estimate
            if estimate.contacts:
                stiffness[row] = estimate.contacts[0].stiffness
    columns = {"t": recording.t, "valid": valid, "step_time": step_time, "force": force}
    columns |= {name: column.column(count) for name, column in words.items()}
    columns["mode_probability"] = np.broadcast_to(np.nan, (count, 0 if last is None else len(last.modes)))
    if last is not None and last.contacts:
        columns["stiffness"] = np.linalg.norm(stiffness, axis=1)
    return columns
