"""The unmodified ur_rtde client against the loopback controller: stream, faults, restart, commands."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest

if os.environ.get("CI") != "true":  # there it must be installed, and these tests must run
    pytest.importorskip("rtde_receive", reason="the UR driver's client library ur_rtde is not installed")

from contact_estimation.drivers.backend import EquilibriumPose  # noqa: E402
from contact_estimation.drivers.rtde import RtdeBackend, RtdeSettings  # noqa: E402
from contact_estimation.exceptions import ConfigError, DriverError  # noqa: E402
from contact_estimation.robot import load_arm  # noqa: E402
from contact_estimation.settings import from_mapping  # noqa: E402
from rtde_controller import HOST, Controller  # noqa: E402


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def backend(arm, **changes):
    made = RtdeBackend(arm, from_mapping(RtdeSettings, {"host": HOST, **changes}, "test"))
    made.connect()
    return made


def read_for(driver, seconds):
    end, samples = time.monotonic() + seconds, []
    while time.monotonic() < end:
        samples.append(driver.read())
    return samples


@pytest.fixture
def controller():
    with Controller() as made:
        yield made


def test_stream_is_regular_and_says_what_the_arm_does(arm, controller):
    driver = backend(arm)
    try:
        samples = read_for(driver, 3.0)
    finally:
        driver.close()
    stamps = np.array([s.stamp_ns for s in samples])
    steps = np.round(np.diff(stamps) / 2e6)
    assert (steps > 0).all() and np.abs(np.diff(stamps) - 2e6 * steps).max() < 1000
    assert driver.counters["lost"] <= 0.02 * len(samples)  # a busy test machine may miss a few; the benchmark counts
    assert len(samples) > 500 and driver.problem
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
        before = len(read_for(driver, 0.3))
        controller.say(fault)
        samples = read_for(driver, 0.5)
    finally:
        driver.close()
    assert before > 50 and len(samples) > 100
    assert driver.counters[reason] <= 1  # one packet at most, and never passed on
    assert all(np.isfinite(s.q).all() and np.abs(s.q - samples[0].q).max() < 0.1 for s in samples)


def test_half_a_packet_is_waited_for(arm, controller):
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        controller.say("half")
        samples = read_for(driver, 0.6)
    finally:
        driver.close()
    assert len(samples) > 100 and driver.counters["reconnects"] == 0
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
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        controller.say("stall 0.4")
        end = time.monotonic() + 0.4
        while time.monotonic() < end and "no sample" not in driver.problem:
            driver._pump(0.1)
        assert "no sample" in driver.problem and "old" in driver.state_problem()
        driver._queue.clear()
        assert len(read_for(driver, 0.5)) > 30 and driver.problem == ""
    finally:
        driver.close()


@pytest.mark.parametrize("control", [False, True], ids=["reading", "with control"])
def test_restart_of_the_controller_reconnects_within_a_second(arm, control):
    first = Controller()
    driver = backend(arm, control=control)
    try:
        read_for(driver, 0.2)
        first.kill()
        second = Controller()
        up = time.monotonic()
        try:
            while not (driver.counters["reconnects"] and driver._queue):
                if not driver.counters["reconnects"]:
                    driver._queue.clear()  # the first controller's last samples were still in the pipe
                driver._pump(0.05)
                assert time.monotonic() - up < 5.0
            taken = time.monotonic() - up
            assert len(read_for(driver, 0.3)) > 50
        finally:
            second.kill()
    finally:
        driver.close()
    assert taken < 1.0 and driver.counters["reconnects"] >= 1


def test_a_reader_that_pauses_finds_every_sample(arm, controller):
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        usual = len(read_for(driver, 0.5))  # a busy machine may not simulate the controller at its 500 Hz
        time.sleep(2.0)
        samples = read_for(driver, 0.5)
    finally:
        driver.close()
    # What was not read in the pause, beside what comes meanwhile; a busy controller may skip a few on its own.
    steps = np.diff([sample.stamp_ns for sample in samples])
    assert len(samples) > 3 * usual and driver.counters["reconnects"] == 0
    assert np.count_nonzero(steps > 3e6) < 0.05 * len(samples)


def test_a_client_that_hangs_in_the_library_is_ended(arm, controller):
    """The library waits without end for the answer of a controller that fell silent while the arm moved."""
    driver = backend(arm, control=True)
    try:
        sample = read_for(driver, 0.3)[-1]
        position, rotation = arm.tcp_pose(sample.q)
        goal = EquilibriumPose(position + [0.0, 0.0, 0.05], rotation)
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            driver.read()
            driver.command(goal)
        controller.process.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        while driver._link.status == "connected" or driver._link.pid is not None:
            driver._pump(0.05)
            assert time.monotonic() - start < 3.0
        controller.process.send_signal(signal.SIGCONT)
        driver._queue.clear()
        assert len(read_for(driver, 1.0)) > 100 and driver.counters["reconnects"] >= 1
    finally:
        controller.process.send_signal(signal.SIGCONT)
        driver.close()


def test_the_graph_survives_the_death_of_the_client(arm, controller):
    driver = backend(arm)
    try:
        read_for(driver, 0.2)
        os.kill(driver._link.pid, signal.SIGKILL)
        start = time.monotonic()
        while driver.counters["reconnects"] == 0:
            driver._pump(0.05)
            assert time.monotonic() - start < 5.0
        driver._queue.clear()
        assert np.isfinite(driver.read().q).all()
    finally:
        driver.close()
    assert driver.counters["reconnects"] == 1


def test_older_protocol_is_refused_with_a_reason_or_served(arm):
    with Controller("--protocol", "1"):
        try:
            driver = backend(arm, connect_timeout=3.0)
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
        with pytest.raises(DriverError, match=f"no sample from the controller at {HOST}"):
            backend(arm, connect_timeout=1.0)
        listener.shutdown(socket.SHUT_RDWR)
    assert kept


def test_a_recipe_the_controller_does_not_know_is_named(arm):
    with Controller("--without", "target_moment"):
        with pytest.raises(DriverError, match="target_moment"):
            backend(arm, connect_timeout=2.0)


def test_nothing_is_commanded_before_the_state_is_known_and_after_it_is_lost(arm):
    driver = RtdeBackend(arm, from_mapping(RtdeSettings, {"host": HOST, "control": True}, "test"))
    goal = EquilibriumPose(np.zeros(3), np.eye(3))
    with pytest.raises(DriverError, match="the robot's state is unknown"):
        driver.command(goal)
    with Controller() as controller:
        driver.connect()
        try:
            read_for(driver, 0.2)
            assert driver.state_problem() == "" and "10" not in controller.say("commands").split()
            controller.kill()
            end = time.monotonic() + 5.0
            while not driver.counters["reconnects"] and time.monotonic() < end:
                driver._pump(0.02)
                if driver.state_problem():  # from 50 ms after the last sample on, and until the next one
                    with pytest.raises(DriverError, match="nothing is commanded"):
                        driver.command(goal)
            with pytest.raises(DriverError, match="the robot's state is unknown"):
                driver.command(goal)
        finally:
            driver.close()
    with pytest.raises(DriverError, match="unknown"):
        driver.command(goal)


def test_nobody_there_is_told(arm):
    with pytest.raises(DriverError, match="cannot connect|no answer"):
        backend(arm, connect_timeout=1.0)


def test_current_needs_constants():
    with pytest.raises(ConfigError, match="6 joints"):
        RtdeBackend(load_arm("fr3"), RtdeSettings())


def test_commands_move_the_arm_only_while_its_state_is_good(arm, controller):
    driver = backend(arm, control=True)
    try:
        start = read_for(driver, 0.3)[-1]
        position, rotation = arm.tcp_pose(start.q)
        assert driver.equilibrium().position == pytest.approx(position, abs=0.02)  # in contact it lies below the arm
        goal = EquilibriumPose(position + [0.0, 0.0, 0.03], rotation)
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            sample = driver.read()
            driver.command(goal)
        assert arm.tcp_pose(sample.q)[0][2] > position[2] + 0.004
        assert "10" in controller.say("commands").split()  # speedL
        # No command for a while: the client process holds the arm by itself.
        held = read_for(driver, 0.6)
        settled = held[len(held) // 2]
        assert np.abs(arm.tcp_pose(held[-1].q)[0] - arm.tcp_pose(settled.q)[0]).max() < 1e-4
        controller.say("protective_stop")
        read_for(driver, 0.2)
        with pytest.raises(DriverError, match="protective stop"):
            driver.command(goal)
        assert "protective stop" in driver.problem
        controller.say("stall 1")
        time.sleep(0.3)
        with pytest.raises(DriverError, match="ms old|unknown"):
            driver.command(goal)
    finally:
        driver.close()


def test_without_control_nothing_is_commanded(arm, controller):
    driver = backend(arm)
    try:
        with pytest.raises(DriverError, match="control"):
            driver.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    finally:
        driver.close()
    assert controller.say("commands").strip() == ""
