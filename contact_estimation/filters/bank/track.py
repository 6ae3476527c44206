"""What is followed at the full sample rate between two updates of the bank: friction states, momentum, elastic
deflection.

Over a block of length T the equation of motion integrates exactly to
    (p_end - p_start) / T - mean(tau + C^T dq - G - B dq) = mean(tau_e) - mean(friction beyond B dq),    p = M dq,
so the block's torque measurement needs no acceleration and no differentiated noise inside the block.

Friction acts where the motor turns. Where the velocity is the motor's, the presliding states follow its integral, not
the position, which bends with the joint: 30 N at the tool move a UR16e's shoulder by 0.6 mrad, four times the breakaway
length, while its motor stands.

The encoder noise is followed from second differences of the position, (q - 2 q' + q'')^2 / 6, whose share of motion is
ddq dt^2: a few microradians at 1 rad/s^2 and 500 Hz. Presliding states that follow the position have a play, which
grows with that noise, so that noisy encoders do not pump them.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.dynamics.momentum import momentum_terms
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import presliding_step

#: Vectors of the track's state, in its order.
SMOOTH, BEHIND, SLIDING, DRIFT, TRAVELLED, DEFLECTED, VISITED, LAST, BEFORE, NOISE, START = range(11)
LOADED, PLACE, LAST_TORQUE, TORQUE_BEFORE, SCATTER = range(11, 16)
STATES = 16
#: [s] The noise of encoders and of blocks' torques is averaged over about this.
_NOISE_TIME = 0.5
#: No block says more of the torque's noise than this many times its present variance: a shock is none.
_SHOCK = 25.0
#: Share of a block's rigid-body torque in the average that the next one is compared with.
_LOADED_GAIN = 0.25
#: The play is at least this many standard deviations of the encoder noise.
PLAY_STD = 1.2


def initial(arm: Arm, q: np.ndarray, motor_side: bool) -> np.ndarray:
    """The track's state (STATES, n) at rest at ``q`` (n,); see :func:`build_track`."""
    w = np.zeros((STATES, arm.n))
    w[[LAST, BEFORE] if motor_side else [LAST, BEFORE, PLACE, SMOOTH, BEHIND]] = q
    w[LOADED] = arm.gravity(q)
    return w


def build_track(arm: Arm, motor_side: bool) -> ca.Function:
    """One sample; ``motor_side``: the velocity is the motors'.

    State w (16 n): low-passed positions (of the motors, from the start, where their velocity is measured), positions
    behind the play, presliding states, integral of tau + C^T dq - G - B dq over the block, integral of dq, integrals of
    q - integral of dq and of q over the block, the last two positions, variance of the encoder noise, momentum at the
    start of the block, average rigid-body torque of the blocks before, mean position of the last (of the motors: where
    they were at its end), the last two torques measured, variance of their noise.
    Further inputs: q, dq, tau (n,), dt, gain (of the low-pass), play, length (n,).
    Outputs: w_next, momentum (n,), known (n,): tau + C^T dq - G - B dq.
    """
    n = arm.n
    w, q, dq, tau = ca.SX.sym("w", STATES * n), ca.SX.sym("q", n), ca.SX.sym("dq", n), ca.SX.sym("tau", n)
    dt, gain, play, length = ca.SX.sym("dt"), ca.SX.sym("gain"), ca.SX.sym("play", n), ca.SX.sym("length", n)
    smooth, behind, sliding, drift, travelled, deflected, visited, last, before, noise, *kept = ca.vertsplit(w, n)
    kin = arm.kinematics(q)
    momentum, momentum_drift, _ = momentum_terms(arm, kin, dq)
    travelled = travelled + dt * dq
    smooth = smooth + gain * ((travelled if motor_side else q) - smooth)
    noise = noise + ca.fmin(dt / _NOISE_TIME, 1) * ((q - 2 * last + before) ** 2 / 6 - noise)
    width = 0 if motor_side else ca.fmax(play, PLAY_STD * ca.sqrt(noise))
    moved = ca.fmin(ca.fmax(behind, smooth - width), smooth + width)
    sliding = presliding_step(sliding, moved - behind, length)
    known = tau + momentum_drift
    drift = drift + dt * known
    deflected = deflected + dt * deflection(q, dq, travelled, dt)
    visited = visited + dt * q
    following = ca.vertcat(smooth, moved, sliding, drift, travelled, deflected, visited, q, last, noise, *kept)
    return ca.Function(
        "bank_track",
        [w, q, dq, tau, dt, gain, play, length],
        [following, momentum, known],
        ["w", "q", "dq", "tau", "dt", "gain", "play", "length"],
        ["w_next", "momentum", "known"],
    )


def deflection(q: ca.SX, dq: ca.SX, travelled: ca.SX, dt: ca.SX) -> ca.SX:
    """q - integral of dq (n,) [rad] by the trapezoidal rule; ``travelled`` is the sum of dt dq up to now. Half a
    sample's way is 1 mrad at 1 rad/s: 40 Nm of an elastic joint."""
    return q - travelled + 0.5 * dt * dq


