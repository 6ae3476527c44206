"""Disturbances of a measured wrench: offset, delay, weight, gain, and a force that is not linear in depth.

Each is linear in few unknown numbers b: measured wrench = contact's wrench + map b, with a map (w, n) that follows from
the sample. The filter has b as constant states. The evidence of the recording decides which of them acts: the
log-likelihood of its wrenches, each predicted from those before. Residuals alone cannot decide, because every
disturbance affects all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Samples(NamedTuple):
    """A recording in the plane (3 axes) or in space (6 axes).

    Attributes:
        t: (T,) [s].
        pose: (T, 3) [m, m, rad], or (T, 4, 4) [m], of the end effector.
        twist: (T, axes) [m/s, rad/s].
        wrench: (T, axes) [N, Nm] of the environment ON the probe, end-effector axes.
    """

    t: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    wrench: np.ndarray


class Disturbance(NamedTuple):
    """Slow error of the measured wrench, or of the joint torque that it is estimated from.

    Attributes:
        std: standard deviations (n,) of its components.
        time: correlation time [s]; infinite for a constant.
    """

    std: tuple[float, ...]
    time: float = float("inf")


class Candidate(NamedTuple):
    """One kind of disturbance.

    Attributes:
        name: for machines.
        disturbance: its states.
        maps: maps (T, w, n) of a recording.
        describe: sentence for the user, from the estimate (n,).
        sticking: whether normal forces without sliding tell about it, too (:mod:`sticking`).
    """

    name: str
    disturbance: Disturbance
    maps: np.ndarray
    describe: Callable[[np.ndarray], str]
    sticking: bool = False


#: [N], [Nm], [s], [N]: spreads of offset, delay and weight before a recording: those of sensors that were not tared,
#: of drivers without a common clock, of a tool.
_FORCE, _MOMENT, _DELAY, _WEIGHT, _WEIGHT_MOMENT = 5.0, 0.3, 0.05, 5.0, 0.5
#: Relative spread of the moment's gain; spread of b of :func:`_hardening`; of an offset's growth per second.
_GAIN, _HARDENING, _DRIFT = 0.3, 0.5, 0.1


def candidates(data: Samples) -> list[Candidate]:
    """List the disturbances that are tried on a recording."""
    forces = 2 if data.wrench.shape[1] == 3 else 3
    linear = _offset(data, forces), _drift(data, forces), _weight(data, forces), _gain(data, forces)
    return [*linear, _delay(data), _hardening(data, forces)]


def _offset(data: Samples, forces: int) -> Candidate:
    """Constant in the sensor's axes."""
    count, size = data.wrench.shape
    std = (_FORCE,) * forces + (_MOMENT,) * (size - forces)

    def describe(b: np.ndarray) -> str:
        force, moment = np.linalg.norm(b[:forces]), np.linalg.norm(b[forces:])
        return (
            f"the wrench has an offset of {force:.1f} N and {moment:.2f} Nm, which was estimated and taken off; "
            "tare the sensor before the touch"
        )

    return Candidate("offset", Disturbance(std), np.tile(np.eye(size), (count, 1, 1)), describe)


def _delay(data: Samples) -> Candidate:
    """Measured w(t - b) = w(t) - b dw/dt; the slope from the samples on both sides."""
    slope = np.gradient(data.wrench, data.t, axis=0)

    def describe(b: np.ndarray) -> str:
        word = "late" if b[0] > 0.0 else "early"
        return (
            f"wrench and pose disagree by {1e3 * abs(b[0]):.0f} ms: the wrench is {word}; "
            "synchronise the clocks or shift the time of one"
        )

    return Candidate("delay", Disturbance((_DELAY,)), -slope[:, :, None], describe)


def _weight(data: Samples, forces: int) -> Candidate:
    """Force that is constant in the world, at a lever that is constant in the tool.

    In space gravity is along -z: unknown are the weight and weight times lever. In the plane its direction is unknown.
    """
    count, size = data.wrench.shape
    if forces == 2:
        cos, sin = np.cos(data.pose[:, 2]), np.sin(data.pose[:, 2])
        maps = np.zeros((count, size, 4))
        maps[:, 0, 0], maps[:, 0, 1], maps[:, 1, 0], maps[:, 1, 1] = cos, sin, -sin, cos
        maps[:, 2, 2], maps[:, 2, 3] = cos, sin
        std = (_WEIGHT,) * 2 + (_WEIGHT_MOMENT,) * 2
    else:
        down = -data.pose[:, 2, :3]  # (T, 3), tool axes
        maps = np.zeros((count, size, 4))
        maps[:, :3, 0] = down
        maps[:, 3:, 1:] = np.cross(np.eye(3)[None], down[:, None]).transpose(0, 2, 1)
        std = (_WEIGHT,) + (_WEIGHT_MOMENT,) * 3

    def describe(b: np.ndarray) -> str:
        weight = float(np.linalg.norm(b[: 2 if forces == 2 else 1]))
        return (
            f"a weight of {weight:.1f} N turns with the tool, which was estimated and taken off; "
            "tell the sensor the mass behind it"
        )

    return Candidate("weight", Disturbance(std), maps, describe)


def _gain(data: Samples, forces: int) -> Candidate:
    """Moment too large against the force; a gain of both is the same as a stiffer surface."""
    maps = data.wrench.copy()
    maps[:, :forces] = 0.0

    def describe(b: np.ndarray) -> str:
        return f"force and moment do not fit together: the moment reads {100.0 * b[0]:+.0f} %; calibrate the sensor"

    return Candidate("gain", Disturbance((_GAIN,)), maps[:, :, None], describe)


def _hardening(data: Samples, forces: int) -> Candidate:
    """Force f that is not linear in depth: (f - f_0)^2 / f_0 along the wrench, with the mean force f_0.

    A spring explains the constant and linear parts in f, so only the square is identifiable. Force as depth to the
    power 1.5 (Hertz) has b = 1/6.
    """
    force = np.linalg.norm(data.wrench[:, :forces], axis=1)
    mean, spread = float(np.mean(force)), float(np.var(force))
    share = (np.square(force - mean) - spread) / (max(mean, 1e-9) * np.maximum(force, 1e-9))

    def describe(b: np.ndarray) -> str:
        word = "faster" if b[0] > 0.0 else "slower"
        return (
            f"the force grows {word} than depth: the stiffness holds at the mean force of {mean:.0f} N only, "
            "and the offset is that of the tangent there"
        )

    maps = (data.wrench * share[:, None])[:, :, None]
    return Candidate("hardening", Disturbance((_HARDENING,)), maps, describe, sticking=True)


def _drift(data: Samples, forces: int) -> Candidate:
    """Offset that grows with time."""
    offset, since = _offset(data, forces), data.t - data.t[0]
    maps = np.concatenate([offset.maps, since[:, None, None] * offset.maps], axis=2)
    size = data.wrench.shape[1]
    std = offset.disturbance.std + tuple(_DRIFT * s for s in offset.disturbance.std)

    def describe(b: np.ndarray) -> str:
        force, moment = np.linalg.norm(b[size : size + forces]), np.linalg.norm(b[size + forces :])
        return (
            f"the wrench drifts by {force:.2f} N/s and {moment:.3f} Nm/s, which was estimated and taken off; "
            "let the sensor warm up, and tare it before the touch"
        )

    return Candidate("drift", Disturbance(std), maps, describe)
