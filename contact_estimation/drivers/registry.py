"""Backends by name: one word selects the source of the samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from contact_estimation import plugins
from contact_estimation.drivers.backend import Backend
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.settings import from_mapping


def driver_names() -> list[str]:
    """Everything ``driver:=`` takes by name."""
    return plugins.offered(plugins.DRIVERS)


def make_backend(
    kind: str,
    arm: Arm,
    options: Mapping[str, Any] | None = None,
    *,
    shared: Mapping[str, Any] | None = None,
    **more: Any,
) -> Backend:
    """Make the backend ``kind`` for ``arm``.

    Args:
        kind: a name of :func:`driver_names`, or ``module:Class``.
        arm: the robot.
        options: settings of the driver, refused where it does not know them.
        shared: settings that several drivers have; each takes those it knows.
        more: further ``options``.

    Raises:
        ConfigError: unknown kind (the nearest known one is named), or bad options.
    """
    cls = plugins.load(plugins.DRIVERS, kind)
    settings = plugins.settings_of(cls, kind)
    known = {field.name for field in dataclasses.fields(settings)}
    values = {name: value for name, value in (shared or {}).items() if name in known} | {**(options or {}), **more}
    backend = cls(arm, from_mapping(settings, values, f"driver {plugins.canonical(plugins.DRIVERS, kind)}"))
    if not isinstance(backend, Backend):
        parts = ("joint_names", "commandable", "connect", "read", "equilibrium", "command", "close")
        missing = [name for name in parts if not hasattr(backend, name)]
        raise ConfigError(f"driver '{kind}': {cls.__name__} is no backend, it lacks {', '.join(missing)}")
    return backend
