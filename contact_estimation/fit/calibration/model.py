"""The torque of free motion as a function of the calibrated parameters, with its derivatives.

Per joint, in units of the measured torque (gain = 1 / torque_scale):

    tau = gain (tau_rigid + Y_payload pi + Y_links delta) + I ddq + B dq + A |dq| + F_c s(q; sigma) + b

linear but for the products with the gain and the breakaway length sigma. I is the reflected rotor inertia; the rigid
torque is the description's without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.fit.calibration.motion import Motion
from contact_estimation.robot import Arm

#: [rad] Breakaway lengths between which s is interpolated: from encoder noise to a lazy joint.
LENGTHS = np.geomspace(2e-5, 6e-2, 18)
#: Where Pinocchio's order of an inertia has the entries of a symmetric matrix.
_MOMENTS = ([0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2])
#: [kg] A load lighter than this has no centre of mass to be seen.
_LIGHT = 0.2
_PER_JOINT = ("viscous", "asymmetry", "coulomb", "bias", "log_presliding", "gain", "armature")


class Layout:
    """Where each parameter stands in the vector theta: n of each kind, then payload (4) and links (10 n)."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._slices = {name: slice(i * n, (i + 1) * n) for i, name in enumerate(_PER_JOINT)}
        start = len(_PER_JOINT) * n
        self._slices |= {"payload": slice(start, start + 4), "links": slice(start + 4, start + 4 + 10 * n)}
        self.size = start + 4 + 10 * n

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]


@dataclass(frozen=True)
class Design:
    """What the torque of a recording of T samples depends on beside theta.

    Attributes:
        motion: the samples.
        rigid: (T, n) [Nm] inverse dynamics of the description, without reflected rotor inertia.
        payload: (T, n, 4) regressor of the mass [kg] and first moment [kg m] of a load at the flange.
        links: (T, n, 10 n) regressor of the inertial parameters of all links.
        sliding: (T, n, L) presliding states for the candidates of the breakaway length.
        flange: (3, 3) turns flange axes into the last link's.
    """

    motion: Motion
    rigid: np.ndarray
    payload: np.ndarray
    links: np.ndarray
    sliding: np.ndarray
    flange: np.ndarray


def design(arm: Arm, motion: Motion) -> Design:
    """Return the regressors of one recording.

    Args:
        arm: the robot.
        motion: of the recording.
    """
    model, data = arm.model, arm.model.createData()
    regressor = np.array(
        [pin.computeJointTorqueRegressor(model, data, *state).copy() for state in zip(motion.q, motion.dq, motion.ddq)]
    )
    inertial = link_parameters(arm)
    payload = regressor[:, :, -10:] @ _payload_map(arm)
    flange = arm.frame(arm.settings.tcp_frame).placement.rotation
    return Design(motion, regressor @ inertial, payload, regressor, motion.slidings(LENGTHS), flange)


