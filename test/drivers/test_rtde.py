"""The unmodified ur_rtde client against the loopback controller: stream, faults, restart, commands.

Time is the controller's own, which passes slower on a busy machine; deadlines only end a test that hangs. How fast all
this is belongs to ``benchmark/rtde_stream.py``.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
import time

import numpy as np
import pytest
from rtde_controller import HOST, Controller, require_client_library

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.rtde import CONTROLLER_BASE, RtdeBackend, RtdeSettings
from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping

require_client_library()  # a reason to skip the whole module


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


#: No test waits longer than this for what it needs [s].
DEADLINE = 300.0

#: Timeouts that a busy machine does not reach, for tests of something else [s].
PATIENT = {"connect_timeout": DEADLINE, "stall_timeout": 20.0, "command_timeout": 2.0, "max_backlog": 0.0}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A client process may start slowly where the machine is busy."""
    monkeypatch.setattr(RtdeLink, "START_TIMEOUT", 8.0)


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


@pytest.fixture
def controller():
    with Controller() as made:
        yield made


def test_stream_is_regular_and_says_what_the_arm_does(arm, controller):
    driver = backend(arm)
    driver._queue.clear()
    taken, before = stamps_taken(driver), driver.counters.copy()
    try:
        wait_until(driver, lambda: taken[-1] > taken[0] + 3.0)
        samples, counted = list(driver._queue), driver.counters - before
    finally:
        driver.close()
    # A busy machine may lose some; each of them is counted.
    assert counted["lost"] == missing(taken).sum() and driver.problem == "not connected"
    assert counted["samples"] == len(samples) == len(taken) - 1
    # Stamps follow the computer's clock: while the drift between the two is learnt, a step is off by under a hundredth.
    # Where a busy machine holds the controller's process, its clock lags, and is followed in one step.
    steps = 1e-9 * np.diff([sample.stamp_ns for sample in samples])
    irregular = np.abs(steps / np.diff(taken[1:]) - 1.0) > 1e-2
    assert np.count_nonzero(irregular) <= counted["clock jumps"]
    # The press has begun: the wrench in TCP axes pushes against the tool, torque and force agree through the arm's
    # model.
    last = samples[-1]
    assert last.wrench_tcp[2] < -5.0
    assert abs(last.wrench_tcp[2]) > 5 * np.abs(last.wrench_tcp[:2]).max()
    rotation = arm.tcp_pose(last.q)[1]
    expected = arm.gravity(last.q) - arm.tcp_jacobian(last.q)[:3].T @ (rotation @ last.wrench_tcp[:3])
    assert np.abs(last.tau - expected).max() < 1.0


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


@pytest.mark.parametrize("control", [False, True], ids=["reading", "with control"])
def test_restart_of_the_controller_reconnects(arm, control):
    first = Controller()
    driver = backend(arm, control=control)
    try:
        read_for(driver, 0.2)
        first.kill()
        with Controller():
            wait_until(driver, lambda: driver.counters["reconnects"])
            driver._queue.clear()  # the first controller's last samples were still in the pipe
            read_for(driver, 0.3)
    finally:
        driver.close()
    assert driver.counters["reconnects"] >= 1


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


def test_a_sample_that_waited_is_no_state_to_command_from(arm, controller):
    driver = backend(arm, control=True, command_timeout=0.2)
    try:
        record = driver._link.poll(DEADLINE)[-1]
        driver._now = lambda: arrival(record) + 0.4
        driver._take(record)
        with pytest.raises(DriverError, match=r"the last sample is .* ms old"):
            driver.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    finally:
        driver.close()


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


def test_a_stamp_beyond_all_range_is_refused(arm):
    driver = RtdeBackend(arm, from_mapping(RtdeSettings, {"host": HOST}, "test"))
    for stamp in (1e300, -1.0, float("inf")):
        driver._take((stamp, 0, 0, *[0.0] * 42, 7, 1, 0, 0))
    assert driver.counters["refused: stamp out of range"] == 2 and driver.counters["refused: not finite"] == 1


