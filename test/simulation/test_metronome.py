"""The loopback controller's clock: exact rate, bounded catching up, and giving up after a long stall."""

import numpy as np
import pytest

from contact_estimation.simulation.rtde.metronome import SPACING, Metronome

PERIOD = 0.002


class Clock:
    """Time that passes by sleeping, and by being held up."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


def ticks(metronome, clock, count, work=0.0002):
    times = []
    for _ in range(count):
        times.append(metronome.wait())
        clock.now += work
    return np.array(times)


def made(clock):
    return Metronome(PERIOD, 0.1, clock, clock.sleep)


def test_deadlines_do_not_drift(clock):
    times = ticks(made(clock), clock, 500)
    assert times == pytest.approx(100.0 + PERIOD * np.arange(1, 501), abs=1e-9)


def test_a_short_delay_is_caught_up_without_a_burst_and_without_a_lost_tick(clock):
    metronome = made(clock)
    ticks(metronome, clock, 10)
    clock.now += 0.05
    times = ticks(metronome, clock, 490)
    assert np.diff(times).min() >= SPACING * PERIOD - 1e-9
    assert times[-1] == pytest.approx(100.0 + 500 * PERIOD, abs=1e-9)  # as if nothing had been
    assert metronome.skipped == 0 and 20 < metronome.late < 120


def test_a_long_stall_is_skipped_and_told(clock):
    metronome = made(clock)
    ticks(metronome, clock, 10)
    clock.now += 3.0
    times = ticks(metronome, clock, 100)
    assert metronome.skipped == pytest.approx(3.0 / PERIOD, abs=2)
    assert np.diff(times) == pytest.approx(PERIOD, abs=1e-9) or np.diff(times).max() < 1.01 * PERIOD
    assert times[-1] < 100.0 + 3.0 + 112 * PERIOD


def test_steps_that_take_too_long_do_not_pile_up(clock):
    metronome = made(clock)
    times = ticks(metronome, clock, 1000, work=2 * PERIOD)  # a machine half as fast as needed
    assert metronome.skipped > 400
    assert times[-1] - times[0] == pytest.approx(999 * 2 * PERIOD, rel=1e-6)
