"""What a task file may not say: each of these loads, commands a robot, and is a slip of a unit, an axis or a name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.control.path import PEAK_SPEED
from contact_estimation.exceptions import ConfigError

if TYPE_CHECKING:
    from contact_estimation.control.mpc.settings import MpcSettings

#: Share of a vector that may lie along axes that do not control it: a surface tilted by 17 degrees.
_ACROSS = 0.3
#: Names of modes in which no contact of the task is closed.
_OPEN = ("free", "unknown")


def check_task(task: MpcSettings) -> None:
    """Check a task's path, weights and modes.

    Args:
        task: the task.

    Raises:
        ConfigError: one of them cannot be meant.
    """
    _check_force(task)
    _check_path(task)
    _check_axes(task)
    _check_modes(task)
    _check_orientation(task)


def _check_path(task: MpcSettings) -> None:
    limits, way = task.safety, math.hypot(*task.path)
    if way > limits.max_travel:
        raise ConfigError(
            f"path: {_vector(task.path)} m is {way:g} m long, but the TCP may go {limits.max_travel:g} m from the "
            "start at most (safety.max_travel); give it in metres, or raise the limit"
        )
    angle = math.hypot(*task.turn)
    if angle > 2.0 * math.pi:
        raise ConfigError(
            f"turn: {_vector(task.turn)} rad is {angle:g} rad long, more than a full turn, which no wrist can follow; "
            "give it in rad"
        )
    speed = PEAK_SPEED * way / task.path_time
    if speed > limits.max_speed:
        raise ConfigError(
            f"path_time: {way:g} m in {task.path_time:g} s need up to {speed:.2g} m/s, but the TCP may move at "
            f"{limits.max_speed:g} m/s at most (safety.max_speed); allow at least "
            f"{PEAK_SPEED * way / limits.max_speed:.2g} s"
        )


def _check_axes(task: MpcSettings) -> None:
    """Check that forces are wanted where the cost weighs them, and that the path leads where it weighs the position."""
    rules = (
        ("force", "N are wanted", task.force, "force", "the force would not be controlled"),
        ("path", "m lead", task.path, "position", "the path would not be followed"),
    )
    for name, words, wanted, weight, what in rules:
        weights = getattr(task.weights, weight)
        without = np.where(np.array(weights) > 0, 0.0, wanted)  # (3,) of the axes without a weight
        if np.linalg.norm(without) > _ACROSS * np.linalg.norm(wanted):
            axis = int(np.argmax(np.abs(without)))
            raise ConfigError(
                f"{name}: {without[axis]:g} {words} along {'xyz'[axis]}, but weights.{weight} is {_vector(weights)}: "
                f"{what}; give a weight to axis {'xyz'[axis]}, or correct {name}"
            )


def _check_modes(task: MpcSettings) -> None:
    known = [contact.name for contact in task.contacts]
    if twice := [name for i, name in enumerate(known) if name in known[:i]]:
        raise ConfigError(
            f"contacts: '{twice[0]}' is there twice, and its force would count twice; name each contact as the "
            "observer names it"
        )
    for mode, closed in task.modes.items():
        for name in closed:
            if name not in known:
                raise ConfigError(f"modes: mode '{mode}' names a contact '{name}' that is not among {', '.join(known)}")
        fits = set(mode.split("+")) == set(closed) if closed else mode in _OPEN
        if not fits:
            raise ConfigError(
                f"modes: mode '{mode}' closes {', '.join(closed) or 'no contact'}, which observers call "
                f"'{'+'.join(closed) or _OPEN[0]}'; call it so: by another name it never has a probability"
            )


def _check_force(task: MpcSettings) -> None:
    wanted, most = math.hypot(*task.force), task.impedance.max_force
    if wanted > most:
        raise ConfigError(
            f"force: {wanted:g} N are wanted, but the impedance's spring pushes with {most:g} N at most "
            "(impedance.max_force): the force would never be reached; want less, or raise the limit"
        )


def _check_orientation(task: MpcSettings) -> None:
    stiffness = task.impedance.rotational_stiffness
    if task.orientation and not all(stiffness):
        raise ConfigError(
            f"orientation: true needs a spring about every axis, but impedance.rotational_stiffness is "
            f"{_vector(stiffness)} Nm/rad: no equilibrium would have the planned moment; give a stiffness, or leave "
            "orientation out"
        )


def _vector(values: list[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"
