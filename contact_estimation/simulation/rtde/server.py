"""The sockets: RTDE, dashboard and script port, served by one loop that also drives the simulated arm in real time.

Loopback only. A line of text injects a fault, to test a client: see
:meth:`RtdeServer.fault`.
"""

from __future__ import annotations

import difflib
import ipaddress
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO

from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.simulation.rtde.controller import UrController
from contact_estimation.simulation.rtde.metronome import Metronome
from contact_estimation.simulation.rtde.protocol import INPUTS, OUTPUTS, Packet, Recipe, pack, split, text_message

RTDE_PORT, DASHBOARD_PORT, SCRIPT_PORT = 30004, 29999, 30003

#: Version of the controller software: major, minor, bug fix, build.
CONTROL_VERSION = (5, 12, 0, 0)

_DASHBOARD = {
    "polyscopeversion": "URSoftware 5.12.0.1101319 (Mar 22 2022)",
    "get serial number": "20235500000",
    "get robot model": "UR16",
    "is in remote control": "true",
    "robotmode": "Robotmode: RUNNING",
    "load": "Loading program",
    "quit": "Disconnected",
}


class _Client:
    """One RTDE connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.buffer = connection, bytearray()
        self.version, self.started, self.every = 1, False, 1
        self.outputs: Recipe | None = None
        self.inputs: dict[int, Recipe] = {}
        self.tail, self.resume, self.ticks = b"", 0.0, -1


class RtdeServer:
    """Serves a :class:`UrController` on ``host`` until :meth:`close`, or ``seconds`` in :meth:`run`.

    Args:
        controller: the arm.
        host: loopback address.
        port: of RTDE; the other two ports are as on a robot, shifted like this one.
        newest: highest protocol version spoken.
        without: output variables it does not know, as an older controller.

    Raises:
        ConfigError: the host is not loopback, a port is taken, or there is no such variable.
    """

    def __init__(
        self,
        controller: UrController,
        host: str = "127.0.0.1",
        port: int = RTDE_PORT,
        newest: int = 2,
        without: Sequence[str] = (),
    ) -> None:
        unknown = [name for name in without if name not in OUTPUTS]
        if unknown:
            near = difflib.get_close_matches(unknown[0], OUTPUTS, n=1, cutoff=0.0)[0]
            raise ConfigError(f"there is no output variable '{unknown[0]}' to leave out (nearest: '{near}')")
        self._outputs = {name: kind for name, kind in OUTPUTS.items() if name not in without}
        if not _is_loopback(host):
            raise ConfigError(f"the simulated controller listens on loopback only (127.x.y.z), not on '{host}'")
        self.controller, self.newest = controller, newest
        self._selector = selectors.DefaultSelector()
        self._clients: list[_Client] = []
        self._listeners: list[socket.socket] = []
        shift = port - RTDE_PORT
        for number, handler in (
            (port, self._accept_rtde),
            (DASHBOARD_PORT + shift, self._accept_dashboard),
            (SCRIPT_PORT + shift, self._accept_script),
        ):
            self._listen(host, number, handler)
        self.sent = 0  # packets
        self.metronome = Metronome(controller.simulation.period)
        self._stalled_until, self._away_until, self._next_packet_fault = 0.0, 0.0, ""

    def _listen(self, host: str, port: int, handler: Callable[[socket.socket], None]) -> None:
        """Let ``handler`` take the connections to a port."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            self.close()
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error}); is another controller running? choose another "
                "--host 127.x.y.z or --port"
            ) from error
        listener.listen()
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, handler)

    def fault(self, line: str) -> str:
        """Do what ``line`` says; returns an answer.

        ``stall S`` sends nothing for S seconds; ``drop S`` closes all RTDE connections, and each new one for S seconds
        (default 0); ``half``, ``short``, ``nan``, ``jump`` spoil the next packet (half of it, then the rest 50 ms
        later; a body cut short; not a number; a jump of the joints); ``protective_stop`` and ``unlock``; ``state``
        tells; ``commands`` lists the received register commands.
        """
        word, _, rest = line.strip().partition(" ")
        if word in ("stall", "drop"):
            try:
                seconds = float(rest or (1.0 if word == "stall" else 0.0))
            except ValueError:
                return f"not a number of seconds: {rest}"
            if word == "stall":
                self._stalled_until = time.monotonic() + seconds
            else:
                self._drop(seconds)
        elif word in ("half", "short", "nan", "jump"):
            self._next_packet_fault = word
        elif word == "protective_stop":
            self.controller.stop_for_safety()
        elif word == "unlock":
            self.controller.unlock()
        elif word == "commands":
            return " ".join(str(command) for command in self.controller.received)
        elif word != "state":
            return f"unknown: {word}"
        clock = self.metronome
        return (
            f"clients {len(self._clients)} sent {self.sent} late {clock.late} skipped {clock.skipped} "
            f"safety_mode {self.controller.values['safety_mode']} "
            f"script {'playing' if self.controller.script else 'stopped'} "
            f"time {self.controller.values['timestamp']:.3f}"
        )

    def _drop(self, seconds: float) -> None:
        """Close every RTDE connection, and those that come in the next ``seconds`` [s]."""
        self._away_until = time.monotonic() + seconds
        for client in list(self._clients):
            self._forget(client)

    def run(self, seconds: float = float("inf"), console: BinaryIO | None = None) -> None:
        """Serve until a time is over.

        Args:
            seconds: [s].
            console: binary stream whose lines are given to :meth:`fault` and answered on stdout.
        """
        if console is not None:
            self._selector.register(console, selectors.EVENT_READ, self._read_console)
        self.metronome = Metronome(self.controller.simulation.period)
        end = time.monotonic() + seconds
        while (now := self.metronome.wait()) < end:
            self._send(now)  # what the last tick left: packets leave on the beat, however long a step takes
            for key, _ in self._selector.select(0):
                key.data(key.fileobj)
            self.controller.tick()

    def close(self) -> None:
        """Close every socket."""
        for client in list(self._clients):
            self._forget(client)
        for listener in self._listeners:
            if listener in self._selector.get_map():
                self._selector.unregister(listener)
            listener.close()
        self._selector.close()

    # -- RTDE ------------------------------------------------------------------------------------------------

    def _accept_rtde(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        if time.monotonic() < self._away_until:
            connection.close()
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(0.2)
        client = _Client(connection)
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._receive(client))

    def _receive(self, client: _Client) -> None:
        try:
            data = client.connection.recv(65536)
            client.buffer += data
            packets = split(client.buffer) if data else None
        except (OSError, DriverError):
            packets = None
        if packets is None:
            self._forget(client)
            return
        for kind, payload in packets:
            self._answer(client, kind, payload)

    def _answer(self, client: _Client, kind: int, payload: bytes) -> None:
        if kind == Packet.REQUEST_PROTOCOL_VERSION:
            wanted = struct.unpack(">H", payload)[0] if len(payload) == 2 else 0
            accepted = 1 <= wanted <= self.newest
            client.version = wanted if accepted else client.version
            self._write(client, pack(kind, bytes([accepted])))
        elif kind == Packet.GET_CONTROL_VERSION:
            self._write(client, pack(kind, struct.pack(">4I", *CONTROL_VERSION)))
        elif kind == Packet.SETUP_OUTPUTS:
            self._setup_outputs(client, payload)
        elif kind == Packet.SETUP_INPUTS:
            recipe = Recipe(_names(payload), INPUTS)
            number = len(client.inputs) + 1 if recipe.valid else 0
            if recipe.valid:
                client.inputs[number] = recipe
            self._write(client, pack(kind, bytes([number]) + ",".join(recipe.types).encode()))
        elif kind in (Packet.START, Packet.PAUSE):
            ready = kind == Packet.PAUSE or client.outputs is not None
            client.started = kind == Packet.START and ready
            self._write(client, pack(kind, bytes([ready])))
        elif kind == Packet.DATA:
            known = client.inputs.get(payload[0]) if payload else None
            try:
                if known is None:
                    raise DriverError(f"RTDE data came for the unknown input recipe {payload[0] if payload else None}")
                self.controller.write(known.decode(payload[1:]))
            except DriverError as error:
                self._write(client, text_message(client.version, str(error)))
        elif kind != Packet.TEXT_MESSAGE:
            self._write(client, text_message(client.version, f"unknown packet type {kind}"))

    def _setup_outputs(self, client: _Client, payload: bytes) -> None:
        rate = 125.0
        if client.version == 2 and len(payload) >= 8:
            rate, payload = struct.unpack(">d", payload[:8])[0], payload[8:]
        recipe = Recipe(_names(payload), self._outputs)
        own = self.controller.simulation.scenario.rate
        client.every = max(round(own / rate), 1) if 0 < rate <= own else 1
        client.outputs = recipe if recipe.valid else None
        number = bytes([1 if recipe.valid else 0]) if client.version == 2 else b""
        self._write(client, pack(Packet.SETUP_OUTPUTS, number + ",".join(recipe.types).encode()))

    def _send(self, now: float) -> None:
        if now < self._stalled_until:
            return
        for client in list(self._clients):
            if client.tail:
                if now >= client.resume:
                    tail, client.tail = client.tail, b""
                    self._write(client, tail)
            elif client.started:
                client.ticks += 1
                if client.ticks % client.every == 0:
                    self._send_data(client, now)

    def _send_data(self, client: _Client, now: float) -> None:
        values, fault = self.controller.values, self._next_packet_fault
        self._next_packet_fault = ""
        if fault == "nan":
            values = {**values, "actual_q": (float("nan"),) * 6}
        elif fault == "jump":
            values = {**values, "actual_q": tuple(q + 1.0 for q in values["actual_q"])}
        if client.outputs is None:
            return
        body = client.outputs.encode(values)
        if fault == "short":
            body = body[: len(body) // 2]
        packet = pack(Packet.DATA, (b"\x01" if client.version == 2 else b"") + body)
        if fault == "half":
            client.tail, client.resume = packet[len(packet) // 2 :], now + 0.05
            packet = packet[: len(packet) // 2]
        self._write(client, packet)
        self.sent += 1

    def _write(self, client: _Client, data: bytes) -> None:
        try:
            client.connection.sendall(data)
        except OSError:
            self._forget(client)

    def _forget(self, client: _Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            self._selector.unregister(client.connection)
            client.connection.close()

    # -- dashboard, script port, console ---------------------------------------------------------------------

    def _accept_dashboard(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.settimeout(0.2)
        try:
            connection.sendall(b"Connected: Universal Robots Dashboard Server\n")
        except OSError:  # whoever connected is gone again
            connection.close()
            return
        self._selector.register(connection, selectors.EVENT_READ, self._read_dashboard)

    def _read_dashboard(self, connection: socket.socket) -> None:
        data = self._read_or_close(connection)
        for line in data.decode("ascii", "replace").splitlines():
            words = line.strip().lower()
            if words in ("stop", "close safety popup", "unlock protective stop"):
                answer = self._dashboard_action(words)
            elif words == "safetystatus" or words == "safetymode":
                answer = f"Safety{words[6:]}: {'PROTECTIVE_STOP' if self.controller.protective_stop else 'NORMAL'}"
            elif words == "programstate" or words == "running":
                answer = (
                    f"Program running: {str(self.controller.script).lower()}"
                    if words == "running"
                    else ("PLAYING" if self.controller.script else "STOPPED")
                )
            else:
                answer = _DASHBOARD.get(words, f"could not understand: {line.strip()}")
            try:
                connection.sendall(answer.encode() + b"\n")
            except OSError:
                return

    def _dashboard_action(self, words: str) -> str:
        if words == "stop":
            self.controller.end_script()
            return "Stopped"
        if words == "unlock protective stop":
            self.controller.unlock()
            return "Protective stop releasing"
        return "closing safety popup"

    def _accept_script(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.settimeout(0.2)
        self._selector.register(connection, selectors.EVENT_READ, self._read_script)

    def _read_script(self, connection: socket.socket) -> None:
        text = self._read_or_close(connection)
        # What is uploaded is the client's own program; its end tag is all this controller needs to know it is complete.
        if b"end" in text:
            self.controller.start_script()

    def _read_or_close(self, connection: socket.socket) -> bytes:
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(connection)
            connection.close()
        return data

    def _read_console(self, console: BinaryIO) -> None:
        line = console.readline()
        if not line:
            self._selector.unregister(console)
            return
        print(self.fault(line.decode()), flush=True, file=sys.stdout)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names(payload: bytes) -> list[str]:
    """Variable names of a request; clients may end the list with a comma."""
    return payload.decode("ascii", "replace").rstrip(",").split(",")
