"""Evidence for and against an estimate: residuals against the stated noise, and score tests for faults.

Window bins in which a contact begins or ends are left out, because the grid does not resolve the event. A score test
(Rao 1948) predicts the decrease of the cost from freeing a delay, a gain or a bias of one channel, or the power of the
depth in one contact's force, with trajectory and parameters free. The fault with the largest decrease is reported; the
others are often its consequences.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from contact_estimation.identify.arrays import Array, Flags, Indices
from contact_estimation.identify.batch.bordered import Factorisation
from contact_estimation.identify.batch.discretisation import grid_shift
from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.grid_channel import GridChannel
from contact_estimation.identify.batch.held import frozen
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.verdict import Finding, Verdict, conclude, lag_correlation, total_std

#: Chi-square per number from which noise does not explain a channel, and the dynamics' share of what was allowed:
#: noise is seldom known better than to a third. Above 9 the result is useless.
_CHI_SQUARE, _DYNAMICS, _WORTHLESS = 2.0, 1.5, 9.0
_MISSING = 0.1  # share of the time without samples that is let pass
_CORRELATION = 0.3  # from one cell to the next, from which residuals are not noise
_SIGMAS = 5.0  # standard deviations from which a sensor fault counts
#: Tolerated at any confidence: delay [s], gain, bias [standard deviations of the channel], power of the depth.
_LEAST = {"delay": 5e-4, "gain": 0.03, "bias": 1.0, "power": 0.1}
#: Kinds whose size a recording may leave open, in the user's words.
_RESTING = {"gain": "scale", "bias": "zero"}
#: Gain from which a test of first order says nothing: 1 / (1 + a) = 1 - a does not hold. At a = 1 it leaves no force,
#: which fits any misfit where masses and stiffnesses are free.
_LARGEST_GAIN = 0.5
#: Share of a fault's effect that the parameters must leave for a test: a motor's gain scales masses and stiffnesses
#: alike. The contact law holds to 1e-4, which is 1e-8 of a square.
_TESTABLE = 1e-6
#: Share of a fault's effect left by the trajectory, below which it is rounding.
_ROUNDING = 1e-10
#: Remarks on a parameter.
AT_BOUND, UNDETERMINED = "at its bound", "not determined by the data"
#: A point contact does not know where in the overlap its force acts: half a depth of millimetres over a lever arm of
#: decimetres. Simulations that put it elsewhere move friction and springs by up to this share.
_POINT_CONTACT = 3e-3
#: A fault of one standard deviation moves a parameter by this many of the parameter's own: it then depends on the
#: channel having no such fault.
_RESTS = 10.0
_HALF_WIDTH = 1.96  # standard deviations to the end of a 95 % interval
_AROUND_EVENT = 2  # cells on either side of a contact's begin or end
_FEWEST = 10  # cells of a number, below which its residuals are not tested


class _Fault(NamedTuple):
    """Score test of one property of one channel or contact; a bias has e numbers, everything else one."""

    channel: str  # or contact
    kind: str
    estimate: Array  # (e,)
    drop: float  # of the cost, if it were freed
    shift: Array  # of the parameters (c,), if it were freed
    directions: Array  # (e, e) combinations of the numbers, one standard deviation each
    moves: Array  # (c, e) of the parameters by each of them
    unseen: Flags  # (e,) combinations that the parameters absorb: their standard deviation is a lower bound
    unmeasured: Flags  # (e,) combinations that nothing but the parameters' priors opposes

    @property
    def size(self) -> float:
        """Largest number of the estimate."""
        return float(np.max(np.abs(self.estimate)))

    def finding(self, least: float) -> Finding:
        """Return the test in the user's words; below ``least`` it passes."""
        much, name, sign = self.size, self.channel, self.estimate[0]
        off = ", ".join(f"{number:.3g}" for number in self.estimate)
        message = {
            "delay": f"'{name}' and the other channels disagree by {1e3 * much:.1f} ms: its clock is "
            f"{'late' if sign > 0 else 'early'}; correct the sensor's clock",
            "gain": f"'{name}' reads {100 * much:.0f} % too {'much' if sign > 0 else 'little'}; "
            "correct the sensor's gain",
            "bias": f"'{name}' reads {off} off; correct the sensor's offset",
            "power": f"the force of contact '{name}' grows {'faster' if sign > 0 else 'slower'} than depth: "
            "its stiffness holds at the mean depth of this recording only",
        }[self.kind]
        add = "" if self.kind == "power" else f", or identify it as a parameter of kind {self.kind}"
        enough = np.sqrt(chi2.isf(2.0 * norm.sf(_SIGMAS), len(self.estimate)))
        limit = much * enough / np.sqrt(self.drop) if self.drop > 0.0 else np.inf
        return Finding(f"{self.kind}[{name}]", much, max(limit, least), message + add)


