"""Real-time scheduling: what is said to be granted is what the system shows; what cannot be is refused."""

import json
import os
import subprocess
import sys

import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.ros.realtime import parse

#: In a process of its own, or the tests would run with its priority.
PROGRAM = """
import json, os, sys
from contact_estimation.ros.realtime import apply, parse
lines = apply(parse(sys.argv[1]))
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
locked = int(status["VmLck"].split()[0])
print(json.dumps([lines, os.sched_getscheduler(0) == os.SCHED_FIFO, sorted(os.sched_getaffinity(0)), locked]))
"""


def test_what_is_told_is_what_the_system_shows():
    cpu = max(os.sched_getaffinity(0))
    asked = f"{{priority: 1, cpus: [{cpu}], lock_memory: true}}"
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (where, fifo, memory), is_fifo, cpus, locked = json.loads(done.stdout)
    assert where.endswith("granted") and cpus == [cpu]
    assert fifo.endswith("granted") == is_fifo and memory.endswith("granted") == (locked > 0)
    assert all(line.endswith("granted") or "limits.d" in line for line in (fifo, memory))


@pytest.mark.parametrize(
    "text, words",
    [("{priority: 99}", "at most 98"), ("{cpus: [4096]}", "4096"), ("{prority: 1}", "priority"), ("7", "mapping")],
)
def test_what_cannot_be_asked_for_is_an_error(text, words):
    with pytest.raises(ConfigError, match=words):
        parse(text)
