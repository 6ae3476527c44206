"""The multiple-shooting problem of paper 2 (eq. 27-31): one stage, repeated H times.

    min   sum_k sum_m mu_m ( sum of cost terms at (x_mk, u_k) )
    s.t.  x_{m,k+1} = f_m(x_mk, u_k),  ||F_s,mk|| <= F_max,  q and dq in bounds

for contact modes m of probability mu_m with a common equilibrium trajectory; with one mode this is eq. 27. Values that
change at run time (contacts, mode probabilities, targets, weights) are parameters.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.contact import ParallelContacts
from contact_estimation.control.mpc import costs
from contact_estimation.control.mpc.settings import MpcSettings
from contact_estimation.control.mpc.stage import Stage
from contact_estimation.exceptions import ConfigError, shape_error
from contact_estimation.robot import Arm

#: [N] smooths the norm of the spring force at zero, where it has no derivative.
_NORM_SOFTENING = 1e-3


def cost_terms(settings: MpcSettings) -> list[costs.CostTerm]:
    """Return the cost terms of a task's settings."""
    weights = settings.weights
    terms = [
        costs.Velocity([weights.velocity] * 3 + [weights.angular_velocity] * 3),
        costs.ForceError(weights.force),
        costs.PositionError(weights.position),
        costs.SpringForce(weights.spring),
        costs.JointMargin(weights.joint_margin),
        costs.JointTorque(weights.joint_torque),
    ]
    if weights.force_rate > 0:
        terms.append(costs.ForceRate([weights.force_rate] * 3))
    if settings.orientation:
        terms += [costs.AttitudeError(weights.attitude), costs.SpringMoment(weights.moment)]
    return terms


