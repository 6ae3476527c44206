"""The figures of one observer on a recording, from the few numbers per sample they need."""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import estimates
from contact_estimation.viz.summary import Reference, summarise


def replay_figures(recording: Recording, stream: SampleStream, reference: Reference | None) -> dict[str, Any]:
    """Replay a recording and return what :func:`~contact_estimation.viz.summary.summarise` makes of the estimates.

    A log of everything takes some 2 kB per sample, which is 4 GB for an hour; the figures need 70 bytes.

    Args:
        recording: its joints are the robot's, in the robot's order.
        stream: at its start.
        reference: what the estimates are compared with.

    Raises:
        RecordingError: the joints do not fit, or the observer lacks something in the recording.
    """
    count = len(recording)
    valid, step_time = np.zeros(count, bool), np.empty(count)
    force, stiffness = np.full((count, 3), np.nan), np.full((count, 3), np.nan)  # of the first contact: K
    modes, names = np.zeros(count, np.int16), dict[str, int]()
    last: Estimate | None = None
    for row, (_, estimate, step_time[row]) in enumerate(estimates(recording, stream)):
        modes[row] = names.setdefault(estimate.mode, len(names))
        if estimate.valid:
            valid[row], force[row], last = True, estimate.force_tcp, estimate
            if estimate.contacts:
                stiffness[row] = estimate.contacts[0].stiffness
    columns = {"t": recording.t, "valid": valid, "step_time": step_time, "force": force, "mode": modes}
    columns["mode_probability"] = np.broadcast_to(np.nan, (count, 0 if last is None else len(last.modes)))
    if last is not None and last.contacts:
        columns["stiffness"] = np.linalg.norm(stiffness, axis=1)
    return summarise(columns, reference)
