"""Resampling: averages where the sensor is fast, interpolation where it is slow, nothing over gaps; the grid around
contact.
"""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import Channel, Measurement, columns, resample
from contact_estimation.identify.batch.grid import around_events, contact_times, uniform


def test_a_fast_sensor_is_averaged_and_counted():
    t = np.arange(0.0, 1.0, 0.001)
    value, worth = resample(Measurement(t, 3.0 * t), uniform(0.0, 0.9, 100.0))
    assert value[5:-5, 0] == pytest.approx(3.0 * uniform(0.0, 0.9, 100.0)[5:-5], abs=1e-9)
    assert worth[5:-5] == pytest.approx(10.0, abs=1.0)


def test_a_slow_sensor_is_interpolated_and_counts_less_than_one_sample():
    t = np.arange(0.0, 1.0, 0.02)
    value, worth = resample(Measurement(t, np.sin(t)), uniform(0.0, 0.9, 500.0))
    assert value[:, 0] == pytest.approx(np.sin(uniform(0.0, 0.9, 500.0)), abs=1e-3)
    assert worth[10:-10] == pytest.approx(0.1, rel=1e-6)


def test_total_worth_is_the_number_of_samples_whatever_the_grid():
    t = np.arange(0.0, 2.0, 1 / 240.0)
    for grid in (uniform(0.0, 1.99, 50.0), uniform(0.0, 1.99, 1000.0), around_events(0.0, 1.99, np.array([0.7, 1.2]))):
        assert resample(Measurement(t, t), grid)[1].sum() == pytest.approx(len(t), rel=0.02)


def test_gaps_and_missing_ends_weigh_nothing():
    t = np.arange(0.0, 1.0, 0.01)
    values = np.ones(len(t))
    values[40:60] = np.nan
    grid = uniform(0.0, 1.5, 100.0)
    value, worth = resample(Measurement(t, values), grid)
    assert np.all(worth[(grid > 0.42) & (grid < 0.57)] == 0.0) and np.all(worth[grid > 1.05] == 0.0)
    assert np.all(np.isfinite(value)) and np.all(worth[(grid > 0.05) & (grid < 0.37)] > 0)


def test_a_quaternion_that_flips_its_sign_stays_one_rotation():
    t = np.arange(0.0, 1.0, 0.01)
    truth = rotations.exp(np.column_stack([t, 0 * t, 0.5 * t]))
    flipped = truth * np.where(np.arange(len(t)) % 3 == 0, -1.0, 1.0)[:, None]
    value, _ = resample(Measurement(t, flipped), uniform(0.0, 0.9, 30.0), unit_quaternion=True)
    expected = rotations.exp(np.outer(uniform(0.0, 0.9, 30.0), [1.0, 0.0, 0.5]))
    error = rotations.log(rotations.multiply(rotations.conjugate(expected), value))
    assert np.abs(error[1:-1]).max() < 1e-3


def test_grid_is_fine_at_events_coarse_elsewhere_and_grows_gently():
    grid = around_events(0.0, 2.0, np.arange(1.0, 1.1, 0.0005))
    step = np.diff(grid)
    near = (grid[:-1] > 1.0) & (grid[:-1] < 1.1)
    assert step[near] == pytest.approx(0.001) and step[:50] == pytest.approx(0.005)
    assert grid[0] == 0.0 and grid[-1] == 2.0 and np.all(step[1:] / step[:-1] < 1.6)
    with pytest.raises(IdentificationError, match="fine"):
        around_events(0.0, 2.0, np.array([]), coarse=0.001, fine=0.01)


def test_contact_is_found_in_the_force_channel(finger_recording):
    found = contact_times(finger_recording.measurements["force"])
    touching = finger_recording.t[np.linalg.norm(finger_recording.contact_force, axis=1) > 0.1]
    nearest = np.abs(found[:, None] - touching[None, ::10]).min(axis=0)
    assert nearest.max() < 0.01


def test_bad_channels_are_refused(ball_scene):
    with pytest.raises(RecordingError, match="must increase, sample 0 is at 0 s"):
        Measurement(np.array([0.0, 0.0, 1.0]), np.zeros(3))
    with pytest.raises(IdentificationError, match="sensor, orientation, torque"):
        Channel("c", "encoder", ("turn",), 1.0)
    with pytest.raises(IdentificationError, match="positive"):
        Channel("c", "sensor", ("turn",), 0.0)
    with pytest.raises(
        IdentificationError, match=r"'c', key 'targets': .* no sensor 'turm' \(nearest: 'turn'\); it has "
    ):
        columns(ball_scene.nominal, Channel("c", "sensor", ("turm",), 1.0))
    with pytest.raises(IdentificationError, match=r"no joint 'turm' \(nearest: 'turn'\); it has turn, ball"):
        columns(ball_scene.nominal, Channel("c", "torque", ("turm",), 1.0))