class MpcProblem:
    """Expressions of the stage and the numbers its parameters have.

    Args:
        arm: the robot.
        settings: the task.
        extra: further cost terms.

    Attributes:
        stage: the symbolic stage.
        horizon: H, the number of stages with a control.
        nx: size of the state.
        nu: size of the control.
        ng: number of limits of a stage.
        parameters: (H + 1, n_p) their values per stage, the rows handed to the solvers. The last state is a stage
            without control; its weights of terms that are not ``terminal`` are zero.
        lower: bound of the state (nx,).
        upper: bound of the state (nx,).
    """

    def __init__(self, arm: Arm, settings: MpcSettings, extra: Sequence[costs.CostTerm] = ()) -> None:
        self.arm, self.settings = arm, settings
        self.contacts = ParallelContacts(arm, settings.contacts)
        self.terms = [*cost_terms(settings), *extra]
        names = [term.name for term in self.terms]
        if len(set(names)) != len(names):
            raise ConfigError(f"cost terms need different names, found {names}")
        self.stage = stage = Stage(arm, self.contacts, settings.closed_contacts(), settings.orientation)
        self.horizon, self.nx, self.nu = settings.horizon, stage.x.numel(), stage.u.numel()
        self._residuals()
        self._limits()
        self.p = ca.vertcat(*stage.parameters.symbols.values())
        self._slices, start = {}, 0
        for name, symbol in stage.parameters.symbols.items():
            self._slices[name] = slice(start, start + symbol.numel())
            start += symbol.numel()
        self.parameters = np.zeros((self.horizon + 1, start))
        bound = np.concatenate([arm.upper, arm.velocity_limit])
        self.upper = np.tile(bound, len(stage.modes))
        self.lower = np.tile(np.concatenate([arm.lower, -arm.velocity_limit]), len(stage.modes))
        self._fill()

    # -- symbols --

    def _residuals(self) -> None:
        parameters, modes = self.stage.parameters, self.stage.modes
        roots = parameters.get("mode_root", len(modes))
        #: Weighted residuals of a stage: the cost is their sum of squares.
        self.residual = ca.vertcat(
            *[roots[i] * term.weighted(mode, parameters) for i, mode in enumerate(modes) for term in self.terms]
        )
        self._not_terminal = {f"{term.name}_weight" for term in self.terms if not term.terminal}

    def _limits(self) -> None:
        """Spring force (and moment) of every mode over its limit."""
        get, vectors, limits = self.stage.parameters.get, [], []
        for mode in self.stage.modes:
            vectors.append(mode.spring)
            limits.append(get("max_force", 1))
            if self.settings.orientation:
                vectors.append(mode.moment)
                limits.append(get("max_moment", 1))
        self.limited, self.ng = vectors, len(vectors)
        #: ||F|| - F_max <= 0.
        self.norms = ca.vertcat(
            *[ca.sqrt(ca.dot(v, v) + _NORM_SOFTENING**2) - limit for v, limit in zip(vectors, limits)]
        )

    @property
    def cost(self) -> ca.SX:
        """Cost of a stage."""
        return ca.dot(self.residual, self.residual)

    # -- numbers --

    def _fill(self) -> None:
        s, arm = self.settings, self.arm
        gains = s.impedance
        stiffness, turn = np.array(gains.stiffness), np.array(gains.rotational_stiffness)
        for term in self.terms:
            self.set(f"{term.name}_weight", term.weight)
        values = {
            "h": s.dt,
            "stiffness": stiffness,
            "damping": gains.damping_factor * np.sqrt(stiffness),
            "turn_stiffness": turn,
            "turn_damping": gains.rotational_damping_factor * np.sqrt(turn),
            "max_force": s.safety.force_margin * gains.max_force,
            "max_moment": s.safety.force_margin * gains.max_torque,
            "rotation": np.eye(3).ravel(),
            "force_target": s.force,
            "joint_lower": arm.lower + s.joint_margin,
            "joint_upper": arm.upper - s.joint_margin,
            "most_torque": s.torque_share,
            # A joint without an effort limit has none here either.
            "per_effort": np.divide(1.0, arm.effort_limit, out=np.zeros(arm.n), where=arm.effort_limit > 0),
        }
        for name, value in values.items():
            if name in self._slices:
                self.set(name, value)
        self.set_mode_probabilities({mode.name: 1.0 for mode in self.stage.modes[:1]})
        self.set_contacts(
            np.array(
                [
                    value
                    for c in s.contacts
                    for part in (
                        c.stiffness,
                        np.zeros(3) if isinstance(c.rest, str) else c.rest,
                        c.point,
                        [mean for _, mean, _ in c.law_prior],
                    )
                    for value in part
                ]
            )
        )

    def set(self, name: str, value: ArrayLike) -> None:
        """Set a parameter.

        Args:
            name: of the parameter.
            value: (size,) or a scalar for all stages, or one row per stage (H + 1, size).

        Raises:
            ConfigError: unknown parameter (the nearest is named) or wrong shape.
        """
        if name not in self._slices:
            near = difflib.get_close_matches(name, self._slices, n=1, cutoff=0.0)
            raise ConfigError(
                f"the MPC has no parameter '{name}' (nearest: '{near[0]}'); it has {', '.join(self._slices)}"
            )
        place = self.parameters[:, self._slices[name]]
        value = np.asarray(value, float)
        if value.shape not in ((), (1,), place.shape[1:], place.shape):
            raise shape_error("MpcProblem", name, value.shape, place.shape[1:])
        place[:] = value
        if name in self._not_terminal:
            place[-1] = 0.0

    def columns(self, name: str) -> slice:
        """Columns of ``parameters`` that hold a parameter.

        Args:
            name: of the parameter.
        """
        return self._slices[name]

    def get(self, name: str) -> np.ndarray:
        """Values (H + 1, size) of a parameter.

        Args:
            name: of the parameter.
        """
        return np.asarray(self.parameters[:, self._slices[name]].copy())

    def set_contacts(self, phi_si: np.ndarray) -> None:
        """Set the contacts.

        Args:
            phi_si: per contact stiffness [N/m], rest [m, base], point [m, TCP], and the parameters of its law [SI];
                for all stages, or one row per stage (H + 1, size).
        """
        self.set("phi", np.asarray(phi_si, float) / self.contacts.scale)

    def set_mode_probabilities(self, mode_probabilities: dict[str, float]) -> None:
        """Set the probabilities of the modes by name; they are normalised over the modes of the problem.

        If all of them are zero, the first mode has probability one: an observer without modes names none.

        Args:
            mode_probabilities: mode -> probability; a mode without one has zero.
        """
        values = np.array([max(mode_probabilities.get(mode.name, 0.0), 0.0) for mode in self.stage.modes])
        if not values.sum() > 0:
            values[0] = 1.0
        self.set("mode_root", np.sqrt(values / values.sum()))

    def stack(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """State (nx,) in which every mode's arm is at ``q``, ``dq`` (n,)."""
        return np.asarray(np.tile(np.concatenate([q, dq]), len(self.stage.modes)))
