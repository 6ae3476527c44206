"""Convert identified parameters to the calibration that an estimator loads, and to text with 95 % intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from contact_estimation.fit.calibration.identify import Identified
from contact_estimation.fit.calibration.model import Design, evaluate
from contact_estimation.fit.calibration.settings import Calibration, CalibrationSettings, Payload
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import FrictionSettings
from contact_estimation.settings import to_mapping

_Z95 = 1.96
_CHANGING = ("viscous", "coulomb", "bias")


def calibration(arm: Arm, found: Identified, settings: CalibrationSettings) -> Calibration:
    """Return the result in SI units of the joint, torque scale taken out.

    Friction below zero within its interval becomes zero.

    Args:
        arm: the robot.
        found: what was identified.
        settings: of the calibration.
    """
    gain = found.value("gain")
    spread = between_recordings(found)
    values = {
        "presliding": np.exp(found.value("log_presliding")),
        "torque_scale": 1 / gain,
        "torque_scale_std": np.where(
            found.weighed & ("scale" in settings.identify), found.std("gain") / gain**2, settings.scale_std
        ),
    }
    values["presliding_std"] = values["presliding"] * found.std("log_presliding")
    for name in ("viscous", "asymmetry", "coulomb", "bias"):
        values[name] = found.value(name) / gain
        values[f"{name}_std"] = np.hypot(found.std(name), spread.get(name, 0.0)) / gain
    values["viscous"] = values["viscous"] - arm.motor.viscous
    for name in ("viscous", "coulomb"):
        values[name] = np.maximum(values[name], 0.0)
    friction = FrictionSettings(**{name: _plain(value) for name, value in values.items()})
    rms = np.sqrt(np.mean(np.concatenate([d.motion.tau - found.predict(d) for d in found.designs]) ** 2, axis=0))
    return Calibration(
        robot=arm.name,
        recordings=[Path(d.motion.source).name for d in found.designs],
        friction=friction,
        armature=_plain(np.maximum(found.value("armature") / gain, 0.0)),
        armature_std=_plain(found.std("armature") / gain),
        payload=_payload(found) if "payload" in settings.identify else None,
        residual=_plain(rms),
    )


def _payload(found: Identified) -> Payload:
    (mass, *first), covariance = (
        found.value("payload"),
        found.covariance[found.layout["payload"], found.layout["payload"]],
    )
    if mass < _Z95 * np.sqrt(covariance[0, 0]):  # no load to be seen: its centre of mass means nothing
        com, spread = np.zeros(3), np.zeros(3)
    else:
        com = np.array(first) / mass
        slope = np.hstack([-com[:, None], np.eye(3)]) / mass
        spread = np.sqrt(np.diag(slope @ covariance @ slope.T))
    return Payload(mass=float(mass), mass_std=float(np.sqrt(covariance[0, 0])), com=_plain(com), com_std=_plain(spread))


def between_recordings(found: Identified) -> dict[str, np.ndarray]:
    """Return the standard deviation (n,) of viscous friction, Coulomb friction and bias between recordings.

    A single recording is cut into halves.

    Args:
        found: what was identified.
    """
    pieces = [(d, slice(None)) for d in found.designs]
    if len(pieces) == 1:
        half = len(found.designs[0].rigid) // 2
        pieces = [(found.designs[0], slice(0, half)), (found.designs[0], slice(half, None))]
    rows = np.array([_friction_of(found, d, part) for d, part in pieces])
    return dict(zip(_CHANGING, rows.std(axis=0, ddof=1).T))


def _friction_of(found: Identified, d: Design, part: slice) -> np.ndarray:
    """Viscous, Coulomb friction and bias (n, 3) of one recording, everything else as identified from all."""
    torque, jacobian = evaluate(found.layout, found.theta, d)
    residual, n = d.motion.tau - torque, found.layout.n
    out = np.empty((n, 3))
    for j in range(n):
        index = [found.layout[name].start + j for name in _CHANGING]
        columns = jacobian[part, j][:, index]
        out[j] = found.theta[index] + np.linalg.lstsq(columns, residual[part, j], rcond=1e-6)[0]
    return out


def intervals(found: Identified) -> dict[str, dict[str, np.ndarray]]:
    """Return 95 % intervals: name -> value, low, high.

    They are in units of the measured torque, viscous friction with the robot's own.

    Args:
        found: what was identified.

    Returns:
        Name -> ``value``, ``low``, ``high``, each (k,).
    """
    out = {}
    for name in ("viscous", "asymmetry", "coulomb", "bias", "gain", "armature", "payload"):
        value, std = found.value(name), found.std(name)
        out[name] = {"value": value, "low": value - _Z95 * std, "high": value + _Z95 * std}
    length, std = found.value("log_presliding"), found.std("log_presliding")
    out["presliding"] = {
        "value": np.exp(length),
        "low": np.exp(length - _Z95 * std),
        "high": np.exp(length + _Z95 * std),
    }
    return out


def as_yaml(arm: Arm, result: Calibration, found: Identified, header: str) -> str:
    """Return the calibration as YAML text, every value with its 95 % interval as a comment.

    Args:
        arm: the robot.
        result: the calibration.
        found: what was identified.
        header: text of the comment above.
    """
    mapping, bounds = to_mapping(result), intervals(found)
    gain = found.value("gain")
    bounds = {
        name: {
            k: v if name in ("payload", "presliding") else 1 / v if name == "gain" else v / gain for k, v in b.items()
        }
        for name, b in bounds.items()
    }
    bounds["torque_scale"] = bounds.pop("gain")
    bounds["viscous"] = {k: v - arm.motor.viscous for k, v in bounds["viscous"].items()}
    lines = [f"# {line}" for line in header.splitlines()]
    text = yaml.safe_dump(_rounded(mapping), sort_keys=False, default_flow_style=None, width=1000)
    for line in text.splitlines():
        name = line.strip().split(":")[0]
        if name in bounds and name != "payload":
            low, high = np.sort([bounds[name]["low"], bounds[name]["high"]], axis=0)
            pairs = ", ".join(f"{a:.4g} .. {b:.4g}" if b > a else "kept" for a, b in zip(low, high))
            lines.append(f"{' ' * (len(line) - len(line.lstrip()))}# 95 %: {pairs}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _plain(values: np.ndarray) -> list[float]:
    return [float(v) for v in values]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
