"""One law for all: force and derivatives of every shipped law in the EKF, the IMM filter, the fit and the MPC."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

from contact_estimation import plugins
from contact_estimation.contact import ContactSettings, ParallelContacts, find_law
from contact_estimation.contact.closed import contact_basis
from contact_estimation.control.mpc.stage import Stage
from contact_estimation.dynamics import CoupledStep
from contact_estimation.filters.imm.contact_law import contacts_at
from contact_estimation.filters.imm.contact_settings import CONTACT_PARAMETERS, ImmContact
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.fit.contact_torque import FitContact
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import load_actuators

Q = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])
STIFFNESS, POINT = np.array([2e3, -5e3, 1.8e4]), np.array([0.01, -0.02, 0.03])
NORM = float(np.linalg.norm(STIFFNESS))
AXES = contact_basis(STIFFNESS)
#: depth and slip [m]: pressed so deep that a unilateral version differs from its law by less than the tolerance.
PRESSED = np.array([3e-3, 4e-4, -7e-4])


class Response(NamedTuple):
    """A law at a closed contact: force (3,) [N] in contact axes, and its derivatives by [depth; slip] (3, 3) [N/m], by
    the stiffness (3,) [m] and by the law's parameters (3, P)."""

    force: np.ndarray
    by_stretch: np.ndarray
    by_stiffness: np.ndarray
    by_parameters: np.ndarray


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def point(arm):
    position, rotation = arm.tcp_pose(Q)
    return position + rotation @ POINT


def vector_response(function: ca.Function, phi: np.ndarray, scale: np.ndarray) -> Response:
    """Response of a system in the papers' coordinates from (phi) -> force in base axes and its derivative by phi."""
    force, slope = (v.full() for v in function(phi))
    slope = AXES.T @ slope / scale
    # With K along n, moving K's length is moving the stiffness; moving the rest along the axes is depth and slip.
    return Response(AXES.T @ force.ravel(), slope[:, 3:6] @ AXES, slope[:, :3] @ AXES[:, 0], slope[:, 9:])


def settings(law: str) -> ContactSettings:
    return ContactSettings(law=law, stiffness=STIFFNESS.tolist(), point=POINT.tolist())


def values(law: str) -> np.ndarray:
    """Values of a law's parameters, away from their means."""
    return np.array([p.mean + 0.7 * p.std for p in find_law(law).parameters])


def phi_si(arm, law: str) -> np.ndarray:
    return np.concatenate([STIFFNESS, point(arm) + AXES @ PRESSED, POINT, values(law)])


def in_ekf(arm, law: str) -> Response:
    contacts = ParallelContacts(arm, [dataclasses.replace(settings(law), estimate=["stiffness", "rest", "point"])])
    step = CoupledStep(arm, contacts)
    (force,) = contacts.forces(step.kinematics, step.phi_now)
    own = ca.horzcat(ca.jacobian(force, step.p), ca.jacobian(force, step.phi)[:, 9:])
    phi = phi_si(arm, law) / contacts.scale
    function = ca.Function("ekf", [step.q, step.p, step.phi], [force, ca.densify(own)])
    # The torque that drives the filter is that of this force.
    torque = ca.Function("torque", [step.q, step.p, step.phi], [step.tau_e])(Q, phi[:9], phi).full().ravel()
    lever = point(arm) - arm.tcp_pose(Q)[0]
    base = function(Q, phi[:9], phi)[0].full().ravel()
    np.testing.assert_allclose(torque, arm.tcp_jacobian(Q).T @ np.r_[base, np.cross(lever, base)], atol=1e-9)
    symbol = ca.SX.sym("phi", contacts.size)
    return vector_response(ca.Function("at", [symbol], function.call([Q, symbol[:9], symbol])), phi, contacts.scale)


def in_fit(arm, law: str) -> Response:
    contact = FitContact(arm, settings(law), ("stiffness", "rest", "point"))
    position, rotation = arm.tcp_pose(Q)
    jacobian = arm.tcp_jacobian(Q)
    data = np.concatenate([position, rotation.ravel(order="F"), jacobian.ravel(order="F")])
    phi = phi_si(arm, law)
    torque, slope = contact.evaluate(phi, data[None])
    wrench = np.linalg.solve(jacobian.T, np.column_stack([torque[0], slope[0]]))[:3]
    symbol = ca.SX.sym("phi", contact.size)
    return vector_response(
        ca.Function("at", [symbol], [ca.DM(wrench[:, :1]), ca.DM(wrench[:, 1:])]), phi, np.ones(contact.size)
    )


