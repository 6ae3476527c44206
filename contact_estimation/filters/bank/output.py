"""What is published of a bank: force, external torque and contact parameters, averaged over the modes."""

from __future__ import annotations

import casadi as ca

from contact_estimation.filters.bank.contact_law import ContactForces
from contact_estimation.filters.bank.layout import CONTACT_SIZE, BankLayout
from contact_estimation.filters.kalman import packed_size, unpack
from contact_estimation.robot import Arm


def build_output(arm: Arm, layout: BankLayout) -> ca.Function:
    """Quantities of one mode's filter at a configuration.

    Inputs: x, P (packed), q, closed, theta, basis. Outputs: tcp (6,) force and torque about the TCP in TCP axes, force covariance (3, 3),
    force_base (3,), tau_e (n,), per contact the parameters [K n (3); x_rest (3); p_tcp (3)] (9 I) with covariance (9, 9 I), and points.
    """
    size, count = layout.size, len(layout.contact)
    x, packed, q = ca.SX.sym("x", size), ca.SX.sym("P", packed_size(size)), ca.SX.sym("q", arm.n)
    closed, theta, basis = ca.SX.sym("closed", count), ca.SX.sym("theta", CONTACT_SIZE * count), ca.SX.sym("basis", 9 * count)
    covariance = unpack(packed, size)
    kin = arm.kinematics(q)
    contacts = ContactForces(arm, layout, kin, x, theta, basis, unilateral=True)
    rotation, _ = arm.tcp(kin)
    force, torque = contacts.wrench_base(closed)
    gradient = ca.jacobian(rotation.T @ force, x)
    parameters, spreads = [], []
    for p, normal, point in zip(contacts.parameters, contacts.normals, contacts.points):
        rest = point + normal * (p[1] - ca.dot(normal, point))
        values = ca.vertcat(normal * ca.exp(p[0]), rest, p[4:7])
        slope = ca.jacobian(values, x)
        parameters.append(values)
        spreads.append(slope @ covariance @ slope.T)
    outputs = {"tcp": ca.vertcat(rotation.T @ force, rotation.T @ torque), "force_covariance": gradient @ covariance @ gradient.T,
               "force_base": force, "tau_e": contacts.joint_torque(closed), "parameters": ca.vertcat(*parameters),
               "spreads": ca.horzcat(*spreads), "points": ca.vertcat(*contacts.points)}
    return ca.Function("bank_output", [x, packed, q, closed, theta, basis], [ca.densify(o) for o in outputs.values()],
                       ["x", "P", "q", "closed", "theta", "basis"], list(outputs))
