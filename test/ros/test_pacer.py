"""Samples are handed over in order, at their time, under the right stamp."""

import threading
import time

import numpy as np
import pytest

from contact_estimation.drivers.backend import Sample
from contact_estimation.ros import pacer


class Source:
    """A backend of given stamps [ns]."""

    joint_names = ("joint",)

    def __init__(self, stamps, error=None):
        self._samples = iter([Sample(stamp, *np.zeros((3, 1))) for stamp in stamps])
        self._error = error

    def read(self):
        sample = next(self._samples, None)
        if sample is None and self._error:
            raise self._error
        return sample


def play(source, **options):
    """(stamp delivered, time of delivery) per sample, and what ``done`` was told."""
    delivered, ended, told = [], threading.Event(), []

    def done(error):
        told.append(error)
        ended.set()

    player = pacer.Pacer(
        source,
        lambda sample, stamp: delivered.append((stamp, pacer.time.perf_counter())),
        lambda: True,
        done,
        **options,
    )
    player.start()
    assert ended.wait(120.0)
    player.stop()
    return delivered, told[0]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(pacer, "_SETTLE", 0.0)
    monkeypatch.setattr(pacer, "_LAP_PAUSE", 0.02)


class Clock:
    """A time that passes only where somebody sleeps."""

    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now

    def time_ns(self):
        return round(1e9 * self.now)

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(pacer, "time", made)
    return made


STAMPS = [7_000_000_000 + k * 5_000_000 for k in (0, 1, 2, 5, 6)]


def test_kept_stamps_are_the_sources():
    delivered, error = play(Source(STAMPS), keep_stamps=True)
    assert [stamp for stamp, _ in delivered] == STAMPS and error is None


@pytest.mark.parametrize("rate", [1.0, 4.0])
def test_new_stamps_keep_the_spacing_whatever_the_rate(rate):
    before = time.time_ns()
    delivered, _ = play(Source(STAMPS), rate=rate)
    stamps = [stamp for stamp, _ in delivered]
    assert np.diff(stamps).tolist() == np.diff(STAMPS).tolist()
    assert before <= stamps[0] <= time.time_ns()


def test_every_sample_comes_at_its_time(clock):
    delivered, _ = play(Source(STAMPS), rate=0.5)
    elapsed = np.array([when for _, when in delivered]) - delivered[0][1]
    np.testing.assert_allclose(elapsed, 2e-9 * (np.array(STAMPS) - STAMPS[0]), atol=1e-9)


def test_a_lap_begins_anew_after_a_pause():
    delivered, _ = play(Source(STAMPS + STAMPS))
    stamps = [stamp for stamp, _ in delivered]
    assert len(stamps) == 10 and (np.diff(stamps) > 0).all()
    assert stamps[5] - stamps[4] >= 20_000_000


def test_an_error_is_told():
    error = ValueError("broken")
    delivered, told = play(Source(STAMPS, error))
    assert len(delivered) == 5 and told is error


def test_stop_ends_a_wait_for_subscribers():
    told = []
    player = pacer.Pacer(Source(STAMPS), lambda *_: None, lambda: False, told.append)
    player.start()
    player.stop()
    assert player.delivered == 0 and not told


def test_a_source_that_is_too_slow_stays_in_the_present(clock):
    class Slow(Source):
        def read(self):
            clock.sleep(0.03)
            return super().read()

    source = Slow([7_000_000_000 + k * 5_000_000 for k in range(20)])
    delivered, _ = play(source, max_late=0.05)
    ages = [1e-9 * (delivered[0][0] - stamp) + when - delivered[0][1] for stamp, when in delivered]
    gaps = np.diff([stamp for stamp, _ in delivered])
    assert max(ages) <= 0.05 + 0.03 + 1e-9, "20 samples in 0.6 s would be 0.5 s late"
    assert gaps.min() == 5_000_000 and (gaps > 30_000_000).sum() >= 4
