"""Prediction and update of one filter of the bank with a block of samples: sequential, re-linearised at every scalar, gated.

Measurements: m elastic channels y = o + (tau_e - G) / k, then n torque channels y = tau_e - (b + c s + v). An innovation beyond the gate has
its noise raised until it lies on the gate: an outlier (the torque spikes of every stop) moves the state a little, never far, and the
likelihood stays finite. The contact parameters of open contacts return to their prior, anchored where the arm is: when the contact
closes, it closes there.
"""

from __future__ import annotations

import casadi as ca

from contact_estimation.dynamics import symmetric
from contact_estimation.filters.bank.contact_law import ContactForces
from contact_estimation.filters.bank.layout import CONTACT_SIZE, BankLayout
from contact_estimation.filters.kalman import pack, packed_size, unpack
from contact_estimation.robot import Arm

#: Largest change of ln K by one scalar: at first touch the linearisation must not fling it.
_STEP = 0.7


def build_update(arm: Arm, layout: BankLayout) -> ca.Function:
    """Update of one mode's filter.

    Inputs: x (N,), P (packed), decay, noise (N,) of the prediction; y, R (m + n,) measurements and variances; q, s (n,) positions and
    presliding states of the block; closed (I,); theta, basis (9 I,); prior, spread (N,) mean and variance of open contacts; touch (I,)
    one where the rest is where the contact closes; gate. Outputs: x_next, P_next, log_likelihood, ratios (m + n,): innovation squared over
    its variance, before gating.
    """
    n, m, size, count = arm.n, layout.m, layout.size, len(layout.contact)
    sym = ca.SX.sym
    x_in, packed, decay, noise = sym("x", size), sym("P", packed_size(size)), sym("decay", size), sym("noise", size)
    y, variance = sym("y", m + n), sym("R", m + n)
    q, s, closed = sym("q", n), sym("s", n), sym("closed", count)
    theta, basis = sym("theta", CONTACT_SIZE * count), sym("basis", 9 * count)
    prior, spread, touch, gate = sym("prior", size), sym("spread", size), sym("touch", count), sym("gate")
    kin = arm.kinematics(q)
    gravity = arm.body.gravity_torque(kin)
    at = sym("at", size)
    torque = ContactForces(arm, layout, kin, at, theta, basis).joint_torque(closed)
    channels = [at[layout.offset.start + k] + (torque[j] - gravity[j]) * ca.exp(-at[layout.elastic.start + k])
                for k, j in enumerate(layout.elastic_joints)]
    channels += [torque[j] - at[layout.bias.start + j] - at[layout.coulomb.start + j] * s[j] - at[layout.deviation.start + j]
                 for j in range(n)]
    x = decay * x_in
    covariance = symmetric(unpack(packed, size) * (decay @ decay.T) + ca.diag(noise))
    log_likelihood, ratios = 0, []
    limited = [where.start for slots, where in zip(layout.estimated, layout.contact) if slots and slots[0] == 0]
    for k, channel in enumerate(channels):
        predicted, row = ca.substitute([channel, ca.jacobian(channel, at).T], [at], [x])
        innovation = y[k] - predicted
        cross = covariance @ row
        plain = ca.dot(row, cross) + variance[k]
        ratio = innovation**2 / plain
        total = plain + variance[k] * (ca.fmax(ratio / gate**2, 1) - 1)
        step = cross * (innovation / total)
        for index in limited:
            step[index] = ca.fmin(ca.fmax(step[index], -_STEP), _STEP)
        x = x + step
        covariance = symmetric(covariance - cross @ cross.T / total)
        log_likelihood -= 0.5 * (ca.log(total) + innovation**2 / total)
        ratios.append(ratio)
    x, covariance = _reopen(arm, layout, kin, x, covariance, closed, theta, basis, prior, spread, touch)
    names = ["x", "P", "decay", "noise", "y", "R", "q", "s", "closed", "theta", "basis", "prior", "spread", "touch", "gate"]
    inputs = [x_in, packed, decay, noise, y, variance, q, s, closed, theta, basis, prior, spread, touch, gate]
    return ca.Function("bank_update", inputs, [ca.densify(x), pack(covariance), log_likelihood, ca.vertcat(*ratios)], names,
                       ["x_next", "P_next", "log_likelihood", "ratios"])



def _reopen(arm, layout, kin, x, covariance, closed, theta, basis, prior, spread, touch):
    """Contact entries of open contacts at their prior, uncorrelated with everything; the rest where the point is now."""
    size = layout.size
    keep, mean = ca.SX.ones(size), ca.SX(prior)
    at_prior = ContactForces(arm, layout, kin, prior, theta, basis)
    for i, (slots, where) in enumerate(zip(layout.estimated, layout.contact)):
        keep[where] = closed[i]
        if 1 in slots:
            index = where.start + slots.index(1)
            here = ca.dot(at_prior.normals[i], at_prior.points[i])
            mean[index] = touch[i] * here + (1 - touch[i]) * prior[index]
    x = keep * x + (1 - keep) * mean
    return x, symmetric(covariance * (keep @ keep.T) + ca.diag((1 - keep) * spread))