def judge(
    problem: Problem, estimate: Estimate, contact_force: Array, notes: list[str], std: Array
) -> tuple[Verdict, Array]:
    """Make the verdict on an estimate.

    Args:
        problem: what was solved.
        estimate: its outcome.
        contact_force: (n, 3) [N] along the trajectory.
        notes: remark on each parameter (c,), see :class:`~.result.ParameterEstimate`.
        std: of the optimiser's parameters from the told noise (c,).

    Returns:
        the verdict, and standard deviations (c,) widened by the model error that was found and by the grid's.
    """
    residuals = problem.residuals(estimate.solution.q, estimate.solution.p)
    quiet = _away_from_events(contact_force)
    findings, unchecked = frozen(problem, residuals), []
    dynamics = worst = 1.0, 0.0  # chi-square per number and correlation, of the dynamics and of the worst channel
    left_out = {channel.name for channel in problem.channels if channel.weight == 0}
    for name, part in problem.parts().items():
        found, chi_square, correlation = _residual_tests(problem, residuals, name, part, quiet)
        findings += found
        if not found and name not in left_out:
            unchecked.append(
                f"the residuals of '{name}' were not tested: it counts at fewer than {_FEWEST} times away from the "
                "begin and end of contacts"
            )
        if name == "dynamics":
            dynamics = chi_square, correlation
        elif chi_square > worst[0]:
            worst = chi_square, correlation
    findings += [_gaps(problem, each) for each in problem.grid_channels]
    shifts: list[Array] = []
    faults: list[_Fault] = []
    if estimate.mode == "both":
        shifts.append(grid_shift(problem, estimate))
        faults = score_tests(problem, estimate)
        flagged = [(f, f.finding(_least(problem, f))) for f in faults]
        flagged = sorted((pair for pair in flagged if pair[1].flagged), key=lambda pair: -pair[0].drop)
        findings += [finding for _, finding in flagged[:1]]
        shifts += [fault.shift for fault, _ in flagged[:1]]
    findings += [
        Finding(f"note[{name}]", 1.0, 0.0, f"parameter '{name}' is {note}")
        for name, note, prior in zip(problem.scene.parameters.names, notes, problem.scene.parameters.prior_std)
        if note == AT_BOUND or (note == UNDETERMINED and np.isinf(prior))
    ]
    if not estimate.converged:
        findings.append(Finding("converged", 1.0, 0.0, f"the estimate did not converge: {estimate.reason}"))
    failures = [] if np.isfinite(estimate.solution.cost) else ["the cost is not finite"]
    shifts.append(_law_error(problem))
    total = np.maximum(total_std(std, *worst, shifts), total_std(std, *dynamics, shifts))
    unchecked += _unchecked(problem, faults, std, total)
    return conclude(findings, failures, unchecked), total


def _law_error(problem: Problem) -> Array:
    """Return standard deviations (c,) that a point contact leaves to parameters given as logarithms."""
    relative = _POINT_CONTACT if problem.scene.nominal.npair else 0.0
    return np.where(problem.scene.parameters.logarithmic, relative, 0.0)


def _unchecked(problem: Problem, faults: list[_Fault], std: Array, total: Array) -> list[str]:
    """Say which parameters rest on the zero or scale of a channel that no other channel checks.

    A combination that the parameters absorb may be of any size, unless their priors are tight enough to have the
    least fault flagged. A parameter depends on it if this least fault moves it beyond the interval of the result.

    Args:
        problem: what was solved.
        faults: score tests of its channels.
        std: of the optimiser's parameters from the told noise (c,).
        total: those of their `interval_total` (c,).
    """
    said = []
    for fault in faults:
        least, size = _least(problem, fault), np.max(np.abs(fault.directions), axis=0)  # (e,)
        absorbed = (size > 0.0) & (fault.unseen | (fault.unmeasured & (_SIGMAS * size > least)))
        unknown = absorbed | (size > least)
        rests = np.any(np.abs(fault.moves[:, unknown]) > _RESTS * std[:, None], axis=1)
        by_least = fault.moves[:, absorbed] * np.maximum(least / size[absorbed], 1.0)
        rests |= np.any(np.abs(by_least) > _HALF_WIDTH * total[:, None], axis=1)
        if fault.kind in _RESTING and np.any(rests):
            names = ", ".join(np.array(problem.scene.parameters.names)[rests])
            said.append(f"no measurement checks the {_RESTING[fault.kind]} of '{fault.channel}'; it would move {names}")
    return said


def _least(problem: Problem, fault: _Fault) -> float:
    if fault.kind != "bias":
        return _LEAST[fault.kind]
    std = next(channel.std for channel in problem.channels if channel.name == fault.channel)
    return _LEAST["bias"] * float(np.min(std))


def _away_from_events(contact_force: Array) -> Array:
    """Cells (n,) that are not next to a contact's begin or end."""
    touching = np.any(contact_force != 0.0, axis=1)
    events = np.flatnonzero(np.diff(touching))
    quiet = np.ones(len(touching), bool)
    for event in events.tolist():
        quiet[max(event + 1 - _AROUND_EVENT, 0) : event + 1 + _AROUND_EVENT] = False
    return quiet


def _gaps(problem: Problem, each: GridChannel) -> Finding:
    """Count the cells in which a channel that is used has no sample."""
    inside = problem.stencil.interior
    missing = 1.0 - float(np.mean(each.worth[inside] > 0)) if each.channel.weight > 0 else 0.0
    message = (
        f"'{each.name}' has no samples in {100 * missing:.0f} % of the time; what happened there is known less well"
    )
    return Finding(f"gaps[{each.name}]", missing, _MISSING, message)


