"""The generalised-momentum observer, the baseline that needs no contact model.

Textbook form (De Luca and Mattone 2005), discrete: with the momentum p = M(q) dq,
    r+ = K_O (p+ - p0 - sum of h (tau + C^T dq - G - B dq + r)),
so that r follows tau_e with bandwidth K_O. C^T dq - G comes from dM/dt dq - C dq - G, with dM/dt dq by its directional
derivative. ``printed`` is paper 1, eq. 26 as printed, r+ = K_O (M dq - h (r - tau_e)) with tau_e = -(tau - C - G)
there. It adds the momentum itself every step instead of its increment, and serves for comparison only.

With ``actuators`` the torque is corrected by the calibrated torque scale and friction: the same law and values that are
the prior of the contact IMM filter, without adaptation. Their uncertainty is the residual's covariance.
"""

from __future__ import annotations

from collections import deque

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function, named_function, symbols
from contact_estimation.dynamics.momentum import momentum_terms
from contact_estimation.dynamics.wrench import damped_inverse, wrench_covariance
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import MomentumSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.friction_model import FrictionModel


def build_step(arm: Arm) -> ca.Function:
    """Return the function of a sample.

    Inputs: q, dq (n,). Outputs: momentum M dq; drift C^T dq - G - B dq; bias C dq + G; position, rotation and jacobian
    of the TCP.
    """
    s = symbols(q=arm.n, dq=arm.n)
    kinematics = arm.kinematics(s.q)
    momentum, drift, bias = momentum_terms(arm, kinematics, s.dq)
    rotation, position = arm.tcp(kinematics)
    outputs = {"momentum": momentum, "drift": drift, "bias": bias, "position": position, "rotation": rotation}
    return named_function("momentum_terms", s, outputs | {"jacobian": kinematics.jacobian(arm.tcp_frame)})


class MomentumObserver:
    """External joint torque from the momentum residual r (paper 1, eq. 26).

    The force at the TCP is (J^T)^+ r (eq. 27) by damped least squares, the stiffness a first difference (eq. 28, 32).

    Args:
        arm: the robot.
        settings: of the observer.
        name: name in reports.
    """

    def __init__(self, arm: Arm, settings: MomentumSettings, name: str = "momentum") -> None:
        self.name, self.arm, self.settings = name, arm, settings
        self._terms = compile_function(build_step(arm))
        self.backend = self._terms.backend
        self._friction = FrictionModel(arm, settings.actuators)
        prior = [settings.force_std] * 3 + [settings.torque_std] * 3
        self._prior = np.array(prior[: 3 if settings.wrench == "force" else 6])
        self._residual = np.zeros(arm.n)
        self._integral = np.zeros(arm.n)
        self._history: deque[tuple[float, np.ndarray, np.ndarray]] = deque()
        self._displacement = np.zeros(3)
        self._change = np.zeros(3)
        self._wrench = np.zeros(6)

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` with a zero residual."""
        self._evaluate(q, np.zeros(self.arm.n))
        self._residual[:] = 0.0
        self._integral[:] = self._terms.outputs["momentum"]
        self._history.clear()
        self._displacement[:] = 0.0
        self._change[:] = 0.0
        self._wrench[:] = 0.0
        self._update_wrench()
        self._t = t
        self._friction.reset(q)

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample."""
        self._evaluate(q, dq)
        tau = self._friction.take(dt, q, dq, tau)
        out, gain = self._terms.outputs, self.settings.gain
        if self.settings.form == "textbook":
            # Implicit in r, so that the observer is stable for every gain: r+ = K_O (p+ - integral - h (drift + tau +
            # r+)).
            self._integral += dt * (out["drift"] + tau)
            self._residual[:] = gain * (out["momentum"] - self._integral) / (1.0 + gain * dt)
            self._integral += dt * self._residual
        else:
            tau_e = out["bias"] - tau
            self._residual[:] = gain * (out["momentum"] - dt * (self._residual - tau_e))
        self._t += dt
        self._difference()

    def _evaluate(self, q: np.ndarray, dq: np.ndarray) -> None:
        self._terms.inputs["q"][:] = q
        self._terms.inputs["dq"][:] = dq
        self._terms()

    def _difference(self) -> None:
        """Change of force and position over the window, in base axes (eq. 28)."""
        position = self._terms.outputs["position"].copy()
        self._update_wrench()
        self._history.append((self._t, self._wrench[:3].copy(), position))
        while self._t - self._history[0][0] > self.settings.window + 1e-9:
            self._history.popleft()
        _, force, start = self._history[0]
        self._change[:] = self._history[-1][1] - force
        self._displacement[:] = position - start

    @property
    def _jacobian(self) -> np.ndarray:
        """J (r, n) of the TCP in base axes: of the force, and of the torque where it is asked for."""
        return np.asarray(self._terms.outputs["jacobian"].reshape(6, self.arm.n, order="F")[: len(self._prior)])

    def _update_wrench(self) -> None:
        """(J^T)^+ r: force and torque (6,) at the TCP in base axes; the torque is zero for a pure force."""
        self._inverse = damped_inverse(self._jacobian, self._prior, self.settings.torque_error)
        self._wrench[: len(self._prior)] = self._inverse @ self._residual

    def estimate(self) -> Estimate:
        """Return the estimate after the last sample.

        Its stiffness vector holds the first differences along each of the base axes.
        """
        wrench = self._wrench
        rotation = self._terms.outputs["rotation"].reshape(3, 3, order="F").copy()
        position = self._terms.outputs["position"].copy()
        stiffness = np.abs(self._change) / np.maximum(np.abs(self._displacement), self.settings.min_displacement)
        contact = ContactState(
            "tcp", float("nan"), stiffness, np.full(3, np.nan), np.zeros(3), position, np.zeros((9, 9))
        )
        force_tcp = rotation.T @ wrench[:3]
        spread = wrench_covariance(self._inverse, self._jacobian, self._prior, self._friction.variance())[:3, :3]
        return Estimate(
            t=self._t,
            q=self._terms.inputs["q"].copy(),
            dq=self._terms.inputs["dq"].copy(),
            tau_ext=self._residual.copy(),
            force_base=wrench[:3].copy(),
            force_tcp=force_tcp,
            torque_tcp=rotation.T @ wrench[3:],
            force_covariance=rotation.T @ spread @ rotation,
            contacts=(contact,),
            mode="unknown",
        )
