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

from contact_estimation.codegen import DoubleBuffer, bind_recursion, call_named, compile_built, named_function, symbols
from contact_estimation.dynamics.momentum import momentum_residual, momentum_terms
from contact_estimation.dynamics.wrench import damped_inverse, wrench_covariance
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import MomentumSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.friction_model import FrictionModel


def build_step(arm: Arm) -> ca.Function:
    """Return the function of a sample.

    Inputs: q, dq (n,). Outputs: momentum M dq; drift C^T dq - G - B dq; bias C dq + G; position, rotation and jacobian
    of the TCP.

    Args:
        arm: the robot.
    """
    s = symbols(q=arm.n, dq=arm.n)
    kinematics = arm.kinematics(s.q)
    momentum, drift, bias = momentum_terms(arm, kinematics, s.dq)
    rotation, position = arm.tcp(kinematics)
    outputs = {"momentum": momentum, "drift": drift, "bias": bias, "position": position, "rotation": rotation}
    return named_function("momentum_terms", s, outputs | {"jacobian": kinematics.jacobian(arm.tcp_frame)})


def build_observer(arm: Arm, printed: bool, rows: int) -> ca.Function:
    """Return the function of the observer's step and of its outputs.

    Inputs: w = [residual; integral] (2 n,); q, dq, tau (n,); dt [s]; gain [1/s]; prior (r,) [N, Nm] and torque_error
    [Nm] of the damped inverse; variance (n,) [Nm^2] of the torque. Outputs: w_next; wrench (6,) at the TCP in base
    axes, zero where it has no row; force_tcp, torque_tcp (3,); force_covariance (3, 3) in TCP axes; position (3,).

    Args:
        arm: the robot.
        printed: eq. 26 as it stands instead of the textbook's.
        rows: r, 3 for a force, 6 for a wrench.
    """
    n = arm.n
    s = symbols(w=2 * n, q=n, dq=n, tau=n, dt=1, gain=1, prior=rows, torque_error=1, variance=n)
    terms, (residual, integral) = call_named(build_step(arm), s), ca.vertsplit(s.w, n)
    if printed:
        residual = s.gain * (terms.momentum - s.dt * (residual - (terms.bias - s.tau)))
    else:
        integral += s.dt * (terms.drift + s.tau)
        residual, integral = momentum_residual(terms.momentum, integral, s.gain, s.dt)
    jacobian, rotation = terms.jacobian[:rows, :], terms.rotation
    inverse = damped_inverse(jacobian, s.prior, s.torque_error)
    wrench = ca.vertcat(inverse @ residual, ca.SX.zeros(6 - rows))
    spread = wrench_covariance(inverse, jacobian, s.prior, s.variance)[:3, :3]
    outputs = {"w_next": ca.vertcat(residual, integral), "wrench": wrench, "position": terms.position}
    outputs |= {"force_tcp": rotation.T @ wrench[:3], "torque_tcp": rotation.T @ wrench[3:]}
    outputs["force_covariance"] = rotation.T @ spread @ rotation
    return named_function("momentum_observer", s, outputs)


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
        self.settling = settings.settling
        self._friction = FrictionModel(arm, settings.actuators)
        prior = [settings.force_std] * 3 + [settings.torque_std] * 3
        prior = prior[: 3 if settings.wrench == "force" else 6]
        function = compile_built(build_observer, arm, settings.form != "textbook", len(prior))
        self.backend, inputs = function.backend, function.inputs
        inputs["gain"][:], inputs["prior"][:], inputs["torque_error"][:] = settings.gain, prior, settings.torque_error
        self._q, self._dq, self._tau, self._dt = (inputs[k] for k in ("q", "dq", "tau", "dt"))
        self._state = DoubleBuffer.of(function)
        self._advance = bind_recursion(function, [self._state], {"variance": self._friction.variance()})
        self._out = function.outputs
        self._history: deque[tuple[float, np.ndarray, np.ndarray]] = deque()
        self._displacement, self._change = np.zeros((2, 3))

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` with a zero residual.

        Args:
            t: [s].
            q: (n,) [rad].
        """
        self._friction.reset(q)
        self._state["w"][:] = 0.0
        self._q[:], self._dq[:], self._tau[:], self._dt[0] = q, 0.0, 0.0, 0.0
        self._advance()
        self._history.clear()
        self._displacement[:] = 0.0
        self._change[:] = 0.0
        self._t = t

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample; arguments as of :meth:`~contact_estimation.filters.observer.Observer.step`."""
        self._q[:], self._dq[:], self._dt[0] = q, dq, dt
        self._tau[:] = self._friction.take(dt, q, dq, tau)
        self._advance()
        self._t += dt
        self._difference()

    def _difference(self) -> None:
        """Change of force and position over the window, in base axes (eq. 28)."""
        now, history = (self._t, self._out["wrench"][:3].copy(), self._out["position"].copy()), self._history
        history.append(now)
        while self._t - history[0][0] > self.settings.window + 1e-9:
            history.popleft()
        _, force, start = history[0]
        np.subtract(now[1], force, out=self._change)
        np.subtract(now[2], start, out=self._displacement)

    def estimate(self) -> Estimate:
        """Return the estimate after the last sample.

        Its stiffness vector holds the first differences along each of the base axes.
        """
        out = {name: values.copy() for name, values in self._out.items()}
        stiffness = np.abs(self._change) / np.maximum(np.abs(self._displacement), self.settings.min_displacement)
        contact = ContactState(
            "tcp", float("nan"), stiffness, np.full(3, np.nan), np.zeros(3), out["position"], np.zeros((9, 9))
        )
        return Estimate(
            t=self._t,
            q=self._q.copy(),
            dq=self._dq.copy(),
            tau_ext=self._state["w"][: self.arm.n].copy(),
            force_base=out["wrench"][:3],
            force_tcp=out["force_tcp"],
            torque_tcp=out["torque_tcp"],
            force_covariance=out["force_covariance"].reshape(3, 3),
            contacts=(contact,),
            mode="unknown",
        )
