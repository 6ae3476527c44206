"""Unknown contact: covariance of the external joint torque of a push, and its equivalent wrench at the TCP.

A push of unknown place and direction is a random force and torque at the TCP or at a link. Its joint torque tau_e has
the covariance

    L(q) = J^T S J + share sum_k J_k^T S J_k,    S = diag(F^2, F^2, F^2, T^2, T^2, T^2)

with the Jacobians J of the TCP and J_k of the joint frames. In the filters of the mode ``unknown`` tau_e is a random
walk with L per second: a disturbance Kalman filter (Hu and Xiong, Contact force estimation for robot manipulator using
semiparametric model and disturbance Kalman filter, 2018). The state is the joint torque, not a wrench: a push at a link
of an arm with seven joints has no equivalent wrench at its TCP. Motion of the TCP changes a push as a spring does. Its
stiffness along the push and across it is estimated (:func:`push_response`).

A push ends at tau_e = 0. What is left of its estimate then is an error of the friction: the two are known by their
difference only, and so are the hysteresis that a push leaves in the gears and the offset of their deflection.
:class:`PushEnd` conditions the state on that. Friction that motion changed during the push, which the
mode keeps, is an error of both, with the same sign and the variance D (a consider covariance).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.kalman import pack_array, packed_places, unpack_array
from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics

#: Share of a covariance's trace below which a variance is a rounding error of the updates.
_ROUNDING = 1e-8
#: [N] Keeps the direction of a push defined where there is none.
_LEAST_FORCE = 1e-9
#: Share of the changed friction's variance that a push which has probably ended needs to explain its torque.
_LIKELY_CHANGE = 0.3


class ExternalTorque(NamedTuple):
    """External joint torque of an unknown contact.

    Attributes:
        probability: of the mode ``unknown``.
        torque: tau_e (n,) [Nm] given that mode.
        covariance: (n, n) [Nm^2] of it.
        stiffness: [N/m] of the contact along its force, as motion of the TCP shows it; NaN where it does not.
        stiffness_std: [N/m] its standard deviation.
    """

    probability: float
    torque: np.ndarray
    covariance: np.ndarray
    stiffness: float = math.nan
    stiffness_std: float = math.nan


class ZeroTorqueTest:
    """Chi-square test whether a torque tau (n,) may be zero.

    Its covariance P is singular where a joint carries nothing, or where an arm has more joints than a push at its TCP
    has components. It is factored as P = V E V^T over the principal axes V (n, r) that have variance. With the whitened
    torque z = E^(-1/2) V^T tau, the statistic z^T z is chi-square with r degrees of freedom.

    Args:
        n: number of joints.
        significance: of the test.
    """

    def __init__(self, n: int, significance: float) -> None:
        self._largest = [0.0] + [chi_square_quantile(rank, significance) for rank in range(1, n + 1)]

    def accepts(self, whitened: np.ndarray) -> bool:
        """Return whether a torque of whitened value z (r,) may be zero."""
        return bool(whitened @ whitened <= self._largest[len(whitened)])


class PushEnd:
    """Conditions a filter's state on the end of a push: tau_e = 0 as a measurement without noise.

    The push may have ended where :class:`ZeroTorqueTest` accepts tau_e.

    Args:
        size: N entries of the state.
        external: which of them are tau_e (n,); none where there is no unknown contact.
        disturbance: which of them are the friction disturbance (n,).
        offset: which of them are the offsets (m,) of elastic joints.
        significance: of the chi-square test of tau_e = 0.
    """

    def __init__(self, size: int, external: slice, disturbance: slice, offset: slice, significance: float) -> None:
        self._size, self._external, self._offset = size, external, offset
        places = packed_places(size)
        self._cross = places[:, external]  # (N, n) places in a packed covariance
        pairs = [(external, external), (external, disturbance), (disturbance, disturbance)]
        self._drifting = [np.diagonal(places[pair]) for pair in pairs]  # of what changed friction adds to
        self._zero = ZeroTorqueTest(self._cross.shape[1], significance)

    def loosen(self, p: np.ndarray, slack: np.ndarray) -> None:
        """Add an error of the offsets to a covariance, and by the regression on them to everything else.

        Args:
            p: packed covariance, changed in place.
            slack: standard deviations (m,) [rad].
        """
        if slack.any():
            full = unpack_array(p, self._size)
            gain = np.linalg.solve(full[self._offset, self._offset], full[self._offset]).T  # (N, m)
            p += pack_array((gain * slack**2) @ gain.T)

    def apply(self, x: np.ndarray, p: np.ndarray, drift: np.ndarray, slack: np.ndarray) -> bool:
        """Condition in place, if the external torque may be zero.

        Args:
            x: mean (N,).
            p: packed covariance.
            drift: variance D (n,) [Nm^2] of the friction that changed during the push.
            slack: standard deviations (m,) [rad] of what the push has left of the deflections.

        Returns:
            Whether it probably is: the test accepts it with a share of the changed friction, too.
        """
        loose = p.copy()
        self.loosen(loose, slack)
        widened = loose.copy()
        for places in self._drifting:
            widened[places] += drift
        torque, cross = x[self._external], widened[self._cross]
        axes = whitening(cross[self._external])
        whitened = axes.T @ torque
        if not self._zero.accepts(whitened):
            return False
        gain = cross @ axes  # (N, r)
        x -= gain @ whitened
        p[:] = widened - pack_array(gain @ gain.T)
        for places in self._drifting:
            loose[places] += _LIKELY_CHANGE * drift
        return self._zero.accepts(whitening(loose[self._cross][self._external]).T @ torque)


def whitening(covariance: np.ndarray) -> np.ndarray:
    """Return V E^(-1/2) (n, r) over the principal axes V of a covariance (n, n) that have variance."""
    variances, axes = np.linalg.eigh(covariance)
    varies = variances > _ROUNDING * variances.sum()
    return np.asarray(axes[:, varies] / np.sqrt(variances[varies]))


def push_covariance(arm: Arm, kinematics: Kinematics, variance: ca.SX, link_share: ca.SX) -> ca.SX:
    """Return L (n, n) [Nm^2] of a push somewhere on the arm.

    Args:
        arm: the robot.
        kinematics: of the robot at a configuration.
        variance: (6,) of force [N^2] and torque [Nm^2] at a point.
        link_share: variance of pushes at every link, in that at the TCP.
    """
    jacobian = kinematics.jacobian(arm.tcp_frame)
    total: ca.SX = jacobian.T @ ca.diag(variance) @ jacobian
    angular = jacobian[3:, :]
    for k in range(1, arm.n):  # the origin of joint k is on link k - 1, which joints 0 to k - 1 move
        linear = [ca.cross(angular[:, j], kinematics.world[k][1] - kinematics.world[j][1]) for j in range(k)]
        columns = ca.vertcat(ca.horzcat(*linear), angular[:, :k])  # (6, k)
        total[:k, :k] += link_share * (columns.T @ ca.diag(variance) @ columns)
    return total


def held_share(way: ca.SX, reach: ca.SX) -> ca.SX:
    """Return the share of a way (3,) [m] of the TCP over which a contact holds it.

    A contact holds an arm that moves slowly. An arm that moves fast has left it, or what pushes follows the arm.

    Args:
        way: of the TCP.
        reach: length of the way [m] from which on the share falls, with its fourth power.
    """
    return 1.0 / (1.0 + (ca.norm_2(way) / reach) ** 4)


def push_response(jacobian: ca.SX, force: ca.SX, stiffness: ca.SX, way: ca.SX) -> ca.SX:
    """Return the joint torque (n,) [Nm] by which motion changes a push at the TCP, a contact with two stiffnesses.

    tau = -J^T (K_1 f f^T + K_2 (I - f f^T)) dx with the direction f of the push. Going along it relaxes the contact.

    Args:
        jacobian: J (3, n) of the TCP, base axes.
        force: (3,) of the push, base axes [N].
        stiffness: (2,) along the push and across it [N/m].
        way: dx (3,) of the TCP, base axes [m].
    """
    direction = force / ca.fmax(ca.norm_2(force), _LEAST_FORCE)
    along = direction * ca.dot(direction, way)
    torque: ca.SX = -jacobian.T @ (stiffness[0] * along + stiffness[1] * (way - along))
    return torque


def push_regression(jacobian: ca.SX, covariance: ca.SX, variance: ca.SX) -> ca.SX:
    """Return the regression S J L^-1 (3, n) [1/m] of the force of a push on its joint torque.

    Args:
        jacobian: J (6, n) of the TCP, base axes.
        covariance: L (n, n) [Nm^2] of pushes (:func:`push_covariance`).
        variance: diagonal (6,) of S, of pushes at the TCP.
    """
    cross = ca.diag(variance) @ jacobian  # (6, n)
    regular = covariance + _ROUNDING * ca.trace(covariance) * ca.SX.eye(covariance.shape[0])
    factors = ca.ldl(ca.densify(regular), False)
    regression: ca.SX = ca.ldl_solve(cross[:3, :].T, *factors).T
    return regression


def tcp_wrench(jacobian: ca.SX, torque: ca.SX, covariance: ca.SX, variance: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the wrench (6,) at the TCP that explains an external torque, and its covariance (6, 6), in base axes.

    Weighted least squares with the prior N(0, S), which keeps it finite where the Jacobian is singular:
    w = S J (J^T S J + P)^-1 tau_e. Where no push causes a torque (``link_share`` 0 on seven joints) P has rounding
    errors only; adding their size keeps them from deciding.

    Args:
        jacobian: J (6, n) of the TCP in base axes.
        torque: tau_e (n,) [Nm].
        covariance: P (n, n) of it.
        variance: diagonal (6,) of S.
    """
    cross = ca.diag(variance) @ jacobian  # (6, n)
    expected = jacobian.T @ cross + covariance
    expected += _ROUNDING * ca.trace(covariance) * ca.SX.eye(expected.shape[0])
    factors = ca.ldl(ca.densify(expected), False)
    wrench = cross @ ca.ldl_solve(torque, *factors)
    return wrench, ca.diag(variance) - cross @ ca.ldl_solve(cross.T, *factors)