def _residual_tests(
    problem: Problem, residuals: Array, name: str, part: slice, quiet: Array
) -> tuple[list[Finding], float, float]:
    """Test one part's residuals where they count.

    Returns:
        tests (none without enough cells), chi-square per number, and largest correlation between neighbouring cells.
    """
    weight, worth = problem.weights[:, part], problem.worth[:, part]
    used = np.logical_and(quiet[:, None], weight > 0)  # (n, columns)
    used &= np.sum(used, axis=0) >= _FEWEST
    if not np.any(used):
        return [], 1.0, 0.0
    z = np.where(used, residuals[:, part] * np.sqrt(weight / np.maximum(worth, 1e-9)), 0.0)
    chi_square = float(np.mean(z[used] ** 2))
    correlation = float(np.max(lag_correlation(z)))
    if name == "dynamics":
        message = (
            f"the motion needs forces that the model does not have, {np.sqrt(chi_square):.1f} times what dynamics_std "
            "allows: a wrong mass, friction, a second contact, or wrong torques"
        )
        return [Finding("dynamics", chi_square, _DYNAMICS, message, chi_square > _WORTHLESS)], chi_square, 0.0
    message = f"'{name}' differs from the model by {np.sqrt(chi_square):.1f} times its stated noise"
    found = [Finding(f"chi_square[{name}]", chi_square, _CHI_SQUARE, message, chi_square > _WORTHLESS)]
    if np.median(worth[used]) < 1.0:  # interpolated cells share their samples
        return found, chi_square, 0.0
    message = f"'{name}': the differences from the model repeat from cell to cell instead of being noise"
    return [*found, Finding(f"whiteness[{name}]", correlation, _CORRELATION, message)], chi_square, correlation


def score_tests(problem: Problem, estimate: Estimate) -> list[_Fault]:
    """Return the score test of every delay, gain, bias and power of a depth, to first order at the solution.

    With Hessian H and gradient g of half the cost, the trajectory eliminated, the property a is
    a = -S^-1 (g_a - H_ap H_pp^-1 g_p) with S = H_aa - H_ap H_pp^-1 H_pa, and the cost drops by a^T S a. The numbers
    of a bias are tested together: two encoders may be off so that a third sensor sees neither.
    """
    q, p = estimate.solution.q, estimate.solution.p
    names, columns = problem.by_faults(q, p)
    system = problem.linearise(q, p).bordered_by(columns)
    reduced = Factorisation(system, 1e-9, 0.0)
    hessian, gradient, c = 0.5 * reduced.schur, 0.5 * reduced.gradient, len(p)
    own = {
        (name, parameter.kind)
        for parameter, _, _ in problem.scene.parameters.of_channels(p)
        for name in parameter.channels
    }
    inverse = np.linalg.pinv(hessian[:c, :c], rcond=1e-14, hermitian=True)
    of_samples = hessian[:c, :c] - np.diag(problem.prior(p)[1] ** 2)
    without_prior = np.linalg.pinv(of_samples, rcond=1e-14, hermitian=True)
    found = []
    for channel, kind in dict.fromkeys(names):
        if (channel, kind) in own:
            continue
        part = np.array([c + k for k, name in enumerate(names) if name == (channel, kind)])
        across, free = _freed(hessian, inverse, part)
        seen = np.diag(hessian)[part] > _ROUNDING * np.diag(system.corner)[part]
        scale = seen / np.sqrt(np.where(seen, np.diag(hessian)[part], 1.0))
        left, vectors = np.linalg.eigh(free * np.outer(scale, scale))  # share of each direction's effect
        ways = scale[:, None] * vectors
        measured = np.diag(ways.T @ _freed(hessian, without_prior, part)[1] @ ways)
        directions = ways / np.sqrt(np.maximum(left, _TESTABLE))
        amounts = -directions.T @ (gradient[part] - across.T @ gradient[:c])  # [standard deviations]
        unseen = left <= _TESTABLE
        amounts[unseen] = 0.0
        if kind == "gain" and np.max(np.abs(directions @ amounts)) > _LARGEST_GAIN:
            amounts[:] = 0.0
        moves = -across @ directions
        test = directions @ amounts, float(amounts @ amounts), moves @ amounts
        found.append(_Fault(channel, kind, *test, directions, moves, unseen, measured <= _TESTABLE))
    return found


def _freed(hessian: Array, inverse: Array, part: Indices) -> tuple[Array, Array]:
    """Let the parameters follow some numbers of a fault.

    Args:
        hessian: H of parameters and faults.
        inverse: H_pp^-1 (c, c).
        part: (e,) numbers of the fault.

    Returns:
        H_pp^-1 H_pa (c, e), and S = H_aa - H_ap H_pp^-1 H_pa (e, e).
    """
    c = len(inverse)
    across = inverse @ hessian[:c, part]
    return across, hessian[np.ix_(part, part)] - hessian[part, :c] @ across
