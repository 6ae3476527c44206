"""The RTDE driver against the loopback controller, and what its tests wait for.

Time is the controller's own, which passes slower on a busy machine; deadlines only end a test that hangs.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from rtde_controller import HOST

from contact_estimation.drivers.rtde import RtdeBackend, RtdeSettings
from contact_estimation.exceptions import DriverError
from contact_estimation.settings import from_mapping

#: No test waits longer than this for what it needs [s].
DEADLINE = 300.0

#: Timeouts that a busy machine does not reach, for tests of something else [s].
PATIENT = {"connect_timeout": DEADLINE, "stall_timeout": 20.0, "command_timeout": 2.0, "max_backlog": 0.0}


def backend(arm, **changes):
    made = RtdeBackend(arm, from_mapping(RtdeSettings, {"host": HOST, **PATIENT, **changes}, "test"))
    made.connect()
    return made


def refusal(arm, enough):
    """Why the connection fails; tried longer where the client process had no time to say ``enough``."""
    timeout = 1.0
    while True:
        with pytest.raises(DriverError) as error:
            backend(arm, connect_timeout=timeout)
        if enough(str(error.value)) or timeout > DEADLINE:
            return str(error.value)
        timeout *= 2.0


def wait_until(driver, condition):
    """Wait for a condition; the driver goes on reading."""
    end = time.monotonic() + DEADLINE
    while not condition():
        driver._pump(0.02)
        assert time.monotonic() < end, driver.problem


def arrival(record):
    """When the client process had a sample [s], on the driver's clock."""
    return 1e-9 * record[1]


def read(driver):
    wait_until(driver, lambda: driver._queue)
    return driver.read()


def newest(driver):
    """The newest sample: a reader slower than the stream may command from no other."""
    sample = read(driver)
    while driver._queue:
        sample = driver.read()
    return sample


def read_for(driver, seconds):
    """The samples of so many seconds of the controller's time."""
    samples = [read(driver)]
    while samples[-1].stamp_ns < samples[0].stamp_ns + 1e9 * seconds:
        samples.append(read(driver))
    return samples


def stamps_taken(driver):
    """The controller's own stamps [s] of the driver's last record and of those it takes from now on."""
    stamps, take = [driver._last_stamp], driver._take
    driver._take = lambda record: (stamps.append(record[0]), take(record))
    return stamps


def missing(stamps):
    """How many samples lie between two neighbours."""
    return np.round(np.diff(stamps) * 500).astype(int) - 1
