"""What kinks take from the believed filter (:func:`build_context`), and what they give to the one that follows it
(:func:`build_anchor`)."""

from __future__ import annotations

import casadi as ca

from contact_estimation.dynamics import symmetric
from contact_estimation.filters.bank.contact_law import ContactForces
from contact_estimation.filters.bank.layout import CONTACT_SIZE, BankLayout
from contact_estimation.filters.bank.settings import BankSettings
from contact_estimation.filters.kalman import pack, packed_size, unpack
from contact_estimation.robot import Arm

#: Share of the change of a closed contact's force that is not linear in its depth.
_LAW_ERROR = 0.2
#: [m] Least standard deviation of a depth: it is divided by.
_LEAST = 1e-9


def build_context(arm: Arm, layout: BankLayout, settings: BankSettings) -> ca.Function:
    """What the believed filter knows, for the samples of the next block.

    Inputs: x (N,), P (packed), q (n,), closed (I,), theta, basis (9 I,). Outputs: g (n, I) joint torque per newton of
    every contact; sideways (n, 2 I): the same along its tangents; depth, depth_std (I,) [m]; stiffness (I,) [N/m];
    friction (I,) [N]: its usual size in a contact that is closed; law (n, n) [Nm/rad]: closed contacts push with
    -law dq more; law_error: what share of that is uncertain; coulomb (n,) [Nm] of the joints; inertia (n,): the
    diagonal of the mass matrix.
    """
    sym, count, n = ca.SX.sym, len(layout.contact), arm.n
    x, packed, q, closed = sym("x", layout.size), sym("P", packed_size(layout.size)), sym("q", n), sym("closed", count)
    theta, basis = sym("theta", CONTACT_SIZE * count), sym("basis", 9 * count)
    kinematics = arm.kinematics(q)
    contacts = ContactForces(arm, layout, kinematics, x, theta, basis)
    covariance = unpack(packed, layout.size)
    along, sideways, friction, law, error = [], [], [], ca.SX.zeros(n, n), _LAW_ERROR**2
    for i, (slots, where) in enumerate(zip(layout.estimated, layout.contact)):
        jacobian = kinematics.point_jacobian(arm.tcp_frame, contacts.points[i]).T
        along.append(jacobian @ contacts.normals[i])
        sideways.append(jacobian @ contacts.axes[i][:, 1:])
        springs = along[i] @ along[i].T + (sideways[i] @ sideways[i].T if layout.sticks[i] else 0)
        law += closed[i] * ca.exp(contacts.parameters[i][0]) * springs
        if 0 in slots:
            error = ca.fmax(error, closed[i] * (_LAW_ERROR**2 + covariance[where.start, where.start]))
        usual = 0 if layout.sticks[i] else settings.contacts[i].friction_std
        friction.append(closed[i] * usual * ca.fmax(contacts.normal_force[i], 0))
    slopes = [ca.jacobian(depth, x).T for depth in contacts.depth]
    results = {
        "g": ca.horzcat(*along),
        "sideways": ca.horzcat(*sideways),
        "depth": ca.vertcat(*contacts.depth),
        "depth_std": ca.vertcat(*[ca.sqrt(ca.bilin(covariance, s, s) + _LEAST**2) for s in slopes]),
        "stiffness": ca.vertcat(*[ca.exp(p[0]) for p in contacts.parameters]),
        "friction": ca.vertcat(*friction),
        "law": law,
        "law_error": ca.sqrt(error),
        "coulomb": x[layout.coulomb],
        "inertia": ca.diag(arm.mass_matrix(kinematics)),
    }
    inputs = {"x": x, "P": packed, "q": q, "closed": closed, "theta": theta, "basis": basis}
    return ca.Function(
        "bank_kink_context",
        list(inputs.values()),
        [ca.densify(r) for r in results.values()],
        list(inputs),
        list(results),
    )


def build_anchor(arm: Arm, layout: BankLayout) -> ca.Function:
    """A contact that closed at a known position: its depth there is zero.

    Inputs: x (N,), P (packed), q (n,) where it closed, chosen (I,) one for that contact, variance [m^2] of the depth,
    theta, basis (9 I,). Outputs: x_next, P_next.
    """
    sym, count = ca.SX.sym, len(layout.contact)
    x, packed, q, chosen = (
        sym("x", layout.size),
        sym("P", packed_size(layout.size)),
        sym("q", arm.n),
        sym("chosen", count),
    )
    variance, theta, basis = sym("variance"), sym("theta", CONTACT_SIZE * count), sym("basis", 9 * count)
    contacts = ContactForces(arm, layout, arm.kinematics(q), x, theta, basis)
    depth = ca.dot(chosen, ca.vertcat(*contacts.depth))
    row, covariance = ca.jacobian(depth, x).T, unpack(packed, layout.size)
    cross = covariance @ row
    total = ca.dot(row, cross) + variance
    inputs = {"x": x, "P": packed, "q": q, "chosen": chosen, "variance": variance, "theta": theta, "basis": basis}
    return ca.Function(
        "bank_kink_anchor",
        list(inputs.values()),
        [x - cross * (depth / total), pack(symmetric(covariance - cross @ cross.T / total))],
        list(inputs),
        ["x_next", "P_next"],
    )
