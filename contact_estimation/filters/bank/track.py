"""What is followed at the full sample rate between two updates of the bank: friction states, momentum, elastic deflection.

Over a block of length T the equation of motion integrates exactly to
    (p_end - p_start) / T - mean(tau + C^T dq - G - B dq) = mean(tau_e) - mean(friction beyond B dq),    p = M dq,
so the block's torque measurement needs no acceleration and no differentiated noise inside the block.
"""

from __future__ import annotations

import casadi as ca

from contact_estimation.robot import Arm
from contact_estimation.robot.friction import presliding_step


def build_track(arm: Arm) -> ca.Function:
    """One sample.

    State w (6 n): low-passed positions, positions behind the play, presliding states, integral of tau + C^T dq - G - B dq,
    integral of dq, sum of (q - integral of dq) dt. Further inputs: q, dq, tau (n,), dt, gain (of the low-pass), play, length (n,).
    Outputs: w_next, momentum (n,).
    """
    n = arm.n
    w, q, dq, tau = ca.SX.sym("w", 6 * n), ca.SX.sym("q", n), ca.SX.sym("dq", n), ca.SX.sym("tau", n)
    dt, gain, play, length = ca.SX.sym("dt"), ca.SX.sym("gain"), ca.SX.sym("play", n), ca.SX.sym("length", n)
    smooth, behind, sliding, drift, travelled, deflected = ca.vertsplit(w, n)
    kin = arm.kinematics(q)
    momentum = arm.mass_matrix(kin) @ dq
    bias = arm.inverse_dynamics(kin, dq, ca.SX.zeros(n))
    mass_rate = ca.jtimes(momentum, q, dq)  # (C + C^T) dq
    smooth = smooth + gain * (q - smooth)
    moved = ca.fmin(ca.fmax(behind, smooth - play), smooth + play)
    sliding = presliding_step(sliding, moved - behind, length)
    drift = drift + dt * (tau + mass_rate - bias - ca.SX(arm.motor.viscous) * dq)
    travelled = travelled + dt * dq
    deflected = deflected + dt * (q - travelled)
    following = ca.vertcat(smooth, moved, sliding, drift, travelled, deflected)
    return ca.Function("bank_track", [w, q, dq, tau, dt, gain, play, length], [following, momentum],
                       ["w", "q", "dq", "tau", "dt", "gain", "play", "length"], ["w_next", "momentum"])
