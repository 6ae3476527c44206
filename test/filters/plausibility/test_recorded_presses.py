"""A healthy arm that is pressed is never doubted for long: from no start point, and after no gap."""

import numpy as np
import pytest
from shared import shared_file

from contact_estimation import load_arm
from contact_estimation.filters.plausibility.monitor import SignalMonitor
from contact_estimation.filters.settings import load_sensor_settings

#: Half of the samples are used: 250 Hz, in half the time.
EVERY = 2
#: [s] A contact that cancels gravity is doubted until its force has changed.
LONGEST = 1.0


@pytest.fixture(scope="module", params=["ur_vertical_1", "ur_vertical_3"])
def press(request):
    """Columns t (N,), q, dq, tau (N, 6) of a recorded press of up to 104 N."""
    with np.load(shared_file(f"data/ur16e_press/{request.param}.npz"), allow_pickle=False) as archive:
        return [archive[name][::EVERY] for name in ("t", "q", "dq", "tau")]


@pytest.fixture(scope="module")
def monitor_of():
    arm = load_arm("ur16e")
    sensors = load_sensor_settings(arm.settings.sensors, arm.settings.folder)
    return lambda: SignalMonitor(arm.measured_at(sensors.torque_side), sensors, np.ones(arm.n))


def doubted(monitor, t, *columns):
    """How many samples are doubted [s]; the monitor starts anew after a gap."""
    seconds, last = 0.0, None
    for now, *sample in zip(t, *columns):
        if last is None or now - last > 0.1:
            monitor.restart()
        monitor.add(now, 0.0 if last is None else now - last, *sample)
        seconds += 0.0 if last is None or not monitor.problem else min(now - last, 0.1)
        last = now
    return seconds


def test_every_start_point(press, monitor_of):
    for begin in range(0, len(press[0]) - 500, 100):
        assert doubted(monitor_of(), *(column[begin : begin + 1000] for column in press)) < LONGEST, begin


@pytest.mark.parametrize("gap", [0.12, 0.6, 5.0])
def test_every_gap(press, monitor_of, gap):
    rate = round(1 / np.median(np.diff(press[0])))
    for begin in range(500, len(press[0]) - 1000, 2000):
        keep = np.r_[begin - 400 : begin, begin + round(gap * rate) : begin + round(gap * rate) + 600]
        keep = keep[keep < len(press[0])]
        assert doubted(monitor_of(), *(column[keep] for column in press)) < LONGEST, begin
