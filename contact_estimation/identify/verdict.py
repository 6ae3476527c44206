"""Verdict on an identification: tests of its residuals against noise that was known before the fit.

Residuals are whitened with the noise's known standard deviations, never with a scale taken from the residuals
themselves. Every test returns a :class:`Finding` with its statistic and its threshold, flagged or not;
:func:`conclude` makes a :class:`Verdict` of them. Thresholds follow from a probability of false alarm, which a caller
divides by the number of its tests (Bonferroni). Tests: chi-square; Box and Pierce (1970) at lag 1; score test for
a nuisance that was left out (Rao 1948); Chow's (1960) test of two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom, chi2, norm

GOOD, DOUBTFUL, FAILED = "good", "doubtful", "failed"
#: Exit code of a command whose identification failed; 1 and 2 are those of errors and of wrong arguments.
EXIT_FAILED = 3
#: Reduced chi-square above which the model does not describe the recording at all: residuals are 3 times the noise.
CHI_SQUARE_FAILED = 9.0


@dataclass(frozen=True)
class Finding:
    """One test.

    Attributes:
        test: name of the test, for machines.
        statistic: what was measured.
        threshold: value above which the finding is flagged.
        message: the sentence for the user; empty where another finding says it.
        fatal: whether the result is worthless where this is flagged.
    """

    test: str
    statistic: float
    threshold: float
    message: str
    fatal: bool = False

    @property
    def flagged(self) -> bool:
        """Whether the test found something; a statistic that is not finite counts."""
        return not self.statistic <= self.threshold


@dataclass(frozen=True)
class Verdict:
    """Conclusion from all tests.

    Attributes:
        verdict: ``good``, ``doubtful`` or ``failed``.
        reasons: sentences for the user, the gravest first; empty where it is good.
        findings: every test that was made, flagged or not.
        unchecked: sentences on what the result takes as given, because no measurement checks it.
    """

    verdict: str
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or :data:`EXIT_FAILED`."""
        return EXIT_FAILED if self.verdict == FAILED else 0

    def as_json(self) -> dict[str, Any]:
        """Return the keys of ``--json``: ``verdict``, ``reasons``, ``unchecked``, and ``tests`` with their numbers."""
        tests = {f.test: {"statistic": f.statistic, "threshold": f.threshold} for f in self.findings}
        said = {"verdict": self.verdict, "reasons": list(self.reasons), "unchecked": list(self.unchecked)}
        return {**said, "tests": tests}

    def as_text(self) -> str:
        """Return lines for a reader."""
        lines = (*self.reasons, *self.unchecked)
        return "\n".join([f"verdict: {self.verdict}", *(f"  - {line}" for line in lines)])


def conclude(findings: Sequence[Finding], failures: Sequence[str] = (), unchecked: Sequence[str] = ()) -> Verdict:
    """Make a verdict of findings.

    Args:
        findings: all tests.
        failures: sentences that say why there is no usable result (not converged, not finite, at a bound).
        unchecked: sentences on what no measurement checks; they leave the verdict as it is.

    Returns:
        ``failed`` with a failure or a flagged finding that is fatal, ``doubtful`` with any other flagged finding.
    """
    flagged = sorted((f for f in findings if f.flagged), key=lambda f: not f.fatal)
    failed = bool(failures) or any(f.fatal for f in flagged)
    verdict = FAILED if failed else DOUBTFUL if flagged else GOOD
    reasons = *failures, *(f.message for f in flagged if f.message)
    return Verdict(verdict, reasons, tuple(findings), tuple(unchecked))


def merge(verdicts: Mapping[str, Verdict], findings: Sequence[Finding] = ()) -> Verdict:
    """Make one verdict of those of several parts, the worst of them; reasons and tests carry the part's name.

    Args:
        verdicts: by name of the part.
        findings: further tests, across the parts.
    """
    across = conclude(findings)
    every = [*verdicts.values(), across]
    worst = max((each.verdict for each in every), key=(GOOD, DOUBTFUL, FAILED).index)
    reasons = [f"{name}: {reason}" for name, each in verdicts.items() for reason in each.reasons]
    tests = [replace(f, test=f"{f.test} ({name})") for name, each in verdicts.items() for f in each.findings]
    unchecked = dict.fromkeys(sentence for each in verdicts.values() for sentence in each.unchecked)
    return Verdict(worst, (*across.reasons, *reasons), (*tests, *findings), tuple(unchecked))


def _tested(finding: Finding, residuals: np.ndarray, what: str) -> Finding:
    """Return the finding, or one that counts where there are no residuals or they are not finite."""
    if residuals.size and np.all(np.isfinite(residuals)):
        return finding
    why = "the differences from the model are not finite" if residuals.size else "there are none to test"
    return replace(finding, statistic=np.nan, message=f"{what}: {why}")


