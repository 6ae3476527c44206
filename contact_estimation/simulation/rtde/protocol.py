"""RTDE packets: framing, commands, data types.

Universal Robots, "Real-Time Data Exchange (RTDE) Guide", protocol 1 and 2.

A packet is size (uint16, header included), type (uint8), payload; everything is big endian.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

from contact_estimation.exceptions import DriverError

HEADER = struct.Struct(">HB")


class Packet(IntEnum):
    """Packet types."""

    REQUEST_PROTOCOL_VERSION = ord("V")
    GET_CONTROL_VERSION = ord("v")
    TEXT_MESSAGE = ord("M")
    DATA = ord("U")
    SETUP_OUTPUTS = ord("O")
    SETUP_INPUTS = ord("I")
    START = ord("S")
    PAUSE = ord("P")


#: Type name -> struct format of one value, without byte order.
TYPES = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
    "INT32": "i",
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}

_VECTORS = (
    "target_q",
    "target_qd",
    "target_qdd",
    "target_current",
    "target_moment",
    "actual_q",
    "actual_qd",
    "actual_current",
    "actual_current_window",
    "joint_control_output",
    "actual_TCP_pose",
    "actual_TCP_speed",
    "actual_TCP_force",
    "target_TCP_pose",
    "target_TCP_speed",
    "joint_temperatures",
    "actual_joint_voltage",
    "ft_raw_wrench",
    "payload_inertia",
)
_DOUBLES = (
    "timestamp",
    "actual_execution_time",
    "speed_scaling",
    "target_speed_fraction",
    "actual_momentum",
    "actual_main_voltage",
    "actual_robot_voltage",
    "actual_robot_current",
    "standard_analog_input0",
    "standard_analog_input1",
    "standard_analog_output0",
    "standard_analog_output1",
    "payload",
)

#: Output variable -> type name.
OUTPUTS = (
    dict.fromkeys(_VECTORS, "VECTOR6D")
    | dict.fromkeys(_DOUBLES, "DOUBLE")
    | {
        "actual_digital_input_bits": "UINT64",
        "actual_digital_output_bits": "UINT64",
        "robot_mode": "INT32",
        "joint_mode": "VECTOR6INT32",
        "safety_mode": "INT32",
        "safety_status": "INT32",
        "safety_status_bits": "UINT32",
        "robot_status_bits": "UINT32",
        "runtime_state": "UINT32",
        "actual_tool_accelerometer": "VECTOR3D",
        "payload_cog": "VECTOR3D",
        "output_bit_registers0_to_31": "UINT32",
        "output_bit_registers32_to_63": "UINT32",
    }
    | {f"output_int_register_{i}": "INT32" for i in range(48)}
    | {f"output_double_register_{i}": "DOUBLE" for i in range(48)}
)

#: Input variable -> type name.
INPUTS = (
    {
        "speed_slider_mask": "UINT32",
        "speed_slider_fraction": "DOUBLE",
        "standard_digital_output_mask": "UINT8",
        "configurable_digital_output_mask": "UINT8",
        "standard_digital_output": "UINT8",
        "configurable_digital_output": "UINT8",
        "standard_analog_output_mask": "UINT8",
        "standard_analog_output_type": "UINT8",
        "standard_analog_output_0": "DOUBLE",
        "standard_analog_output_1": "DOUBLE",
        "external_force_torque": "VECTOR6D",
    }
    | {f"input_int_register_{i}": "INT32" for i in range(48)}
    | {f"input_double_register_{i}": "DOUBLE" for i in range(48)}
    | {f"input_bit_register_{i}": "BOOL" for i in range(64, 128)}
)


def pack(kind: int, payload: bytes = b"") -> bytes:
    """Write a packet.

    Args:
        kind: of the packet.
        payload: its body.
    """
    return HEADER.pack(HEADER.size + len(payload), kind) + payload


def split(buffer: bytearray) -> list[tuple[int, bytes]]:
    """Take the complete packets (type, payload) off the front of ``buffer``; what is incomplete stays.

    Raises:
        DriverError: a packet claims to be shorter than its own header.
    """
    packets = []
    while len(buffer) >= HEADER.size:
        size, kind = HEADER.unpack_from(buffer)
        if size < HEADER.size:
            raise DriverError(
                f"RTDE packet of type {kind} says it is {size} bytes long, the header alone has {HEADER.size}"
            )
        if len(buffer) < size:
            break
        packets.append((kind, bytes(buffer[HEADER.size : size])))
        del buffer[:size]
    return packets


def text_message(version: int, text: str) -> bytes:
    """Write a text message, as protocol ``version`` 1 or 2 writes it."""
    if version == 1:
        return pack(Packet.TEXT_MESSAGE, bytes([1]) + text.encode())
    message, source = text.encode()[:255], b"controller"
    return pack(Packet.TEXT_MESSAGE, bytes([len(message)]) + message + bytes([len(source)]) + source + bytes([1]))


class Recipe:
    """An agreed list of variables.

    Args:
        names: as requested.
        known: variable -> type name.

    Attributes:
        types: type names, ``NOT_FOUND`` where a variable is unknown.
        valid: whether all are known.
    """

    def __init__(self, names: list[str], known: dict[str, str]) -> None:
        self.names = list(names)
        self.types = [known.get(name, "NOT_FOUND") for name in names]
        self.valid = "NOT_FOUND" not in self.types
        self._formats = [struct.Struct(">" + TYPES[kind]) for kind in self.types] if self.valid else []
        #: Size of the data in bytes.
        self.size = sum(format_.size for format_ in self._formats)

    def encode(self, values: dict[str, Any]) -> bytes:
        """Encode the variables' values from ``values`` in this order."""
        parts = []
        for name, format_ in zip(self.names, self._formats):
            value = values[name]
            parts.append(format_.pack(*value) if len(format_.format) > 2 else format_.pack(value))
        return b"".join(parts)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Values by name.

        Raises:
            DriverError: ``data`` has another size than the recipe.
        """
        if len(data) != self.size:
            raise DriverError(f"RTDE data of {len(data)} bytes came for a recipe of {self.size} bytes")
        values, offset = {}, 0
        for name, format_ in zip(self.names, self._formats):
            value = format_.unpack_from(data, offset)
            values[name] = value if len(value) > 1 else value[0]
            offset += format_.size
        return values
