"""Momentum preintegration: integration at the full sample rate between two updates of the filters.

Over a block of length T the equation of motion integrates exactly to
    (p_end - p_start) / T - mean(tau + C^T dq - G - B dq) = mean(tau_e) - mean(friction beyond B dq),    p = M dq,
so the block's torque measurement needs no acceleration and no differentiated noise inside the block. Here tau is the
measured torque times its calibrated scale. Calibrated viscous friction V dq + A |dq| is subtracted together with B dq.

Friction acts on the motor side. If the velocity is the motor's, the presliding states follow its integral. They do not
follow the position, which includes the bending of the joint: 25 Nm bend a UR16e's shoulder of 39 kNm/rad by 0.6 mrad,
four times the breakaway length, while its motor stands still.

The encoder noise is estimated from second differences of the position, (q - 2 q' + q'')^2 / 6. Motion adds ddq dt^2 to
the difference: 4 urad at 1 rad/s^2 and 500 Hz. Presliding states that follow the position have a deadband.
It grows with the noise, so that noisy encoders do not drive these states. Those that follow a velocity stand still
within its noise.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.codegen import CompiledFunction, DoubleBuffer, Parts, bind_recursion, named_function, symbols
from contact_estimation.dynamics.momentum import momentum_terms
from contact_estimation.filters.imm.signals import shapes
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.unknown import held_share, push_covariance, push_regression
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import deadband_step, noise_variance, presliding_slope, presliding_step
from contact_estimation.robot.rigid_body import Kinematics

#: [rad] Added to both sides of a ratio of ways, so that a speed of zero gives one, also at rest.
_NO_WAY = 1e-12
#: [s] Memory of the way that shows a contact's stiffness.
_WAY_TIME = 1.0
#: [s] Low-pass of that way: joints that stick and slip tremble faster.
_TREMBLE_TIME = 0.05


def sample_state(layout: StateLayout) -> Parts:
    """Return the parts of the state ``w`` that samples and blocks carry on.

    Positions are those of the motors, from the start, where their velocity is measured.
    """
    n, contacts = layout.n, len(layout.contacts)
    return Parts(
        filtered=n,  # [rad] positions behind the low-pass
        followed=n,  # [rad] positions behind the deadband
        presliding=n,  # friction states
        presliding_slope=n,  # their derivatives by the logarithm of the breakaway length
        impulse=n,  # [Nms] integral of the known torque (build_sample) over the block
        travelled=n,  # [rad] integral of dq
        deflected=n,  # [rad s] integral of the deflection over the block
        visited=n,  # [rad s] integral of q over the block
        last=n,  # [rad] q of the last sample
        before_last=n,  # [rad] q of the one before
        encoder_noise=n,  # [rad^2] variance of the positions
        turned=n,  # way of the presliding states over the block
        momentum_start=n,  # [Nms] at the start of the block
        load_average=n,  # [Nm] rigid-body torque of the blocks before
        speed_average=n,  # [rad/s] velocity of the blocks before
        place=n,  # [rad] where the last block was
        moved=n,  # [rad] how far the last block went
        torque_last=n,  # [Nm] measured by the last block
        torque_before_last=n,  # [Nm] measured by the one before
        torque_scatter=n,  # [Nm^2] variance of their noise
        dq_last=n,  # [rad/s] of the last sample
        velocity_scatter=n,  # [rad^2/s^2] variance of its noise now
        velocity_noise=n,  # [rad^2/s^2] the least of these
        unsettled=n,  # what is left of an unknown presliding state, as a share
        unsettled_last=n,  # the same at the start of the block
        tcp_last=12,  # the TCP's pose in the last block
        tcp_followed=3,  # [m] its position behind a deadband of slip_length, base axes
        axes_followed=9,  # its axes, one after the other, behind a deadband of position_deadband of their deviations
        height_last=contacts,  # [m] contact points along their normals in the last block
        height_followed=contacts,  # [m] the same behind a deadband of position_deadband standard deviations
        height_smooth=contacts,  # [m] that, low-passed
        normal_way=contacts,  # [m] as the signal of that name
        turn=contacts,  # [rad] as the signal of that name
    )


def build_sample(arm: Arm, layout: StateLayout) -> ca.Function:
    """Return the function of one sample.

    Inputs: w, and :mod:`.signals`. Outputs: w_next; momentum (n,) [Nms].

    Args:
        arm: the robot.
        layout: parts of the filters' state.
    """
    parts, motor_side = sample_state(layout), layout.motor_side
    names = "q dq tau dt filter_gain noise_time deadband_noise velocity_deadband deadband presliding_length"
    s = symbols(w=parts.size, **shapes(layout, names + " torque_scale viscous asymmetry"))
    w = parts.split(s.w)
    momentum, momentum_drift, _ = momentum_terms(arm, arm.kinematics(s.q), s.dq)
    w.travelled = w.travelled + s.dt * s.dq
    w.filtered = w.filtered + s.filter_gain * ((w.travelled if motor_side else s.q) - w.filtered)
    jump = noise_variance(s.q, w.last, w.before_last)
    w.encoder_noise = w.encoder_noise + ca.fmin(s.dt / s.noise_time, 1) * (jump - w.encoder_noise)
    width = 0 if motor_side else ca.fmax(s.deadband, s.deadband_noise * ca.sqrt(w.encoder_noise))
    followed = deadband_step(w.followed, w.filtered, width)
    step = followed - w.followed
    if motor_side:
        step = _beyond_noise(s, w, step)
    w.presliding_slope = presliding_slope(w.presliding, w.presliding_slope, step, s.presliding_length)
    before, w.presliding = w.presliding, presliding_step(w.presliding, step, s.presliding_length)
    w.turned = w.turned + ca.fabs(w.presliding - before)
    if not motor_side:
        w.unsettled = w.unsettled * ca.exp(-ca.fabs(step) / s.presliding_length)
    w.followed = followed
    torque = s.torque_scale * s.tau - s.viscous * s.dq - s.asymmetry * ca.fabs(s.dq)
    w.impulse = w.impulse + s.dt * (torque + momentum_drift)
    w.deflected = w.deflected + s.dt * deflection(s.q, s.dq, w.travelled, s.dt)
    w.visited = w.visited + s.dt * s.q
    w.last, w.before_last = s.q, w.last
    return named_function("imm_sample", s, {"w_next": parts.join(w), "momentum": momentum})


def _beyond_noise(s: SimpleNamespace, w: SimpleNamespace, step: ca.SX) -> Any:
    """Return the part of a step (n,) [rad] of the low-passed motors' positions that is not noise of their velocity.

    A presliding state forgets over every step to and fro. The integrated noise of a velocity at rest then looks like
    friction that relaxes, hence like a force that grows. The noise is the least scatter seen: at higher speeds it is
    ripple, which moves the friction.
    """
    scatter = (s.dq - w.dq_last) ** 2 / 2
    w.velocity_scatter = w.velocity_scatter + s.filter_gain * (scatter - w.velocity_scatter)
    w.velocity_noise = ca.fmin(w.velocity_noise, w.velocity_scatter)
    w.dq_last = s.dq
    low_passed = ca.sqrt(w.velocity_noise * s.filter_gain / (2 - s.filter_gain))  # [rad/s] behind the low-pass
    return ca.sign(step) * ca.fmax(ca.fabs(step) - s.velocity_deadband * low_passed * s.dt, 0)


def deflection(q: ca.SX, dq: ca.SX, travelled: ca.SX, dt: ca.SX) -> ca.SX:
    """Return q - integral of dq (n,) [rad] by the trapezoidal rule.

    Half a sample's way is 1 mrad at 1 rad/s and 500 Hz: 40 Nm of an elastic joint of 40 kNm/rad.

    Args:
        q: positions (n,) [rad].
        dq: velocities (n,) [rad/s].
        travelled: sum of dt dq up to now (n,) [rad].
        dt: sample interval [s].
    """
    return q - travelled + 0.5 * dt * dq


def pending_presliding(w: SimpleNamespace, length: ca.SX, motor_side: bool) -> Any:
    """Return by how much (n,) the presliding states would change if the low-pass had followed to the last position.

    Args:
        w: parts of the sample state.
        length: breakaway lengths (n,) [rad].
        motor_side: the velocity is the motors'.
    """
    now = w.travelled if motor_side else w.last
    return presliding_step(w.presliding, now - w.filtered, length) - w.presliding


def build_block(arm: Arm, layout: StateLayout) -> ca.Function:
    """Return the function of the end of a block: its measurement, and the start of the next one.

    Inputs: w, and :mod:`.signals`. Outputs: w_next; every measurement of the block among the signals.
    """
    n, parts, joints = arm.n, sample_state(layout), layout.elastic_joints
    names = "momentum duration count torque_variance coulomb_prior presliding_length presliding_spread deadband"
    names += " model_error viscous_std asymmetry_std block elastic_variance usual_noise velocity_noise"
    names += " transmission_error velocity_delay noise_time max_noise_ratio load_blocks link_share friction_error"
    names += " stop_error slip_length push_speed position_deadband disturbance_speed joint_stiffness push_variance"
    s = symbols(w=parts.size, **shapes(layout, names + " theta basis"))
    w = parts.split(s.w)
    q = w.visited / s.duration
    kinematics = arm.kinematics(q)
    inertial = (s.momentum - w.momentum_start) / s.duration  # (n,) [Nm]
    measured = inertial - w.impulse / s.duration
    # The noise of every joint's velocity is in the momentum of each: M (dq + noise).
    jitter = 2 * ca.sum2(arm.mass_matrix(kinematics) ** 2) * (s.velocity_noise / s.duration) ** 2
    place = w.travelled if layout.motor_side else q
    moved = place - w.place
    torque = _torque_variance(s, w, measured, jitter, layout.motor_side)
    change = inertial + arm.body.gravity_torque(kinematics) - w.load_average  # (n,) [Nm]
    faster = moved / s.duration - w.speed_average  # (n,) [rad/s]
    # The model error is a share of the changes of rigid-body torque, for as long as they last. Changes within two
    # standard deviations of the velocity's jitter do not count.
    unmodelled = s.model_error**2 * ca.fmax(change**2 - 4 * jitter, 0)
    for error in _friction_errors(s, w, moved, faster, layout.motor_side):
        unmodelled += error
    elastic = _elastic_variance(s, w, inertial[joints], moved[joints], joints)  # (m,) [rad^2]
    # An error of the friction enters by the torque's share of the information: the deflection measures tau_e as well.
    share = ca.SX.ones(n)
    share[joints] = 1 / (1 + torque.trusted[joints] / (elastic * s.joint_stiffness**2))
    # Gears do not transmit evenly, and the velocity's scale is not exactly that of the position.
    way = ca.fmax(ca.fabs(moved) - s.deadband, 0)[joints]
    outputs = {
        "y": ca.vertcat(w.deflected[joints] / s.duration, measured),
        "R": ca.vertcat(elastic, torque.trusted),
        "q_mean": q,
        "presliding_mean": w.presliding,
        "motion_noise": ca.vertcat(s.transmission_error**2 * way, unmodelled),
        "friction_change": share**2 * unmodelled,
        "friction_moves": _friction_moves(s, moved),
        "push_covariance": (pushes := push_covariance(arm, kinematics, s.push_variance, s.link_share)),
        "push_regression": push_regression(jacobian := kinematics.jacobian(arm.tcp_frame), pushes, s.push_variance),
        "tcp_jacobian": jacobian[:3, :],
    }
    encoders = ca.fmin(w.encoder_noise, s.usual_noise) / s.count  # acceleration adds to the former in fast motion
    outputs |= _tcp_motion(s, w, *arm.tcp(kinematics), ca.sqrt(ca.sum1(jacobian[3:, :] ** 2 @ encoders)))
    turned = ca.reshape((outputs["steady_pose"] - outputs["steady_before"])[3:], 3, 3)
    outputs |= _normal_motion(arm, layout, s, w, kinematics, encoders, turned)
    w.load_average, w.place, w.moved = w.load_average + change / s.load_blocks, place, moved
    w.speed_average += faster / s.load_blocks
    w.torque_last, w.torque_before_last, w.torque_scatter = measured, w.torque_last, torque.scatter
    w.impulse = w.deflected = w.visited = w.turned = ca.SX.zeros(n)
    w.momentum_start = s.momentum
    return named_function("imm_block", s, outputs | {"w_next": parts.join(w)})


def _friction_errors(
    s: SimpleNamespace, w: SimpleNamespace, moved: ca.SX, faster: ca.SX, motor_side: bool
) -> list[ca.SX]:
    """Return what the motion of a block adds to the variance (n,) [Nm^2] of the friction disturbances.

    Args:
        s: inputs of the block.
        w: parts of the sample state; what is left of unknown presliding states follows.
        moved: way of the joints in the block (n,) [rad].
        faster: change of their velocity (n,) [rad/s].
        motor_side: the velocity is the motors'.

    Returns:
        By viscous friction, by Coulomb friction that reverses, and by joints that stop or set off.
    """
    # The coefficients of viscous friction have a standard deviation.
    viscous = (s.viscous_std**2 + s.asymmetry_std**2) * faster**2
    # Coulomb friction that reverses has a relative error: a random walk over the path of the presliding state.
    reversing = (s.friction_error * s.coulomb_prior) ** 2 * w.turned
    # A joint that stops at once springs back, and its friction with it.
    stopped = ca.exp(-ca.fabs(moved) / s.presliding_length)
    stopped *= 1 - ca.exp(-ca.fmax(ca.fabs(w.moved) - ca.fabs(moved), 0) / s.presliding_length)
    # That friction, and the one of a joint that rests at the start, changes again once the joint slides. Where the
    # motors' velocity is measured, the deflection shows it.
    settled = 0 if motor_side else w.unsettled_last**2 - w.unsettled**2
    w.unsettled = w.unsettled_last = ca.fmax(w.unsettled, stopped)
    return [viscous, reversing, (s.stop_error * s.coulomb_prior) ** 2 * (stopped**2 + settled)]


def _tcp_motion(
    s: SimpleNamespace, w: SimpleNamespace, rotation: ca.SX, position: ca.SX, turn_noise: ca.SX
) -> dict[str, ca.SX]:
    """Return the outputs of :func:`build_block` of the TCP's motion; ``w`` follows.

    Args:
        s: inputs of the block.
        w: parts of the sample state.
        rotation: (3, 3) of the TCP.
        position: (3,) of the TCP [m].
        turn_noise: standard deviation of the rotation by the encoders' noise [rad].
    """
    pose = ca.vertcat(position, ca.vec(rotation))
    followed = _follow_vector(w.tcp_followed, position, s.slip_length)
    width = s.position_deadband * turn_noise
    behind = ca.horzsplit(ca.reshape(w.axes_followed, 3, 3))
    axes = ca.vertcat(*[_follow_vector(b, axis, width) for b, axis in zip(behind, ca.horzsplit(rotation))])
    outputs = {
        "push_share": held_share(position - w.tcp_last[:3], s.push_speed * s.duration),
        "tcp_pose": pose,
        "tcp_before": w.tcp_last,
        "slip_direction": (position - followed) / s.slip_length,
        "slid": followed - w.tcp_followed,
        "steady_pose": ca.vertcat(followed, axes),
        "steady_before": ca.vertcat(w.tcp_followed, w.axes_followed),
    }
    w.tcp_last, w.tcp_followed, w.axes_followed = pose, followed, axes
    return outputs


def _follow_vector(behind: ca.SX, vector: ca.SX, width: ca.SX) -> ca.SX:
    """Return what was ``behind`` (3,) a deadband of ``width`` to all sides, now that its input is ``vector`` (3,)."""
    dragged = vector - behind
    return vector - dragged * ca.fmin(width / ca.fmax(ca.norm_2(dragged), _NO_WAY), 1)


def _normal_motion(
    arm: Arm,
    layout: StateLayout,
    s: SimpleNamespace,
    w: SimpleNamespace,
    kinematics: Kinematics,
    encoders: ca.SX,
    turned: ca.SX,
) -> dict[str, ca.SX]:
    """Return the outputs of :func:`build_block` of the contact points' motion along normals; ``w`` follows.

    Args:
        arm: the robot.
        layout: parts of the filters' state.
        s: inputs of the block.
        w: parts of the sample state.
        kinematics: of the arm.
        encoders: variances (n,) of the positions by noise [rad^2].
        turned: change (3, 3) of the TCP's axes beyond that noise.
    """
    rotation, position = arm.tcp(kinematics)
    heights = layout.heights(position, rotation, s.theta, s.basis)
    slopes = layout.height_slopes(arm, kinematics, s.theta, s.basis)
    followed = deadband_step(w.height_followed, heights, s.position_deadband * ca.sqrt(slopes**2 @ encoders))
    within_noise = (heights - w.height_last) - (followed - w.height_followed)
    steadily = ca.fmin(s.duration / _TREMBLE_TIME, 1) * (followed - w.height_smooth)
    leaning = ca.vertcat(*[ca.norm_2(turned.T @ normal) for normal in layout.normals(s.basis)])
    forgotten = ca.fmin(s.duration / _WAY_TIME, 1)
    w.height_last, w.height_followed, w.height_smooth = heights, followed, w.height_smooth + steadily
    w.normal_way += ca.fabs(steadily) - forgotten * w.normal_way
    w.turn += leaning - forgotten * w.turn
    return {"within_noise": within_noise, "normal_way": w.normal_way, "turn": w.turn}


def _elastic_variance(s: SimpleNamespace, w: SimpleNamespace, inertial: ca.SX, moved: ca.SX, joints: list[int]) -> Any:
    """Variance (m,) [rad^2] of the elastic channels."""
    scale = _fewer_samples(s)
    variance = s.elastic_variance * scale + ca.fmax(w.encoder_noise[joints] - s.usual_noise, 0) / s.count
    # Only gravity and contacts explain the deflection. The part of acceleration is uncertain, because the velocity
    # signal is filtered and jumps at starts and stops.
    return variance + (inertial / s.joint_stiffness) ** 2 + (s.velocity_delay * moved / s.duration) ** 2


def _torque_variance(
    s: SimpleNamespace, w: SimpleNamespace, measured: ca.SX, jitter: ca.SX, motor_side: bool
) -> SimpleNamespace:
    """Variances (n,) [Nm^2] of the torque channels: ``trusted``, and the ``scatter`` from block to block."""
    # Friction that reverses faster than the low-pass follows.
    pending = s.coulomb_prior * pending_presliding(w, s.presliding_length, motor_side)
    # Friction that has reversed within an uncertain breakaway length.
    turned = s.coulomb_prior * s.presliding_spread * w.presliding_slope
    expected = s.torque_variance * _fewer_samples(s) + jitter + pending**2 + turned**2
    # The velocity ripple in fast motion causes more noise than there is at rest.
    jump = noise_variance(measured, w.torque_last, w.torque_before_last)
    share = ca.fmin(s.duration / s.noise_time, 1)
    scatter = w.torque_scatter + share * (ca.fmin(jump, s.max_noise_ratio * expected) - w.torque_scatter)
    return SimpleNamespace(trusted=ca.fmax(expected, scatter), scatter=scatter)


def _friction_moves(s: SimpleNamespace, moved: ca.SX) -> Any:
    """Return the share (n,) of their rate at which the friction disturbances change in a block.

    Friction deviates from its law by place and load. At standstill it stays.
    """
    way = ca.fmax(ca.fabs(moved) - s.deadband, 0) + _NO_WAY
    return ca.fmin(way / (s.disturbance_speed * s.duration + _NO_WAY), 1)


def _fewer_samples(s: SimpleNamespace) -> Any:
    """Usual over actual duration: a shorter block averages fewer samples. The bound keeps a gap from being certain."""
    return ca.fmax(s.block / s.duration, 1e-3)


class Preintegration:
    """Samples of a block, and what they measure together.

    Args:
        arm: the robot.
        layout: parts of the filters' state.
        sample: compiled :func:`build_sample`.
        block: compiled :func:`build_block`.
        signals: buffers by name: settings; sample, block and what they measured are added.
        position_filter: bandwidth of the low-pass [Hz].

    Attributes:
        state: the sample state ``w``.
        take: takes the sample in the signals.
    """

    def __init__(
        self,
        arm: Arm,
        layout: StateLayout,
        sample: CompiledFunction,
        block: CompiledFunction,
        signals: dict[str, np.ndarray],
        position_filter: float,
    ) -> None:
        self._arm, self._layout, self._parts = arm, layout, sample_state(layout)
        signals |= {name: sample.inputs[name] for name in ("q", "dq", "tau", "dt", "filter_gain")}
        signals |= {name: block.inputs[name] for name in ("duration", "count")} | sample.outputs | block.outputs
        self._signals, self._bandwidth = signals, 2 * np.pi * position_filter
        self.state = DoubleBuffer(w=self._parts.size)
        self.take: Callable[[], None] = bind_recursion(sample, [self.state], signals)
        self._finish = bind_recursion(block, [self.state], signals)

    @property
    def parts(self) -> SimpleNamespace:
        """Parts of the present sample state (views of the live buffer)."""
        return self._parts.split(self.state["w"])

    def reset(self, q: np.ndarray) -> None:
        """Start at rest at ``q`` (n,) [rad]."""
        self.state.turn = 0
        self.state["w"][:] = 0.0
        w = self.parts
        w.last[:], w.before_last[:], w.load_average[:] = q, q, self._arm.gravity(q)
        w.velocity_scatter[:] = w.velocity_noise[:] = self._signals["velocity_noise"] ** 2
        w.unsettled[:] = w.unsettled_last[:] = 1.0
        position, rotation = self._arm.tcp_pose(q)
        pose = self._signals["tcp_pose"]
        pose[:3], pose[3:], w.tcp_followed[:] = position, rotation.ravel(order="F"), position
        w.tcp_last[:] = pose
        w.axes_followed[:] = pose[3:]
        heights = self._layout.heights(position, rotation, self._signals["theta"], self._signals["basis"])
        w.height_last[:] = w.height_followed[:] = w.height_smooth[:] = np.array(heights).ravel()
        if not self._layout.motor_side:
            w.place[:], w.filtered[:], w.followed[:] = q, q, q

    def start_moving(self, q: np.ndarray, dq: np.ndarray, duration: float) -> None:
        """Start in motion at the first sample: with its momentum, and with friction that has already reversed.

        Args:
            q: positions (n,) [rad] before it.
            dq: velocities (n,) [rad/s].
            duration: for how long the arm is taken to have moved like that [s].
        """
        if np.any(dq):
            w = self.parts
            slid = -np.expm1(-np.abs(dq) * duration / self._signals["presliding_length"])
            w.presliding[:] = np.sign(dq) * slid
            w.unsettled[:] = w.unsettled_last[:] = 1.0 - slid
            w.momentum_start[:] = self._arm.mass(q) @ dq

    def set_interval(self, dt: float) -> None:
        """Prepare for samples every ``dt`` [s]."""
        self._signals["dt"][0] = dt
        self._signals["filter_gain"][0] = 1.0 - np.exp(-self._bandwidth * dt)

    def finish(self, duration: float, count: int) -> None:
        """End a block of ``count`` samples and ``duration`` [s]: its measurement is in the signals."""
        self._signals["duration"][0], self._signals["count"][0] = duration, count
        self._finish()
