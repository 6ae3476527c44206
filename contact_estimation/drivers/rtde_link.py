"""The parent's end of the RTDE client process: starts it, restarts it, and turns its pipe into records."""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from contact_estimation.drivers import rtde_client as wire

#: Variables that the child must not inherit.
_NOT_INHERITED = ("_ROS_WHEELS_BOOTSTRAP_COMPLETE",)


class RtdeLink:
    """A client process that is restarted whenever it ends.

    Args:
        host: what to connect to.
        rate: of the samples [Hz].
        control: whether commands are wanted.
        stall_timeout: silence after which the process gives up [s].
        hold_after: age of a command after which it stops the arm [s].
        realtime_priority: SCHED_FIFO priority, 0 none.

    Attributes:
        status: what the process said last.
        restarts: how often it was started again.
    """

    #: Pause before a process is started again [s]; each start without a sample doubles it, up to the second.
    PAUSE, LONGEST_PAUSE = 0.1, 0.5
    #: How long a process may take until its first record [s].
    START_TIMEOUT = 4.0

    #: How much longer than stall_timeout a process may be silent [s].
    GRACE = 0.5

    def __init__(
        self, host: str, rate: float, control: bool, stall_timeout: float, hold_after: float, realtime_priority: int
    ) -> None:
        self._stall_timeout = stall_timeout
        self._config: dict[str, Any] = {
            "host": host,
            "rate": rate,
            "control": control,
            "stall_timeout": stall_timeout,
            "hold_after": hold_after,
            "realtime_priority": realtime_priority,
        }
        self._lock = threading.Lock()  # commands come from another thread than the one that polls and restarts
        self._process: subprocess.Popen[bytes] | None = None
        self._reading = threading.RLock()  # the samples' pipe is not closed while it is read
        self._closed = False
        self._samples = self._commands = -1
        self._buffer = bytearray()
        self._deadline = 0.0
        self._next_start, self._pause = 0.0, self.PAUSE
        self.status, self.restarts, self._started = "not started", -1, False

    def poll(self, timeout: float) -> list[tuple[Any, ...]]:
        """Wait for samples, at most ``timeout`` [s].

        Returns:
            Tuples of :data:`~contact_estimation.drivers.rtde_client.SAMPLE`.
        """
        end = time.monotonic() + timeout
        while True:
            self._keep_alive()
            left = max(end - time.monotonic(), 0.0)
            with self._reading:
                gone = self._process is None
                if not gone and select.select([self._samples], [], [], min(left, 0.1))[0] and (samples := self._read()):
                    return samples
            if gone:
                time.sleep(min(left, 0.02))
            if time.monotonic() >= end:
                return []

    def send(self, kind: int, twist: Iterable[float]) -> bool:
        """Give the process a command; False where there is none to take it.

        Args:
            kind: of the command, as the wire format numbers it.
            twist: (6,) [m/s, rad/s].
        """
        with self._lock:  # or the number of a pipe that was closed may be another file's by now
            if self._process is None:
                return False
            try:
                os.write(self._commands, wire.COMMAND.pack(kind, *twist))
            except (BrokenPipeError, BlockingIOError):
                return False
        return True

    def restart_without_control(self) -> None:
        """Let every process that is started from now on read only.

        To open the control interface stops the program that runs on the controller: nobody asks a restart for that.
        """
        self._config["control"] = False

    @property
    def pid(self) -> int | None:
        """Process id of the client process."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process, which stops the arm first, if it can; none is started any more."""
        with self._lock:
            self._closed = True
        self._end()

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            os.close(self._commands)  # the signal to stop the arm and exit
        try:
            process.wait(2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with self._reading:
            os.close(self._samples)

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if self._process is not None:
            dead = self._process.poll() is not None
            finished = dead or now > self._deadline
            if finished and select.select([self._samples], [], [], 0)[0]:
                return  # its last messages are still in the pipe, or the reader paused
            if finished:
                if not dead and self._started:
                    self.status = "the client process hung in a call of the library and was ended"
                elif not dead:
                    self.status = f"no answer from {self._config['host']} within {self.START_TIMEOUT:g} s"
                self._process.kill()
                self._end()
                self._next_start = now + self._pause
        if self._process is None and not self._closed and now >= self._next_start:
            self._start()

    def _start(self) -> None:
        samples, child_out = os.pipe()
        child_in, commands = os.pipe()
        fcntl.fcntl(samples, fcntl.F_SETPIPE_SZ, 1 << 20)  # half a minute of samples, should the reader pause
        os.set_blocking(samples, False)
        os.set_blocking(commands, False)
        config = {**self._config, "samples_fd": child_out, "commands_fd": child_in}
        environment = {k: v for k, v in os.environ.items() if k not in _NOT_INHERITED}
        # By path, not by module: the child then imports nothing of this package and starts quickly.
        process = subprocess.Popen(
            [sys.executable, str(Path(wire.__file__)), json.dumps(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(child_out, child_in),
            env=environment,
        )
        os.close(child_out)
        os.close(child_in)
        with self._lock:
            self._process, self._samples, self._commands = process, samples, commands
        if self._closed:  # meanwhile, by another thread
            self._end()
        self._buffer.clear()
        self._started, self._deadline = False, time.monotonic() + self.START_TIMEOUT
        self._pause = min(2.0 * self._pause, self.LONGEST_PAUSE)
        self.restarts += 1

    def _read(self) -> list[tuple[Any, ...]]:
        try:
            data = os.read(self._samples, 1 << 18)
        except BlockingIOError:
            return []
        if not data:
            if self._process is not None and self._process.poll() is None:
                self._process.kill()  # alive, but its pipe is closed
                self._process.wait()
            self._end()
            self._next_start = time.monotonic() + self._pause
            return []
        self._started = True
        # It ends itself after stall_timeout, unless the library does not let go of it.
        self._deadline = time.monotonic() + self._stall_timeout + self.GRACE
        self._buffer += data
        samples = []
        while self._buffer:
            tag = bytes(self._buffer[:1])
            if tag == wire.SAMPLE_TAG:
                size = 1 + wire.SAMPLE.size
                if len(self._buffer) < size:
                    break
                samples.append(wire.SAMPLE.unpack_from(self._buffer, 1))
                self._pause = self.PAUSE
            else:
                if len(self._buffer) < 3:
                    break
                size = 3 + struct.unpack_from("<H", self._buffer, 1)[0]
                if len(self._buffer) < size:
                    break
                self.status = bytes(self._buffer[3:size]).decode()
            del self._buffer[:size]
        return samples
