"""The unmodified ur_rtde client against the loopback controller: stream, commands, restart of either end.

How fast all this is belongs to ``benchmark/rtde_stream.py``.
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
from rtde_driver import (
    DEADLINE,
    PATIENT,
    arrival,
    backend,
    missing,
    newest,
    read_for,
    refusal,
    stamps_taken,
    wait_until,
)
from rtde_records import FakeLink, record

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.rtde import CONTROLLER_BASE, RtdeBackend, RtdeSettings
from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping

require_client_library()  # a reason to skip the whole module
pytestmark = pytest.mark.usefixtures("patience")


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


def test_a_stamp_beyond_all_range_is_refused(arm):
    driver = RtdeBackend(arm, from_mapping(RtdeSettings, {"host": HOST}, "test"))
    for stamp in (1e300, -1.0, float("inf")):
        driver._take((stamp, 0, 0, *[0.0] * 36, 7, 1, 0))
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


def test_older_protocol_is_refused_with_a_reason_or_served(arm):
    with Controller("--protocol", "1"):
        try:
            driver = backend(arm, connect_timeout=2.0)
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
            with pytest.raises(DriverError, match=r"the connection was lost: configure the driver again"):
                driver.command(goal)
        finally:
            driver.close()
    with pytest.raises(DriverError, match=r"unknown"):
        driver.command(goal)


def test_nobody_there_is_told(arm):
    words = "cannot connect"
    assert words in refusal(arm, lambda text: words in text)


def test_a_new_connection_does_not_live_on_samples_of_the_last_one(arm, monkeypatch):
    settings = RtdeSettings(connect_timeout=0.05, command_timeout=60.0, max_backlog=0.0)
    driver = RtdeBackend(arm, settings, FakeLink([record(0.002 * k) for k in range(3)]))
    driver.connect()
    assert driver.read() is not None and not driver.state_problem()
    driver.close()
    assert driver.state_problem() and driver.read() is None
    monkeypatch.setattr("contact_estimation.drivers.rtde.RtdeLink", lambda *settings: FakeLink())
    with pytest.raises(DriverError, match="no sample from the controller"):
        driver.connect()


def test_the_wrench_of_the_flange_is_told_about_the_tcp():
    """A push at the tool's tip has no torque there, and one about the flange."""
    arm = load_arm("ur16e", "gripper")
    q, push = np.array([0.3, -1.2, 1.6, -2.0, -1.4, 0.5]), np.array([5.0, -3.0, 20.0])
    tip, flange = arm.tcp_pose(q)[0], load_arm("ur16e").tcp_pose(q)[0]
    wrench = np.concatenate([CONTROLLER_BASE @ push, CONTROLLER_BASE @ np.cross(tip - flange, push)])
    assert np.linalg.norm(wrench[3:]) > 0.5
    driver = RtdeBackend(
        arm, RtdeSettings(max_backlog=0.0), FakeLink([record(0.0, actual_q=q, actual_TCP_force=wrench)])
    )
    driver.connect()
    expected = np.concatenate([arm.tcp_pose(q)[1].T @ push, np.zeros(3)])
    np.testing.assert_allclose(driver.read().wrench_tcp, expected, atol=1e-9)


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
        end = time.monotonic() + DEADLINE
        while arm.tcp_pose(newest(driver).q)[0][2] < position[2] + 0.004:
            assert time.monotonic() < end, "the arm does not follow"
            driver.command(goal)
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


@pytest.mark.parametrize("mounted, told", [("gripper", "gripper"), ("", "gripper"), ("gripper", "")])
def test_the_controller_must_have_the_tool_of_the_driver(mounted, told):
    with Controller("--tool", mounted):
        driver = backend(load_arm("ur16e", told), control=True)
        try:
            assert ("150 mm and 0.0 degrees apart" in driver.state_problem()) is (mounted != told)
            assert ("TCP" in driver.problem) is ("TCP" in driver.stop_reason()) is (mounted != told)
        finally:
            driver.close()


def test_a_client_that_is_started_again_uploads_no_program(arm, controller):
    """A connection that comes back must not end what the operator has started meanwhile."""
    driver = backend(arm, control=True, command_timeout=0.5)
    try:
        assert "script playing" in controller.say("state")
        controller.say("drop")  # for no time: the library in the old client would be connected again at once
        wait_until(driver, lambda: driver.counters["reconnects"])
        wait_until(driver, lambda: "script stopped" in controller.say("state"))  # by its watchdog
        driver._queue.clear()
        read_for(driver, 0.5)
        assert "the connection was lost" in driver.state_problem() and "script stopped" in controller.say("state")
        driver.connect()
        assert "script playing" in controller.say("state")
        wait_until(driver, lambda: driver.state_problem() == "")
    finally:
        driver.close()


def height(arm) -> float:
    """Height of the tool [m], read by a client of its own."""
    watcher = RtdeLink(HOST, 500.0, False, 20.0, 0.05, 0)
    try:
        while not (records := watcher.poll(0.1)):
            pass
        return float(arm.tcp_pose(np.array(records[-1][3:9]))[0][2])
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
        stopped = height(arm)
        while controller.time() < killed + 2.0:
            time.sleep(0.05)
        assert height(arm) == pytest.approx(stopped, abs=1e-3)
    finally:
        link.close()


def test_a_program_that_ended_on_the_controller_is_told_and_takes_no_command(arm, controller):
    """The client's watchdog ends it, or somebody at the pendant; what is then sent moves nothing."""
    driver = backend(arm, control=True, command_timeout=0.5)
    try:
        goal = driver.equilibrium()
        newest(driver)
        driver.command(goal)
        os.kill(driver._link.pid, signal.SIGSTOP)
        while "script stopped" not in controller.say("state"):
            time.sleep(0.02)
        os.kill(driver._link.pid, signal.SIGCONT)
        wait_until(driver, lambda: "the control program" in driver.state_problem())
        with pytest.raises(DriverError, match=r"control program on the controller is 'stopped'.*configure the driver"):
            driver.command(goal)
    finally:
        driver.close()
