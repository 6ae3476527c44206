"""One stage of the MPC: the arm under Cartesian impedance, coupled to its contacts (paper 2, eq. 12, 26, 29).

The controller compensates gravity and Coriolis torque. Impedance, contacts and friction then move the arm:

    M delta = J^T (F_s - D dx) + J_w^T (m_s - D_w w) + sum J_i^T F_i - B dq + d,     F_s = K_imp (x_0 - x)

d (n,) is the remaining joint torque (friction, gravity error, a null-space spring), estimated from the balance of
torques. It makes tracking offset-free (Pannocchia and Rawlings 2003). It acts at the joints and not at the TCP: on a
stiff surface an orientation error of a milliradian changes the force by newtons.

The control is the spring force F_s instead of x_0. This change of variables (x_0 = x + F_s / K_imp) turns eq. 31 into a
ball around zero. A stage holds F_s: the controller commands x_0 anew, from where the arm then is, several times a
stage. A stage of 40 ms is long for a stiff contact. The other springs and dampers therefore act with their linearised
value at the end of the stage, contacts in their axes E: E^T F_i - h S_i E^T (J_i dq+ + h/2 dJ_i/dt dq - v_i). v_i is
the velocity at which the contact's rest moves. Joints that turn steadily lead the tool along a curve, whose height over
h decides on a stiff surface: 5 um at 40 mm/s. The spring to a wanted attitude is given that of the stage's end. S_i
is the diagonal of the contact law's derivative by depth and slip, where it is positive. A force that falls with depth
acts with its value at the start, so the matrix stays positive definite. For the spring S_i is ||K_i|| n n^T. For h -> 0
this is the step of :mod:`contact_estimation.dynamics`. Unlike that step, it stays stable when an estimate reports a
wall ten times stiffer.
"""

from __future__ import annotations

import casadi as ca

from contact_estimation.contact import ParallelContacts
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.robot import Arm


class Parameters:
    """Names and sizes of what a solve is given beside the state; filled while the stage is written down."""

    def __init__(self) -> None:
        self.symbols: dict[str, ca.SX] = {}

    def get(self, name: str, size: int) -> ca.SX:
        """Return the symbol (size,) of a parameter, made at the first call.

        Args:
            name: of the parameter.
            size: number of its entries.
        """
        if name not in self.symbols:
            self.symbols[name] = ca.SX.sym(name, size)
        return self.symbols[name]


class Mode:
    """One contact mode of a stage: its state [q; dq], which contacts are closed in it, and what cost terms see.

    Args:
        name: of the mode.
        arm: the robot.
        contacts: all contacts of the problem.
        closed: which of them are closed.
        parameters: symbols beside state and control.

    Attributes:
        q: symbol (n,) [rad].
        dq: symbol (n,) [rad/s].
        x: TCP position (3,) [m], base frame.
        dx: TCP velocity (3,) [m/s], base axes.
        rotation: TCP rotation (3, 3), base frame.
        w: TCP angular velocity (3,) [rad/s], base axes.
        forces: contact forces (3,) [N] of the environment ON the robot, base axes, one per closed contact.
        force: their sum (3,) [N].
        force_rate: its derivative by time (3,) [N/s], by the contacts' slopes.
        spring: force (3,) [N] of the impedance's spring, base axes.
        moment: moment (3,) [Nm] of its rotational spring, base axes.
        next: state after the stage (2 n,).
    """

    def __init__(
        self, name: str, arm: Arm, contacts: ParallelContacts, closed: list[int], parameters: Parameters
    ) -> None:
        n = arm.n
        self.name, self._arm, self._closed, self._parameters = name, arm, closed, parameters
        self.q, self.dq = ca.SX.sym(f"q_{name}", n), ca.SX.sym(f"dq_{name}", n)
        self.delta = ca.SX.sym(f"delta_{name}", n)
        self.kinematics = arm.kinematics(self.q)
        self.rotation, self.x = arm.tcp(self.kinematics)
        jacobian = self.kinematics.jacobian(arm.tcp_frame)
        self._translation, self._turn = jacobian[:3, :], jacobian[3:, :]
        self.dx, self.w = self._translation @ self.dq, self._turn @ self.dq
        phi = parameters.get("phi", contacts.size)
        rest_velocity = ca.reshape(parameters.get("rest_velocity", 3 * len(contacts.contacts)), 3, -1)  # [m/s]
        all_closed, points = contacts.closed(self.kinematics, phi), contacts.points(self.kinematics, phi)
        #: Jacobian (3, n), slope (3,), force (3,), velocity of the rest (3,) per closed contact; contact axes.
        self._contacts: list[tuple[ca.SX, ca.SX, ca.SX, ca.SX]] = []
        self.forces: list[ca.SX] = []
        rates: list[ca.SX] = []
        for i in closed:
            axes = all_closed[i].axes
            jacobian = axes.T @ self.kinematics.point_jacobian(arm.tcp_frame, points[i])
            slope = ca.sparsify(ca.fmax(all_closed[i].slope, 0))
            moving = axes.T @ rest_velocity[:, i]
            rates.append(axes @ (slope * (moving - jacobian @ self.dq)))
            bend = ca.jtimes(jacobian @ self.dq, self.q, self.dq)  # (3,) [m/s^2] of the point at steady joint speeds
            moving -= 0.5 * parameters.get("h", 1) * bend
            self._contacts.append((jacobian, slope, all_closed[i].force, moving))
            self.forces.append(all_closed[i].force_base)
        self.force = sum(self.forces, ca.SX.zeros(3))
        self.force_rate = sum(rates, ca.SX.zeros(3))

    def attitude_error(self) -> ca.SX:
        """Axis times sine of the angle (3,) from the TCP's attitude to the parameter ``rotation``, base axes."""
        wanted = ca.reshape(self._parameters.get("rotation", 9), 3, 3)
        columns = [ca.cross(self.rotation[:, i], wanted[:, i]) for i in range(3)]
        return 0.5 * (columns[0] + columns[1] + columns[2])

    def build_dynamics(self, spring: ca.SX, moment: ca.SX) -> None:
        """Write down the dynamics under the springs' ``spring`` (3,) [N] and ``moment`` (3,) [Nm]."""
        get, arm, n = self._parameters.get, self._arm, self._arm.n
        self.spring, self.moment = spring, moment
        h, viscous = get("h", 1), ca.SX(arm.motor.viscous)
        damping = get("damping", 3)
        turn_slope = get("turn_damping", 3) + h * get("turn_stiffness", 3)
        dq_next = self.dq + h * self.delta
        still = ca.SX.zeros(n)
        residual = (
            arm.body.rnea(self.kinematics, still, self.delta, gravity=False) + ca.SX(arm.motor.armature) * self.delta
        )
        residual += (
            viscous * dq_next
            + self._translation.T @ (damping * (self._translation @ dq_next) - spring)
            - get("disturbance", n)
        )
        residual += self._turn.T @ (turn_slope * (self._turn @ dq_next) - moment)
        matrix = arm.mass_matrix(self.kinematics) + h * ca.diag(viscous)
        matrix += h * (self._translation.T @ (damping * self._translation) + self._turn.T @ (turn_slope * self._turn))
        for jacobian, slope, force, moving in self._contacts:
            slope = ca.diag(slope)
            residual += jacobian.T @ (h * (slope @ (jacobian @ dq_next - moving)) - force)
            matrix += h**2 * (jacobian.T @ slope @ jacobian)
        #: residual(q, dq, control, delta) = 0 defines delta; it is linear in delta with the symmetric ``matrix``.
        self.residual, self.factor = residual, LDL(matrix)
        self.acceleration = -self.factor.solve(ca.substitute(residual, self.delta, still))
        new = self.dq + h * self.acceleration
        self.next = ca.vertcat(self.q + h * new, new)

    @property
    def spring_torque(self) -> ca.SX:
        """Joint torque (n,) [Nm] of the impedance's springs."""
        torque: ca.SX = self._translation.T @ self.spring + self._turn.T @ self.moment
        return torque

    @property
    def state(self) -> ca.SX:
        """[q; dq] (2 n,)."""
        return ca.vertcat(self.q, self.dq)


