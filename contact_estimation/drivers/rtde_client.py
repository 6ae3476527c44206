"""The process that holds the ur_rtde client: samples out, commands in.

Started by :mod:`.rtde_link`; imports neither numpy nor ROS.

The client library reads short packets out of bounds and aborts on a malformed header. In a process of its own such a
fault costs one restart and not the graph. The process ends itself when the stream is malformed or stalls; the parent
starts a new one.

The library's control interface connects again by itself. It then stops the program that plays on the controller and
uploads its own, which nobody has asked for. The process therefore ends before that, as soon as a connection is lost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

#: Variables requested from the receive interface, in this order.
VARIABLES = [
    "timestamp",
    "actual_q",
    "actual_qd",
    "actual_current",
    "target_moment",
    "actual_TCP_force",
    "actual_TCP_pose",
    "robot_mode",
    "safety_mode",
    "runtime_state",
]

#: One sample: robot time [s], host's monotonic and wall clock [ns], q, dq, current, target moment, TCP force, TCP pose
#: (6 each), robot mode, safety mode, runtime state.
SAMPLE = struct.Struct("<dqq36diii")

#: One command: kind (0 stop, 1 twist), twist in the controller's base (6) [m/s, rad/s].
COMMAND = struct.Struct("<i6d")
STOP, TWIST = 0, 1

#: A sample's frame on the pipe: this tag and the sample; a text's: that tag, its length, and the text.
SAMPLE_TAG, TEXT_TAG = b"S", b"T"

#: Acceleration [m/s^2] of speedL: the largest commanded speed of a contact, 0.1 m/s, is reached or left in 0.1 s.
ACCELERATION = 1.0

#: Robot and safety modes in which an arm moves: running; normal or reduced. State of a program that runs.
RUNNING, NORMAL, REDUCED, PLAYING = 7, 1, 2, 2

#: The controller ends the control program, and with it the motion, after so many times hold_after without an input.
#: Without that watchdog an arm keeps its speed where this process, the computer or the cable fails.
WATCHDOG = 2.0
#: Inputs per period of the watchdog, where no command is due.
KICKS = 5.0

#: [s] Period of the test whether the control interface is connected: it is back 8 ms after a loss on loopback.
GUARD = 0.002

#: Exit code after a stream that broke, and after a lost connection.
BROKEN, LOST = 5, 6

#: The library's interfaces, until the process exits: to destroy one waits half a second for threads that end anyway.
_interfaces: list[Any] = []


def main() -> int:
    """Run until the stream breaks, the parent goes away, or it asks for the end."""
    config = json.loads(sys.argv[1])
    out, commands = config["samples_fd"], config["commands_fd"]
    _realtime(config["realtime_priority"])
    try:
        import rtde_receive

        receive = rtde_receive.RTDEReceiveInterface(config["host"], float(config["rate"]), VARIABLES)
        _interfaces.append(receive)
    except ImportError:
        return _end(out, "package 'ur_rtde' is missing: pip install 'contact_estimation[ur]'", 2)
    except Exception as error:  # the library raises RuntimeError and boost's own, by cause
        return _end(out, f"cannot connect to {config['host']}: {str(error).strip().splitlines()[0]}", 3)
    control = None
    if config["control"]:
        try:
            import rtde_control

            control = rtde_control.RTDEControlInterface(config["host"], float(config["rate"]))
            _interfaces.append(control)
            if not control.setWatchdog(1.0 / (WATCHDOG * config["hold_after"])):
                raise RuntimeError("it takes no watchdog")
        except Exception as error:
            return _end(
                out,
                f"connected, but the control interface of {config['host']} refused: "
                f"{str(error).strip().splitlines()[0]}",
                4,
            )
        threading.Thread(target=_guard, args=(control, out), daemon=True).start()
    _send_text(out, "connected")
    code = BROKEN
    try:
        code = _stream(receive, control, out, commands, config)
    except BrokenPipeError:
        code = 0
    finally:
        if control is not None and code != LOST:
            # Without a controller the library waits for an answer for ever and blocks every other thread. A signal
            # still ends the process, so that the parent can start the next one.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0.2 if code == BROKEN else 1.5)
            _suppressed(control.speedStop)
            _suppressed(control.stopScript)
    return code


def _stream(receive: Any, control: Any, out: int, commands: int, config: dict[str, Any]) -> int:
    period, patience = 1.0 / config["rate"], config["stall_timeout"]
    last, last_new, moving, last_command, last_input = None, time.monotonic(), False, 0.0, 0.0
    kick_after = WATCHDOG * config["hold_after"] / KICKS
    poll = select.poll()
    poll.register(commands, select.POLLIN)
    while True:
        stamp = receive.getTimestamp()
        now = time.monotonic()
        if stamp != last:
            sample = _sample(receive, stamp)
            os.write(out, SAMPLE_TAG + sample)
            last, last_new = stamp, now
            # The next packet is a period away: sleep most of it, then poll often. Two packets between polls lose one.
            wait = 0.4 * period
        else:
            wait = 0.08 * period
            if now - last_new > patience or not receive.isConnected():
                if not receive.isConnected():
                    return _end(out, "connection lost", LOST)
                return _end(out, f"no new sample for {now - last_new:.2f} s", BROKEN)
        if poll.poll(0):
            data = os.read(commands, COMMAND.size * 64)
            if not data:
                return 0
            moving = _execute(receive, control, data[len(data) - COMMAND.size :])
            last_command = last_input = now
        elif moving and (now - last_command > config["hold_after"] or now - last_new > config["hold_after"]):
            control.speedStop()
            moving = False
            _send_text(out, "held: no command or no sample in time")
        elif control is not None and now - last_input > kick_after:
            control.kickWatchdog()  # never right behind a command, which it would replace before it is read
            last_input = now
        time.sleep(wait)


def _guard(control: Any, out: int) -> None:
    """End the process when the control interface has lost its connection, also while a call of the library waits."""
    while control.isConnected():
        time.sleep(GUARD)
    os._exit(_end(out, "connection lost", LOST))


def _sample(receive: Any, stamp: float) -> bytes:
    return SAMPLE.pack(
        stamp,
        time.monotonic_ns(),
        time.time_ns(),
        *receive.getActualQ(),
        *receive.getActualQd(),
        *receive.getActualCurrent(),
        *receive.getTargetMoment(),
        *receive.getActualTCPForce(),
        *receive.getActualTCPPose(),
        receive.getRobotMode(),
        receive.getSafetyMode(),
        receive.getRuntimeState(),
    )


def _execute(receive: Any, control: Any, data: bytes) -> bool:
    """Do the newest command; returns whether the arm moves."""
    kind, *twist = COMMAND.unpack(data)
    known = receive.getRobotMode() == RUNNING and receive.getSafetyMode() in (NORMAL, REDUCED)
    if control is None or kind == STOP or not known or not all(math.isfinite(v) for v in twist):
        if control is not None and known:
            control.speedStop()
        return False
    return bool(control.speedL(twist, ACCELERATION, 0.0))


def _realtime(priority: int) -> None:
    if priority > 0:
        with contextlib.suppress(OSError, AttributeError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            # without the permission the ordinary scheduler is used; the parent counts lost samples


def _send_text(out: int, text: str) -> None:
    data = text.encode()[:60000]
    os.write(out, TEXT_TAG + struct.pack("<H", len(data)) + data)


def _end(out: int, text: str, code: int) -> int:
    _suppressed(lambda: _send_text(out, text))
    return code


def _suppressed(action: Callable[[], Any]) -> None:
    with contextlib.suppress(Exception):  # at the end there is no one to report to
        action()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the library's threads may never join once its connection is broken
