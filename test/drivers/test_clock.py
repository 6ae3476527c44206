"""The controller's clock against this computer's: drift, pauses and steps, on synthetic stamps."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.drivers.clock import ClockOffset

PERIOD = 8_000_000  # [ns], 125 Hz
NOON = 1_800_000_000_000_000_000  # [ns] wall clock at the start


class Clocks:
    """A controller, a network and a host whose clocks disagree; all times [ns] as a perfect clock would have them."""

    def __init__(self, seconds: float, drift: float = 0.0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.true = np.arange(round(seconds * 1e9 / PERIOD), dtype=np.int64) * PERIOD
        self.controller = self.true.copy()
        delay = 150e3 + rng.exponential(100e3, len(self.true))
        delay += np.where(rng.random(len(self.true)) < 2e-3, rng.uniform(5e6, 80e6, len(self.true)), 0.0)
        self.host = (self.true * (1 + drift)).astype(np.int64)  # the host's clock when the sample was measured
        self.arrived = np.maximum.accumulate(self.host + delay.astype(np.int64))
        self.wall = np.full(len(self.true), NOON)

    def ages(self) -> tuple[np.ndarray, np.ndarray, ClockOffset]:
        """Return how old each sample looks on arrival less how old it is [ms], the stamps [ns], and the filter."""
        clock = ClockOffset()
        rows = zip(self.controller.tolist(), self.arrived.tolist(), (self.arrived + self.wall).tolist())
        stamps = np.array([clock.stamp(*row) for row in rows])
        return 1e-6 * (self.host + self.wall - stamps), stamps, clock

    def lateness(self) -> np.ndarray:
        """Return delay and lateness (N, 2) of each sample [s]."""
        clock, rows = ClockOffset(), []
        for controller, arrived in zip(self.controller.tolist(), self.arrived.tolist()):
            clock.stamp(controller, arrived, arrived + NOON)
            rows.append((clock.delay, clock.lateness))
        return np.array(rows)


@pytest.mark.parametrize("ppm", [100, -100])
def test_half_an_hour_of_drift_leaves_no_age(ppm):
    error, stamps, clock = Clocks(1800.0, 1e-6 * ppm).ages()
    assert np.abs(error[2000:]).max() < 1.0
    assert clock.jumps == 0 and clock.drift == pytest.approx(1e-6 * ppm, abs=20e-6)
    assert np.abs(np.diff(stamps) - PERIOD).max() < 3e-4 * PERIOD


def test_a_step_of_the_wall_clock_moves_the_stamps_at_once():
    for step in (1_000_000_000, -1_000_000_000):
        clocks = Clocks(60.0)
        clocks.wall[4000:] += step
        error, _, clock = clocks.ages()
        assert np.abs(error).max() < 1.0 and clock.jumps == 1


def test_a_pause_of_the_controllers_clock_is_followed():
    clocks = Clocks(60.0)
    clocks.controller[4000:] -= 300_000_000
    clocks.controller = np.maximum.accumulate(clocks.controller)
    keep = np.concatenate([[True], np.diff(clocks.controller) > 0])  # nothing is sent while the clock stands still
    for name in ("controller", "host", "arrived", "wall"):
        setattr(clocks, name, getattr(clocks, name)[keep])
    error, _, clock = clocks.ages()
    late = np.flatnonzero(np.abs(error) > 5.0)
    assert clock.jumps == 1 and 0 < len(late) <= 30


def test_samples_that_come_late_are_late():
    clocks = Clocks(60.0)
    clocks.arrived[4000:4020] = clocks.arrived[4020]
    error, _, clock = clocks.ages()
    assert np.abs(error).max() < 1.0 and clock.jumps == 0


def test_a_burst_after_a_stall_is_no_jump():
    """Half a second of samples arrives at once: more of them in a row are late than a jump needs."""
    clocks = Clocks(60.0)
    clocks.arrived[4000:4060] = clocks.arrived[4060]
    error, stamps, clock = clocks.ages()
    assert clock.jumps == 0 and np.abs(error).max() < 1.0
    assert np.abs(np.diff(stamps) - PERIOD).max() < 3e-4 * PERIOD


def test_a_restart_forgets():
    clock = ClockOffset()
    assert clock.stamp(0, 1_000, NOON) == NOON
    clock.restart()
    assert clock.stamp(7_000_000_000, 2_000, NOON + 1_000) == NOON + 1_000


@pytest.mark.parametrize("ppm", [150, -150])
def test_an_hour_of_drift_is_no_lateness(ppm):
    delay, lateness = Clocks(3600.0, 1e-6 * ppm).lateness().T
    assert lateness.max() < 1e-3 and np.median(delay) < 1e-3 and delay.min() >= 0.0
    assert delay.max() > 0.05, "single samples are late"


@pytest.mark.parametrize("rate", [0.1, 0.02])
def test_a_delay_that_grows_is_lateness_and_no_age(rate):
    """The stamps follow it as a clock that pauses again and again."""
    clocks = Clocks(40.0)
    grown = rate * np.maximum(1e-9 * clocks.true - 20.0, 0.0)  # [s]
    clocks.arrived += (1e9 * grown).astype(np.int64)
    delay, lateness = clocks.lateness().T
    assert (delay >= grown - 5e-3).all(), "but for 200 ppm"
    assert (np.abs(lateness - grown) < 1e-2 + 1.1 * rate).all() and (lateness[clocks.true < 2e10] < 1e-3).all()


def test_a_burst_after_a_stall_is_no_lateness():
    for stalled in (20, 60, 200):
        clocks = Clocks(60.0)
        clocks.arrived[4000 : 4000 + stalled] = clocks.arrived[4000 + stalled]
        assert clocks.lateness()[:, 1].max() < 1e-3


def test_lateness_counts_from_the_fastest_sample_of_a_connection():
    clock, second = ClockOffset(), 1_000_000_000

    def seconds(begin: int, delay: float) -> tuple[float, float]:
        for k in range(begin * 100, begin * 100 + 200):
            clock.stamp(k * second // 100, k * second // 100 + round(1e9 * delay), NOON)
        return clock.delay, clock.lateness

    assert seconds(0, 0.3) == (0.0, 0.0), "it began slowly"
    assert seconds(2, 0.01) == (0.0, 0.0)
    assert seconds(4, 0.2) == pytest.approx((0.19, 0.19), abs=1e-3)
    clock.restart()
    assert seconds(6, 0.2) == pytest.approx((0.19, 0.19), abs=2e-3), "a restart keeps what it counts from"
    clock.begin()
    assert seconds(8, 0.2) == (0.0, 0.0)
