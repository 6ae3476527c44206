"""A backend whose own control law follows its wrist sensor is told the offset, as the estimates show it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from rclpy.serialization import serialize_message

from contact_estimation.drivers.backend import Sample
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert
from contact_estimation.ros.sensor_offset import SensorOffset

STEP = 2_000_000
OFFSET = np.array([2.0, -3.0, 10.0])
Q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0])


class Backend:
    """What the offset is told to."""

    force_offset = np.ones(3)


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def estimate(arm):
    """Return an estimate of a free arm."""
    stream = open_stream(arm, "momentum_calibrated")
    found = [stream.push(1 + STEP * k, Q, np.zeros(6), arm.gravity(Q)) for k in range(600)][-1]
    return dataclasses.replace(found, force_tcp=np.zeros(3), modes={"free": 1.0})


def feed(offset: SensorOffset, arm, estimate, count: int, reading=OFFSET, late: int = 0) -> None:
    """Give samples, and estimates whose stamps are ``late`` [ns]."""
    rng = np.random.default_rng(1)
    for k in range(count):
        stamp = STEP * (k + 1)
        wrench = np.append(reading + 0.5 * rng.standard_normal(3), np.zeros(3))
        offset.sample(Sample(stamp, Q, np.zeros(6), arm.gravity(Q), wrench), stamp)
        head = convert.header(stamp - late, arm.base_frame)
        message = convert.contact_estimate(estimate, head, arm.tcp_frame, arm.joint_names, "test")
        offset.estimate(serialize_message(message))


def test_the_offset_of_free_space_is_told(arm, estimate):
    backend = Backend()
    offset = SensorOffset(backend)
    assert not backend.force_offset.any()  # unknown
    feed(offset, arm, estimate, 1000)
    np.testing.assert_allclose(backend.force_offset, OFFSET, atol=0.6)
    offset.reset()
    assert not backend.force_offset.any()


def test_an_offset_that_was_never_free_is_not_told(arm, estimate):
    """On a contact friction is as large as an offset: the raw sensor is then the better force."""
    backend = Backend()
    feed(SensorOffset(backend), arm, dataclasses.replace(estimate, modes={"free": 0.0}), 500)
    assert not backend.force_offset.any()


def test_an_estimate_of_another_moment_tells_nothing(arm, estimate):
    backend = Backend()
    feed(SensorOffset(backend), arm, estimate, 500, late=100_000_000)
    assert not backend.force_offset.any()


def test_bytes_that_are_no_estimate_and_samples_without_a_sensor_are_ignored(arm, estimate):
    backend = Backend()
    offset = SensorOffset(backend)
    offset.estimate(b"no estimate")
    offset.sample(Sample(STEP, Q, np.zeros(6), arm.gravity(Q)), STEP)
    offset.estimate(b"no estimate")
    feed(offset, arm, estimate, 500)
    offset.estimate(b"no estimate")
    assert backend.force_offset.any()


def test_an_estimate_without_positions_beside_a_reading_that_repeats_ends_nothing(arm, estimate):
    backend = Backend()
    offset = SensorOffset(backend)
    feed(offset, arm, dataclasses.replace(estimate, q=np.zeros(0)), 500)
    stamp = STEP * 501
    wrench = np.append(OFFSET, np.zeros(3))
    head = convert.header(stamp, arm.base_frame)
    message = convert.contact_estimate(
        dataclasses.replace(estimate, q=np.zeros(0)), head, arm.tcp_frame, arm.joint_names, "test"
    )
    for k in range(100):
        offset.sample(Sample(stamp + STEP * k, Q, np.zeros(6), arm.gravity(Q), wrench), stamp + STEP * k)
        message.header.stamp = convert.header(stamp + STEP * k, arm.base_frame).stamp
        offset.estimate(serialize_message(message))
    np.testing.assert_allclose(backend.force_offset, OFFSET, atol=0.6)
