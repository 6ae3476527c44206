"""A loopback UR controller in a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: An address of our own: tests of other checkouts on this machine do not meet, and no connection to 127.0.0.1 has
#: taken one of its ports.
HOST = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250 + 2}.9"


def require_client_library() -> None:
    """Skip where the UR driver's client library is not installed; with ``CI=true`` it must be, and the test runs."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("rtde_receive", reason="the UR driver's client library ur_rtde is not installed")


class Controller:
    """Starts ``rtde-server``; :meth:`say` sends it a fault and returns its answer."""

    def __init__(self, *arguments: str):
        command = [
            sys.executable,
            "-m",
            "contact_estimation",
            "rtde-server",
            "--host",
            HOST,
            "--console",
            "--imperfections",
            "ideal",
            "--seconds",
            "120",
            "--realtime-priority",
            "30",
            *arguments,
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        assert "listening" in self.process.stdout.readline()

    def say(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def time(self) -> float:
        """The controller's own time [s]: slower than the clock on the wall where the machine is busy."""
        return float(self.say("state").split()[-1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
