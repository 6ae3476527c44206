"""Read published estimates from a bag, in the format of the logs of offline replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import Reader

from contact_estimation.filters.observer import Estimate
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording
from contact_estimation.ros.bag_types import typestore
from contact_estimation.ros.convert import from_contact_estimate, stamp_ns

_TYPE = "contact_estimation/msg/ContactEstimate"
LOST = "no estimate was recorded for this sample"


def read_estimates(bag: Path | str, recording: Recording) -> dict[str, EstimateLog]:
    """Read logs by observer, one row per sample of ``recording`` (the same bag's joint states).

    A sample without an estimate gets an invalid row with the reason ``LOST``. ``step_time`` is the time from the
    sample's stamp to the recording of its estimate.
    """
    store = typestore()
    found: dict[str, dict[int, tuple[Estimate, int]]] = {}
    with Reader(bag) as reader:
        for _, recorded_ns, raw in reader.messages([c for c in reader.connections if c.msgtype == _TYPE]):
            message: Any = store.deserialize_cdr(raw, _TYPE)
            rows = found.setdefault(message.observer, {})
            rows.setdefault(stamp_ns(message.header.stamp), (from_contact_estimate(message), recorded_ns))
    return {name: _log(name, rows, recording) for name, rows in sorted(found.items())}


def _log(observer: str, rows: dict[int, tuple[Estimate, int]], recording: Recording) -> EstimateLog:
    log = EstimateLog(observer, len(recording))
    lost = replace(next(iter(rows.values()))[0], valid=False, reason=LOST)
    for stamp in recording.stamps_ns.tolist():
        estimate, recorded_ns = rows.get(stamp, (lost, -1))
        log.append(stamp, estimate, (recorded_ns - stamp) * 1e-9 if stamp in rows else np.nan)
    return log
