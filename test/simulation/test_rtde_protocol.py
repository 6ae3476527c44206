"""RTDE packets, the controller behind them, and what its server answers without a client library."""

import socket
import struct

import numpy as np
import pytest
from rtde_controller import HOST

from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.simulation.rtde.controller import CONTROLLER_BASE, Command, UrController
from contact_estimation.simulation.rtde.protocol import INPUTS, OUTPUTS, Packet, Recipe, pack, split
from contact_estimation.simulation.rtde.server import DASHBOARD_PORT, RtdeServer
from contact_estimation.simulation.session import open_simulation


def test_packets_survive_any_cut():
    stream = pack(Packet.START) + pack(Packet.DATA, b"\x01abc") + pack(Packet.PAUSE, b"x" * 300)
    for cut in range(len(stream) + 1):
        buffer = bytearray(stream[:cut])
        got = split(buffer)
        buffer += stream[cut:]
        got += split(buffer)
        assert got == [(Packet.START, b""), (Packet.DATA, b"\x01abc"), (Packet.PAUSE, b"x" * 300)] and not buffer


def test_a_header_shorter_than_itself_is_an_error():
    with pytest.raises(DriverError, match="2 bytes"):
        split(bytearray(b"\x00\x02U"))


def test_recipes_round_trip_and_refuse():
    values = {name: tuple(range(6)) if kind.startswith("VECTOR6") else 3 for name, kind in OUTPUTS.items()}
    recipe = Recipe(["timestamp", "actual_q", "robot_mode", "actual_digital_input_bits"], OUTPUTS)
    assert recipe.types == ["DOUBLE", "VECTOR6D", "INT32", "UINT64"]
    assert recipe.decode(recipe.encode(values)) == {
        "timestamp": 3.0,
        "actual_q": tuple(map(float, range(6))),
        "robot_mode": 3,
        "actual_digital_input_bits": 3,
    }
    with pytest.raises(DriverError, match="bytes"):
        recipe.decode(b"123")
    assert not Recipe(["timestamp", "nothing"], OUTPUTS).valid
    assert Recipe(["input_bit_register_64", "external_force_torque"], INPUTS).size == 49


@pytest.fixture
def controller():
    return UrController(open_simulation("linear_contact", imperfections="ideal"))


def command(controller, kind, numbers=(0,) * 6, ticks=1):
    controller.write(
        {"input_int_register_0": int(kind), **{f"input_double_register_{i}": v for i, v in enumerate(numbers)}}
    )
    for _ in range(ticks):
        controller.tick()


def test_commands_before_the_script_do_nothing(controller):
    command(controller, Command.SPEED_L, (0, 0, 0.05, 0, 0, 0))
    assert controller.received == [] and controller.values["runtime_state"] == 1


def test_speed_moves_in_the_controllers_base_and_stop_holds(controller):
    controller.start_script()
    assert controller.values["output_int_register_0"] == 1
    start = np.array(controller.values["actual_TCP_pose"][:3])
    in_base_link = controller.simulation.plant.position.copy()
    command(controller, Command.SPEED_L, (0.02, 0, 0.01, 0, 0, 0), ticks=250)
    assert np.array(controller.values["actual_TCP_pose"][:3]) - start == pytest.approx([0.01, 0, 0.005], abs=5e-4)
    assert controller.simulation.plant.position - in_base_link == pytest.approx(
        CONTROLLER_BASE @ [0.01, 0, 0.005], abs=5e-4
    )
    command(controller, Command.SPEED_STOP, ticks=100)
    assert controller.values["output_int_register_0"] == 2
    command(controller, Command.NONE)
    held = np.array(controller.values["actual_q"])
    for _ in range(100):
        controller.tick()
    assert controller.values["actual_q"] == pytest.approx(held, abs=1e-6)


def test_protective_stop_ends_the_script_and_holds(controller):
    controller.start_script()
    command(controller, Command.SPEED_L, (0.05, 0, 0, 0, 0, 0), ticks=50)
    controller.stop_for_safety()
    for _ in range(400):
        controller.tick()
    held = np.array(controller.values["actual_q"])
    command(controller, Command.SPEED_L, (0.05, 0, 0, 0, 0, 0), ticks=50)
    assert controller.values["actual_q"] == pytest.approx(held, abs=1e-6)
    assert controller.values["safety_mode"] == 3 and controller.values["runtime_state"] == 1
    controller.start_script()
    assert not controller.script


def test_not_a_number_is_a_protective_stop(controller):
    controller.start_script()
    command(controller, Command.SPEED_L, (np.nan, 0, 0, 0, 0, 0))
    assert controller.protective_stop


def test_who_is_gone_before_the_dashboard_greets_ends_nothing(controller):
    server = RtdeServer(controller, HOST)
    try:
        with socket.create_connection((HOST, DASHBOARD_PORT)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset instead of an end
        server.run(0.2)
        with socket.create_connection((HOST, DASHBOARD_PORT)) as client:
            server.run(0.2)
            assert client.recv(100).startswith(b"Connected")
    finally:
        server.close()


def test_words_that_are_no_fault_end_nothing(controller):
    server = RtdeServer(controller, HOST)
    try:
        assert server.fault("stall long") == "not a number of seconds: long"
    finally:
        server.close()


def test_loopback_only_and_ur_only(controller):
    with pytest.raises(ConfigError, match="loopback"):
        RtdeServer(controller, "0.0.0.0")
    with pytest.raises(ConfigError, match="UR controller"):
        UrController(open_simulation("plane", "fr3"))
