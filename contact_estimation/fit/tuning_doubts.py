"""What makes tuned noise doubtful or worse than the noise before: evidence from the recordings it was tuned on.

- Held-out likelihood: noise tuned on one half of the recordings describes the other half (two-fold, in time).
- Sensitivity: half a decade more or less of each noise makes the likelihood smaller (likelihood ratio).
- Consistency and whiteness of the innovations, per channel.
- Estimates: the filter with the tuned noise finds the contacts and the force that it found before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from contact_estimation.filters.observer import FREE, Estimate
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.innovations import ConsistencyStatistics
from contact_estimation.fit.tuning import REACH, Tuning, maximise
from contact_estimation.io.recording import Recording

#: First change of a noise in the search on one half, and the change that tests whether a noise shows [powers of ten].
_NEAR, _STEP = 0.25, 0.5
#: Log-likelihood per update and channel that may be lost. Noise whose standard deviation is off by a share e loses e^2:
#: 10 % against the noise before, a third between the halves.
_LOSS, _APART = 0.01, 0.1
#: Log-likelihood ratio from which a noise shows: chi-square with one degree of freedom, 99 %.
_SHOWN = 0.5 * float(chi2.isf(0.01, 1))
#: Correlation of successive innovations at which their mean has twice the variance that white ones have: (1 + r) /
#: (1 - r) = 2.
_COLOUR = 1.0 / 3.0
#: Bounds of a channel's mean square; share of the updates inside the 95 % quantile; share of samples refused.
_MEAN_SQUARE, _INSIDE, _REFUSED = (0.5, 2.0), 0.9, 0.05
#: Powers of ten that the last noises of a search may lie apart.
_SPREAD = 0.1
#: Share of the time that may be free before and not after (or the other way round), or valid before and not after, and
#: that the force may change by more than both filters' 95 %.
_RENAMED, _CHANGED = 0.02, 0.1
#: [s] between two estimates that are compared.
_INTERVAL = 0.05


class HeldOut(NamedTuple):
    """Two-fold validation in time; row h is the half h, first or second, of all recordings.

    Attributes:
        x: (2, m) powers of ten by which noise changes that is tuned on this half alone.
        given: (2,) log-likelihood of this half per update and channel, with the noise before.
        own: (2,) the same with the noise tuned on it.
        other: (2,) the same with the noise tuned on the other half.
    """

    x: np.ndarray
    given: np.ndarray
    own: np.ndarray
    other: np.ndarray


class EstimateChange(NamedTuple):
    """How the estimates change with the noise; the last four compare those valid with both, NaN where none is.

    Attributes:
        valid: shares of the time in which the estimate is valid, before and after.
        to_contact: share of the time that was free before and is not after.
        to_free: share of the time that was not free before and is after.
        force: root mean square of the change of the force [N].
        beyond: share of the time in which it lies beyond the 95 % quantile of both filters' covariances together.
    """

    valid: tuple[float, float]
    to_contact: float
    to_free: float
    force: float
    beyond: float


class Judgement(NamedTuple):
    """What was found of tuned noise.

    Attributes:
        failures: sentences that say why the noise before is better.
        doubts: sentences that say what contradicts the tuned noise.
        held_out: the validation; None where it was left out.
        change: of the estimates.
    """

    failures: list[str]
    doubts: list[str]
    held_out: HeldOut | None
    change: EstimateChange


def judge(
    found: Tuning, evaluations: int, validation: bool = True, progress: Callable[[int], None] | None = None
) -> Judgement:
    """Judge tuned noise by the recordings it was tuned on.

    Args:
        found: the tuned noise.
        evaluations: runs over the recordings of each of the two searches of the validation, at most.
        validation: whether to validate on halves of the recordings.
        progress: called with the number of runs of the validation.
    """
    held_out = validate(found, evaluations, progress) if validation else None
    change = estimate_change(found)
    worse = failures(change, held_out)
    return Judgement(worse, doubts(found, sensitivity(found), change, held_out), held_out, change)


def validate(found: Tuning, evaluations: int, progress: Callable[[int], None] | None = None) -> HeldOut:
    """Tune on one half of the recordings, judge on the other.

    Args:
        found: noise tuned on all; both searches start there.
        evaluations: runs of each search, at most.
        progress: called with the number of runs done.
    """
    likelihood, halves = found.likelihood.counted(progress), (0, 1)

    def half(h: int) -> Callable[[np.ndarray], float]:
        return lambda x: float(likelihood.halves(x)[h])

    x = np.array([maximise(half(h), found.x, _NEAR, evaluations)[0] for h in halves])
    given = likelihood.halves(np.zeros_like(found.x))
    own, other = (np.array([likelihood.halves(x[h ^ turned])[h] for h in halves]) for turned in (0, 1))
    return HeldOut(x, given, own, other)


def sensitivity(found: Tuning) -> np.ndarray:
    """Return by how much the log-likelihood of all updates falls (m, 2) with half a decade less and more of each noise.

    Coloured innovations count as fewer: n (1 - r) / (1 + r), with the largest correlation r of a channel.

    Args:
        found: the tuned noise.
    """
    correlation = max(float(np.max(s.correlation)) for s in found.after)
    numbers = sum(s.updates for s in found.after) * len(found.channels) * (1 - correlation) / (1 + max(correlation, 0))
    steps = [(-_STEP * unit, _STEP * unit) for unit in np.eye(len(found.x))]
    here = found.likelihood.mean(found.x)
    return numbers * np.array([[here - found.likelihood.mean(found.x + step) for step in both] for both in steps])


def estimate_change(found: Tuning) -> EstimateChange:
    """Compare the estimates of the filter, as a node runs it, with the noise before and with the tuned noise.

    Args:
        found: the tuned noise.
    """
    given = found.likelihood
    noises = (given.noise, found.noise)
    filters = [SampleStream(noise.deployed(noise.values), given.arm, given.sensors) for noise in noises]
    pairs = [pair for r in given.recordings for pair in zip(*(_estimates(stream, r) for stream in filters))]
    before, after = np.mean([[e.valid for e in pair] for pair in pairs], axis=0).tolist()
    pairs = [(a, b) for a, b in pairs if a.valid and b.valid]
    if not pairs:
        return EstimateChange((before, after), *[float("nan")] * 4)
    free = np.array([[e.modes.get("free", 1.0) > FREE for e in pair] for pair in pairs])  # (N, 2)
    change = np.array([b.force_tcp - a.force_tcp for a, b in pairs])  # (N, 3)
    covariance = np.array([a.force_covariance + b.force_covariance for a, b in pairs]) + 1e-6 * np.eye(3)
    distance = np.einsum("ti,ti->t", change, np.linalg.solve(covariance, change[..., None])[..., 0])
    return EstimateChange(
        (before, after),
        float(np.mean(free[:, 0] & ~free[:, 1])),
        float(np.mean(~free[:, 0] & free[:, 1])),
        float(np.sqrt(np.mean(np.sum(change**2, axis=1)))),
        float(np.mean(distance > chi2.ppf(0.95, 3))),
    )


def _estimates(stream: SampleStream, recording: Recording) -> list[Estimate]:
    """Return the estimates of a recording, one every :data:`_INTERVAL`."""
    stream.forget()
    estimates, due = [], recording.stamps_ns[0]
    for stamp, q, dq, tau in zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau):
        stream.push_fast(stamp, q, dq, tau)
        if stamp >= due:
            due = stamp + int(_INTERVAL * 1e9)
            estimates.append(stream.estimate(stamp))
    return estimates


def failures(change: EstimateChange, held_out: HeldOut | None = None) -> list[str]:
    """Say why the tuned noise must not be used; empty if it may be.

    Args:
        change: of the estimates.
        held_out: the validation, where it was made.
    """
    sentences = [_incomparable(change), _worse(held_out) if held_out is not None else ""]
    return [sentence for sentence in sentences if sentence]


def _incomparable(change: EstimateChange) -> str:
    """Say that no estimate is valid both with the noise before and with the tuned noise."""
    if np.isfinite(change.force):
        return ""
    before, after = (100 * share for share in change.valid)
    return (
        f"no estimate is valid with both noises ({before:.0f} % of them with the noise before, {after:.0f} % with the "
        "tuned noise): what it changes cannot be judged. Start from noise with which replay shows valid estimates"
    )


def _worse(held_out: HeldOut) -> str:
    """Say that the noise before is better on what was left out."""
    loss = held_out.given - held_out.other
    h = int(np.argmax(loss))
    if loss[h] <= _LOSS:
        return ""
    halves = ("first", "second")
    return (
        f"noise tuned on the {halves[1 - h]} half of the recordings describes the {halves[h]} worse than the noise "
        f"before (log-likelihood {held_out.other[h]:.2f} instead of {held_out.given[h]:.2f}): keep the noise before, "
        "and record longer, or what the robot does in one recording each"
    )


def doubts(found: Tuning, sensitive: np.ndarray, change: EstimateChange, held_out: HeldOut | None = None) -> list[str]:
    """Look for what contradicts tuned noise.

    Args:
        found: the tuned noise.
        sensitive: :func:`sensitivity` of the likelihood.
        change: of the estimates.
        held_out: the validation, where it was made.

    Returns:
        A sentence for each thing that is wrong; empty if nothing is.
    """
    sentences = [
        _apart(found, held_out) if held_out is not None else "",
        _unfinished(found),
        *(_unseen(*given) for given in zip(found.likelihood.names, found.x, sensitive)),
        _colour(found),
        *_inconsistent(found),
        _refused(found),
        *_estimates_changed(change),
    ]
    return [sentence for sentence in sentences if sentence]


def _apart(found: Tuning, held_out: HeldOut) -> str:
    """Say that the halves ask for different noise."""
    loss = held_out.own - held_out.other
    if np.max(loss) <= _APART:
        return ""
    k = int(np.argmax(np.abs(held_out.x[0] - held_out.x[1])))
    first, second = 10.0 ** (held_out.x[:, k] - found.x[k])
    return (
        f"the halves of the recordings ask for different noise: {found.likelihood.names[k]} {first:.2g} and "
        f"{second:.2g} times the tuned one. One value cannot describe both; look for what changed"
    )


def _unfinished(found: Tuning) -> str:
    """Say that the search ended before it had converged."""
    if np.max(found.spread) <= _SPREAD:
        return ""
    return (
        f"the search ended after {found.evaluations} runs, with noises that differ by a factor of "
        f"{10.0 ** np.max(found.spread):.2g}: give more --evaluations, or fewer names to --noise"
    )


def _unseen(name: str, x: float, falls: np.ndarray) -> str:
    """Say that the recordings do not show a noise: half a decade less or more is as likely."""
    if abs(x) > 0.95 * REACH:
        return f"{name} went to the end of its range, a factor of {10.0**x:.1g}: leave it out of --noise"
    less, more = falls > _SHOWN
    if less and more:
        return ""
    if not less and not more:
        return (
            f"the recordings do not show {name}: three times less and more are as likely. Leave it out of --noise, or "
            "record motion and contact that it acts on"
        )
    word, bound = ("less", "an upper bound") if more else ("more", "a lower bound")
    return f"three times {word} {name} is as likely: the value is {bound}"


def _colour(found: Tuning) -> str:
    """Say which channel's innovations repeat."""
    r = _worst(found.after, "correlation")
    j = int(np.argmax(np.abs(r)))
    if abs(r[j]) <= _COLOUR:
        return ""
    cause = (
        "something slower than the noise acts: friction, a load, uneven gears. A likelihood takes it for contact; "
        "compare the force with the one before, on recordings with a force sensor"
        if r[j] > 0
        else "the filter follows the sensors' noise: tune the measurement noise, too"
    )
    return f"innovations repeat ({found.channels[j]}: correlation {r[j]:.2f}, white ones 0): {cause}"


