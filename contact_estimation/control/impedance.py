"""Cartesian impedance: the law of paper 2 (eq. 26) and the joint torque that realises it.

tau_d = J^T ( K_imp (x_0 - x) - D_imp dx ), K_imp and D_imp diagonal in base axes; x_0, the equilibrium, is the only
control. Damping opposes motion (the authors' code has the other sign).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import shape_error
from contact_estimation.robot import Arm
from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class ImpedanceSettings:
    """Gains and limits of the Cartesian impedance controller."""

    stiffness: list[float] = key(
        [700.0, 700.0, 700.0], doc="translational stiffness K_imp in base axes", unit="N/m", check=positive, length=3
    )
    damping_factor: float = key(
        3.0,
        doc="damping is this times the square root of the stiffness (paper 2 sets 3)",
        unit="sqrt(N s^2/m)",
        check=positive,
    )
    rotational_stiffness: list[float] = key(
        [40.0, 40.0, 40.0], doc="rotational stiffness in base axes", unit="Nm/rad", check=non_negative, length=3
    )
    rotational_damping_factor: float = key(
        0.3,
        doc="rotational damping is this times the square root of the stiffness",
        unit="sqrt(Nm s^2/rad)",
        check=non_negative,
        was="rotational_damping_ratio",
    )
    nullspace_stiffness: float = key(
        5.0,
        doc="joint stiffness towards the posture at activation, in the null space of the pose",
        unit="Nm/rad",
        check=non_negative,
    )
    max_force: float = key(
        30.0, doc="largest norm of the spring force K_imp (x_0 - x) (paper 2, eq. 31)", unit="N", check=positive
    )
    max_torque: float = key(10.0, doc="largest norm of the rotational spring's torque", unit="Nm", check=positive)


def clip_norm(vector: np.ndarray, limit: float) -> np.ndarray:
    """``vector`` shortened to the norm ``limit`` where it is longer; the direction stays.

    Args:
        vector: (k,).
        limit: in the unit of ``vector``.

    Returns:
        (k,); ``vector`` itself where it is no longer than the limit, which callers ask for with ``is``.
    """
    norm = float(np.sqrt(vector @ vector))
    return vector if norm <= limit else vector * (limit / norm)


def clip_equilibrium(
    x0: np.ndarray, measured: np.ndarray, predicted: np.ndarray, stiffness: np.ndarray, limit: float
) -> np.ndarray:
    """Return ``x0`` (3,) [m], brought so near that the spring holds its limit wherever the arm is on its way.

    With the middle m of the way, d = K (x_0 - m) and a = K (x_predicted - m), the springs at both ends are d -+ a. The
    largest share s of d with ||s d -+ a|| <= F_max solves s^2 d^T d + 2 s |d^T a| + a^T a = F_max^2. Between the ends
    the force is smaller, for a norm is convex.

    Args:
        x0: (3,) wanted equilibrium [m].
        measured: (3,) TCP position at the sample [m].
        predicted: (3,) TCP position now [m], if the arm obeys its model.
        stiffness: (3,) diagonal K [N/m].
        limit: F_max [N]. A way longer than 2 F_max / K leaves its middle.
    """
    middle = 0.5 * (measured + predicted)
    way, pull = stiffness * (predicted - middle), stiffness * (x0 - middle)
    free, mixed, size = limit**2 - float(way @ way), abs(float(pull @ way)), float(pull @ pull)
    if size + 2.0 * mixed <= free:
        return x0
    share = (np.sqrt(mixed**2 + size * max(free, 0.0)) - mixed) / max(size, 1e-12)
    return np.asarray(middle + share * (x0 - middle))


class CartesianImpedance:
    """Joint torque of a Cartesian impedance with gravity and Coriolis compensation, for one arm.

    The rotational spring acts on the rotation vector from the present to the wanted attitude; the null space is held
    towards the posture given to :meth:`reset`.

    Args:
        arm: the robot.
        settings: stiffness, damping and limits.
    """

    def __init__(self, arm: Arm, settings: ImpedanceSettings) -> None:
        self.arm, self.settings = arm, settings
        self.stiffness = np.array(settings.stiffness)
        self.damping = settings.damping_factor * np.sqrt(self.stiffness)
        self._turn_stiffness = np.array(settings.rotational_stiffness)
        self._turn_damping = settings.rotational_damping_factor * np.sqrt(self._turn_stiffness)
        self._nullspace_damping = 1e-6 * np.eye(6)  # keeps J J^T invertible in singular postures
        self._posture: np.ndarray | None = None

    def reset(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start at a posture.

        Args:
            q: (n,) [rad].

        Returns:
            position: (3,) [m] of the equilibrium that commands no motion.
            rotation: (3, 3) of it.
        """
        self._posture = np.array(q, float)
        return self.arm.tcp_pose(q)

    def comply(self, stiffness: np.ndarray) -> None:
        """Use another translational stiffness from now on, with the damping that belongs to it.

        Args:
            stiffness: (3,) [N/m], base axes.
        """
        self.stiffness = np.array(stiffness, float)
        self.damping = self.settings.damping_factor * np.sqrt(self.stiffness)

    def spring_force(self, x: np.ndarray, x0: np.ndarray) -> np.ndarray:
        """K_imp (x_0 - x) (3,) [N], limited to ``max_force``.

        Args:
            x: (3,) position of the TCP [m], base frame.
            x0: (3,) equilibrium [m], base frame.
        """
        return clip_norm(self.stiffness * (x0 - x), self.settings.max_force)

    def torque(self, q: np.ndarray, dq: np.ndarray, x0: np.ndarray, rotation0: np.ndarray) -> np.ndarray:
        """Return the motor torque (n,) [Nm] towards an equilibrium.

        Args:
            q: (n,) measured [rad].
            dq: (n,) measured [rad/s].
            x0: (3,) position of the equilibrium [m], base frame.
            rotation0: (3, 3) its attitude, base frame.

        Raises:
            ConfigError: ``x0`` or ``rotation0`` has the wrong shape.
        """
        if np.shape(x0) != (3,) or np.shape(rotation0) != (3, 3):
            raise shape_error("CartesianImpedance", "equilibrium", np.shape(x0) + np.shape(rotation0), (3, 3, 3))
        x, rotation, jacobian, _, gravity, coriolis = self.arm.terms(q, dq)
        twist = jacobian @ dq
        force = self.spring_force(x, x0) - self.damping * twist[:3]
        turn = rotation @ pin.log3(rotation.T @ rotation0)
        moment = clip_norm(self._turn_stiffness * turn, self.settings.max_torque) - self._turn_damping * twist[3:]
        torque = jacobian[:3].T @ force + jacobian[3:].T @ moment + gravity + coriolis
        stiffness = self.settings.nullspace_stiffness
        if stiffness > 0 and self.arm.n > 6 and self._posture is not None:
            posture = stiffness * (self._posture - q) - 2.0 * np.sqrt(stiffness) * dq
            torque += posture - jacobian.T @ np.linalg.solve(
                jacobian @ jacobian.T + self._nullspace_damping, jacobian @ posture
            )
        return np.asarray(torque)
