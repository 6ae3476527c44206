"""Prediction and update of one filter of the bank with a block of samples: sequential, re-linearised at every scalar,
gated.

Measurements: m elastic channels y = o + (tau_e - G) / k, then n torque channels y = tau_e - (b + c s + v). An
innovation beyond the gate has its noise raised until it lies on the gate: an outlier (the torque spikes of every stop)
moves the state a little, never far, and the likelihood stays finite. The contact parameters of open contacts return to
their prior, anchored where the arm is: when the contact closes, it closes there.
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
#: Probability that a contact that closes where the arm is presses already.
UNDECIDED = 0.5
#: A contact this many standard deviations from the surface is as good as open; the logarithm stays finite.
_FAR = -4.0


def build_update(arm: Arm, layout: BankLayout) -> ca.Function:
    """Update of one mode's filter.

    Inputs: x (N,), P (packed), decay, noise (N,) of the prediction; y, R (m + n,) measurements and variances; q, s (n,)
    positions and presliding states of the block; unsteady (m + n,) what its motion adds to the variances of offsets and
    deviations; closed (I,); theta, basis (9 I,); prior, spread (N,) mean and variance
    of open contacts; touch (I,) one where the rest is where the contact closes; gate; pressed_before (I,). Outputs:
    x_next, P_next, log_likelihood, ratios (m + n,): innovation squared over its variance, before gating; pressed (I,):
    probability that a closed contact presses.
    """
    n, m, size, count = arm.n, layout.m, layout.size, len(layout.contact)
    sym = ca.SX.sym
    x_in, packed, decay, noise = sym("x", size), sym("P", packed_size(size)), sym("decay", size), sym("noise", size)
    y, variance = sym("y", m + n), sym("R", m + n)
    q, s, closed = sym("q", n), sym("s", n), sym("closed", count)
    unsteady = sym("unsteady", m + n)
    theta, basis = sym("theta", CONTACT_SIZE * count), sym("basis", 9 * count)
    prior, spread, touch, gate = sym("prior", size), sym("spread", size), sym("touch", count), sym("gate")
    pressed_before = sym("pressed_before", count)
    kin = arm.kinematics(q)
    gravity = arm.body.gravity_torque(kin)
    at = sym("at", size)
    contacts = ContactForces(arm, layout, kin, at, theta, basis)
    torque = contacts.joint_torque(closed)
    channels = [
        at[layout.offset.start + k] + (torque[j] - gravity[j]) * ca.exp(-at[layout.elastic.start + k])
        for k, j in enumerate(layout.elastic_joints)
    ]
    channels += [
        torque[j] - at[layout.bias.start + j] - at[layout.coulomb.start + j] * s[j] - at[layout.deviation.start + j]
        for j in range(n)
    ]
    x = decay * x_in
    grown = ca.SX(noise)
    grown[layout.offset] += unsteady[:m]
    grown[layout.deviation] += unsteady[m:]
    covariance = symmetric(unpack(packed, size) * (decay @ decay.T) + ca.diag(grown))
    log_likelihood, ratios = 0, []
    limited = [where.start for slots, where in zip(layout.estimated, layout.contact) if slots and slots[0] == 0]
    for k, channel in enumerate(channels):
        predicted, row = ca.substitute([channel, ca.jacobian(channel, at).T], [at], [x])
        innovation = y[k] - predicted
        cross = covariance @ row
        plain = ca.dot(row, cross) + variance[k]
        ratio = innovation**2 / plain
        total = ca.fmax(plain, innovation**2 / gate**2)  # the noise that puts it on the gate
        step = cross * (innovation / total)
        for index in limited:
            step[index] = ca.fmin(ca.fmax(step[index], -_STEP), _STEP)
        x = x + step
        for index, middle, reach in layout.bounded:
            x[index] = ca.fmin(ca.fmax(x[index], middle - reach), middle + reach)
        covariance = symmetric(covariance - cross @ cross.T / total)
        log_likelihood -= 0.5 * (ca.log(total) + innovation**2 / total)
        ratios.append(ratio)
    # A closed contact presses. How probable that is, after against before, is evidence; its product over all blocks is
    # the probability now, so that standing still says nothing and drawing back opens the contact at once.
    pressed = []
    for i, depth in enumerate(contacts.depth):
        mean, row = ca.substitute([depth, ca.jacobian(depth, at).T], [at], [x])
        phi = 0.5 * (1 + ca.erf(ca.fmax(mean / ca.sqrt(ca.bilin(covariance, row, row)), _FAR) / 2**0.5))
        log_likelihood += closed[i] * ca.log(phi / pressed_before[i])
        pressed.append(closed[i] * phi + (1 - closed[i]) * UNDECIDED)
    x, covariance = _reopen(layout, contacts, at, x, covariance, closed, prior, spread, touch)
    inputs = {
        **{
            "x": x_in,
            "P": packed,
            "decay": decay,
            "noise": noise,
            "y": y,
            "R": variance,
            "q": q,
            "s": s,
            "unsteady": unsteady,
            "closed": closed,
        },
        **{"theta": theta, "basis": basis, "prior": prior, "spread": spread, "touch": touch, "gate": gate},
        "pressed_before": pressed_before,
    }
    return ca.Function(
        "bank_update",
        list(inputs.values()),
        [ca.densify(x), pack(covariance), log_likelihood, ca.vertcat(*ratios), ca.vertcat(*pressed)],
        list(inputs),
        ["x_next", "P_next", "log_likelihood", "ratios", "pressed"],
    )


def build_prior(arm: Arm, layout: BankLayout) -> ca.Function:
    """The state before anything was measured, at a configuration.

    Inputs: q (n,), theta, basis (9 I,), prior, spread (N,) mean and variance, touch (I,). Outputs: x (N,), P (packed).
    """
    sym, count = ca.SX.sym, len(layout.contact)
    q, theta, basis = sym("q", arm.n), sym("theta", CONTACT_SIZE * count), sym("basis", 9 * count)
    prior, spread, touch = sym("prior", layout.size), sym("spread", layout.size), sym("touch", count)
    at = sym("at", layout.size)
    contacts = ContactForces(arm, layout, arm.kinematics(q), at, theta, basis)
    mean, covariance = _prior(layout, contacts, at, prior, spread, touch)
    return ca.Function(
        "bank_prior",
        [q, theta, basis, prior, spread, touch],
        [ca.densify(mean), pack(covariance)],
        ["q", "theta", "basis", "prior", "spread", "touch"],
        ["x", "P"],
    )


def _prior(layout, contacts, at, prior, spread, touch):
    """Mean and covariance of contacts that would close now, everything else as given; ``contacts`` are
    those of the state ``at``.

    What is known at touch is the gap, not the rest position: rest = n^T x(p) + gap. The rest position of a point of
    unknown place is therefore as unknown as the place, and correlated with it.
    """
    mean, correlate = ca.SX(prior), ca.SX.eye(layout.size)
    for i, (slots, where) in enumerate(zip(layout.estimated, layout.contact)):
        _, *tangents = ca.horzsplit(contacts.axes[i])
        for slot, direction in zip((1, 7, 8), (contacts.normals[i], *tangents)):
            if slot in slots and (slot == 1 or layout.sticks[i]):
                index = where.start + slots.index(slot)
                here = ca.dot(direction, contacts.points[i])
                here, slope = ca.substitute([here, ca.jacobian(here, at)], [at], [prior])
                known = touch[i] if slot == 1 else 1  # sideways a point is held where it touches, always
                mean[index] = known * here + (1 - known) * prior[index]
                correlate[index, :] += known * slope
    return mean, symmetric(correlate @ ca.diag(spread) @ correlate.T)


def _reopen(layout, contacts, at, x, covariance, closed, prior, spread, touch):
    """Contact entries of open contacts at their prior, uncorrelated with everything else."""
    mean, own = _prior(layout, contacts, at, prior, spread, touch)
    keep = ca.SX.ones(layout.size)
    for i, where in enumerate(layout.contact):
        keep[where] = closed[i]
    x = keep * x + (1 - keep) * mean
    opened = ca.SX.zeros(layout.size, layout.size)
    for i, where in enumerate(layout.contact):
        opened[where, where] = (1 - closed[i]) * own[where, where]
    return x, symmetric(covariance * (keep @ keep.T) + opened)