def in_mpc(arm, law: str) -> Response:
    contacts = ParallelContacts(arm, [settings(law)])
    stage = Stage(arm, contacts, {"contact": [0]})
    (mode,), phi = stage.modes, stage.parameters.symbols["phi"]
    outputs = [mode.forces[0], ca.densify(ca.jacobian(mode.forces[0], phi))]
    function = ca.Function("mpc", [mode.q, phi], outputs)
    symbol = ca.SX.sym("phi", contacts.size)
    at = ca.Function("at", [symbol], function.call([Q, symbol]))
    return vector_response(at, phi_si(arm, law) / contacts.scale, contacts.scale)


def in_imm(arm, law: str) -> Response:
    feels = find_law(law).feels_slip
    contact = ImmContact(
        normal=AXES[:, 0].tolist(),
        law=law,
        point=POINT.tolist(),
        point_std=[0.0] * 3,
        estimate=list(CONTACT_PARAMETERS),
    )
    layout = StateLayout(ImmSettings(contacts=[contact]), load_actuators("ur16e"), arm.n)
    theta, basis = layout.inputs["theta"], layout.inputs["basis"]
    x = ca.SX.sym("x", layout.size)
    contacts = contacts_at(layout, arm.tcp(arm.kinematics(ca.SX(Q))), x, ca.SX(theta), ca.SX(basis))
    force_base, where = contacts[0].force, layout.contacts[0].where
    own = find_law(law).parameters
    state = layout.mean.copy()
    names = layout.contacts[0].names
    set_to = {"stiffness": np.log(NORM), "rest": PRESSED[0]}
    set_to |= {f"rest_{i}": PRESSED[i] for i in (1, 2)} if feels else {}
    set_to |= {p.name: v / p.scale for p, v in zip(own, values(law))}
    for k, name in enumerate(names):
        state[where.start + k] = set_to.get(name, 0.0)
    function = ca.Function("imm", [x], [force_base, ca.densify(ca.jacobian(force_base, x))])
    force, slope = (v.full() for v in function(state))
    slope = AXES.T @ slope[:, where]
    by = {name: slope[:, k] for k, name in enumerate(names)}
    none = np.zeros(3)
    stretch = np.column_stack([by["rest"], by.get("rest_1", none), by.get("rest_2", none)])
    parameters = np.array([by[p.name] / p.scale for p in own]).reshape(-1, 3).T
    return Response(AXES.T @ force.ravel(), stretch, by["stiffness"] / NORM, parameters)


SYSTEMS = {"ekf": in_ekf, "imm": in_imm, "fit": in_fit, "mpc": in_mpc}


def direct(law: str) -> Response:
    """The law itself, its derivatives by finite differences."""
    made = find_law(law)
    at = np.concatenate([PRESSED, [NORM], values(law)])

    def force(z):
        normal, tangential = made.force(ca.DM(z[3]), ca.DM(z[0]), ca.DM(z[1:3]), ca.DM(z[4:]))
        return np.concatenate([ca.DM(normal).full().ravel(), ca.DM(tangential).full().ravel()])

    steps = np.concatenate([[1e-7] * 3, [1.0], [1e-6] * (len(at) - 4)])
    slope = np.column_stack([(force(at + s) - force(at - s)) / (2 * s.max()) for s in np.diag(steps)])
    return Response(force(at), slope[:, :3], slope[:, 3], slope[:, 4:])


@pytest.mark.parametrize("law", plugins.SHIPPED[plugins.LAWS])
def test_all_systems_have_the_same_force_and_derivatives(arm, law):
    first, *others = (system(arm, law) for system in SYSTEMS.values())
    for name, other in zip(list(SYSTEMS)[1:], others):
        for part, one, two in zip(Response._fields, first, other):
            np.testing.assert_allclose(
                two, one, rtol=1e-9, atol=1e-9 * max(np.abs(one).max(initial=0.0), 1.0), err_msg=f"{name} {part}"
            )


@pytest.mark.parametrize("law", plugins.SHIPPED[plugins.LAWS])
@pytest.mark.parametrize("system", SYSTEMS)
def test_derivatives_are_those_of_the_law_by_finite_differences(arm, system, law):
    for part, one, two in zip(Response._fields, direct(law), SYSTEMS[system](arm, law)):
        np.testing.assert_allclose(
            two, one, rtol=1e-6, atol=1e-6 * max(np.abs(one).max(initial=0.0), 1.0), err_msg=part
        )
