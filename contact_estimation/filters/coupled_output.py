"""Convert mean and covariance of the coupled state [q; dq; p] to an estimate; EKF and UKF use it."""

from __future__ import annotations

from types import SimpleNamespace

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function
from contact_estimation.contact import ParallelContacts
from contact_estimation.contact.closed import same_sign
from contact_estimation.dynamics import CoupledStep
from contact_estimation.filters.consistency import ContactTorque
from contact_estimation.filters.kalman import packed_size, unpack, unpack_array
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.robot import Arm


class _Coupled:
    """Expressions of the coupled state that both functions of this module need."""

    def __init__(self, arm: Arm, contacts: ParallelContacts) -> None:
        self.step = step = CoupledStep(arm, contacts)
        size = step.xi.numel()
        self.inputs = SimpleNamespace(xi=step.xi, P=ca.SX.sym("P", packed_size(size)), phi=step.phi)
        self.covariance = unpack(self.inputs.P, size)
        self.rotation, _ = arm.tcp(step.kinematics)
        self.force, self.torque = contacts.wrench_base(step.kinematics, step.phi_now)  # base axes
        self.force_tcp = self.rotation.T @ self.force


def build_contact_torque(arm: Arm, contacts: ParallelContacts) -> ca.Function:
    """Return a function of (xi, P, phi) whose outputs are the fields of :class:`.ContactTorque`.

    Args:
        arm: the robot.
        contacts: its contacts.
    """
    at = _Coupled(arm, contacts)
    rows = ca.jacobian(ca.vertcat(at.step.tau_e, at.force_tcp), at.step.xi)
    variance = ca.sum2((rows @ at.covariance) * rows)
    outputs = {"torque": at.step.tau_e, "variance": variance[: arm.n], "force_variance": variance[arm.n :]}
    return named_function("contact_torque", at.inputs, outputs)


def build_output(arm: Arm, contacts: ParallelContacts) -> ca.Function:
    """Return a function of (xi, P, phi): TCP wrench, force covariance, external torque, contact points.

    Args:
        arm: the robot.
        contacts: its contacts.
    """
    at = _Coupled(arm, contacts)
    gradient = ca.jacobian(at.force_tcp, at.step.xi)
    points = ca.vertcat(*contacts.points(at.step.kinematics, at.step.phi_now), ca.SX(0, 1))
    outputs = {
        "force_base": at.force,
        "force_tcp": at.force_tcp,
        "torque_tcp": at.rotation.T @ at.torque,
        "force_covariance": gradient @ at.covariance @ gradient.T,
        "tau_e": at.step.tau_e,
        "points": points,
        "phi_now": at.step.phi_now,
    }
    return named_function("ekf_output", at.inputs, outputs)


class CoupledOutput:
    """Makes estimates of filtered states.

    Args:
        arm: the robot.
        contacts: the contacts of the state.
    """

    def __init__(self, arm: Arm, contacts: ParallelContacts) -> None:
        self._arm, self._contacts = arm, contacts
        names = [[p.name for p in law.parameters] for law in contacts.laws]
        references = [np.asarray(c.stiffness) for c in contacts.contacts]
        self._told = (contacts.contacts, contacts.laws, references, names)
        self._output = compile_built(build_output, arm, contacts)
        self._torque = compile_built(build_contact_torque, arm, contacts)
        self._told_torque = ContactTorque(**self._torque.outputs)

    def contact_torque(self, x: np.ndarray, packed: np.ndarray, phi: np.ndarray) -> ContactTorque:
        """Return what the contacts do in a state, given as to :meth:`estimate` (views)."""
        run = self._torque
        run.inputs["xi"][:], run.inputs["P"][:], run.inputs["phi"][:] = x, packed, phi
        run()
        return self._told_torque

    def estimate(
        self, t: float, x: np.ndarray, packed: np.ndarray, phi: np.ndarray, nis: float, nis_dof: int
    ) -> Estimate:
        """Return the estimate of a state.

        Args:
            t: stamp [s].
            x: mean (N,), internal units.
            packed: covariance, internal units.
            phi: all contact parameters, internal units.
            nis: normalised innovation squared.
            nis_dof: its degrees of freedom.
        """
        run, n = self._output, self._arm.n
        run.inputs["xi"][:], run.inputs["P"][:], run.inputs["phi"][:] = x, packed, phi
        run()
        out = run.outputs
        covariance = unpack_array(packed, len(x))
        values = self._contacts.in_si(out["phi_now"], covariance[2 * n :, 2 * n :])
        contacts = tuple(
            ContactState(
                c.name,
                1.0,
                phi[:3] if law.opens else same_sign(phi[:3], reference),
                phi[3:6],
                phi[6:9],
                out["points"][3 * i : 3 * i + 3].copy(),
                spread[:9, :9],
                law=c.law,
                law_parameters=dict(zip(names, phi[9:].tolist())),
                link=self._arm.tool_link,
            )
            for i, (c, law, reference, names, (phi, spread)) in enumerate(zip(*self._told, values))
        )
        return Estimate(
            t=t,
            q=x[:n].copy(),
            dq=x[n : 2 * n].copy(),
            tau_ext=out["tau_e"].copy(),
            force_base=out["force_base"].copy(),
            force_tcp=out["force_tcp"].copy(),
            torque_tcp=out["torque_tcp"].copy(),
            force_covariance=out["force_covariance"].reshape(3, 3).copy(),
            contacts=contacts,
            nis=nis,
            nis_dof=nis_dof,
            mode="contact",
            modes={"contact": 1.0},
        )
