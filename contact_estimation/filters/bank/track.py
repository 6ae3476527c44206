"""What is followed at the full sample rate between two updates of the bank: friction states, momentum, elastic deflection.

Over a block of length T the equation of motion integrates exactly to
    (p_end - p_start) / T - mean(tau + C^T dq - G - B dq) = mean(tau_e) - mean(friction beyond B dq),    p = M dq,
so the block's torque measurement needs no acceleration and no differentiated noise inside the block.

The encoder noise is followed from second differences of the position, (q - 2 q' + q'')^2 / 6, whose share of motion is ddq dt^2: a few
microradians at 1 rad/s^2 and 500 Hz. With it the play grows, so that noisy encoders do not pump the presliding states.
"""

from __future__ import annotations

import casadi as ca

from contact_estimation.dynamics.momentum import momentum_terms
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import presliding_step

#: Vectors of the track's state, in its order.
SMOOTH, BEHIND, SLIDING, DRIFT, TRAVELLED, DEFLECTED, LAST, BEFORE, NOISE = range(9)
STATES = 9
#: [s] The encoder noise is averaged over about this.
_NOISE_TIME = 0.5
#: The play is at least this many standard deviations of the encoder noise.
PLAY_STD = 1.2


def build_track(arm: Arm) -> ca.Function:
    """One sample.

    State w (9 n): low-passed positions, positions behind the play, presliding states, integral of tau + C^T dq - G - B dq,
    integral of dq, sum of (q - integral of dq) dt, the last two positions, variance of the encoder noise.
    Further inputs: q, dq, tau (n,), dt, gain (of the low-pass), play, length (n,).
    Outputs: w_next, momentum (n,).
    """
    n = arm.n
    w, q, dq, tau = ca.SX.sym("w", STATES * n), ca.SX.sym("q", n), ca.SX.sym("dq", n), ca.SX.sym("tau", n)
    dt, gain, play, length = ca.SX.sym("dt"), ca.SX.sym("gain"), ca.SX.sym("play", n), ca.SX.sym("length", n)
    smooth, behind, sliding, drift, travelled, deflected, last, before, noise = ca.vertsplit(w, n)
    kin = arm.kinematics(q)
    momentum, momentum_drift, _ = momentum_terms(arm, kin, dq)
    smooth = smooth + gain * (q - smooth)
    noise = noise + ca.fmin(dt / _NOISE_TIME, 1) * ((q - 2 * last + before) ** 2 / 6 - noise)
    width = ca.fmax(play, PLAY_STD * ca.sqrt(noise))
    moved = ca.fmin(ca.fmax(behind, smooth - width), smooth + width)
    sliding = presliding_step(sliding, moved - behind, length)
    drift = drift + dt * (tau + momentum_drift)
    travelled = travelled + dt * dq
    deflected = deflected + dt * (q - travelled)
    following = ca.vertcat(smooth, moved, sliding, drift, travelled, deflected, q, last, noise)
    return ca.Function("bank_track", [w, q, dq, tau, dt, gain, play, length], [following, momentum],
                       ["w", "q", "dq", "tau", "dt", "gain", "play", "length"], ["w_next", "momentum"])
