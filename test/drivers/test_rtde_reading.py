"""The unmodified ur_rtde client reads the loopback controller: spoilt packets, silence, pauses, a death.

One controller serves all: every test leaves it as it found it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time

import numpy as np
import pytest
from rtde_controller import HOST, Controller, require_client_library
from rtde_driver import DEADLINE, arrival, backend, missing, read, read_for, stamps_taken, wait_until

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.exceptions import DriverError

require_client_library()  # a reason to skip the whole module
pytestmark = pytest.mark.usefixtures("patience")


@pytest.fixture(scope="module")
def controller():
    with Controller() as made:
        yield made


def test_target_moment_is_the_other_torque(arm, controller):
    driver = backend(arm, torque_source="target_moment")
    try:
        sample = read_for(driver, 0.3)[-1]
    finally:
        driver.close()
    assert np.abs(sample.tau - arm.gravity(sample.q)).max() < 0.2


@pytest.mark.parametrize("fault, reason", [("nan", "refused: not finite"), ("jump", "refused: joint position jumped")])
def test_a_bad_packet_is_refused_with_its_reason_and_the_stream_goes_on(arm, controller, fault, reason):
    driver = backend(arm)
    try:
        read_for(driver, 0.3)
        controller.say(fault)
        samples = read_for(driver, 0.5)
    finally:
        driver.close()
    assert driver.counters["reconnects"] == 0
    assert driver.counters[reason] <= 1  # one packet at most, and never passed on
    assert all(np.isfinite(s.q).all() and np.abs(s.q - samples[0].q).max() < 0.1 for s in samples)


def test_half_a_packet_is_waited_for(arm, controller):
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        controller.say("half")
        read_for(driver, 0.6)
    finally:
        driver.close()
    assert driver.counters["reconnects"] == 0
    assert not any(name.startswith("refused") for name in driver.counters)


def test_a_cut_packet_never_passes_as_data(arm, controller):
    """The library reads a short body out of bounds: what comes of it is refused, or ends the client process, never the
    graph."""
    driver = backend(arm)
    try:
        reference = read_for(driver, 0.2)[-1]
        for _ in range(5):
            controller.say("short")
            for sample in read_for(driver, 0.2):
                assert np.abs(sample.q - reference.q).max() < 0.1 and np.abs(sample.wrench_tcp).max() < 200.0
    finally:
        driver.close()


def test_stall_is_told_and_survived(arm, controller):
    driver = backend(arm, command_timeout=0.3)
    try:
        read_for(driver, 0.2)
        controller.say("stall 2")
        wait_until(driver, lambda: "no sample" in driver.problem and "old" in driver.state_problem())
        driver._queue.clear()
        read_for(driver, 0.5)
        assert driver.problem == "" and driver.counters["reconnects"] == 0
    finally:
        driver.close()


def test_a_controller_that_refuses_connections_is_asked_less_often(arm, controller):
    """Each attempt is a process with real-time priority: without a pause they take a core from the graph."""
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        begun = controller.time()
        controller.say("drop 6")
        wait_until(driver, lambda: "cannot connect" in driver.problem)
        driver._queue.clear()
        read_for(driver, 0.2)
        assert driver.problem == "" and controller.time() > begun + 5.0
        assert 2 <= driver.counters["reconnects"] <= 6.0 / RtdeLink.LONGEST_PAUSE + 2
    finally:
        driver.close()


def test_a_reader_that_pauses_finds_every_sample(arm, controller):
    driver = backend(arm)
    taken = stamps_taken(driver)
    try:
        read_for(driver, 0.2)
        began = controller.time()
        while controller.time() < began + 1.0:  # the reader's pause, by the controller's clock
            time.sleep(0.02)
        paused = controller.time() - began
        wait_until(driver, lambda: taken[-1] >= began + paused)
    finally:
        driver.close()
    # A busy machine may lose some, here and there; the pause itself is in the pipe.
    assert missing(taken).max() < 0.5 * paused * 500 and driver.counters["reconnects"] == 0


def test_a_reader_that_falls_behind_gets_fresh_samples_and_is_told(arm, controller):
    driver = backend(arm, max_backlog=0.2)
    try:
        read_for(driver, 0.2)
        record = driver._link.poll(DEADLINE)[-1]
        driver._now = lambda: arrival(record) + 0.3
        driver._queue.clear()
        dropped = driver.counters["dropped: waited too long"]
        driver._take(record)
        assert driver.counters["dropped: waited too long"] == dropped + 1 and "behind" in driver.problem
        assert not driver._queue
    finally:
        driver.close()


def test_the_graph_survives_the_death_of_the_client(arm, controller):
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        os.kill(driver._link.pid, signal.SIGKILL)
        wait_until(driver, lambda: driver.counters["reconnects"])
        driver._queue.clear()
        assert np.isfinite(read(driver).q).all()
    finally:
        driver.close()
    assert driver.counters["reconnects"] == 1


def test_a_command_while_the_process_is_being_started_reaches_no_other_file(controller, monkeypatch):
    """Commands come from one thread, another restarts the process: a closed pipe's number is soon another file's."""
    link, close, taken = RtdeLink(HOST, 500.0, False, 20.0, 0.05, 0), os.close, []

    def close_after_a_command(number: int) -> None:
        taken.append(link.send(wire.STOP, [0.0] * 6))
        close(number)

    monkeypatch.setattr(os, "close", close_after_a_command)
    try:
        link._start()
        monkeypatch.undo()
        assert taken and not any(taken) and link.send(wire.STOP, [0.0] * 6)
    finally:
        link.close()


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_nothing_is_started_by_a_reader_that_polls_on_after_the_end(monkeypatch, when):
    """It would keep the control interface, and nobody would end it."""
    link, started, popen = RtdeLink(HOST, 500.0, False, 20.0, 0.05, 0), [], subprocess.Popen

    def start(*arguments, **options) -> subprocess.Popen:
        started.append(popen(*arguments, **options))
        link.close()
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    if when == "before":
        link.close()
    assert link.poll(0.05) == [] and link.pid is None
    assert len(started) == (when == "meanwhile") and all(process.poll() is not None for process in started)


def test_without_control_nothing_is_commanded(arm, controller):
    driver = backend(arm)
    try:
        with pytest.raises(DriverError, match=r"control"):
            driver.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    finally:
        driver.close()
    assert controller.say("commands").strip() == ""
