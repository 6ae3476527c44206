"""``contact-estimation rtde-server``: a simulated UR controller for any RTDE client, on loopback."""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import sys
from typing import Any, cast

from contact_estimation.commands.inputs import add_tool_argument
from contact_estimation.commands.numbers import check_number


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    text = "what the arm does until a script takes over (default linear_contact)"
    add("--scenario", default="linear_contact", help=text)
    add("--robot", default="ur16e", help="a UR arm (default ur16e)")
    add_tool_argument(parser)
    add("--host", default="127.0.0.1", help="loopback address to listen on (default 127.0.0.1)")
    text = "port of RTDE (default 30004); dashboard and script port are shifted alike"
    add("--port", type=int, default=30004, help=text)
    add("--protocol", type=int, default=2, choices=(1, 2), help="newest RTDE protocol version spoken (default 2)")
    text = "an output variable it does not know, as an older controller (repeatable)"
    add("--without", action="append", default=[], metavar="VARIABLE", help=text)
    add("--imperfections", default="", help="sensors and joints: ideal, ur16e or a YAML; default: the robot's")
    add("--seconds", type=float, help="end after this long [s]; default: until interrupted")
    add("--seed", type=int, default=0, help="seed of everything random (default 0)")
    text = "SCHED_FIFO priority, where the system grants it (default 0: none)"
    add("--realtime-priority", type=int, default=0, help=text)
    text = "read faults from stdin: stall S, drop S, half, short, nan, jump, protective_stop, unlock, state, commands"
    add("--console", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Serve until the time is up or Ctrl-C."""
    from contact_estimation.robot import load_arm
    from contact_estimation.simulation.rtde.controller import UrController
    from contact_estimation.simulation.rtde.server import RtdeServer
    from contact_estimation.simulation.session import open_simulation

    check_number("--port", args.port, least=1024, most=65000)
    check_number("--seconds", args.seconds, "s", above=0, hint="leave it out to serve until Ctrl-C")
    check_number("--realtime-priority", args.realtime_priority, least=0, most=99)
    arm = load_arm(args.robot, args.tool)
    simulation = open_simulation(args.scenario, arm, args.imperfections or None, args.seed)
    server = RtdeServer(UrController(simulation), args.host, args.port, args.protocol, args.without)
    _ask_for_priority(args.realtime_priority)
    print(
        f"listening on {args.host}:{args.port}, scenario {args.scenario}",
        file=sys.stderr if args.json else sys.stdout,
        flush=True,
    )
    gc.collect()
    gc.freeze()  # a collection of all that was imported would hold up the stream for tens of milliseconds
    try:
        seconds = math.inf if args.seconds is None else args.seconds
        server.run(seconds, cast(Any, sys.stdin.buffer).raw if args.console else None)
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
    if args.json:
        clock = server.metronome
        numbers = {"sent": server.sent, "late": clock.late, "skipped": clock.skipped, "simulated_s": simulation.time}
        print(json.dumps(numbers))
    return 0


def _ask_for_priority(priority: int) -> None:
    if priority <= 0:
        return
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        text = f"no real-time priority ({error.strerror}); the stream's timing is the ordinary scheduler's"
        print(text, file=sys.stderr)
