"""From the mean and covariance of the coupled state [q; dq; p] to an estimate: what every filter over it publishes."""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.contact import ContactSettings, ParallelContacts
from contact_estimation.contact.primitive import same_sign
from contact_estimation.dynamics import CoupledStep
from contact_estimation.filters.kalman import packed_size, unpack, unpack_array
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.robot import Arm


def build_output(arm: Arm, contacts: ParallelContacts) -> ca.Function:
    """Derived quantities of (xi, P, phi): TCP force and torque, its covariance, external joint torque, contact
    points."""
    step = CoupledStep(arm, contacts)
    size = step.xi.numel()
    packed = ca.SX.sym("P", packed_size(size))
    rotation, _ = arm.tcp(step.kinematics)
    force, torque = contacts.wrench_base(step.kinematics, step.phi_now)
    force_tcp = rotation.T @ force
    gradient = ca.jacobian(force_tcp, step.xi)
    covariance = gradient @ unpack(packed, size) @ gradient.T
    points = ca.vertcat(*contacts.points(step.kinematics, step.phi_now), ca.SX(0, 1))
    outputs = {"force_base": force, "force_tcp": force_tcp, "torque_tcp": rotation.T @ torque,
               "force_covariance": covariance,
               "tau_e": step.tau_e, "points": points, "phi_now": step.phi_now}
    return ca.Function("ekf_output", [step.xi, packed, step.phi], [ca.densify(o) for o in outputs.values()],
                       ["xi", "P", "phi"], list(outputs))


class CoupledOutput:
    """Makes estimates of filtered states.

    Args:
        arm: the robot. contacts: the contacts of the state, with the ``settings`` they were made of.
    """

    def __init__(self, arm: Arm, contacts: ParallelContacts, settings: list[ContactSettings]):
        self._arm, self._contacts = arm, contacts
        self._names = [c.name for c in settings]
        self._reference = [np.asarray(c.stiffness) for c in settings]
        self._output = compile_function(build_output(arm, contacts))

    def estimate(self, t: float, x: np.ndarray, packed: np.ndarray, phi: np.ndarray, nis: float,
                 nis_dof: int) -> Estimate:
        """The estimate for mean ``x`` (N,), packed covariance and contact parameters ``phi``, all in internal units."""
        run, n = self._output, self._arm.n
        run.inputs["xi"][:], run.inputs["P"][:], run.inputs["phi"][:] = x, packed, phi
        run()
        out = run.outputs
        covariance = unpack_array(packed, len(x))
        phi_si, spread = self._contacts.in_si(out["phi_now"], covariance[2 * n:, 2 * n:])
        contacts = tuple(
            ContactState(name, 1.0, same_sign(phi_si[i, :3], self._reference[i]), phi_si[i, 3:6].copy(),
                         phi_si[i, 6:].copy(),
                         out["points"][3 * i:3 * i + 3].copy(), spread[i]) for i, name in enumerate(self._names))
        return Estimate(
            t=t, q=x[:n].copy(), dq=x[n:2 * n].copy(), tau_ext=out["tau_e"].copy(), force_base=out["force_base"].copy(),
            force_tcp=out["force_tcp"].copy(), torque_tcp=out["torque_tcp"].copy(),
            force_covariance=out["force_covariance"].reshape(3, 3).copy(), contacts=contacts, nis=nis, nis_dof=nis_dof,
            mode="contact", modes={"contact": 1.0})
