"""Touch and release within milliseconds, as kinks in the force.

The filters take what a block of samples leaves unexplained for noise, with what friction and hysteresis add to it
slowly: newtons that no one block can tell from a contact. Over the last hundredth of a second these slow errors are a
straight line, and all that is left on top of it is the sensors' white noise, a few tenths of a newton. A contact that
closed at t0 bends that line, by K g g^T (q(t0) - q) in joint torque with g = J_p^T n; one that opened bends it too,
because the force does not follow the linear law on into pull. Every candidate t0 has

    prior      the rate of closing times its share of time; or how probable it is that the depth crossed zero then
    likelihood that of what the samples since are above the line through those before, the stiffness averaged out

(a change point with a known shape, Basseville and Nikiforov 1993, sections 2.4 and 4.4), and the sum over the
candidates is the odds that the mode has just changed. Only what is certain is acted upon; the filters do the rest.

Samples are gathered in cells of 8 ms. Candidates begin where a cell begins, so that all that is before them changes
once in a cell (:func:`build_cell`) and not with every sample (:func:`build_gather`, :func:`build_odds`).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.settings import BankSettings, DriveSettings
from contact_estimation.filters.bank.track import NOISE, SLIDING, STATES, TRAVELLED, deflection, still_to_turn
from contact_estimation.robot import Arm

_CELL = 0.008  # s
#: Cells since the candidate, the present one among them, and cells of the line before it.
_WINDOWS = ((1, 10), (2, 10), (4, 15), (8, 20))
#: Share of the change of the joints' friction that its model may be wrong by.
_FRICTION_ERROR = 0.5
#: Share of a sliding contact's friction that varies although the direction stays; slower [m/s] is not surely sliding.
_UNSTEADY, _CREEPING = 0.1, 1e-3
#: Stiffnesses a touch is tried with: standard deviations of ln K from its prior mean, and their weights.
_POINTS, _WEIGHTS = (-1.5, 0.0, 1.5), (0.25, 0.5, 0.25)
#: [s] Over which the actual scatter of a channel about its line is averaged, where it starts, and what counts at most,
#: in expected variances: a kink must stand out from what is usual at present.
_SCATTER_TIME, SCATTER_START, _SCATTER_MOST = 0.1, 9.0, 9.0
#: Scatter is never taken to be less than this (elastic deflection, torque); where it is more than the last, slow errors
#: are no straight lines, and the channel is not heard.
_ELASTIC_LEAST, _TORQUE_LEAST, _SCATTER_TRUSTED = 0.5, 0.25, 3.0
#: No channel speaks louder than this many standard deviations: one alone, a torque spike at a stop, decides nothing.
_LOUDEST = 4.0
#: Encoders are taken to be at least as noisy as the play over this.
_QUIET = 5.0
#: Exponents and probabilities are kept within what a double holds.
_LARGEST, _SMALLEST = 60.0, 1e-9


class KinkLayout:
    """What is kept of the samples.

    Attributes:
        elastic: joints whose deflection is a channel; the other channels are the torques of all n joints.
        channels: how many there are. columns: of a cell: the channels, rigid-body torques (n), presliding states (n),
        positions (n). cells: kept. per_cell: samples. windows: see _WINDOWS.
    """

    def __init__(self, layout: BankLayout, rate: float):
        self.elastic, self.windows = list(layout.elastic_joints), _WINDOWS
        self.channels = len(self.elastic) + layout.n
        self.columns = self.channels + 3 * layout.n
        self.per_cell = max(1, round(_CELL * rate))
        self.cells = max(since - 1 + before for since, before in self.windows)
        self.oldest = max(since for since, _ in self.windows)


def build_gather(arm: Arm, layout: BankLayout, kinks: KinkLayout) -> ca.Function:
    """A sample added to its cell.

    Inputs: w (16 n,), momentum, known (n,) of the track at this sample and momentum_before (n,) at the last one; q, dq,
    tau (n,), dt; sums (columns,). Outputs: sums_next; momentum_now (n,).
    """
    n, sym = arm.n, ca.SX.sym
    w, momentum, momentum_before = sym("w", STATES * n), sym("momentum", n), sym("momentum_before", n)
    known, q, dq, tau, dt = sym("known", n), sym("q", n), sym("dq", n), sym("tau", n), sym("dt")
    sums = sym("sums", kinks.columns)
    rows = ca.vertsplit(w, n)
    change = (momentum - momentum_before) / dt
    load = change - (known - tau) - ca.SX(arm.motor.viscous) * dq  # M ddq + C dq + G
    softness = ca.SX(np.exp(-layout.mean[layout.elastic]))
    bent = deflection(q, dq, rows[TRAVELLED], dt)[kinks.elastic] + load[kinks.elastic] * softness
    inputs = {
        **{"w": w, "momentum": momentum, "known": known, "momentum_before": momentum_before},
        **{"q": q, "dq": dq, "tau": tau, "dt": dt, "sums": sums},
    }
    results = [sums + ca.vertcat(bent, change - known, load, rows[SLIDING], q), momentum]
    return ca.Function("bank_kink_gather", list(inputs.values()), results, list(inputs), ["sums_next", "momentum_now"])


def build_cell(layout: BankLayout, kinks: KinkLayout) -> ca.Function:
    """The end of a cell.

    Inputs: ring (columns cells,) means of the last cells, newest first; starts (n oldest,) positions where cells began;
    sums (columns,) and number of this cell's samples; q (n,) where the next cell begins; ratios (channels W,) of the
    last sample; scatter (2 channels W,); age: cells since the mode last changed, because a line through a change is
    none; duration [s] of the cell. Outputs: ring_next, starts_next, scatter_next; per window since (columns W,) sum of
    the cells from the candidate on, level and slope (columns W,) of the line at the candidate [per sample].
    """
    n, count, columns = layout.n, len(kinks.windows), kinks.columns
    sym = ca.SX.sym
    ring, starts = sym("ring", columns * kinks.cells), sym("starts", n * kinks.oldest)
    sums, number, q = sym("sums", columns), sym("number"), sym("q", n)
    ratios, scatter = sym("ratios", kinks.channels * count), sym("scatter", 2 * kinks.channels * count)
    age, duration = sym("age"), sym("duration")
    following = ca.vertcat(sums / number, ring[: columns * (kinks.cells - 1)])
    table = ca.reshape(following, columns, kinks.cells)
    since, level, slope, scatters = [], [], [], []
    for k, (last, before) in enumerate(kinks.windows):
        part = table[:, last - 1 : last - 1 + before]
        index = -(np.arange(before) + 0.5) * kinks.per_cell  # samples from the candidate
        inclined = (index - index.mean()) / np.sum((index - index.mean()) ** 2)
        rising = part @ ca.DM(inclined)
        since.append(ca.sum2(table[:, : last - 1]) if last > 1 else ca.SX.zeros(columns))
        slope.append(rising)
        level.append(ca.sum2(part) / before - rising * index.mean())
        seen = ca.if_else(age < last + before, 0, ca.fmin(duration / _SCATTER_TIME, 1))
        for j in range(kinks.channels):
            at = k * kinks.channels + j
            quick, settled = scatter[2 * at], scatter[2 * at + 1]
            # Twice averaged: a kink that is just beginning hardly counts for what is usual.
            scatters += [quick + seen * (ratios[at] - quick), settled + seen * (quick - settled)]
    inputs = {
        **{"ring": ring, "starts": starts, "sums": sums, "number": number, "q": q, "ratios": ratios},
        **{"scatter": scatter, "age": age, "duration": duration},
    }
    results = {
        "ring_next": following,
        "starts_next": ca.vertcat(q, starts[: n * (kinks.oldest - 1)]),
        "scatter_next": ca.vertcat(*scatters),
        "since": ca.vertcat(*since),
        "level": ca.vertcat(*level),
        "slope": ca.vertcat(*slope),
    }
    return ca.Function(
        "bank_kink_cell", list(inputs.values()), [ca.densify(r) for r in results.values()], list(inputs), list(results)
    )


def build_odds(
    arm: Arm, layout: BankLayout, settings: BankSettings, drives: DriveSettings, kinks: KinkLayout, period: float
) -> ca.Function:
    """The odds after a sample.

    Inputs: w (16 n,), q, length (n,) of the track; sums (columns,) of the cell so far and number of its samples;
    starts, scatter, since, level, slope, age as in :func:`build_cell`; what :func:`kink_context.build_context` says at
    q_then (n,); closed (I,). ``period`` [s]: the usual interval of samples. Outputs: ratios (channels W,) squared
    deviations from lines over their expected variances; odds (I,) that a contact is no longer what the believed mode
    has it for; most (1,); origin (n, I): positions at which the likeliest candidate for a touch began.
    """
    n, count, windows, m = arm.n, len(layout.contact), len(kinks.windows), layout.m
    sym, joints, columns, channels = ca.SX.sym, [*kinks.elastic, *range(n)], kinks.columns, kinks.channels
    w, q, length = sym("w", STATES * n), sym("q", n), sym("length", n)
    sums, number, age = sym("sums", columns), sym("number"), sym("age")
    starts, scatter = sym("starts", n, kinks.oldest), sym("scatter", 2, channels * windows)
    since, level, slope = sym("since", columns, windows), sym("level", columns, windows), sym("slope", columns, windows)
    g, sideways = sym("g", n, count), sym("sideways", n, 2 * count)
    depth, std, stiffness = sym("depth", count), sym("depth_std", count), sym("stiffness", count)
    friction, law, law_error = sym("friction", count), sym("law", n, n), sym("law_error")
    closed, coulomb, inertia, q_then = sym("closed", count), sym("coulomb", n), sym("inertia", n), sym("q_then", n)
    rows = ca.vertsplit(w, n)
    pending = still_to_turn(rows, length, layout.motor_side)
    softness = ca.SX(np.exp(-layout.mean[layout.elastic]))
    gain_of = ca.vertcat(softness, ca.SX.ones(n))  # from joint torque to channel
    torque = gain_of * g[joints, :]
    encoder = ca.fmax(rows[NOISE][kinks.elastic], (drives.play / _QUIET) ** 2)
    white = np.square(drives.torque_noise) * (settings.block / period)
    least = ca.SX([_ELASTIC_LEAST] * m + [_TORQUE_LEAST] * n)
    ratios, evidence = [], []
    for k, (last, before) in enumerate(kinks.windows):
        samples = (last - 1) * kinks.per_cell + number
        line = before * kinks.per_cell
        share, half = 1 / samples, 0.5 * samples
        mean = (since[:, k] * kinks.per_cell + sums) * share
        part = mean - level[:, k] - slope[:, k] * half
        deviation, loads, turned, shift = ca.vertsplit(part, [0, channels, channels + n, channels + 2 * n, columns])
        gain = share + 1 / line + (samples + line) ** 2 * (3 / line**3)
        velocity = (inertia * (share * (2**0.5 * drives.velocity_noise / period))) ** 2
        noise = ca.vertcat(encoder * gain, white * gain) + gain_of**2 * velocity[joints]
        # The rigid body, the joints' friction, closed contacts and their friction: what is known of their changes. The
        # presliding states follow a low-pass; what they have still before them may have happened.
        rubbed = coulomb * turned
        pushed = -law @ shift
        deviation += ca.vertcat(ca.SX.zeros(m), rubbed) - gain_of * pushed[joints]
        errors = (drives.model_error * gain_of * loads[joints]) ** 2 + (law_error * gain_of * pushed[joints]) ** 2
        errors += ca.vertcat(ca.SX.zeros(m), (_FRICTION_ERROR * rubbed) ** 2 + (coulomb * pending) ** 2)
        begun = starts[:, last - 1]
        newly = (q - begun) * (share / period)
        then = slope[columns - n :, k] * (1 / period)
        errors += gain_of**2 * _rubbing(sideways, friction, then, newly)[joints]
        errors[:m] += (drives.elastic.lag * (newly - then)[kinks.elastic]) ** 2
        settled = scatter[1, k * channels : (k + 1) * channels].T
        precision = 1 / ca.sqrt(noise * ca.fmax(settled, least) + errors)
        heard = (settled < _SCATTER_TRUSTED) * (age >= last + before)
        clear = heard * ca.fmax(ca.fmin(deviation * precision, _LOUDEST), -_LOUDEST) * precision
        ratios.append(ca.fmin(deviation**2 / (noise + errors), _SCATTER_MOST))
        moved = g.T @ (mean[columns - n :] - begun)
        away = g.T @ (q - begun)
        evidence.append((samples, torque.T @ clear, (torque**2).T @ (heard * precision**2), moved, away))
    odds, origins = [], []
    for i, contact in enumerate(settings.contacts):
        now = depth[i] - ca.dot(g[:, i], q - q_then)
        certainty = 1 / std[i]
        phi, before = _normal(now * certainty), 0
        still, opened, touched, likeliest, origin = phi, 0, 0, 0, q
        for k, (samples, score, weight, moved, away) in enumerate(evidence):
            since_then = (
                settings.close_rate
                * (samples - before)
                * period
                * sum(
                    chance
                    * _likelihood(score[i], weight[i], contact.stiffness * contact.stiffness_factor**point * -moved[i])
                    for point, chance in zip(_POINTS, _WEIGHTS)
                )
            )
            touched += since_then
            origin = ca.if_else(since_then > likeliest, starts[:, kinks.windows[k][0] - 1], origin)
            likeliest = ca.fmax(likeliest, since_then)
            earlier = _normal((now + away[i]) * certainty)
            opened += ca.fmax(earlier - phi, 0) * _likelihood(score[i], weight[i], stiffness[i] * moved[i])
            phi, before = earlier, samples
        opened = (opened + 1 - phi) / ca.fmax(still, _SMALLEST)  # before the oldest candidate only the depth tells
        origins.append(origin)
        odds.append(closed[i] * opened + (1 - closed[i]) * touched)
    odds = ca.vertcat(*odds)
    inputs = {
        **{"w": w, "q": q, "length": length, "sums": sums, "number": number, "starts": starts},
        **{"scatter": scatter, "since": since, "level": level, "slope": slope, "age": age},
        **{"g": g, "sideways": sideways, "depth": depth, "depth_std": std, "stiffness": stiffness},
        **{"friction": friction, "law": law, "law_error": law_error, "coulomb": coulomb, "inertia": inertia},
        **{"q_then": q_then, "closed": closed},
    }
    results = {"ratios": ca.vertcat(*ratios), "odds": odds, "most": ca.mmax(odds), "origin": ca.horzcat(*origins)}
    return ca.Function(
        "bank_kink_odds", list(inputs.values()), [ca.densify(r) for r in results.values()], list(inputs), list(results)
    )


def _rubbing(sideways, friction, then, newly):
    """Variances (n,) [Nm^2] of what closed contacts' friction has changed by: it turns with the direction of sliding.

    Args: sideways (n, 2 I), friction (I,) [N]; then, newly (n,) [rad/s]: joint velocities of line and candidate.
    """
    total = 0
    for i in range(friction.numel()):
        tangents = sideways[:, 2 * i : 2 * i + 2]
        before, after = tangents.T @ then, tangents.T @ newly
        turned = after * (1 / (ca.norm_2(after) + _CREEPING)) - before * (1 / (ca.norm_2(before) + _CREEPING))
        total += friction[i] ** 2 * (_UNSTEADY**2 + ca.sumsqr(turned)) * ca.sum2(tangents**2)
    return total


def _likelihood(score, weight, force):
    """Likelihood of a mean force [N] since the candidate over that of none; one where it would pull."""
    force = ca.fmax(force, 0)
    return ca.exp(ca.fmin(score * force - 0.5 * weight * force**2, _LARGEST))


def _normal(x):
    return 0.5 * (1 + ca.erf(ca.fmax(ca.fmin(x, 6.0), -6.0) / 2**0.5))
