"""What change-point detection takes from the most probable filter: its contacts, linearised at a configuration."""

from __future__ import annotations

import casadi as ca

from contact_estimation.codegen import named_function, symbols
from contact_estimation.filters.imm.contact_law import ContactForces
from contact_estimation.filters.imm.state import FilterState
from contact_estimation.filters.kalman import packed_size, unpack
from contact_estimation.robot import Arm

#: [m] Least standard deviation of a depth: it is divided by.
_LEAST_STD = 1e-9


def build_linearisation(arm: Arm, state: FilterState) -> ca.Function:
    """Return the function of what the most probable filter knows, for the samples of the next block.

    Inputs: x (N,), P (packed), q_then (n,), closed (I,), theta (theta_size,), basis (9 I,), friction_std (I,),
    law_error. Outputs: normal_jacobian (n, I): joint torque per newton of every contact, tangent_jacobian (n, 2 I): the
    same along its tangents; depth, depth_std (I,) [m]; stiffness (I,) [N/m]; friction_force (I,) [N]: its usual size
    in a contact that is closed; contact_slope (n, n) [Nm/rad]: closed contacts push with -contact_slope dq more,
    slope_error: what share of that is uncertain; coulomb (n,) [Nm] of the joints; inertia (n,): diagonal of the mass
    matrix.
    """
    count, n = len(state.contacts), arm.n
    s = symbols(x=state.size, P=packed_size(state.size), q_then=n, closed=count, theta=state.theta_size)
    vars(s).update(vars(symbols(basis=9 * count, friction_std=count, law_error=1)))
    kinematics, covariance = arm.kinematics(s.q_then), unpack(s.P, state.size)
    forces = ContactForces(arm, state, kinematics, s.x, s.theta, s.basis)
    normals, tangents, friction = [], [], []
    slope, error = ca.SX.zeros(n, n), s.law_error**2
    for i, contact in enumerate(forces.contacts):
        jacobian = kinematics.point_jacobian(arm.tcp_frame, contact.point).T
        normals.append(jacobian @ contact.normal)
        tangents.append(jacobian @ contact.axes[:, 1:])
        axes = ca.horzcat(normals[i], tangents[i])
        slope += s.closed[i] * (axes @ ca.diag(contact.closed.slope) @ axes.T)
        (index,) = contact.part.indices("stiffness")
        if index is not None:
            error = ca.fmax(error, s.closed[i] * (s.law_error**2 + covariance[index, index]))
        friction.append(s.closed[i] * s.friction_std[i] * ca.fmax(contact.normal_force, 0))
    gradient = ca.jacobian(forces.depth, s.x)
    variances = [ca.bilin(covariance, gradient[i, :].T, gradient[i, :].T) for i in range(count)]
    outputs = {
        "normal_jacobian": ca.horzcat(*normals),
        "tangent_jacobian": ca.horzcat(*tangents),
        "depth": forces.depth,
        "depth_std": ca.sqrt(ca.vertcat(*variances) + _LEAST_STD**2),
        "stiffness": ca.vertcat(*[contact.closed.stiffness for contact in forces.contacts]),
        "friction_force": ca.vertcat(*friction),
        "contact_slope": slope,
        "slope_error": ca.sqrt(error),
        "coulomb": s.x[state.parts["coulomb"]],
        "inertia": ca.diag(arm.mass_matrix(kinematics)),
    }
    return named_function("imm_linearisation", s, outputs)