def lag_correlation(residuals: np.ndarray, lag: int = 1) -> np.ndarray:
    """Return the correlation (channels,) of residuals (n, channels) with those ``lag`` samples later, about zero."""
    power = np.sum(np.square(residuals), axis=0)
    return np.asarray(np.sum(residuals[lag:] * residuals[:-lag], axis=0) / np.maximum(power, 1e-300))


def chi_square(
    residuals: np.ndarray, fitted: int, alarm: float, what: str = "measurements", precision: float = 0.0
) -> Finding:
    """Test the power of residuals against the noise, Q = sum z^2 / (n - p) ~ chi-square / dof.

    Residuals that repeat carry fewer independent squares: n (1 - r^2) / (1 + r^2) with r at lag 1.

    Args:
        residuals: whitened (n, channels).
        fitted: number p of parameters fitted to them.
        alarm: probability of a false alarm.
        what: what was measured, for the message.
        precision: relative standard deviation of the noise's own variance; three of them are allowed for.

    Returns:
        the finding; fatal where Q exceeds :data:`CHI_SQUARE_FAILED` or is not finite.
    """
    n = residuals.size
    q = float(np.sum(np.square(residuals))) / max(n - fitted, 1)
    r = float(np.clip(np.mean(lag_correlation(residuals)), 0.0, 0.99)) if len(residuals) > 2 else 0.0
    dof = max(n * (1.0 - r * r) / (1.0 + r * r) - fitted, 1.0)
    threshold = max(float(chi2.isf(alarm, dof)) / dof, 1.0 + 3.0 * precision)
    message = (
        f"{what}: model and data differ by {np.sqrt(q):.1f} times the stated noise; the noise is larger, or "
        "something acts that the model does not have"
    )
    return _tested(Finding("chi_square", q, threshold, message, not q <= CHI_SQUARE_FAILED), residuals, what)


def whiteness(residuals: np.ndarray, alarm: float, what: str = "measurements") -> Finding:
    """Test whether residuals repeat from sample to sample: max over the channels of r_1 sqrt(n), normal if white.

    Args:
        residuals: whitened (n, channels), evenly spaced samples.
        alarm: probability of a false alarm.
        what: what was measured, for the message.
    """
    statistic = float(np.max(np.abs(lag_correlation(residuals)))) * np.sqrt(len(residuals))
    threshold = float(norm.isf(alarm / (2.0 * residuals.shape[1])))
    message = f"{what}: the differences from the model repeat from sample to sample instead of being noise"
    return _tested(Finding("whiteness", statistic, threshold, message), residuals[1:], what)  # pairs of samples


def segment_means(segments: Sequence[np.ndarray], alarm: float, what: str = "measurements") -> Finding:
    """Test the mean of each segment: max of |mean| sqrt(n), normal where nothing is left.

    Args:
        segments: whitened residuals (n_i, channels) of strokes, flights or contacts.
        alarm: probability of a false alarm.
        what: what was measured, for the message.
    """
    means = np.array([np.abs(np.sum(z, axis=0)) / np.sqrt(len(z)) for z in segments if len(z)])
    threshold = float(norm.isf(alarm / (2.0 * max(means.size, 1))))
    message = f"{what}: in a part of the recording they lie off the model all the time, not only by noise"
    return _tested(Finding("segment_means", float(np.max(means, initial=0.0)), threshold, message), means, what)


def outliers(residuals: np.ndarray, alarm: float, what: str = "measurements", limit: float = 4.0) -> Finding:
    """Count residuals beyond ``limit`` standard deviations against the binomial count of a Gaussian noise.

    Args:
        residuals: whitened, any shape.
        alarm: probability of a false alarm.
        what: what was measured, for the message.
        limit: [standard deviations] from which a number counts as an outlier.
    """
    count = int(np.sum(np.abs(residuals) > limit))
    threshold = float(binom.isf(alarm, residuals.size, 2.0 * norm.sf(limit)))
    message = f"{what}: samples are far off: {count} of {residuals.size} numbers by more than {limit:g} times the noise"
    return _tested(Finding("outliers", float(count), max(threshold, 1.0), message), residuals, what)


def score_test(residuals: np.ndarray, columns: np.ndarray, nuisance: np.ndarray) -> tuple[float, float]:
    """Estimate one nuisance that the fit left out, to first order, with the parameters free beside it.

    Residual z = J dp + s a + e. With J projected off, a = s' z / (s' s) and its standard deviation is 1 / |s|.

    Args:
        residuals: whitened residuals (n,) at the solution.
        columns: whitened Jacobian J (n, p) of the parameters; (n, 0) without any.
        nuisance: whitened derivative s (n,) by the nuisance.

    Returns:
        estimate of the nuisance, and its standard deviation; infinite where the parameters take it up wholly.
    """
    basis = np.linalg.qr(columns)[0]
    free = nuisance - basis @ (basis.T @ nuisance)
    power = float(free @ free)
    if power <= 1e-12 * float(nuisance @ nuisance):
        return 0.0, np.inf
    return float(free @ residuals) / power, 1.0 / float(np.sqrt(power))


