"""The generalised-momentum observer, the baseline that needs no contact model.

Textbook form (De Luca and Mattone 2005), discrete: with the momentum p = M(q) dq,
    r+ = K_O (p+ - p0 - sum of h (tau + C^T dq - G - B dq + r)),
so that r follows tau_e with bandwidth K_O. C^T dq - G comes from dM/dt dq - C dq - G, with dM/dt dq by its directional
derivative. ``printed`` is paper 1, eq. 26 as it stands, r+ = K_O (M dq - h (r - tau_e)) with tau_e = -(tau - C - G)
there, which adds the momentum itself every step instead of its increment; it is offered for comparison only.

With ``drives`` the calibrated friction (viscous beyond B, Coulomb with presliding, bias) is taken off the torque first:
the law and the numbers the contact bank starts from, but nothing that adapts them.
"""

from __future__ import annotations

from collections import deque

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.dynamics.momentum import momentum_terms
from contact_estimation.filters.bank.settings import DriveSettings, load_drive_settings
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import MomentumSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import friction_torque, presliding_step


def build_step(arm: Arm) -> ca.Function:
    """Per sample: momentum M dq, its drift C^T dq - G - B dq, rigid-body bias C dq + G, TCP pose and Jacobian."""
    q, dq = ca.SX.sym("q", arm.n), ca.SX.sym("dq", arm.n)
    kin = arm.kinematics(q)
    momentum, drift, bias = momentum_terms(arm, kin, dq)
    rotation, position = arm.tcp(kin)
    outputs = {
        "p": momentum,
        "drift": drift,
        "bias": bias,
        "position": position,
        "rotation": rotation,
        "jacobian": kin.jacobian(arm.tcp_frame),
    }
    return ca.Function("momentum_terms", [q, dq], [ca.densify(o) for o in outputs.values()], ["q", "dq"], list(outputs))


class FrictionTrack:
    """Calibrated friction along a motion: presliding states on positions that were low-passed and went through a
    play."""

    def __init__(self, drives: DriveSettings):
        self._drives = drives
        self._length = np.maximum(drives.friction.presliding, 1e-6)

    def reset(self, q: np.ndarray) -> None:
        """Friction at rest at ``q`` (n,): which way the joints came from is not known."""
        self._smooth, self._behind, self._sliding = q.copy(), q.copy(), np.zeros(len(q))

    def torque(self, dt: float, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Friction torque (n,) [Nm] that the drives overcome at the next sample."""
        drives = self._drives
        self._smooth += (1.0 - np.exp(-2 * np.pi * drives.position_filter * dt)) * (q - self._smooth)
        moved = np.clip(self._behind, self._smooth - drives.play, self._smooth + drives.play)
        self._sliding = presliding_step(self._sliding, moved - self._behind, self._length)
        self._behind = moved
        return friction_torque(drives.friction, dq, self._sliding)


class MomentumObserver:
    """External joint torque from the momentum residual; TCP force (J^T)^+ r (paper 1, eq. 27); stiffness by eq. 28 /
    32."""

    def __init__(self, arm: Arm, settings: MomentumSettings, name: str = "momentum"):
        self.name, self.arm, self.settings = name, arm, settings
        self._terms = compile_function(build_step(arm))
        self.backend = self._terms.backend
        self._friction = None
        if settings.drives is not None:
            drives = load_drive_settings(arm.name if settings.drives == "robot" else settings.drives)
            drives.check_joints(arm.n, arm.name)
            self._friction = FrictionTrack(drives)
        self._residual = np.zeros(arm.n)
        self._integral = np.zeros(arm.n)
        self._history: deque = deque()
        self._displacement = np.zeros(3)
        self._change = np.zeros(3)
        self._wrench = np.zeros(6)

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` with a zero residual."""
        self._evaluate(q, np.zeros(self.arm.n))
        self._residual[:] = 0.0
        self._integral[:] = self._terms.outputs["p"]
        self._history.clear()
        self._displacement[:] = 0.0
        self._change[:] = 0.0
        self._wrench[:] = 0.0
        self._t = t
        if self._friction is not None:
            self._friction.reset(np.asarray(q, float))

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample."""
        self._evaluate(q, dq)
        if self._friction is not None:
            tau = tau - self._friction.torque(dt, q, dq)
        out, gain = self._terms.outputs, self.settings.gain
        if self.settings.form == "textbook":
            # Implicit in r, so that the observer is stable for every gain: r+ = K_O (p+ - integral - h (drift + tau +
            # r+)).
            self._integral += dt * (out["drift"] + tau)
            self._residual[:] = gain * (out["p"] - self._integral) / (1.0 + gain * dt)
            self._integral += dt * self._residual
        else:
            tau_e = out["bias"] - tau
            self._residual[:] = gain * (out["p"] - dt * (self._residual - tau_e))
        self._t += dt
        self._difference()

    def _evaluate(self, q, dq):
        self._terms.inputs["q"][:] = q
        self._terms.inputs["dq"][:] = dq
        self._terms()

    def _difference(self):
        """Change of force and position over the window, in base axes (eq. 28)."""
        position = self._terms.outputs["position"].copy()
        self._update_wrench()
        self._history.append((self._t, self._wrench[:3].copy(), position))
        while self._t - self._history[0][0] > self.settings.window + 1e-9:
            self._history.popleft()
        _, force, start = self._history[0]
        self._change[:] = self._history[-1][1] - force
        self._displacement[:] = position - start

    def _update_wrench(self) -> None:
        """(J^T)^+ r: force and torque (6,) at the TCP in base axes; the torque is zero where a pure force is asked
        for."""
        rows = 3 if self.settings.wrench == "force" else 6
        jacobian = self._terms.outputs["jacobian"].reshape(6, self.arm.n, order="F")[:rows]
        square = jacobian @ jacobian.T
        square.flat[:: rows + 1] += 1e-9 * square.trace()  # keeps a singular posture finite
        self._wrench[:rows] = np.linalg.solve(square, jacobian @ self._residual)

    def estimate(self) -> Estimate:
        """The estimate after the last sample; its stiffness vector holds the per-axis first differences in base
        axes."""
        wrench = self._wrench
        rotation = self._terms.outputs["rotation"].reshape(3, 3, order="F").copy()
        position = self._terms.outputs["position"].copy()
        stiffness = np.abs(self._change) / np.maximum(np.abs(self._displacement), self.settings.min_displacement)
        contact = ContactState(
            "tcp", float("nan"), stiffness, np.full(3, np.nan), np.zeros(3), position, np.zeros((9, 9))
        )
        force_tcp = rotation.T @ wrench[:3]
        return Estimate(
            t=self._t,
            q=self._terms.inputs["q"].copy(),
            dq=self._terms.inputs["dq"].copy(),
            tau_ext=self._residual.copy(),
            force_base=wrench[:3].copy(),
            force_tcp=force_tcp,
            torque_tcp=rotation.T @ wrench[3:],
            force_covariance=np.full((3, 3), np.nan),
            contacts=(contact,),
            mode="unknown",
        )
