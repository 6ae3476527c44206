"""What a UR arm must not be commanded from: late samples, another TCP, an ended program, a lost connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from rtde_records import VirtualArm, controller_pose

from contact_estimation.drivers import rtde_client as wire
from contact_estimation.exceptions import StaleSampleError
from contact_estimation.robot import load_arm


def commands_over(network: Callable[[float], float], seconds: float, arm) -> tuple[list[tuple[float, float]], str]:
    """Command every 10 ms over a network whose delay [s] depends on the time [s] at which a sample leaves.

    Returns:
        Time and age [s] of the sample of every command that was sent, and why the last one was refused.
    """
    virtual, commands, why = VirtualArm(arm, network(0.0)), [], ""
    underway, measured, due = [], 0.0, 0.0
    for tick in range(round(1000 * seconds)):
        t = 1e-3 * tick
        virtual.now = 100.0 + t
        if tick % 2 == 0:
            due = max(t + network(t), due)  # TCP keeps the order
            underway.append((due, t))
        arrived = [s for d, s in underway if d <= t]
        underway = underway[len(arrived) :]
        if arrived:
            measured = arrived[-1]
            virtual.take(*(virtual.record(t - s) for s in arrived))
        if tick % 10 == 0 and tick > 500:
            why = virtual.refusal()
            commands += [] if why else [(t, t - measured)]
    return commands, why


@pytest.mark.parametrize(
    "network",
    [
        lambda t: 0.001 + 0.1 * max(t - 2.0, 0.0),
        lambda t: 0.001 + 0.02 * max(t - 2.0, 0.0),
        lambda t: 0.001 + 0.12 * int(max(t - 1.0, 0.0) / 2.0),
        lambda t: 0.001 + 0.15 * (t > 3.0),
    ],
    ids=["grows by 0.1 s/s", "grows by 0.02 s/s", "steps of 0.12 s", "one step of 0.15 s"],
)
def test_no_sample_is_commanded_from_that_a_network_has_delayed(arm, network):
    commands, why = commands_over(network, 10.0, arm)
    assert len(commands) > 100 and max(age for _, age in commands) < 0.06
    assert commands[-1][0] < 5.0, "it does not begin again"
    assert "ms later than when the connection began, at most 50 ms" in why and "configure the driver again" in why


def test_a_connection_that_begins_slowly_is_judged_by_its_later_delays(arm):
    commands, why = commands_over(lambda t: 0.3 if t < 2.0 else 0.001 if t < 4.0 else 0.1, 6.0, arm)
    times = np.array([t for t, _ in commands])
    assert times.min() < 0.6 and 3.9 < times.max() < 4.1 and "99 ms later" in why


def test_a_stall_holds_and_what_it_delays_ends_nothing(arm):
    """The samples of 0.4 s come at once: each is a little less late than the one before."""
    virtual = VirtualArm(arm)
    virtual.wait(2.0)
    assert virtual.refusal() == ""
    virtual.now += 0.4
    assert "400 ms old" in virtual.refusal() and virtual.driver.stop_reason() == ""
    for delay in np.arange(0.399, 0.0, -0.002):
        virtual.take(virtual.record(delay))
        assert ("ms late" in virtual.refusal()) == (delay > 0.05) and virtual.driver.stop_reason() == ""
    virtual.take(virtual.record(0.1))
    with pytest.raises(StaleSampleError):
        virtual.driver.command(virtual.goal)


def test_the_tcp_on_the_pendant_must_be_that_of_the_tool():
    gripper, flange = load_arm("ur16e", "gripper"), load_arm("ur16e")
    assert VirtualArm(gripper).refusal() == ""
    for arm, told in ((gripper, flange), (flange, gripper), (flange, load_arm("ur10e"))):
        virtual = VirtualArm(arm, actual_TCP_pose=controller_pose(told))
        assert "the controller's TCP is at" in virtual.refusal() and "on the pendant" in virtual.driver.state_problem()
        assert virtual.driver.stop_reason() == virtual.driver.problem != ""
    assert "150 mm and 0.0 degrees apart" in VirtualArm(gripper, actual_TCP_pose=controller_pose(flange)).refusal()


@pytest.mark.parametrize("moved, turned, refused", [(8.0, 1.5, False), (11.0, 0.0, True), (0.0, 2.5, True)])
def test_a_calibrated_arm_may_differ_a_little(arm, moved, turned, refused):
    """Distances in mm, turns in degrees."""
    told = controller_pose(arm)
    told[1] += 1e-3 * moved
    told[3:] = pin.log3(pin.exp3(told[3:]) @ pin.exp3(np.radians([turned, 0.0, 0.0])))
    assert (VirtualArm(arm, actual_TCP_pose=told).refusal() != "") is refused


def test_a_program_that_has_ended_is_not_replaced_by_another(arm):
    virtual = VirtualArm(arm)
    virtual.wait(0.1, runtime_state=1)
    assert "is 'stopped'" in virtual.refusal()
    virtual.wait(0.1)
    assert "another one plays" in virtual.refusal() and "another one plays" in virtual.driver.stop_reason()
    virtual.link._batches.append([virtual.record()])
    virtual.driver._begin()
    virtual.driver.connect()
    assert virtual.refusal() == ""


def test_a_lost_connection_refuses_commands_until_the_next_connect(arm):
    virtual = VirtualArm(arm)
    assert not virtual.link.control, "a client that is started again reads only"
    virtual.link.poll = lambda timeout: setattr(virtual.link, "restarts", 1) or [virtual.record()]
    virtual.driver._pump(0.0)
    lost = "the connection was lost: configure the driver again, which starts its control program"
    assert virtual.refusal() == f"nothing is commanded: {lost}"
    assert lost == virtual.driver.stop_reason() == virtual.driver.problem == virtual.driver.state_problem()


def test_clients_that_fail_before_the_first_sample_keep_control(arm):
    virtual = VirtualArm(arm)
    driver, link = virtual.driver, virtual.link
    driver._begin()
    link.control, link.restarts = True, -1

    def poll(timeout: float) -> list[tuple]:
        assert link.control
        link.restarts += 1
        return [virtual.record()] if link.restarts == 3 else []

    link.poll = poll
    driver.connect()
    assert not link.control and virtual.refusal() == ""


def test_a_client_ends_before_its_library_connects_control_again(monkeypatch):
    """The library would stop the operator's program, and upload its own."""
    ended, connected = [], [True, True, False, True]
    control = SimpleNamespace(isConnected=lambda: connected.pop(0))
    monkeypatch.setattr("os._exit", ended.append)
    reading, writing = os.pipe()
    wire._guard(control, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read().endswith(b"connection lost")
    assert ended == [wire.LOST] and connected == [True]


def test_modes_end_commands_and_a_missing_sample_does_not(arm):
    virtual = VirtualArm(arm)
    virtual.take(virtual.record(actual_q=np.full(6, np.nan)))
    assert "unknown" in virtual.refusal() and virtual.driver.stop_reason() == ""
    for values, words in (({"safety_mode": 3}, "protective stop"), ({"robot_mode": 5}, "idle")):
        virtual.wait(0.002, **values)
        assert words in virtual.driver.stop_reason() and words in virtual.refusal()
    virtual.wait(0.002)
    assert virtual.driver.stop_reason() == "" == virtual.refusal() and virtual.link.sent[-1] == wire.TWIST
