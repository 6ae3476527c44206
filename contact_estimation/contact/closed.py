"""A closed contact at a configuration: its axes, and the force by its law."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from contact_estimation.contact.law import FRICTION, ContactLaw, Expression

#: [N/m] keeps the normal defined while an estimate passes through K = 0; far below any real stiffness.
_SOFTENING = 1e-3


class ClosedContact(NamedTuple):
    """What a law is given, and what follows from it.

    Attributes:
        law: the contact law.
        axes: (3, 3) normal, tangent 1 and tangent 2 in columns, base axes.
        stiffness: k [N/m].
        depth: d [m].
        slip: (2,) [m].
        parameters: (P,) of the law [SI].
    """

    law: ContactLaw
    axes: ca.SX
    stiffness: ca.SX
    depth: ca.SX
    slip: ca.SX
    parameters: ca.SX

    @property
    def force(self) -> ca.SX:
        """Force (3,) [N] on the robot in contact axes; what is zero by the law has no entry."""
        return _force(self.law, self.stiffness, self.depth, self.slip, self.parameters)

    @property
    def force_base(self) -> ca.SX:
        """Force (3,) [N] on the robot in base axes."""
        return ca.densify(self.axes @ self.force)

    @property
    def slope(self) -> ca.SX:
        """Diagonal (3,) [N/m] of the force's derivative by depth and slip, in contact axes."""
        depth, slip = ca.SX.sym("depth"), ca.SX.sym("slip", 2)
        force = _force(self.law, self.stiffness, depth, slip, self.parameters)
        slope = ca.sparsify(ca.diag(ca.jacobian(force, ca.vertcat(depth, slip))))
        return ca.substitute(slope, ca.vertcat(depth, slip), ca.densify(ca.vertcat(self.depth, self.slip)))


def _force(law: ContactLaw, stiffness: ca.SX, depth: ca.SX, slip: ca.SX, parameters: ca.SX) -> ca.SX:
    normal, tangential = law.force(stiffness, depth, slip, parameters)
    return ca.sparsify(ca.vertcat(ca.SX(normal), ca.SX(tangential)))


def from_stiffness_vector(
    law: ContactLaw, stiffness: ca.SX, stretch: ca.SX, parameters: Expression, reference: NDArray[np.float64]
) -> ClosedContact:
    """Return a contact in the papers' coordinates: n = K/||K||, d = n^T (x_rest - x) (paper 2, eq. 4-6).

    Args:
        law: the contact law.
        stiffness: K (3,) [N/m], base axes.
        stretch: (3,) x_rest - x [m], base axes.
        parameters: (P,) of the law [SI].
        reference: (3,) stiffness vector before anything was measured; it decides where tangent 1 points.
    """
    norm = ca.sqrt(ca.dot(stiffness, stiffness) + _SOFTENING**2)
    normal = stiffness / norm
    helper = ca.DM(tangent_helper(reference))
    first = helper - normal * ca.dot(normal, helper)
    first /= ca.norm_2(first)
    tangents = ca.horzcat(first, ca.cross(normal, first))
    slip = tangents.T @ stretch
    return ClosedContact(law, ca.horzcat(normal, tangents), norm, ca.dot(normal, stretch), slip, parameters)


def contact_basis(normal: NDArray[np.float64], reference: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the right-handed orthonormal (3, 3) whose columns are the unit normal, tangent 1 and tangent 2.

    Args:
        normal: (3,) of any length.
        reference: (3,) stiffness vector or normal before anything was measured, which decides where tangent 1 points;
            None: ``normal``.
    """
    normal = normal / np.linalg.norm(normal)
    helper = tangent_helper(normal if reference is None else reference)
    first = np.cross(np.cross(normal, helper), normal)
    first /= np.linalg.norm(first)
    return np.column_stack([normal, first, np.cross(normal, first)])


def tangent_helper(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return base axis (3,) that is least along ``normal`` (3,): tangent 1 is its part across the normal."""
    return np.asarray(np.eye(3)[int(np.argmin(np.abs(normal)))])


def same_sign(stiffness: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the one of K and -K that points to the side of ``reference``: a law that does not open is even in K.

    Args:
        stiffness: K (3,) [N/m].
        reference: (3,), any unit.

    Returns:
        K or -K (3,) [N/m].
    """
    return -stiffness if float(np.dot(stiffness, reference)) < 0 else stiffness


def same_side(
    law: ContactLaw, parameters: NDArray[np.float64], covariance: NDArray[np.float64], reference: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the parameters and the covariance of a contact with the K of :func:`same_sign`.

    With K the depth, the normal force and tangent 2 change their signs, tangent 1 does not. So the force remains if the
    friction coefficient along tangent 1 changes its sign, too. A law that opens tells K from -K and keeps both.

    Args:
        law: the contact law.
        parameters: (9 + P,) [K; x_rest; x_tcp; law parameters] [SI].
        covariance: (9 + P, 9 + P) of them.
        reference: (3,), any unit.
    """
    if law.opens or float(np.dot(parameters[:3], reference)) >= 0:
        return parameters, covariance
    odd = [0, 1, 2, *(9 + k for k, p in enumerate(law.parameters) if p.name == FRICTION[0])]
    sign = np.ones(len(parameters))
    sign[odd] = -1.0
    return sign * parameters, sign[:, None] * covariance * sign
