"""Nodes as processes on an isolated graph, for the demo, tests and benchmarks (no ROS in here)."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from contact_estimation.exceptions import ConfigError

#: Sockets that hold the domains this process was given.
_RESERVED: list[socket.socket] = []


def free_domain() -> int:
    """Find a ROS domain that is unused on this machine, and reserve it for this process.

    The discovery port of a used domain is taken. The last of its 250 ports, which no participant reaches, holds it
    from now until the first participant is there.
    """
    for domain in random.sample(range(1, 101), 100):
        holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            holder.bind(("127.0.0.1", 7400 + 250 * domain + 249))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("", 7400 + 250 * domain))
        except OSError:
            holder.close()
            continue
        _RESERVED.append(holder)
        return domain
    raise ConfigError("all ROS domains from 1 to 100 are in use on this machine; stop some nodes")


def graph_environment(domain: int) -> dict[str, str]:
    """Environment of processes that see only this machine's nodes of ``domain``."""
    environment = dict(
        os.environ,
        ROS_DOMAIN_ID=str(domain),
        ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
        PYTHONUNBUFFERED="1",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
    )
    # Set by the pip-made ROS in this process; a child has to set up its own libraries.
    environment.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
    return environment


def executable(node: str) -> Path:
    """Installed executable of ``node``, where ``ros2 run`` would find it.

    Raises:
        ConfigError: it is not installed.
    """
    prefixes = [sys.prefix, *os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)]
    for prefix in filter(None, prefixes):
        path = Path(prefix) / "lib" / "contact_estimation" / node
        if path.exists():
            return path
    raise ConfigError(
        f"node '{node}' is not installed below {', '.join(filter(None, prefixes))}; build the package (make build)"
    )


class NodeProcess:
    """One node in a process of its own, with parameters; stopped with SIGINT when the ``with`` block ends.

    Args:
        node: name of the executable.
        domain: ROS domain.
        parameters: ROS parameters.
        remap: names to remap.
        log: file for its output, default a temporary one.
    """

    def __init__(
        self,
        node: str,
        domain: int,
        parameters: dict[str, Any] | None = None,
        remap: dict[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        self.node = node
        self._folder = tempfile.TemporaryDirectory(prefix=f"{node}_")
        self.log = log or Path(self._folder.name) / "log"
        arguments = ["--ros-args"]
        if parameters:
            file = Path(self._folder.name) / "parameters.yaml"
            file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
            arguments += ["--params-file", str(file)]
        for name, target in (remap or {}).items():
            arguments += ["-r", f"{name}:={target}"]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(executable(node)), *arguments],
                env=graph_environment(domain),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self.process.poll() is None

    def text(self) -> str:
        """Read what the node printed so far."""
        return self.log.read_text(errors="replace")

    def wait(self, timeout: float = 300.0) -> int:
        """Exit code, once the node ended by itself; raises subprocess.TimeoutExpired."""
        return self.process.wait(timeout)

    def stop(self, timeout: float = 30.0) -> int:
        """End the node as Ctrl-C does, or kill it if it does not react; returns the exit code."""
        for sign, patience in ((signal.SIGINT, timeout), (signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
            if not self.running:
                break
            self.process.send_signal(sign)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        return self.process.returncode
