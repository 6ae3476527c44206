"""Write a calibration as a robot profile, which every observer, fit and controller loads with ``--robot FOLDER``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.momentum import build_step
from contact_estimation.fit.calibration.settings import Calibration
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings
from contact_estimation.robot.friction_model import FrictionModel
from contact_estimation.robot.settings import RobotSettings

#: [s] Block of samples that a torque_noise is the noise of: that of the contact IMM filter.
BLOCK = 0.01
#: [s] Lags between which a friction disturbance is told from white noise, and those that tell how long it lasts.
_SHORT, _LONG = (0.05, 0.15), (0.4, 0.6)
#: [Hz] Bandwidths of the low-pass in front of the presliding states: a wider one follows reversals and passes noise.
_BANDWIDTHS = (8.0, 20.0)
#: [s] Within it friction turns over, and little else changes.
_REVERSAL = 0.1
#: A third difference of white noise has 1 + 9 + 9 + 1 times its variance; a median of |x| is 0.6745 deviations.
_THIRD_DIFFERENCE, _MEDIAN = 20.0**0.5, 0.6745
#: Where tails are compared with those of a normal distribution: its quantile, and that many standard deviations.
_TAIL, _NORMAL = 0.99, 2.576
#: Friction at rest is anywhere between minus and plus the Coulomb friction: the deviation of that distribution.
_AT_REST = 3.0**-0.5
#: A load lighter than this many of its standard deviations is none.
_SEEN = 1.96


def calibrated_robot(settings: RobotSettings, arm: Arm, result: Calibration) -> RobotSettings:
    """Return the robot's settings with the calibrated rotor inertia and the load found behind its flange.

    Args:
        settings: of the robot.
        arm: the robot as its torque sensors see it; behind the gears they do not see the rotors.
        result: the calibration.
    """
    changes: dict[str, object] = {}
    if arm.settings == settings:
        changes["rotor_inertia"] = [float(v) for v in np.array(result.armature) / arm.motor.gear_ratio**2]
    load = result.payload
    if load is not None and load.mass > _SEEN * load.mass_std:
        mass = settings.tool_mass + load.mass
        first = settings.tool_mass * np.array(settings.tool_com) + load.mass * np.array(load.com)
        changes |= {"tool_mass": float(mass), "tool_com": [float(v) for v in first / mass]}
    return dataclasses.replace(settings, **changes)  # type: ignore[arg-type]


def calibrated_actuators(
    arm: Arm, result: Calibration, recordings: Sequence[Recording], base: ActuatorSettings | None
) -> ActuatorSettings:
    """Return joint friction and actuators with the calibrated friction.

    With ``base`` the noise stays. Without it noise and friction disturbance are those that an observer sees of the
    recordings, the friction taken off.

    Args:
        arm: the calibrated robot as its torque sensors see it.
        result: the calibration.
        recordings: of free motion, their effort the total torque [Nm].
        base: the robot's own.
    """
    if base is not None:
        return dataclasses.replace(base, friction=result.friction)
    zero, small = [0.0] * arm.n, [1e-3] * arm.n
    first = ActuatorSettings(friction=result.friction, disturbance_std=zero, bias_random_walk=zero, torque_noise=small)
    found = []
    for bandwidth in _BANDWIDTHS:
        tried = dataclasses.replace(first, position_filter=bandwidth)
        rows = [_residual(arm, tried, recording) for recording in recordings]
        error = np.log(np.var(np.concatenate([r.torque for r in rows]), axis=0)).sum()
        found.append((error, bandwidth, rows))
    _, bandwidth, seen = min(found, key=lambda entry: entry[0])
    bias_std = np.hypot(result.friction.bias_std, np.std([r.torque.mean(axis=0) for r in seen], axis=0))
    std, time = _disturbance(seen)
    white = [white_noise(_blocks(recording.tau, recording.period)) for recording in recordings]
    velocity = np.median([white_noise(recording.dq) for recording in recordings])
    duration = np.mean([recording.duration for recording in recordings])
    return dataclasses.replace(
        first,
        friction=dataclasses.replace(result.friction, bias_std=_plain(bias_std)),
        disturbance_std=_plain(std),
        disturbance_time=time,
        bias_random_walk=_plain(bias_std / np.sqrt(duration)),
        torque_noise=_plain(np.maximum(np.mean(white, axis=0), small)),
        velocity_noise=float(velocity),
        position_filter=bandwidth,
        friction_error=_friction_error(seen, np.array(result.friction.coulomb)),
        stop_error=_AT_REST,
    )


class Residual(NamedTuple):
    """What no model explains of a recording of free motion.

    Attributes:
        torque: external joint torque (K, n) [Nm] of blocks of samples, which is none.
        turned: way (K, n) of the presliding states up to each block.
        period: length of a block [s].
    """

    torque: np.ndarray
    turned: np.ndarray
    period: float


def _residual(arm: Arm, actuators: ActuatorSettings, recording: Recording) -> Residual:
    """External torque by the momentum between two samples, with the friction that observers take off."""
    terms, friction = compile_function(build_step(arm)), FrictionModel(arm, actuators)
    friction.reset(recording.q[0])
    momentum, rows, ways, way = None, [], [], np.zeros(arm.n)
    dts = np.diff(recording.t, prepend=recording.t[0])
    for dt, q, dq, tau in zip(dts, recording.q, recording.dq, recording.tau):
        terms.inputs["q"][:], terms.inputs["dq"][:] = q, dq
        terms()
        before = friction.presliding
        drive = friction.take(dt, q, dq, tau) + terms.outputs["drift"]
        way = way + np.abs(friction.presliding - before)
        if momentum is not None and dt > 0:
            rows.append((terms.outputs["momentum"] - momentum) / dt - drive)
            ways.append(way)
        momentum = terms.outputs["momentum"].copy()
    period, count = recording.period, _per_block(recording.period)
    return Residual(_blocks(np.array(rows), period), _blocks(np.array(ways), period), count * period)


def _friction_error(seen: Sequence[Residual], coulomb: np.ndarray) -> float:
    """Return the share of the Coulomb friction that a reversal leaves: slope of squared changes over the way."""
    changes, ways = [], []
    for torque, turned, period in seen:
        lag = max(1, round(_REVERSAL / period))
        changes.append((torque[lag:] - torque[:-lag]) ** 2)
        ways.append((turned[lag:] - turned[:-lag]) * coulomb**2)
    change, way = np.concatenate(changes), np.concatenate(ways)
    way = way - way.mean(axis=0)
    slope = np.sum(way * change, axis=0) / np.maximum(np.sum(way**2, axis=0), 1e-12)
    return float(np.sqrt(np.median(np.maximum(slope, 0.0))))


def _disturbance(seen: Sequence[Residual]) -> tuple[np.ndarray, float]:
    """Return the standard deviation (n,) [Nm] and the time [s] of the Gauss-Markov process in the residuals.

    By their autocovariance: white noise of sensors and of differentiated velocity has none at the lags looked at. A
    residual with long tails counts as a normal distribution with the same tails: friction that is rare is no contact.
    """
    covariance = []
    for low, high in (_SHORT, _LONG):
        total, weight = np.zeros(seen[0].torque.shape[1]), 0
        for torque, _, period in seen:
            x = torque - torque.mean(axis=0)
            for lag in range(max(1, round(low / period)), round(high / period) + 1):
                total += np.sum(x[lag:] * x[:-lag], axis=0)
                weight += len(x) - lag
        covariance.append(np.maximum(total / max(weight, 1), 1e-12))
    apart = np.mean(_LONG) - np.mean(_SHORT)
    ratio = float(np.median(covariance[1] / covariance[0]))
    time = float(np.clip(-apart / np.log(min(max(ratio, 1e-3), 0.99)), 0.1, 10.0))
    return np.sqrt(covariance[0] * np.exp(np.mean(_SHORT) / time)) * _tails(seen), time


def _tails(seen: Sequence[Residual]) -> np.ndarray:
    """Return how much longer (n,) the tails of the averaged residuals are than those of a normal distribution, >= 1."""
    averaged = []
    for torque, _, period in seen:
        count = max(1, round(sum(_SHORT) / period))
        total = np.cumsum(torque - torque.mean(axis=0), axis=0)
        averaged.append((total[count:] - total[:-count]) / count)
    values = np.concatenate(averaged)
    return np.asarray(np.maximum(np.quantile(np.abs(values), _TAIL, axis=0) / (_NORMAL * values.std(axis=0)), 1.0))


def white_noise(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation (n,) of the white noise on smooth signals: median third difference.

    Args:
        values: (N, n) in any unit.
    """
    third = np.diff(values, n=3, axis=0)
    return np.asarray(np.median(np.abs(third), axis=0) / _MEDIAN / _THIRD_DIFFERENCE)


def _per_block(period: float) -> int:
    return max(1, round(BLOCK / period))


def _blocks(values: np.ndarray, period: float) -> np.ndarray:
    """Means (K, n) of blocks of samples (N, n)."""
    count = _per_block(period)
    whole = len(values) // count * count
    return np.asarray(values[:whole].reshape(-1, count, values.shape[1]).mean(axis=1))


def _plain(values: np.ndarray) -> list[float]:
    return [float(v) for v in values]