def gravity_turns(arm: Arm, d: Design, load: np.ndarray, links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how the torque changes where gravity turns: (T, n, 2) [Nm/rad], and the axes (2, 3) in base axes.

    The axes are perpendicular to gravity: about itself it does not turn. Without gravity there are none.

    Args:
        arm: the robot.
        d: regressors of a recording.
        load: (4,) mass and first moment of the payload.
        links: (10 n,) changes of the links' inertial parameters.
    """
    gravity = np.asarray(arm.settings.gravity, float)
    if not gravity.any():
        return np.zeros((*d.rigid.shape, 0)), np.zeros((0, 3))
    axes = np.linalg.svd(gravity[None, :])[2][1:]
    inertial = link_parameters(arm) + links
    inertial[-10:] += _payload_map(arm) @ load
    model, still = arm.model.copy(), np.zeros(arm.n)
    base = arm.frame(arm.settings.base_frame).placement.rotation
    columns = []
    for axis in axes:
        model.gravity.linear = base @ np.cross(axis, gravity)  # the torque is linear in it
        data = model.createData()
        rows = [pin.computeJointTorqueRegressor(model, data, q, still, still) @ inertial for q in d.motion.q]
        columns.append(np.array(rows))
    return np.stack(columns, axis=2), axes


def link_parameters(arm: Arm) -> np.ndarray:
    """Return the inertial parameters (10 n,) of the description [kg, kg m, kg m^2], in Pinocchio's order.

    Args:
        arm: the robot.
    """
    return np.concatenate([inertia.toDynamicParameters() for inertia in list(arm.model.inertias)[1:]])


def _payload_map(arm: Arm) -> np.ndarray:
    """Map (10, 4) from a load's mass m and first moment h = m c, flange axes, to the last link's.

    The rotational inertia about c is left out. A lever p to the flange makes the second moment m (p^2 1 - p p^T)
    + cross terms of p and R h; :func:`_own_moment` adds that of h.
    """
    placement = arm.frame(arm.settings.tcp_frame).placement
    p, r = placement.translation, placement.rotation
    columns = []
    for mass, first in ((1.0, np.zeros(3)), *((0.0, axis) for axis in np.eye(3))):
        turned = r @ first
        second = (
            (mass * p @ p + 2 * p @ turned) * np.eye(3)
            - mass * np.outer(p, p)
            - np.outer(p, turned)
            - np.outer(turned, p)
        )
        columns.append(np.concatenate([[mass], mass * p + turned, second[_MOMENTS]]))
    return np.column_stack(columns)


def _own_moment(payload: np.ndarray, flange: np.ndarray) -> np.ndarray:
    """Second moment (6,) [kg m^2] of a point mass m about the flange, h^2 / m, which is not linear in m and h = m c.

    It is none for a mass too small to have a place.
    """
    mass, first = payload[0], flange @ payload[1:]
    if mass < _LIGHT:
        return np.zeros(6)
    return np.asarray(((first @ first * np.eye(3) - np.outer(first, first)) / mass)[_MOMENTS])


def evaluate(layout: Layout, theta: np.ndarray, d: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted torque (T, n) and its derivatives (T, n, P) [measured Nm].

    Args:
        layout: where each kind is in ``theta``.
        theta: (P,) parameters.
        d: regressors of a recording.
    """
    m, n = d.motion, layout.n
    sliding, slope = _interpolate(d.sliding, theta[layout["log_presliding"]])
    coulomb, gain = theta[layout["coulomb"]], theta[layout["gain"]]
    load = theta[layout["payload"]]
    inertial = d.rigid + d.payload @ load + d.links[:, :, -6:] @ _own_moment(load, d.flange)
    inertial = inertial + d.links @ theta[layout["links"]]
    columns = {
        "viscous": m.dq,
        "asymmetry": np.abs(m.dq),
        "coulomb": sliding,
        "bias": np.ones_like(m.dq),
        "log_presliding": coulomb * slope,
        "gain": inertial,
        "armature": m.ddq,
    }
    torque = (
        gain * inertial
        + coulomb * sliding
        + sum(theta[layout[name]] * columns[name] for name in ("viscous", "asymmetry", "bias", "armature"))
    )
    jacobian = np.zeros((*torque.shape, layout.size))
    joints = np.arange(n)
    for name, values in columns.items():
        jacobian[:, joints, layout[name].start + joints] = values
    jacobian[:, :, layout["payload"]] = gain[:, None] * d.payload
    jacobian[:, :, layout["links"]] = gain[:, None] * d.links
    return torque, jacobian


def _interpolate(sliding: np.ndarray, log_length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S (T, n) at the breakaway lengths and its derivative by their logarithm, linear between the grid's lengths."""
    grid = np.log(LENGTHS)
    position = np.clip(log_length, grid[0], grid[-1])
    k = np.clip(np.searchsorted(grid, position) - 1, 0, len(grid) - 2)
    share = (position - grid[k]) / (grid[k + 1] - grid[k])
    joints = np.arange(sliding.shape[1])
    low, high = sliding[:, joints, k], sliding[:, joints, k + 1]
    return low + share * (high - low), (high - low) / (grid[k + 1] - grid[k])