def delay(estimate: float, std: float, first: str, second: str, least: float = 5e-4, sigmas: float = 4.0) -> Finding:
    """Judge an estimated clock offset between two channels.

    Args:
        estimate: by how much ``first`` is later than ``second`` [s].
        std: its standard deviation [s].
        first: name of a channel.
        second: name of the other, or of the others.
        least: offset [s] that is let pass however sharply it is known.
        sigmas: standard deviations from which it counts.
    """
    message = (
        f"{first} and {second} disagree by {1e3 * abs(estimate):.1f} ms: "
        f"{first} is {'late' if estimate > 0.0 else 'early'}; synchronise the clocks or shift the time of one"
    )
    return Finding("clock", abs(estimate), max(sigmas * std, least), message)


def repeated(channel: np.ndarray, alarm_run: int = 5) -> int:
    """Return the length of the longest run of equal extreme values of a noisy channel (n,): a sensor at its limit.

    Args:
        channel: raw samples of one sensor axis.
        alarm_run: shorter runs are returned as 0.
    """
    longest = 0
    for extreme in (np.min(channel), np.max(channel)):
        edges = np.diff(np.concatenate([[0], (channel == extreme).astype(int), [0]]))
        runs = np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0)
        longest = max(longest, int(runs.max(initial=0)))
    return longest if longest >= alarm_run else 0


def split(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    alarm: float,
    what: str = "first and second half",
) -> Finding:
    """Compare the parameters from two parts of the data, D = d^T (C1 + C2)^-1 d ~ chi-square of p.

    Args:
        first: parameters (p,) and covariance (p, p) from one part.
        second: the same from the other, independent part.
        alarm: probability of a false alarm.
        what: names of the parts, for the message.
    """
    apart = first[0] - second[0]
    statistic = float(apart @ np.linalg.solve(first[1] + second[1], apart))
    message = f"{what} of the recording give different parameters: something changed, or the model does not hold"
    return Finding("split", statistic, float(chi2.isf(alarm, len(apart))), message)


def different_optima(
    merits: Sequence[float], parameters: Sequence[np.ndarray], std: np.ndarray, alarm: float = 0.01
) -> Finding:
    """Compare the ends of several starts: equally good, yet more than three standard deviations apart.

    Args:
        merits: chi-square (starts,) that each start reached; one that is not finite is no optimum.
        parameters: parameters (p,) that each reached.
        std: standard deviations (p,) at the best.
        alarm: merits within chi-square of 2 at this probability count as equally good.

    Returns:
        the finding, fatal; its statistic is the distance [standard deviations].
    """
    reached = np.where(np.isfinite(merits), merits, np.inf)
    best = int(np.argmin(reached))
    near = [
        k for k in np.flatnonzero(np.isfinite(reached)).tolist() if reached[k] <= reached[best] + chi2.isf(alarm, 2)
    ]
    distance = float(np.max([np.abs(parameters[k] - parameters[best]) / std for k in near])) if near else np.nan
    message = "different starts end at different parameters that explain the data equally well"
    return Finding("optima", distance, 3.0, message, fatal=True)


def total_std(std: np.ndarray, chi_square: float, lag1: float = 0.0, shifts: Sequence[np.ndarray] = ()) -> np.ndarray:
    """Widen standard deviations (p,) by the model error that was found; never narrower than given.

    Args:
        std: from the noise alone.
        chi_square: reduced chi-square Q of the residuals.
        lag1: their correlation r from sample to sample: sums of n of them scatter as n Q (1 + r) / (1 - r).
        shifts: changes (p,) of the estimate when a nuisance that was found is freed.
    """
    r = float(np.clip(lag1, 0.0, 0.98))
    variance = np.square(std) * max(1.0, chi_square * (1.0 + r) / (1.0 - r))
    for shift in shifts:
        variance = variance + np.square(shift)
    return np.asarray(np.sqrt(variance))


def interval(mean: np.ndarray, std: np.ndarray, into: Callable[[np.ndarray], np.ndarray] | None = None) -> np.ndarray:
    """Return the ends (p, 2) of 95 % intervals, through a monotone map ``into`` physical parameters if given."""
    ends = np.array([mean - 1.96 * std, mean + 1.96 * std])
    return np.asarray((into(ends) if into else ends).T)
