"""Touch and release within milliseconds, as change points of the force: the likelihood ratio after every sample.

The filters take what a block of samples leaves unexplained for noise, with what friction and hysteresis add to it
slowly: newtons that no one block can tell from a contact. Over the last hundredth of a second these slow errors are a
straight line, and all that is left on top of it is the sensors' white noise, a few tenths of a newton. A contact that
closed at t0 bends that line, by K g g^T (q(t0) - q) in joint torque with g = J_p^T n; one that opened bends it too,
because the force does not follow the linear law on into pull. Every candidate t0 has

    prior      the rate of closing times its share of time; or how probable it is that the depth crossed zero then
    likelihood that of what the samples since are above the line through those before, the stiffness averaged out

(a change point with a known shape, Basseville and Nikiforov 1993, sections 2.4 and 4.4), and the sum over the
candidates is the odds that the mode has just changed. Only what is certain is acted upon; the filters do the rest.

Samples are averaged in bins of 8 ms. Candidates begin where a bin begins, so that all that is before them changes once
in a bin (:func:`build_bin`) and not with every sample (:func:`build_bin_sample`, :func:`build_odds`).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.codegen import Parts, call_named, named_function, symbols
from contact_estimation.filters.imm.preintegration import deflection, pending_presliding, sample_state
from contact_estimation.filters.imm.state import FilterState
from contact_estimation.robot import Arm

#: Candidates: bins since, the present one among them, and bins of the line before. Each is twice as old as the last;
#: the line is as long as slow errors stay straight (80 to 160 ms) and at least twice as long as what is compared.
WINDOWS = ((1, 10), (2, 10), (4, 15), (8, 20))
#: Stiffnesses a touch is tried with: standard deviations of ln K from its prior mean, and their weights. Three points
#: with about the mean and the variance (1.125) of a standard normal distribution.
_QUADRATURE = ((-1.5, 0.25), (0.0, 0.5), (1.5, 0.25))
#: Exponents and probabilities are kept within what a double holds: exp(60) is 1e26.
_LARGEST_EXPONENT, _LEAST_PROBABILITY = 60.0, 1e-9
#: The normal distribution's tail beyond six standard deviations is 1e-9.
_TAIL = 6.0


class BinLayout:
    """What is kept of the samples.

    Args:
        layout: the filters' state.

    Attributes:
        channels: elastic channels and the torques of all n joints. joints: joint of every channel.
        parts: of a bin: ``channels``, rigid-body ``load`` torques, ``presliding`` states, ``position`` (n,).
        bins: kept of the past. oldest: bins since the oldest candidate.
    """

    def __init__(self, layout: FilterState) -> None:
        n = layout.n
        self.channels, self.joints = layout.m + n, [*layout.elastic_joints, *range(n)]
        self.parts = Parts(channels=self.channels, load=n, presliding=n, position=n)
        self.bins = max(since - 1 + before for since, before in WINDOWS)
        self.oldest = max(since for since, _ in WINDOWS)
        self.lines = (self.parts.size, len(WINDOWS))
        self.scatter = (2, self.channels * len(WINDOWS))


def build_bin_sample(arm: Arm, layout: FilterState, bins: BinLayout) -> ca.Function:
    """Return the function of a sample added to its bin.

    Inputs: w: the sample state; momentum, known, rigid (n,) of this sample; momentum_last (n,) of the last one; q, dq
    (n,); dt [s]; joint_stiffness (m,) [Nm/rad]; sums: parts of a bin. Outputs: sums_next; momentum_last_next.
    """
    n, parts = arm.n, sample_state(arm.n)
    vectors = dict.fromkeys(("momentum", "known", "rigid", "q", "dq", "momentum_last"), n)
    s = symbols(w=parts.size, dt=1, joint_stiffness=layout.m, sums=bins.parts.size, **vectors)
    w, joints = parts.split(s.w), layout.elastic_joints
    change = (s.momentum - s.momentum_last) / s.dt
    load = change - s.rigid  # M ddq + C dq + G
    bent = deflection(s.q, s.dq, w.travelled, s.dt)[joints] + load[joints] / s.joint_stiffness
    sample = ca.vertcat(bent, change - s.known, load, w.presliding, s.q)
    return named_function("imm_bin_sample", s, {"sums_next": s.sums + sample, "momentum_last_next": s.momentum})


def build_bin(layout: FilterState, bins: BinLayout) -> ca.Function:
    """Return the function of the end of a bin.

    Inputs: ring (bins, columns): means of the last bins, newest first; starts (n, oldest): positions where bins began;
    sums and number of this bin's samples; per_bin: samples in a full one; q (n,) where the next bin begins; ratios
    (channels, W) of the last sample; scatter (2, channels W); age: bins since the mode last changed, because a line
    through a change is none; scatter_share: share of a bin in the average of the scatter. Outputs: ring_next,
    starts_next, scatter_next; since (columns, W): per window the sum of the bins from the candidate on; level, slope
    (columns, W): of the line at the candidate [per sample].
    """
    n, columns, channels = layout.n, bins.parts.size, bins.channels
    shapes = {"ring": (bins.bins, columns), "starts": n * bins.oldest, "scatter": bins.scatter, "sums": columns}
    scalars = dict.fromkeys(("number", "per_bin", "age", "scatter_share"), 1)
    s = symbols(ca.MX, **shapes, **scalars, q=n, ratios=(channels, len(WINDOWS)))
    ring = ca.vertcat((s.sums / s.number).T, s.ring[:-1, :])
    since, level, slope = _build_lines(bins).map(columns)(ring)
    scatters = []
    for k, (last, before) in enumerate(WINDOWS):
        share = ca.if_else(s.age < last + before, 0, s.scatter_share)
        of_window = s.scatter[:, k * channels : (k + 1) * channels]
        # Twice averaged: a change that is just beginning hardly counts for what is usual.
        quick, settled = of_window[0, :], of_window[1, :]
        scatters.append(ca.vertcat(quick + share * (s.ratios[:, k].T - quick), settled + share * (quick - settled)))
    outputs = {
        "ring_next": ring,
        "starts_next": ca.vertcat(s.q, s.starts[: n * (bins.oldest - 1)]),
        "scatter_next": ca.horzcat(*scatters),
        "since": since.T,
        "level": level.T,
        "slope": slope.T / s.per_bin,
    }
    return named_function("imm_bin", s, outputs)


def _build_lines(bins: BinLayout) -> ca.Function:
    """Per window the sum of the bins since the candidate, level and slope [per bin] of the line before (least squares).

    Input: ring (bins,) of one column. Outputs: since, level, slope (W,).
    """
    s = symbols(ring=bins.bins)
    since, level, slope = [], [], []
    for last, before in WINDOWS:
        part = s.ring[last - 1 : last - 1 + before]
        index = -(np.arange(before) + 0.5)  # bins from the candidate
        rising = ca.dot(part, ca.DM((index - index.mean()) / np.sum((index - index.mean()) ** 2)))
        since.append(ca.sum1(s.ring[: last - 1]) if last > 1 else ca.SX(0))
        slope.append(rising)
        level.append(ca.sum1(part) / before - rising * index.mean())
    outputs = {"since": ca.vertcat(*since), "level": ca.vertcat(*level), "slope": ca.vertcat(*slope)}
    return named_function("lines", s, outputs)


def build_odds(layout: FilterState, bins: BinLayout) -> ca.Function:
    """Return the function of the odds after a sample.

    Inputs: w, q, presliding_length of the sample; sums of the bin so far, number of its samples and per_bin; starts,
    scatter, since, level, slope, age as in :func:`build_bin`; what
    :func:`~contact_estimation.filters.imm.linearisation.build_linearisation` says at q_then (n,); closed (I,); settings
    by their names in :func:`~contact_estimation.filters.imm.settings.run_time_inputs`. Outputs: ratios (channels, W):
    squared deviations from lines over their expected variances; odds (I,) that a contact is no longer what the probable
    mode has it for; most: the largest of them; origin (n, I): positions at which the likeliest candidate for a touch
    began.
    """
    pending, window, total = _build_pending(layout), _build_window(layout, bins), _build_total(layout, bins)
    functions = (pending, window, total)
    shapes = {f.name_in(i): f.size_in(i) for f in functions for i in range(f.n_in())}
    shapes |= dict.fromkeys(("since", "level", "slope"), bins.lines) | {"scatter": bins.scatter}
    computed = {f.name_out(i) for f in (pending, window) for i in range(f.n_out())} | {"last", "before", "begun"}
    s = symbols(ca.MX, **{name: shape for name, shape in shapes.items() if name not in computed | {"settled"}})
    found = []
    for k, (last, before) in enumerate(WINDOWS):
        own = {name: getattr(s, name)[:, k] for name in ("since", "level", "slope")}
        own |= {"last": last, "before": before, "begun": s.starts[:, last - 1]}
        own["settled"] = s.scatter[1, k * bins.channels : (k + 1) * bins.channels].T
        found.append(call_named(window, own, call_named(pending, s), s))
    evidence = {name: ca.horzcat(*[getattr(one, name) for one in found]) for name in window.name_out()}
    outputs = vars(call_named(total, evidence, s))
    return named_function("imm_change_odds", s, {"ratios": evidence["ratios"]} | outputs)


def _build_pending(layout: FilterState) -> ca.Function:
    """Build what every window needs of the sample: pending presliding (n,) and variance of the encoders (m,)."""
    n, parts = layout.n, sample_state(layout.n)
    s = symbols(w=parts.size, presliding_length=n, deadband=n, deadband_to_noise=1)
    w, joints = parts.split(s.w), layout.elastic_joints
    encoder = ca.fmax(w.encoder_noise[joints], ((s.deadband / s.deadband_to_noise) ** 2)[joints])
    pending = pending_presliding(w, s.presliding_length, layout.motor_side)
    return named_function("sample_errors", s, {"pending": pending, "encoder": encoder})


def _build_window(layout: FilterState, bins: BinLayout) -> ca.Function:
    """Evidence of the candidate that began ``last`` bins ago against the line through ``before`` bins before it.

    Outputs: ratios (channels,); samples since; score, weight (I,): of a mean force F the logarithm of the likelihood
    ratio is score F - weight F^2 / 2; moved, away (I,) [m]: mean and present motion along the normals since.
    """
    n, count, m, columns = layout.n, len(layout.contacts), layout.m, bins.parts.size
    shapes: dict[str, Any] = dict.fromkeys(("since", "level", "slope", "sums"), columns)
    shapes |= dict.fromkeys(("begun", "q", "pending", "coulomb", "inertia", "torque_variance", "model_error"), n)
    shapes |= dict.fromkeys(("settled", "least_scatter"), bins.channels) | {"encoder": m, "joint_stiffness": m}
    scalars = "number per_bin last before age block period velocity_noise velocity_delay slope_error"
    scalars += " friction_error sliding_variation sliding_speed trusted_scatter scatter_limit channel_limit"
    linearised: dict[str, Any] = {
        "normal_jacobian": (n, count),
        "tangent_jacobian": (n, 2 * count),
        "friction_force": count,
    }
    s = symbols(**shapes, **dict.fromkeys(scalars.split(), 1), **linearised, contact_slope=(n, n))
    samples, line = (s.last - 1) * s.per_bin + s.number, s.before * s.per_bin
    mean = (s.since * s.per_bin + s.sums) / samples
    part = bins.parts.split(mean - s.level - s.slope * (0.5 * samples))
    gain = ca.vertcat(1 / s.joint_stiffness, ca.SX.ones(n))  # from joint torque to channel
    noise = _white_noise(s, gain, samples, line, bins.joints)
    expected, errors = _known_changes(s, part, gain, samples, bins)
    deviation = part.channels + expected
    precision = 1 / ca.sqrt(noise * ca.fmax(s.settled, s.least_scatter) + errors)
    heard = (s.settled < s.trusted_scatter) * (s.age >= s.last + s.before)
    clear = heard * ca.fmax(ca.fmin(deviation * precision, s.channel_limit), -s.channel_limit) * precision
    torque = gain * s.normal_jacobian[bins.joints, :]
    outputs = {
        "ratios": ca.fmin(deviation**2 / (noise + errors), s.scatter_limit),
        "samples": samples,
        "score": torque.T @ clear,
        "weight": (torque**2).T @ (heard * precision**2),
        "moved": s.normal_jacobian.T @ (mean[bins.parts["position"]] - s.begun),
        "away": s.normal_jacobian.T @ (s.q - s.begun),
    }
    return named_function("change_window", s, outputs)


def _white_noise(s: SimpleNamespace, gain: ca.SX, samples: ca.SX, line: ca.SX, joints: list[int]) -> Any:
    """Variances (channels,) of a mean above a line fitted before it: sensors' white noise, velocity at the ends.

    The mean has 1 / samples of a sample's variance, the line 1 / line, and its slope (variance 12 / line^3) counts over
    the distance of the centres, half of samples + line.
    """
    share = 1 / samples
    spread = share + 1 / line + (samples + line) ** 2 * (3 / line**3)
    torque = s.torque_variance * (s.block / s.period)  # of a sample
    velocity = (s.inertia * (share * (2**0.5 * s.velocity_noise / s.period))) ** 2
    return ca.vertcat(s.encoder * spread, torque * spread) + gain**2 * velocity[joints]


def _known_changes(
    s: SimpleNamespace, part: SimpleNamespace, gain: ca.SX, samples: ca.SX, bins: BinLayout
) -> tuple[ca.SX, ca.SX]:
    """Return changes (channels,) of joint friction and closed contacts since the candidate, and variances of errors.

    The presliding states follow a low-pass; what they have still before them may have happened.
    """
    m, joints = s.encoder.numel(), bins.joints
    rubbed = s.coulomb * part.presliding
    pushed = -s.contact_slope @ part.position
    errors = (gain * (s.model_error * part.load)[joints]) ** 2 + (s.slope_error * gain * pushed[joints]) ** 2
    errors += ca.vertcat(ca.SX.zeros(m), (s.friction_error * rubbed) ** 2 + (s.coulomb * s.pending) ** 2)
    newly = (s.q - s.begun) / (samples * s.period)
    then = s.slope[bins.parts["position"]] / s.period
    errors += gain**2 * _sliding_variance(s, then, newly)[joints]
    errors[:m] += (s.velocity_delay * (newly - then)[joints[:m]]) ** 2
    return ca.vertcat(ca.SX.zeros(m), rubbed) - gain * pushed[joints], errors


def _sliding_variance(s: SimpleNamespace, then: ca.SX, newly: ca.SX) -> ca.SX:
    """Variances (n,) [Nm^2] of the changes of closed contacts' friction, which turns with the direction of sliding.

    ``then``, ``newly`` (n,) [rad/s]: joint velocities of the line and since the candidate.
    """
    total = ca.SX.zeros(then.numel())
    for i in range(s.friction_force.numel()):
        tangents = s.tangent_jacobian[:, 2 * i : 2 * i + 2]
        before, after = tangents.T @ then, tangents.T @ newly
        turned = after / (ca.norm_2(after) + s.sliding_speed) - before / (ca.norm_2(before) + s.sliding_speed)
        variation = s.sliding_variation**2 + ca.sumsqr(turned)
        total += s.friction_force[i] ** 2 * variation * ca.sum2(tangents**2)
    return total


def _build_total(layout: FilterState, bins: BinLayout) -> ca.Function:
    """Sum over the candidates: odds (I,), the largest of them, and origin (n, I) of the likeliest touch."""
    n, count, windows = layout.n, len(layout.contacts), len(WINDOWS)
    names = "depth depth_std stiffness closed contact_stiffness stiffness_factor"
    shapes: dict[str, Any] = dict.fromkeys(names.split(), count) | {"q": n, "q_then": n, "normal_jacobian": (n, count)}
    shapes |= dict.fromkeys(("score", "weight", "moved", "away"), (count, windows))
    s = symbols(samples=(1, windows), starts=(n, bins.oldest), period=1, close_rate=1, **shapes)
    odds, origins = [], []
    for i in range(count):
        touched, origin = _touch_odds(s, i)
        odds.append(s.closed[i] * _release_odds(s, i) + (1 - s.closed[i]) * touched)
        origins.append(origin)
    outputs = {"odds": ca.vertcat(*odds), "most": ca.mmax(ca.vertcat(*odds)), "origin": ca.horzcat(*origins)}
    return named_function("change_odds", s, outputs)


def _touch_odds(s: SimpleNamespace, i: int) -> tuple[Any, ca.SX]:
    """Odds that contact ``i`` has closed, and the position (n,) where the likeliest candidate began."""
    total: Any = 0
    likeliest, origin, before = total, s.q, total
    for k, (last, _) in enumerate(WINDOWS):
        likelihood = sum(
            weight * _likelihood(s, i, k, s.contact_stiffness[i] * s.stiffness_factor[i] ** deviation * -s.moved[i, k])
            for deviation, weight in _QUADRATURE
        )
        odds = s.close_rate * (s.samples[k] - before) * s.period * likelihood
        origin = ca.if_else(odds > likeliest, s.starts[:, last - 1], origin)
        total, likeliest, before = total + odds, ca.fmax(likeliest, odds), s.samples[k]
    return total, origin


def _release_odds(s: SimpleNamespace, i: int) -> Any:
    """Odds that contact ``i`` has opened; before the oldest candidate only the depth tells."""
    now = s.depth[i] - ca.dot(s.normal_jacobian[:, i], s.q - s.q_then)
    pressing = _normal(now / s.depth_std[i])
    total: Any = 0
    later = pressing
    for k in range(len(WINDOWS)):
        earlier = _normal((now + s.away[i, k]) / s.depth_std[i])
        total += ca.fmax(earlier - later, 0) * _likelihood(s, i, k, s.stiffness[i] * s.moved[i, k])
        later = earlier
    return (total + 1 - later) / ca.fmax(pressing, _LEAST_PROBABILITY)


def _likelihood(s: SimpleNamespace, i: int, k: int, force: ca.SX) -> Any:
    """Likelihood of a mean force [N] of contact ``i`` since candidate ``k`` over that of none; one where it pulls."""
    force = ca.fmax(force, 0)
    return ca.exp(ca.fmin(s.score[i, k] * force - 0.5 * s.weight[i, k] * force**2, _LARGEST_EXPONENT))


def _normal(x: ca.SX) -> ca.SX:
    """Cumulative standard normal distribution."""
    return 0.5 * (1 + ca.erf(ca.fmax(ca.fmin(x, _TAIL), -_TAIL) / 2**0.5))
