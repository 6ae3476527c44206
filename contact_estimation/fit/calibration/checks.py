"""When a recording cannot calibrate a robot, and why: too little motion, another robot, contact, saturation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration.regression import condition_number
from contact_estimation.fit.calibration.settings import CalibrationSettings
from contact_estimation.robot import Arm

if TYPE_CHECKING:
    from contact_estimation.fit.calibration.identify import Identified
    from contact_estimation.fit.calibration.motion import Motion
    from contact_estimation.io.recording import Recording

_COLUMNS = ("viscous", "Coulomb", "bias")
#: [s] A contact lasts longer than this; shorter residuals are spikes.
_WINDOW = 0.25
#: A joint moves from this share of its largest speed on.
_MOVING = 0.05
#: Share of equal extremes that is let pass, and how much more of them there may be than of the value beside them. A
#: smooth peak, A - c t^2, stays in the last step of a quantised signal for a time sqrt(h / c) at most and in the step
#: beside it for (sqrt(2) - 1) sqrt(h / c): 2.4 times as many.
_CLIPPED, _PILED = 0.01, 4.0


def options(settings: CalibrationSettings) -> None:
    """Refuse options that cannot be told apart.

    Args:
        settings: of the calibration.

    Raises:
        IdentificationError: links and scale are asked for together.
    """
    if {"links", "scale"} <= set(settings.identify):
        raise IdentificationError(
            "identify: 'links' and 'scale' cannot be distinguished (twice the mass looks like twice the gain); "
            "choose one"
        )


def inside_limits(arm: Arm, recording: Recording) -> None:
    """Refuse positions beyond the joint limits: they belong to another robot.

    Args:
        arm: the robot.
        recording: positions (T, n) [rad].

    Raises:
        IdentificationError: a position is beyond a limit.
    """
    beyond = np.maximum(recording.q - arm.upper, arm.lower - recording.q).max(axis=0)
    j = int(np.argmax(beyond))
    if beyond[j] > 0.05:
        raise IdentificationError(
            f"{recording.source}: {arm.joint_names[j]} goes {beyond[j]:.2f} rad beyond the "
            f"limits of robot '{arm.name}' ([{arm.lower[j]:.2f}, {arm.upper[j]:.2f}] rad): "
            "another robot (choose it with --robot), or degrees?"
        )


def measured_force(recording: Recording, settings: CalibrationSettings) -> None:
    """Refuse a recording whose force sensor felt a contact.

    Args:
        recording: its wrench [N, Nm] is optional.
        settings: of the calibration.

    Raises:
        IdentificationError: the force exceeds ``max_contact_force``.
    """
    if recording.wrench_tcp is None:
        return
    known = np.nan_to_num(recording.wrench_tcp[:, :3] - recording.wrench_zero[:3], nan=0.0, posinf=np.inf)
    force = np.linalg.norm(known, axis=1)  # of the components that were measured, at most the whole one
    k = int(np.argmax(force))
    if force[k] > settings.max_contact_force:
        raise IdentificationError(
            f"{recording.source}: contact at {recording.t[k] - recording.t[0]:.1f} s: the force "
            f"sensor reads {force[k]:.0f} N (free motion: at most {settings.max_contact_force:g} "
            "N). Calibrate from free motion; crop the contact"
        )


def saturated(recording: Recording) -> None:
    """Refuse a torque that repeats its extreme value while the joint moves: current or sensor was at its limit.

    Args:
        recording: torque (T, n) in its own unit.

    Raises:
        IdentificationError: a torque repeats its extreme value.
    """
    for j, tau in enumerate(recording.tau.T):
        moving = tau[_moving(recording.dq[:, j])]
        values, counts = np.unique(moving, return_counts=True)
        for end, beside in ((0, 1), (-1, -2)):
            if len(values) > 1 and counts[end] > max(_CLIPPED * len(moving), _PILED * counts[beside]):
                raise IdentificationError(
                    f"{recording.source}: the torque of {recording.joint_names[j]} is saturated: "
                    f"{100 * counts[end] / len(moving):.0f} % of its samples in motion are exactly {values[end]:.4g} "
                    "Nm. Move slower, or correct the limit of current or sensor"
                )


def _moving(dq: np.ndarray) -> np.ndarray:
    """Return (N,) whether a joint of velocity ``dq`` (N,) moves; never, where it always stands still."""
    speed = np.abs(dq)
    return np.asarray(speed > _MOVING * speed.max())


def excitation(arm: Arm, motions: list[Motion], settings: CalibrationSettings) -> np.ndarray:
    """Return condition numbers (n,) of the joints' friction regressors [dq, sign(dq), 1], over the moving samples.

    Args:
        arm: the robot.
        motions: of the recordings.
        settings: of the calibration.

    Raises:
        IdentificationError: a joint moved too little, in one direction only, or its friction terms look alike.
    """
    dq, travel = np.concatenate([m.dq for m in motions]), np.max([np.ptp(m.q, axis=0) for m in motions], axis=0)
    numbers = np.empty(arm.n)
    for j, name in enumerate(arm.joint_names):
        speed = dq[:, j]
        moving = _moving(speed)
        columns = np.column_stack([speed, np.sign(speed), np.ones_like(speed)])[moving]
        numbers[j] = condition_number(columns) if moving.sum() > 3 else float("inf")
        if travel[j] < settings.min_travel:
            raise IdentificationError(
                f"too little excitation: {name} moves over {travel[j]:.2g} rad only, "
                f"{settings.min_travel:g} rad are needed (condition number {numbers[j]:.3g}); "
                "record a motion of that joint in both directions at several speeds"
            )
        if not numbers[j] <= settings.max_condition:
            raise IdentificationError(
                f"too little excitation: {_alike(columns)} of {name} cannot be distinguished "
                f"(condition number {numbers[j]:.3g}, at most {settings.max_condition:g}); move "
                "it in both directions at several speeds"
            )
    return numbers


def _alike(columns: np.ndarray) -> str:
    length = np.linalg.norm(columns, axis=0)
    if not (length > 0).all():
        return "the friction terms"
    _, _, right = np.linalg.svd(columns / length, full_matrices=False)
    largest = np.argsort(-np.abs(right[-1]))[:2]
    return " and ".join(f"{_COLUMNS[k]}" for k in sorted(largest)) + " friction"


def result(arm: Arm, found: Identified, residual: list[np.ndarray], settings: CalibrationSettings) -> None:
    """Refuse a fit that does not explain the torque, or whose residual is a force at the TCP.

    Args:
        arm: the robot.
        found: what was identified.
        residual: (T, n) of each recording [measured Nm].
        settings: of the calibration.

    Raises:
        IdentificationError: the residual is too large, or a force at the TCP.
    """
    tau = np.concatenate([d.motion.tau for d in found.designs])
    error = np.concatenate(residual)
    share = np.sqrt(np.mean(error**2, axis=0)) / np.maximum(
        np.std(tau, axis=0), 0.01 * np.maximum(arm.effort_limit, 1.0)
    )
    j = int(np.argmax(share))
    if share[j] > settings.max_unexplained:
        raise IdentificationError(
            f"the torque of {arm.joint_names[j]} is not that of robot '{arm.name}' in free "
            f"motion: {100 * share[j]:.0f} % of its spread stays unexplained (at most "
            f"{100 * settings.max_unexplained:.0f} %). Another robot, a contact, or a wrong "
            f"torque unit? (condition number {found.condition[j]:.3g})"
        )
    for name, unit in (("viscous", "Nms/rad"), ("coulomb", "Nm")):
        value, std = found.value(name), found.std(name)
        j = int(np.argmin(value / arm.effort_limit))
        if value[j] < -max(4 * std[j], 0.02 * arm.effort_limit[j]):
            raise IdentificationError(
                f"the {name} friction of {arm.joint_names[j]} comes out negative ({value[j]:.3g} "
                f"+- {std[j]:.2g} {unit}): the recording contradicts robot '{arm.name}' in free "
                f"motion (condition number {found.condition[j]:.3g})"
            )
    mass, spread = found.value("payload")[0], found.std("payload")[0]
    if mass < -max(4 * spread, 0.3):
        j = int(np.argmax(found.weighed))
        raise IdentificationError(
            f"the arm seems to carry {mass:.2f} +- {spread:.2f} kg, a negative mass: the "
            f"torque of {arm.joint_names[j]} and the joints behind it is not that of robot "
            f"'{arm.name}' (condition number {found.condition[j]:.3g}). Another robot, or a "
            "tool (--tool, tool or tool_mass of its YAML) that is not there?"
        )
    gain = found.value("gain")
    j = int(np.argmax(np.abs(gain - 1)))
    if abs(gain[j] - 1) > settings.max_scale_error:
        raise IdentificationError(
            f"the torque of {arm.joint_names[j]} is {gain[j]:.2f} times what the gravity of "
            f"robot '{arm.name}' asks for (at most {100 * settings.max_scale_error:.0f} % off; "
            f"condition number {found.condition[j]:.3g}): another robot, or wrong torque "
            "constants? Choose --robot, or correct torque_scale in the sensor set"
        )
    _contact(arm, found, residual, settings)


def _contact(arm: Arm, found: Identified, residual: list[np.ndarray], settings: CalibrationSettings) -> None:
    """Look for windows in which one force at the TCP explains most of what is left."""
    for d, r in zip(found.designs, residual):
        m = d.motion
        size = max(1, int(_WINDOW * m.rate))
        worst = (0.0, 0.0, 0)
        for k in range(0, len(r) - size + 1, size):
            mean = r[k : k + size].mean(axis=0) / found.value("gain")
            jacobian = -arm.tcp_jacobian(m.q[k + size // 2])[:3].T / found.std_residual[:, None]
            scaled = mean / found.std_residual
            force = np.linalg.lstsq(jacobian, scaled, rcond=0.05)[0]
            explained = 1 - np.sum((scaled - jacobian @ force) ** 2) / max(np.sum(scaled**2), 1e-12)
            size_n = float(np.linalg.norm(force))
            if explained > 0.9 and np.sum(scaled**2) > 16 * arm.n and size_n > worst[0]:
                worst = (size_n, float(m.t[k] - m.t[0]), int(np.argmax(np.abs(jacobian @ force))))
        if worst[0] > settings.max_contact_force:
            raise IdentificationError(
                f"{m.source}: contact at {worst[1]:.1f} s: a force of about {worst[0]:.0f} N at "
                "the TCP explains what free motion does not, most of it on "
                f"{arm.joint_names[worst[2]]} (condition number "
                f"{found.condition[worst[2]]:.3g}). Calibrate from free motion; crop the contact"
            )
