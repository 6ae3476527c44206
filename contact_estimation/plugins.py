"""Classes chosen by name: shipped ones, those of an installed package, or a class of your own.

A package of your own registers observers, drivers and contact laws as entry points of the groups below. The shipped
ones are in a table, because a source checkout and a ROS install have no entry points.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import importlib.util
import sys
import typing
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from contact_estimation.exceptions import ConfigError

_PACKAGE = __name__.partition(".")[0]
#: Entry-point groups.
OBSERVERS, DRIVERS, LAWS = f"{_PACKAGE}.observers", f"{_PACKAGE}.drivers", f"{_PACKAGE}.laws"

#: Group -> name -> ``module:Class``; imported when asked for.
SHIPPED: dict[str, dict[str, str]] = {
    OBSERVERS: {
        "ekf": "contact_estimation.filters.ekf:Ekf",
        "ukf": "contact_estimation.filters.ukf:Ukf",
        "contact_imm": "contact_estimation.filters.imm.observer:ContactImm",
        "disturbance": "contact_estimation.filters.disturbance:DisturbanceFilter",
        "momentum": "contact_estimation.filters.momentum:MomentumObserver",
        "probing": "contact_estimation.identify.probing.observer:ProbingObserver",
    },
    DRIVERS: {
        "simulated": "contact_estimation.drivers.simulated:SimulatedBackend",
        "replay": "contact_estimation.drivers.replay:ReplayBackend",
        "rtde": "contact_estimation.drivers.rtde:RtdeBackend",
        "joint_torque": "contact_estimation.drivers.joint_torque:JointTorqueBackend",
        "franka": "contact_estimation.drivers.franka:FrankaBackend",
    },
    LAWS: {
        "spring": "contact_estimation.contact.spring:Spring",
        "sliding": "contact_estimation.contact.sliding:Sliding",
        "sticking": "contact_estimation.contact.sticking:Sticking",
        "mindlin": "contact_estimation.contact.sticking:Mindlin",
        "unilateral": "contact_estimation.contact.unilateral:unilateral_spring",
        "unilateral_sliding": "contact_estimation.contact.unilateral:unilateral_sliding",
        "unilateral_sticking": "contact_estimation.contact.unilateral:unilateral_sticking",
        "unilateral_mindlin": "contact_estimation.contact.unilateral:unilateral_mindlin",
    },
}
#: The observer where none is named.
DEFAULT_OBSERVER = "contact_imm"
#: Group -> earlier name -> name.
ALIASES: dict[str, dict[str, str]] = {OBSERVERS: {"contact_bank": "contact_imm"}, DRIVERS: {"sim": "simulated"}}


def canonical(group: str, name: str) -> str:
    """Return the present name of something that may go by an earlier one.

    Args:
        group: of entry points.
        name: present or earlier one.
    """
    return ALIASES.get(group, {}).get(name, name)


def offered(group: str) -> list[str]:
    """Names of everything in a group: the shipped ones first, then those of installed packages."""
    shipped = SHIPPED.get(group, {})
    return [*shipped, *sorted({point.name for point in entry_points(group=group)} - set(shipped))]


def is_offered(group: str, name: str) -> bool:
    """Whether ``name`` goes for something in a group; installed packages are only searched for what is not shipped."""
    name = canonical(group, name)
    return name in SHIPPED.get(group, {}) or name in offered(group)


@functools.cache
def load(group: str, name: str) -> Any:
    """Import what is chosen.

    Args:
        group: entry-point group.
        name: shipped name, name of an entry point, ``module:Class`` or ``path/to/file.py:Class``.

    Returns:
        The class, or whatever stands there.

    Raises:
        ConfigError: there is no such name, or it cannot be imported.
    """
    name = canonical(group, name)
    place = SHIPPED.get(group, {}).get(name) or (name if ":" in name else "")
    for point in () if place else entry_points(group=group):
        place = point.value.split("[")[0].strip() if point.name == name else place
    word = "contact law" if group == LAWS else group.rpartition(".")[2].rstrip("s")
    if not place:
        known = offered(group)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
        raise ConfigError(
            f"there is no {word} '{name}' (nearest: '{near[0] if near else '-'}'). Known: {', '.join(known)}; "
            f"one of your own is module:Class, file.py:Class, or an entry point of the group {group}"
        )
    source, _, attribute = place.rpartition(":")
    try:
        module = _load_file(source) if source.endswith(".py") else importlib.import_module(source)
    except Exception as error:  # a module of somebody else's may raise anything
        if place.startswith("contact_estimation."):
            raise
        raise ConfigError(
            f"{word} '{name}': '{source}' cannot be imported ({type(error).__name__}: {error}); give a module that "
            "python -c 'import ...' finds, or the path of a .py file"
        ) from error
    if not hasattr(module, attribute):
        found = [key for key, value in vars(module).items() if isinstance(value, type) and not key.startswith("_")]
        raise ConfigError(f"{word} '{name}': '{source}' has no '{attribute}'; it has {', '.join(found) or 'no class'}")
    return getattr(module, attribute)


def settings_of(cls: Any, name: str) -> Any:
    """Find the settings class of an observer or driver: the annotation of its constructor's argument ``settings``.

    Args:
        cls: class of the observer or driver.
        name: for the error.

    Raises:
        ConfigError: there is no such argument, or it is not annotated with a class that can be resolved.
    """
    try:
        found = typing.get_type_hints(cls.__init__).get("settings")
    except NameError as error:
        raise ConfigError(
            f"'{name}': the annotations of {cls.__name__}.__init__ cannot be resolved: {error}"
        ) from error
    if not isinstance(found, type):
        raise ConfigError(
            f"'{name}': the constructor of {cls.__name__} must take (arm, settings, ...) with 'settings' annotated by "
            "its settings class; docs/extending.md has an example"
        )
    return found


def _load_file(path: str) -> ModuleType:
    """Import a .py file under a name that belongs to its path."""
    place = Path(path).expanduser().resolve()
    if not place.is_file():
        raise FileNotFoundError(f"no such file: {place}")
    name = f"plugin_{place.stem}_{hashlib.sha256(str(place).encode()).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None  # the name ends in .py
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