def test_a_client_that_hangs_in_the_library_is_ended(arm, controller):
    """The library waits without end for the answer of a controller that fell silent while the arm moved."""
    driver = backend(arm, control=True, stall_timeout=2.0, max_backlog=0.2)
    try:
        sample = read_for(driver, 0.3)[-1]
        position, rotation = arm.tcp_pose(sample.q)
        goal = EquilibriumPose(position + [0.0, 0.0, 0.05], rotation)
        end = sample.stamp_ns + 5e8
        while sample.stamp_ns < end:
            sample = newest(driver)
            driver.command(goal)
        controller.process.send_signal(signal.SIGSTOP)
        wait_until(driver, lambda: driver._link.status != "connected" and driver._link.pid is None)
        controller.process.send_signal(signal.SIGCONT)
        driver._queue.clear()
        read_for(driver, 0.5)
        assert driver.counters["reconnects"] >= 1
    finally:
        controller.process.send_signal(signal.SIGCONT)
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


def test_older_protocol_is_refused_with_a_reason_or_served(arm):
    with Controller("--protocol", "1"):
        try:
            driver = backend(arm, connect_timeout=5.0)
        except DriverError as error:
            assert HOST in str(error)
            return
        try:
            assert np.isfinite(read_for(driver, 0.5)[-1].q).all()
        finally:
            driver.close()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", None], ids=["another service", "hangs up"])
