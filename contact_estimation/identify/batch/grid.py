"""The non-uniform time grid: fine around contact, coarse in free motion (paper 3, section VI-B)."""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.channels import Measurement


def uniform(start: float, end: float, rate: float) -> Array:
    """Space times [s] evenly from ``start`` to at most ``end`` at ``rate`` [Hz]."""
    return start + np.arange(int((end - start) * rate + 1e-9) + 1) / rate


def around_events(
    start: float, end: float, events: Array, coarse: float = 0.005, fine: float = 0.001, growth: float = 1.25
) -> Array:
    """Return times whose spacing is ``fine`` at events and grows by ``growth`` per step to ``coarse`` away from them.

    Args:
        start: [s].
        end: [s].
        events: (k,) times [s] that need the fine grid, e.g. from :func:`contact_times`.
        coarse: spacing away from events [s].
        fine: spacing at events [s].
        growth: factor from one spacing to the next.

    Raises:
        IdentificationError: spacings or times that make no grid.
    """
    if not (0 < fine <= coarse and growth > 1 and end - start > 4 * coarse):
        raise IdentificationError(
            f"a grid needs 0 < fine ({fine}) <= coarse ({coarse}), growth ({growth}) > 1 and "
            f"more than 4 coarse steps between {start} and {end} s"
        )
    events = np.sort(np.asarray(events, float))
    times = [start]
    while times[-1] < end - 0.5 * fine:
        now = times[-1]
        after = np.searchsorted(events, now)
        ahead = events[after] - now if after < len(events) else np.inf
        behind = now - events[after - 1] if after > 0 else np.inf
        # Spacing h with geometric growth covers about h / (growth - 1) of distance from the event.
        step = np.clip(fine + (growth - 1.0) * min(ahead - coarse, behind), fine, coarse)
        times.append(min(now + float(step), end))
    if times[-1] - times[-2] < 0.5 * fine:
        del times[-2]
    return np.array(times)


def contact_times(measurement: Measurement, threshold: float = 4.0, margin: float = 0.02, window: float = 0.1) -> Array:
    """Find the times at which a force channel moves quickly or is loaded: where contact begins, lasts or ends.

    Args:
        measurement: force [N] or torque [Nm] samples.
        threshold: multiples of the channel's own noise (median absolute deviation of its sample differences).
        margin: [s] kept around each such time.
        window: [s], the slow part subtracted before comparing (gravity, bias).
    """
    values = np.where(np.isfinite(measurement.values), measurement.values, 0.0)
    noise = np.median(np.abs(np.diff(values, axis=0)), axis=0) / 0.6745 / np.sqrt(2.0) + 1e-12
    rest = np.median(values, axis=0)
    short = scipy.ndimage.uniform_filter1d(values, max(int(0.005 * measurement.rate), 1), axis=0)
    fast = short - scipy.ndimage.uniform_filter1d(values, max(int(window * measurement.rate), 3), axis=0)
    active = np.any(np.abs(fast) > threshold * noise, axis=1) | np.any(
        np.abs(short - rest) > 3 * threshold * noise, axis=1
    )
    keep = scipy.ndimage.maximum_filter1d(active.astype(np.uint8), 2 * int(margin * measurement.rate) + 1) > 0
    return np.asarray(measurement.t[keep])
