"""Real-time scheduling of a node's process: processors, SCHED_FIFO, locked memory; and what was granted."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import from_mapping, key, non_negative, parse_yaml

_PRIORITY_LIMIT = 98  # 99 is the kernel's own
_MCL_CURRENT, _MCL_FUTURE = 1, 2  # sys/mman.h
_LIMITS = "/etc/security/limits.d/realtime.conf"


@dataclass(frozen=True, kw_only=True)
class RealtimeSettings:
    """Real-time request of a process."""

    priority: int = key(0, check=non_negative, doc="SCHED_FIFO priority of all its threads; 0: none")
    cpus: list[int] = key([], doc="processors it may run on; empty: all")
    lock_memory: bool = key(False, doc="keep its memory from being swapped out (mlockall)")


def parse(text: str) -> RealtimeSettings:
    """Read the parameter ``realtime``, a YAML mapping.

    Raises:
        ConfigError: it is none, or asks for what this machine does not have.
    """
    given = parse_yaml(text, "parameter 'realtime'") or {}
    if not isinstance(given, dict):
        raise ConfigError(f"parameter 'realtime' must be a YAML mapping such as '{{priority: 20}}', found {given!r}")
    settings = from_mapping(RealtimeSettings, given, "parameter 'realtime'")
    if settings.priority > _PRIORITY_LIMIT:
        raise ConfigError(f"realtime: priority must be at most {_PRIORITY_LIMIT}, found {settings.priority}")
    offered = os.sched_getaffinity(0)
    if missing := sorted(set(settings.cpus) - offered):
        raise ConfigError(f"realtime: cpus {missing} are not among this process's processors {sorted(offered)}")
    return settings


def apply(settings: RealtimeSettings) -> list[str]:
    """Ask the system for what ``settings`` say, for all threads of this process.

    Returns:
        A line for each thing asked for: granted, or refused with what to do.
    """
    lines, threads = [], [int(path.name) for path in Path("/proc/self/task").iterdir()]
    if settings.cpus:
        for thread in threads:
            os.sched_setaffinity(thread, settings.cpus)
        lines.append(f"processors {settings.cpus}: granted")
    if settings.priority:
        try:
            for thread in threads:
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(settings.priority))
            lines.append(f"SCHED_FIFO priority {settings.priority}: granted")
        except OSError as error:
            remedy = f"put '@realtime - rtprio {_PRIORITY_LIMIT}' into {_LIMITS}, join that group, log in again"
            lines.append(f"SCHED_FIFO priority {settings.priority}: refused ({error.strerror}); {remedy}")
    if settings.lock_memory:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) == 0:
            lines.append("locked memory: granted")
        else:
            remedy = f"put '@realtime - memlock unlimited' into {_LIMITS}, join that group, log in again"
            lines.append(f"locked memory: refused ({os.strerror(ctypes.get_errno())}); {remedy}")
    return lines