def test_a_handshake_that_fails_is_an_error_that_says_so(arm, answer):
    """Whatever answers on the port, the client process alone suffers from it."""
    with socket.create_server((HOST, 30004)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    connection.sendall(answer) if answer else connection.close()

        kept = []
        threading.Thread(target=serve, daemon=True).start()
        assert f"no sample from the controller at {HOST}" in refusal(arm, lambda text: kept)
        listener.shutdown(socket.SHUT_RDWR)
    assert kept


def test_a_recipe_the_controller_does_not_know_is_named(arm):
    with Controller("--without", "target_moment"):
        assert "target_moment" in refusal(arm, lambda text: "target_moment" in text)


def test_nothing_is_commanded_before_the_state_is_known_and_after_it_is_lost(arm):
    changes = {"host": HOST, "control": True, **PATIENT, "max_backlog": 0.2}
    driver = RtdeBackend(arm, from_mapping(RtdeSettings, changes, "test"))
    goal = EquilibriumPose(np.zeros(3), np.eye(3))
    with pytest.raises(DriverError, match=r"the robot's state is unknown"):
        driver.command(goal)
    with Controller() as controller:
        driver.connect()
        try:
            read_for(driver, 0.2)
            wait_until(driver, lambda: driver.state_problem() == "")
            assert "10" not in controller.say("commands").split()
            controller.kill()
            wait_until(driver, lambda: driver.state_problem())
            with pytest.raises(DriverError, match=r"nothing is commanded"):
                driver.command(goal)
            wait_until(driver, lambda: driver.counters["reconnects"])
            with pytest.raises(DriverError, match=r"the robot's state is unknown"):
                driver.command(goal)
        finally:
            driver.close()
    with pytest.raises(DriverError, match=r"unknown"):
        driver.command(goal)


def test_nobody_there_is_told(arm):
    words = "cannot connect"
    assert words in refusal(arm, lambda text: words in text)


def test_current_needs_constants():
    with pytest.raises(ConfigError, match=r"6 joints"):
        RtdeBackend(load_arm("fr3"), RtdeSettings())


def test_commands_move_the_arm_only_while_its_state_is_good(arm, controller):
    driver = backend(arm, control=True, max_backlog=0.2)
    try:
        start = read_for(driver, 0.3)[-1]
        position, rotation = arm.tcp_pose(start.q)
        assert driver.equilibrium().position == pytest.approx(position, abs=0.02)  # in contact it lies below the arm
        goal = EquilibriumPose(position + [0.0, 0.0, 0.03], rotation)
        sample = read(driver)
        end = sample.stamp_ns + 2e9
        while sample.stamp_ns < end:
            sample = newest(driver)
            driver.command(goal)
        assert arm.tcp_pose(sample.q)[0][2] > position[2] + 0.004
        assert "10" in controller.say("commands").split()  # speedL
        wait_until(driver, lambda: "held: no command" in driver._link.status)  # by the client process itself
        driver._queue.clear()
        held = read_for(driver, 1.0)
        settled = held[len(held) // 2]
        assert np.abs(arm.tcp_pose(held[-1].q)[0] - arm.tcp_pose(settled.q)[0]).max() < 1e-4
        controller.say("protective_stop")
        read_for(driver, 0.2)
        wait_until(driver, lambda: "protective stop" in driver.problem)
        with pytest.raises(DriverError, match=r"protective stop"):
            driver.command(goal)
        controller.say("stall 5")
        wait_until(driver, lambda: re.search("ms old|unknown", driver.state_problem()))
        with pytest.raises(DriverError, match=r"ms old|unknown"):
            driver.command(goal)
    finally:
        driver.close()


def test_the_admittance_does_not_follow_the_offset_of_its_sensor(arm, controller):
    """An arm that takes an offset for a contact stands away from the equilibrium by offset / K."""
    driver = backend(arm, control=True)
    offset, settings = np.array([2.0, -3.0, 20.0]), driver.settings
    sent = []
    driver._link.send = lambda kind, twist: sent.append(np.array(twist)) or True
    try:
        driver.force_offset = offset
        read_for(driver, 0.3)
        sample = newest(driver)
        position, rotation = arm.tcp_pose(sample.q)
        contact = rotation @ (sample.wrench_tcp[:3] - offset)
        stiffness = np.array(settings.impedance_stiffness)
        np.testing.assert_allclose(driver.equilibrium().position, position - contact / stiffness, atol=1e-9)
        driver.command(EquilibriumPose(position, rotation))
        np.testing.assert_allclose(CONTROLLER_BASE @ sent[-1][:3], contact / settings.admittance_damping, atol=1e-9)
    finally:
        driver.close()


def height(controller) -> float:
    """Height of the tool [m], read by a client of its own."""
    watcher = RtdeLink(HOST, 500.0, False, 20.0, 0.05, 0)
    try:
        while not (records := watcher.poll(0.1)):
            pass
        return records[-1][41]
    finally:
        watcher.close()


def test_the_controller_stops_the_arm_whose_client_is_gone(arm, controller):
    """A process that was killed, a computer without power and a cable that came off send no stop."""
    link = RtdeLink(HOST, 500.0, True, 20.0, 0.3, 0)
    try:
        while not link.poll(0.1):
            pass
        begun = controller.time()
        while controller.time() < begun + 0.5:
            link.send(wire.TWIST, [0.0, 0.0, 0.03, 0.0, 0.0, 0.0])
            link.poll(0.01)
        os.kill(link.pid, signal.SIGKILL)  # and nobody polls: it is not started again
        killed = controller.time()
        while controller.time() < killed + 1.0:
            time.sleep(0.05)
        stopped = height(controller)
        while controller.time() < killed + 2.0:
            time.sleep(0.05)
        assert height(controller) == pytest.approx(stopped, abs=1e-3)
    finally:
        link.close()


def test_a_program_that_ended_on_the_controller_is_told_and_takes_no_command(arm, controller):
    """The client's watchdog ends it, or somebody at the pendant; what is then sent moves nothing."""
    driver = backend(arm, control=True)
    try:
        goal = driver.equilibrium()
        newest(driver)
        driver.command(goal)
        os.kill(driver._link.pid, signal.SIGSTOP)
        begun = controller.time()
        while controller.time() < begun + 5.0:
            time.sleep(0.1)
        os.kill(driver._link.pid, signal.SIGCONT)
        wait_until(driver, lambda: "the control program" in driver.state_problem())
        with pytest.raises(DriverError, match=r"control program on the controller is 'stopped'.*configure the driver"):
            driver.command(goal)
    finally:
        driver.close()


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


def test_without_control_nothing_is_commanded(arm, controller):
    driver = backend(arm)
    try:
        with pytest.raises(DriverError, match=r"control"):
            driver.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    finally:
        driver.close()
    assert controller.say("commands").strip() == ""
