"""What EKF and UKF share: contacts, channels, the start, and the estimate from mean and covariance.

The state is [q; dq; p] with the estimated contact parameters p. State, covariance and noise have internal units; every
output is SI.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function
from contact_estimation.contact import ParallelContacts
from contact_estimation.contact.closed import same_side
from contact_estimation.dynamics import CoupledStep
from contact_estimation.filters.consistency import ContactTorque
from contact_estimation.filters.kalman import packed_size, unpack, unpack_array
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import EkfSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.friction_model import FrictionModel


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


class CoupledFilter(ABC):
    """A filter over [q; dq; contact parameters] of an arm in compliant contact.

    Args:
        arm: the robot.
        settings: contacts, noise, what is measured.
        name: name in reports.

    Attributes:
        contacts: the contacts of the state.
        friction: converts the measured torque.
        consistency: see :mod:`.consistency`.
        settling: [s] see :mod:`.consistency`.
        channels: names of the measurement channels, in the order of the update.

    Raises:
        ConfigError: contacts of the same name.
    """

    #: The papers' process model has the reflected rotors in M wherever the torque is measured: they damp the light
    #: wrist, on which the shipped noise rests.
    keeps_rotors = True

    def __init__(self, arm: Arm, settings: EkfSettings, name: str) -> None:
        self.name, self.arm, self.settings = name, arm, settings
        self.settling, self.consistency = settings.settling, settings.consistency
        self.contacts = contacts = ParallelContacts(arm, settings.contacts)
        self.friction = FrictionModel(arm, settings.actuators)
        self._with_torque = settings.measure == "position_torque"
        measured = ("position", "torque") if self._with_torque else ("position",)
        self.channels = [f"{kind} of {joint}" for kind in measured for joint in arm.joint_names]
        self._size = 2 * arm.n + contacts.n_estimated
        names = [[p.name for p in law.parameters] for law in contacts.laws]
        self._references = [np.asarray(c.stiffness) for c in contacts.contacts]
        self._each = (contacts.contacts, names)
        self._output = compile_built(build_output, arm, contacts)
        self._contact_torque = compile_built(build_contact_torque, arm, contacts)
        self._contact_torque_views = ContactTorque(**self._contact_torque.outputs)
        self._t = 0.0

    @abstractmethod
    def _now(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return mean (N,), packed covariance, all contact parameters phi, and the normalised innovation squared."""

    def _initial(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean (N,), covariance (N, N) and phi at rest at ``q`` (n,) [rad], as the settings say."""
        n, s = self.arm.n, self.settings
        phi, std = self.contacts.initial(q)
        spread = [np.full(n, s.initial_position_std), np.full(n, s.initial_velocity_std), std]
        mean = np.concatenate([q, np.zeros(n), phi[self.contacts.estimated]])
        return mean, np.diag(np.concatenate(spread) ** 2), phi

    def contact_torque(self) -> ContactTorque:
        """Return what the contacts do after the last sample (views)."""
        inputs = self._contact_torque.inputs
        inputs["xi"][:], inputs["P"][:], inputs["phi"][:], _ = self._now()
        self._contact_torque()
        return self._contact_torque_views

    def estimate(self) -> Estimate:
        """Return the estimate after the last sample."""
        run, n = self._output, self.arm.n
        x, packed, phi, nis = self._now()
        run.inputs["xi"][:], run.inputs["P"][:], run.inputs["phi"][:] = x, packed, phi
        run()
        out = run.outputs
        covariance = unpack_array(packed, len(x))
        found = self.contacts.in_si(out["phi_now"], covariance[2 * n :, 2 * n :])
        values = [same_side(law, *one, at) for law, one, at in zip(self.contacts.laws, found, self._references)]
        contacts = tuple(
            ContactState(
                c.name,
                1.0,
                phi[:3],
                phi[3:6],
                phi[6:9],
                out["points"][3 * i : 3 * i + 3].copy(),
                spread[:9, :9],
                law=c.law,
                law_parameters=dict(zip(names, phi[9:].tolist())),
                link=self.arm.tool_link,
            )
            for i, (c, names, (phi, spread)) in enumerate(zip(*self._each, values))
        )
        return Estimate(
            t=self._t,
            q=x[:n].copy(),
            dq=x[n : 2 * n].copy(),
            tau_ext=out["tau_e"].copy(),
            force_base=out["force_base"].copy(),
            force_tcp=out["force_tcp"].copy(),
            torque_tcp=out["torque_tcp"].copy(),
            force_covariance=out["force_covariance"].reshape(3, 3).copy(),
            contacts=contacts,
            nis=nis,
            nis_dof=len(self.channels),
            mode="contact",
            modes={"contact": 1.0},
        )