def _inconsistent(found: Tuning) -> list[str]:
    """Say which channel's noise is off beside the others, and that many updates lie outside."""
    sentences = []
    square = _worst_ratio(found.after)
    j = int(np.argmax(np.abs(np.log(square))))
    if not _MEAN_SQUARE[0] <= square[j] <= _MEAN_SQUARE[1]:
        sentences.append(
            f"the noise of one channel does not fit the others' ({found.channels[j]}: mean square of the innovations "
            f"{square[j]:.2g}, expected 1). Joints keep their proportions; scale that channel's value in the settings"
        )
    inside = min(s.inside for s in found.after)
    if inside < _INSIDE:
        sentences.append(
            f"only {100 * inside:.0f} % of the updates lie inside the 95 % quantile: outliers, as at stops and "
            "touches, or a model that does not fit"
        )
    return sentences


def _refused(found: Tuning) -> str:
    """Say that many samples were not used."""
    share = max(s.refused / max(s.refused + s.updates, 1) for s in found.after)
    return f"{100 * share:.0f} % of the samples of a recording were refused" if share > _REFUSED else ""


def _estimates_changed(change: EstimateChange) -> list[str]:
    """Say how validity, contacts and force differ from those before."""
    sentences = []
    before, after = change.valid
    if before - after > _RENAMED:
        sentences.append(
            f"{100 * after:.0f} % of the estimates are valid with the tuned noise, {100 * before:.0f} % were before: "
            "replay says why they are not"
        )
    if change.to_contact > _RENAMED:
        sentences.append(
            f"{100 * change.to_contact:.0f} % of the time, free before, is a contact with the tuned noise: keep the "
            "noise before if nothing was touched"
        )
    if change.to_free > _RENAMED:
        sentences.append(
            f"{100 * change.to_free:.0f} % of the time, a contact before, is free with the tuned noise: keep the noise "
            "before if something was touched"
        )
    if change.beyond > _CHANGED:
        sentences.append(
            f"the force changes by {change.force:.1f} N (RMS), in {100 * change.beyond:.0f} % of the time by more than "
            "its standard deviations allow: compare it with a force sensor"
        )
    return sentences


def _worst(statistics: Sequence[ConsistencyStatistics], name: str) -> np.ndarray:
    """Return per channel the value of largest magnitude over the recordings."""
    values = np.array([getattr(s, name) for s in statistics])  # (R, channels)
    return np.asarray(np.take_along_axis(values, np.abs(values).argmax(axis=0)[None], axis=0)[0])


def _worst_ratio(statistics: Sequence[ConsistencyStatistics]) -> np.ndarray:
    """Return per channel the mean square over the recordings that is farthest from 1, as a ratio."""
    values = np.maximum([s.mean_square for s in statistics], 1e-12)
    return np.asarray(np.take_along_axis(values, np.abs(np.log(values)).argmax(axis=0)[None], axis=0)[0])
