"""Recordings as channels: an arm's samples through :mod:`contact_estimation.io`, further sensors beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.batch.channels import Measurement
from contact_estimation.io.open import kind_of, open_recording

#: What an arm's recording offers under which source name: (attribute, first column, end).
_ARM = {
    "q": ("q", 0, None),
    "dq": ("dq", 0, None),
    "tau": ("tau", 0, None),
    "f_tcp": ("wrench_tcp", 0, 3),
    "m_tcp": ("wrench_tcp", 3, 6),
}


def read(path: Path | str, sources: set[str], joint_names: tuple[str, ...]) -> tuple[dict[str, Measurement], float]:
    """Measurements by source name, times from the first arm sample on, and the duration [s].

    An `.npz` archive may hold further channels: an array ``NAME`` (k, m) with its own times ``t_NAME`` (k,) [s], on
    the clock of ``t``; missing values are NaN. Sources that are absent are left out (the estimate runs without them).

    Args:
        path: bag or archive.
        sources: wanted names: q, dq, tau [rad, rad/s, Nm], f_tcp, m_tcp [N, Nm; environment on robot], or an
            archive's own.
        joint_names: order of the arm's columns.

    Raises:
        RecordingError: not readable, samples that are not finite, or none of the sources is in it.
    """
    recording = open_recording(path, joint_names)
    recording.check()
    start = recording.t[0]
    out = {}
    for name in sources & set(_ARM):
        attribute, first, end = _ARM[name]
        values = getattr(recording, attribute)
        if values is None or np.all(np.isnan(values[:, first:end])):
            continue
        values = values[:, first:end]
        out[name] = Measurement(
            recording.t - start, values - recording.wrench_zero[first:end] if attribute == "wrench_tcp" else values
        )
    if Path(path).is_file() and kind_of(Path(path)) == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            for name in sources - set(_ARM):
                if name in archive and f"t_{name}" in archive:
                    out[name] = Measurement(archive[f"t_{name}"] - start, archive[name])
    if not out:
        raise RecordingError(
            f"{path}: holds none of the channels the scene asks for ({', '.join(sorted(sources))}); an arm's "
            f"are {', '.join(_ARM)}, others need an array NAME and its times t_NAME"
        )
    return out, recording.duration