def still_to_turn(rows: list[ca.SX], length: ca.SX, motor_side: bool) -> ca.SX:
    """By how much (n,) the presliding states would change if the low-pass had followed to the last position; ``rows``
    of the track's state, ``length`` (n,) [rad]."""
    now = rows[TRAVELLED if motor_side else LAST]
    return presliding_step(rows[SLIDING], now - rows[SMOOTH], length) - rows[SLIDING]


def build_block(arm: Arm, layout: BankLayout) -> ca.Function:
    """What a block has measured, and the start of the next one.

    Inputs: w (16 n), momentum (n,) at the end; duration T [s] and count of its samples, nominal [s] its usual length;
    torque_variance (n,), elastic_variance of a block of usual length, usual_noise (variance of the encoder noise that
    the latter includes), velocity_noise [rad/s]; coulomb [Nm], length [rad] (n,) of the friction; model_error, travel,
    lag, play as in :class:`DriveSettings` and :class:`ElasticSettings`. Outputs: y, R (m + n,) measurements and
    variances, q, s (n,) mean positions and presliding states, unsteady (m + n,): by how much the motion of this block
    adds to the variances of the elastic offsets [rad^2] and of the torques' slow deviations [Nm^2]; w_next (16 n).
    """
    n, sym = arm.n, ca.SX.sym
    w, momentum = sym("w", STATES * n), sym("momentum", n)
    duration, count, nominal = sym("duration"), sym("count"), sym("nominal")
    torque_variance, elastic_variance = sym("torque_variance", n), sym("elastic_variance")
    usual_noise, velocity_noise = sym("usual_noise"), sym("velocity_noise")
    coulomb, length = sym("coulomb", n), sym("length", n)
    model_error, travel, lag, play = sym("model_error"), sym("travel"), sym("lag"), sym("play")
    rows = ca.vertsplit(w, n)
    joints = layout.elastic_joints
    q = rows[VISITED] / duration
    y = ca.vertcat(rows[DEFLECTED][joints] / duration, (momentum - rows[START] - rows[DRIFT]) / duration)
    scale = ca.fmax(nominal / duration, 1e-3)  # a shorter block averages fewer samples
    kinematics = arm.kinematics(q)
    inertia = ca.diag(arm.mass_matrix(kinematics))
    elastic = elastic_variance * scale + ca.fmax(rows[NOISE][joints] - usual_noise, 0) / count
    # The deflection is read as that of gravity and contacts: what acceleration adds to it is not trusted, because the
    # velocity signal is filtered and jumps at starts and stops.
    softness = np.exp(-layout.mean[layout.elastic])
    elastic += (softness * ((momentum - rows[START]) / duration)[joints]) ** 2
    jitter = 2 * (inertia * velocity_noise / duration) ** 2
    torque = torque_variance * scale + jitter
    # Friction that turns over faster than the low-pass follows.
    torque += (coulomb * still_to_turn(rows, length, layout.motor_side)) ** 2
    # A velocity that ripples while the arm moves fast makes more noise than at rest; seen from block to block, like
    # that of the encoders.
    measured = y[layout.m :]
    jump = (measured - 2 * rows[LAST_TORQUE] + rows[TORQUE_BEFORE]) ** 2 / 6
    scatter = rows[SCATTER] + ca.fmin(duration / _NOISE_TIME, 1) * (ca.fmin(jump, _SHOCK * torque) - rows[SCATTER])
    torque = ca.fmax(torque, scatter)
    # A model that is right to a share of the rigid-body torque is off by that share of its changes, for as long as they
    # last: over the four blocks of the average, an error keeps its sign.
    load = (momentum - rows[START]) / duration + arm.body.gravity_torque(kinematics)
    change = load - rows[LOADED]
    unmodelled = model_error**2 * ca.fmax(change**2 - 4 * jitter, 0)
    # Gears do not transmit evenly, and the velocity's scale is not exactly that of the position.
    place = rows[TRAVELLED] if layout.motor_side else q
    moved = place - rows[PLACE]
    way = ca.fmax(ca.fabs(moved) - play, 0)
    elastic += (lag * moved[joints] / duration) ** 2
    following = list(rows)
    following[LOADED], following[PLACE] = rows[LOADED] + _LOADED_GAIN * change, place
    following[LAST_TORQUE], following[TORQUE_BEFORE], following[SCATTER] = measured, rows[LAST_TORQUE], scatter
    following[DRIFT] = following[DEFLECTED] = following[VISITED] = ca.SX.zeros(n)
    following[START] = momentum
    inputs = [w, momentum, duration, count, nominal, torque_variance, elastic_variance, usual_noise, velocity_noise]
    inputs += [coulomb, length, model_error, travel, lag, play]
    names = [
        "w",
        "momentum",
        "duration",
        "count",
        "nominal",
        "torque_variance",
        "elastic_variance",
        "usual_noise",
        "velocity_noise",
        "coulomb",
        "length",
        "model_error",
        "travel",
        "lag",
        "play",
    ]
    unsteady = ca.vertcat(travel**2 * way[joints], unmodelled)
    outputs = [y, ca.vertcat(elastic, torque), q, rows[SLIDING], unsteady, ca.vertcat(*following)]
    return ca.Function(
        "bank_block", inputs, [ca.densify(o) for o in outputs], names, ["y", "R", "q", "s", "unsteady", "w_next"]
    )
