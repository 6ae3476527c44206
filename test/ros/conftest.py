"""Tests on ROS: in the project's own environment a missing ROS or message is a failure, in a plain library install it
is not.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # watcher.py, arm_samples.py: helpers of this folder's tests

HAS_ROS = importlib.util.find_spec("rclpy") is not None
#: Here ROS is expected: without it these tests run, and fail.
EXPECTED = Path(sys.prefix) == ROOT / ".venv" or os.environ.get("CI", "").lower() == "true"

if not HAS_ROS and not EXPECTED:
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header():
    """Say why test/ros is left out."""
    if not HAS_ROS and not EXPECTED:
        return "test/ros is left out: no ROS 2 (rclpy) in this environment"
    return None


def pytest_terminal_summary(terminalreporter):
    """Say that launch files were not run, which a quiet run does not show otherwise."""
    if shutil.which("ros2") is None:
        terminalreporter.write_line(
            "test_launch_run.py: not run, there is no ros2 launch here; test_launch.py checks the rest"
        )


@pytest.fixture(scope="module")
def graph():
    """A ROS context on a domain of its own and a watcher node in it; yields a :class:`watcher.Watcher`."""
    from watcher import Watcher

    with Watcher() as watcher:
        yield watcher