class Stage:
    """All modes of one stage under the common control.

    The modes share the equilibrium x_0, not the force: where a second mode's arm is elsewhere, its spring pulls
    differently.

    Args:
        arm: the robot.
        contacts: all contacts of the problem.
        modes: name -> closed contacts.
        orientation: whether the rotation of the equilibrium is a control, too.

    Attributes:
        modes: one :class:`Mode` per contact mode.
        parameters: what the expressions depend on beside state and control.
        u: control: spring force F_s (3,) [N] of the first mode, with ``orientation`` followed by its moment (3,) [Nm].
        x: stacked states (2 n per mode).
        next: stacked states after the stage.
        A: exact derivative of ``next`` by ``x``.
        B: exact derivative of ``next`` by ``u``.
    """

    def __init__(
        self, arm: Arm, contacts: ParallelContacts, modes: dict[str, list[int]], orientation: bool = False
    ) -> None:
        self.arm, self.contacts, self.orientation = arm, contacts, orientation
        self.parameters = Parameters()
        self.h = self.parameters.get("h", 1)
        self.modes = [Mode(name, arm, contacts, closed, self.parameters) for name, closed in modes.items()]
        self.u = ca.SX.sym("u", 6 if orientation else 3)
        first = self.modes[0]
        stiffness, turn_stiffness = self.parameters.get("stiffness", 3), self.parameters.get("turn_stiffness", 3)
        for mode in self.modes:
            spring = self.u[:3] + stiffness * (first.x - mode.x)
            if orientation:
                moment = self.u[3:] + turn_stiffness * (mode.attitude_error() - first.attitude_error())
            else:
                moment = turn_stiffness * mode.attitude_error()
            mode.build_dynamics(
                self.u[:3] if mode is first else spring, self.u[3:] if orientation and mode is first else moment
            )
        self.x = ca.vertcat(*[mode.state for mode in self.modes])
        self.next = ca.vertcat(*[mode.next for mode in self.modes])
        self.A, self.B = self._linearise()

    @property
    def z(self) -> ca.SX:
        """State and control of a stage, stacked."""
        return ca.vertcat(self.x, self.u)

    def _acceleration_derivative(self, mode: Mode) -> ca.SX:
        """D delta / d z by implicit differentiation of the residual: exact, a fraction of AD through the solve."""
        derivative = -mode.factor.solve(ca.densify(ca.jacobian(mode.residual, self.z)))
        return ca.substitute(derivative, mode.delta, mode.acceleration)

    def _linearise(self) -> tuple[ca.SX, ca.SX]:
        n, size, rows = self.arm.n, self.z.numel(), []
        for i, mode in enumerate(self.modes):
            velocity, position = ca.SX(n, size), ca.SX(n, size)
            position[:, 2 * n * i : 2 * n * i + n] = ca.SX.eye(n)
            velocity[:, 2 * n * i + n : 2 * n * (i + 1)] = ca.SX.eye(n)
            velocity = velocity + self.h * self._acceleration_derivative(mode)
            rows += [position + self.h * velocity, velocity]
        full = ca.vertcat(*rows)
        return full[:, : self.x.numel()], full[:, self.x.numel() :]
