"""Cost terms of the MPC: squared residuals of a stage (paper 2, eq. 30, and what the authors' code adds).

A term is a class with a ``residual``. A new one is ten lines:

    class ElbowDown(CostTerm):
        name = "elbow"

        def residual(self, mode, parameters):
            wanted = parameters.get("elbow_target", 1)
            return mode.q[3] - wanted

and then ``MpcController(arm, settings, extra=[ElbowDown(weight=5.0)])``; its parameter is set like every other:
``controller.problem.set("elbow_target", [-2.0])``. Derivatives, solver and warm start include it.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from contact_estimation.control.mpc.stage import Mode, Parameters

#: Keeps the root of a weight differentiable at zero; far below any relevant weight.
_TINY = 1e-24


class CostTerm:
    """weight * ||residual||^2, summed over stages and, weighted by mode probability, over contact modes.

    ``weight`` is the initial value; it is a parameter (``<name>_weight``) and can be changed while running.
    """

    #: Names the weight's parameter; unique within a problem.
    name = "term"
    #: Whether the last state is charged too; a term that reads the control cannot be.
    terminal = True

    def __init__(self, weight: float | Sequence[float] = 1.0) -> None:
        self.weight = weight

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the residual vector.

        Args:
            mode: one contact mode of a stage.
            parameters: ``parameters.get(name, size)`` makes parameters.
        """
        raise NotImplementedError

    def weighted(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return sqrt(weight) * residual.

        Args:
            mode: contact mode of a stage.
            parameters: of the stage, by name.
        """
        residual = self.residual(mode, parameters)
        weight = parameters.get(f"{self.name}_weight", residual.numel())
        return ca.sqrt(weight + _TINY) * residual


class Velocity(CostTerm):
    """TCP velocity [m/s] and angular velocity [rad/s]: Q_v of eq. 30."""

    name = "velocity"

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the twist (6,) [m/s, rad/s] of the TCP, base axes."""
        residual: ca.SX = ca.vertcat(mode.dx, mode.w)
        return residual


class ForceError(CostTerm):
    """Contact force in base axes against ``force_target`` (3,) [N, of the environment ON the robot]: Q_f of eq. 30.

    ``unmodelled_force`` (3,) [N] is what the published force has beside the contact laws along the wanted one. It is
    constant over the horizon, so that no lasting error remains (an output disturbance: Pannocchia and Rawlings,
    Disturbance models for offset-free model-predictive control, 2003).
    """

    name = "force"

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the contact force minus the wanted one (3,) [N], base axes."""
        return mode.force + parameters.get("unmodelled_force", 3) - parameters.get("force_target", 3)


class ForceRate(CostTerm):
    """Rate of the contact force in base axes [N/s]: no error decays faster than sqrt(force_rate / force) [s]."""

    name = "force_rate"

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the rate of the contact force (3,) [N/s], base axes."""
        return mode.force_rate


class PositionError(CostTerm):
    """TCP position against ``position_target`` (3,) [m]."""

    name = "position"

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the position of the TCP minus the wanted one (3,) [m], base frame."""
        return mode.x - parameters.get("position_target", 3)


class SpringForce(CostTerm):
    """Force of the impedance spring [N] beyond what balances the wanted one; keeps the control determined.

    Charged as a whole, it would keep a contact that is taken for soft below its wanted force: there the force hardly
    rises within the horizon.
    """

    name, terminal = "spring", False

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the spring force beyond the wanted push (3,) [N], base axes."""
        return mode.spring + parameters.get("force_target", 3)


class SpringMoment(CostTerm):
    """Moment of the rotational spring [Nm]; used where the orientation is controlled."""

    name, terminal = "moment", False

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the moment of the impedance's spring (3,) [Nm], base axes."""
        return mode.moment


class AttitudeError(CostTerm):
    """Attitude against ``rotation``, axis times sine of the angle; used where the orientation is controlled."""

    name = "attitude"

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return the error of the attitude (3,) [-]: axis times sine of the angle, base axes."""
        return mode.attitude_error()


class JointMargin(CostTerm):
    """Joint positions closer to a limit than ``joint_margin`` [rad]: pushes back before the hard bound is met."""

    name = "joint_margin"

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return how far each joint is inside its margin (n,) [rad]."""
        lower, upper = parameters.get("joint_lower", mode.q.numel()), parameters.get("joint_upper", mode.q.numel())
        return ca.fmax(lower - mode.q, 0) + ca.fmax(mode.q - upper, 0)


class JointTorque(CostTerm):
    """Joint torque of gravity and the impedance's springs beyond a share of the effort limit: a limit with a slack.

    Torque beyond the limit is not executed, and the tool would leave the plan.
    """

    name, terminal = "joint_torque", False

    def residual(self, mode: Mode, parameters: Parameters) -> ca.SX:
        """Return by how much each joint is beyond its share, over its effort limit (n,) [-].

        Gravity is that of the present configuration.
        """
        n = mode.q.numel()
        used = ca.fabs(mode.spring_torque + parameters.get("gravity", n)) * parameters.get("per_effort", n)
        return ca.fmax(used - parameters.get("most_torque", 1), 0)
