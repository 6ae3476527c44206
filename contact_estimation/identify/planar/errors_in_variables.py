"""Eq. 18 with noisy states: trajectory, parameters and impulses together (errors in variables).

Eq. 18 takes measured states as true. Noise in the velocity changes of its regressor attenuates the parameters. Here
the states are unknown too:

    min  sum |q^k - q_meas|^2 / s_q^2 + |v^k - v_meas|^2 / s_v^2
    s.t. q^{k+1} = q^k + h v^{k+1},    Y(q^k, v^k, v^{k+1}) theta = h f_ext + J_c(q^k)^T c,    c >= 0.

That is the scheme of time stepping; :mod:`~.discretisation` has one for sampled motion too.
Newton's method on the constraints (sequential quadratic programming with the Gauss-Newton Hessian, one sparse system
per step). Cone edges whose impulse becomes negative leave; the slack of :class:`~.window.Slack` says which may bear
force at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.discretisation import TIME_STEPPING, Model, Scheme, at_scheme
from contact_estimation.identify.planar.window import (
    Column,
    Slack,
    Step,
    WindowEstimate,
    force_columns,
    identify_window,
)
from contact_estimation.identify.verdict import Finding, Verdict, chi_square, conclude, lag_correlation, outliers

_ITERATIONS, _CONVERGED = 40, 1e-4  # steps at most; largest step [standard deviations of the states] that ends
_PASSES = 3  # at most, with contacts chosen anew
_LEAVE = 4  # the most negative quarter of the negative impulses leaves per step: others may change sign when it has
_DIFFERENCE = 1e-7  # of a state [m, rad, m/s, rad/s]
_IMPULSE = 1e-2  # scale of an impulse in the linear system [N s]
_ALARM = 0.01  # probability of a false alarm of each test
_TOLD = 0.1  # relative accuracy with which a noise's standard deviation is known
_CORRELATION = 0.4  # from sample to sample, from which residuals are not noise; a fit leaves some
_REGULAR = 1e-12  # of the multipliers: two corners on one ground repeat each other


class StateNoise(NamedTuple):
    """Standard deviations of measured states, above 0."""

    position: Array  # (n,) [m, rad]
    velocity: Array  # (n,) [m/s, rad/s]


class ForceErrors(NamedTuple):
    """Errors a (e,) of the known force that the fit left out, to first order: h f_ext + B a acts instead of h f_ext.

    The score is the derivative of half the sum of squares by a; the information is its second derivative with
    states, parameters and impulses free beside it.
    """

    score: Array  # (e,)
    information: Array  # (e, e)
    moves: Array  # of theta by a unit of each (r, e)


class Options(NamedTuple):
    """Further choices of :func:`smooth_window`.

    A wide slack lets contacts bear force that do not touch. Impulses are never negative, so noise then pushes one way
    only and biases the parameters. ``narrow`` chooses the contacts again, from the smoothed states.
    """

    scheme: Scheme = TIME_STEPPING  # how a step joins two states
    narrow: Slack | None = None  # of smoothed states; None keeps the contacts of the measured ones
    force_errors: Array | None = None  # impulses B (N, n, e) of a unit of each possible error of the known force


_PLAIN = Options()


class SmoothedWindow(NamedTuple):
    """Result of :func:`smooth_window`."""

    estimate: WindowEstimate
    std: Array  # of theta from the told noise (r,); 0 for parameters given
    q: Array  # smoothed configurations (N+1, n)
    v: Array  # smoothed velocities (N+1, n)
    residuals: Array  # (measured - smoothed) / noise (N+1, 2 n)
    freedom: int  # their degrees of freedom
    errors: ForceErrors  # of the known force

    @property
    def chi_square(self) -> float:
        """Sum of squares of the residuals per degree of freedom."""
        return float(np.sum(self.residuals**2)) / self.freedom


def smooth_window(
    model: Model,
    q: Array,
    v: Array,
    h: float,
    noise: StateNoise,
    slack: Slack,
    known: dict[int, float] | None = None,
    options: Options = _PLAIN,
) -> SmoothedWindow:
    """Solve eq. 18 for states, parameters and impulses.

    Args:
        model: eq. 18 of a step.
        q: measured configurations (N+1, n).
        v: measured velocities (N+1, n).
        h: step [s].
        noise: of both.
        slack: how far noise may push a contact off its constraint.
        known: parameters given beforehand, index -> value, see :func:`~.window.identify_window`.
        options: discretisation and further passes.

    Raises:
        ConfigError: a standard deviation is not above 0.
        IdentificationError: as :func:`~.window.identify_window`, whose answer is the start.
    """
    if not all(np.all(part > 0.0) for part in noise):
        raise ConfigError(
            f"the noise of the states is {noise.position} m, rad and {noise.velocity} m/s, rad/s; expected numbers "
            "above 0: give the sensors' noise (--noise of the command)"
        )
    model = at_scheme(model, h, options.scheme)
    steps = [model(k, q[k], v[k], v[k + 1]) for k in range(len(q) - 1)]
    start = identify_window(steps, slack, known)
    measured = np.concatenate([q.ravel(), v.ravel()])
    sigma = np.concatenate([np.tile(part, len(q)) for part in noise])
    joins = h * options.scheme.before, h * (1.0 - options.scheme.before)
    window = _Window(model, joins, sigma, q.shape, dict(known or {}), [])
    point = _Point(measured, start.theta, np.zeros(0), False)
    edges, passes = force_columns(steps, slack), 0
    while start.status != "failed":
        point = window.solve(measured, point, edges)
        before, passes = edges, passes + 1
        if options.narrow is None or not point.converged or passes > _PASSES:
            break
        edges = force_columns(window.steps(point.x), options.narrow)
        if edges == before:
            break
    errors = np.zeros((len(steps), q.shape[1], 0)) if options.force_errors is None else options.force_errors
    return window.read_out(point, (measured - point.x) / sigma, start, errors)


def judge(found: SmoothedWindow, findings: Sequence[Finding] = (), unchecked: Sequence[str] = ()) -> Verdict:
    """Make the verdict on a window: residuals of the states against the noise that was told.

    Args:
        found: the window.
        findings: further tests.
        unchecked: sentences on what no measurement checks.
    """
    repeats = float(np.max(lag_correlation(found.residuals)))
    repeating = "states: the differences from the model repeat from sample to sample instead of being noise"
    tests = [
        chi_square(found.residuals, found.residuals.size - found.freedom, _ALARM, "states", _TOLD),
        Finding("whiteness", repeats, _CORRELATION, repeating),
        outliers(found.residuals, _ALARM, "states"),
        *findings,
    ]
    failures = [] if found.estimate.status == "local" else [found.estimate.reason]
    return conclude(tests, failures, unchecked)


class _Point(NamedTuple):
    """States, parameters and impulses, and whether the search ended there."""

    x: Array  # states
    theta: Array  # parameters (r,)
    impulses: Array  # of the cone edges (e,)
    converged: bool


class _System(NamedTuple):
    """Constraints at a point, rows of unit size."""

    jacobian: scipy.sparse.csr_matrix  # by states [standard deviations], theta and impulses (both scaled)
    value: Array
    scale: Array  # of theta and impulses
    norm: Array  # of the rows before


class _Window:
    """States x = (q (N+1, n), v (N+1, n)), parameters theta (r,), impulses of the cone edges (e,); constraints."""

    def __init__(
        self,
        model: Model,
        joins: tuple[float, float],
        sigma: Array,
        shape: tuple[int, ...],
        known: dict[int, float],
        edges: list[Column],
    ) -> None:
        self.model, self.joins, self.sigma, self.known, self.edges = model, joins, sigma, known, edges
        self.samples, self.n = shape

    def states(self, x: Array) -> tuple[Array, Array]:
        """Return configurations and velocities (N+1, n)."""
        q, v = x.reshape(2, self.samples, self.n)
        return q, v

    def steps(self, x: Array) -> list[Step]:
        """Return the steps at states."""
        q, v = self.states(x)
        together = self.model(np.arange(self.samples - 1), q[:-1], v[:-1], v[1:])
        return [together.at(k) for k in range(self.samples - 1)]

    def solve(self, measured: Array, start: _Point, edges: list[Column]) -> _Point:
        """Search from a point with forces on ``edges``; those that stay in :attr:`edges` bear a positive impulse."""
        x, theta, impulses, converged = start.x.copy(), start.theta.copy(), np.zeros(len(edges)), False
        self.edges = list(edges)
        for _ in range(_ITERATIONS):
            system = self.linearise(x, theta, impulses)
            step, dtheta, dimpulses = self.newton(system, (x - measured) / self.sigma)
            x, theta, impulses = x + self.sigma * step, theta + dtheta, impulses + dimpulses
            negative = np.sort(impulses[impulses < 0.0])
            bears = impulses > (negative[len(negative) // _LEAVE] if len(negative) else -np.inf)
            converged = bool(bears.all() and np.max(np.abs(step)) < _CONVERGED)
            if converged:
                break
            self.edges = [edge for edge, kept in zip(self.edges, bears) if kept]
            impulses = impulses[bears]
        return _Point(x, theta, impulses, converged)

    def linearise(self, x: Array, theta: Array, impulses: Array) -> _System:
        """Return constraints and their derivatives: n of dynamics and n of kinematics per step."""
        (q, v), n, steps = self.states(x), self.n, self.samples - 1
        free, k = [i for i in range(len(theta)) if i not in self.known], np.arange(steps)[:, None]
        z = np.hstack([q[:-1], v[:-1], v[1:]])[:, None] + np.vstack([np.zeros(3 * n), _DIFFERENCE * np.eye(3 * n)])
        moved = self.model(k, z[..., :n], z[..., n : 2 * n], z[..., 2 * n :])  # here, then along each state
        momentum, here = self._momentum(moved, theta, impulses), moved.at((slice(None), 0))
        earlier, later = self.joins
        value = np.stack([momentum[:, 0], q[1:] - q[:-1] - earlier * v[:-1] - later * v[1:]], axis=1)  # (steps, 2, n)
        rows: list[Array] = []
        columns: list[Array] = []
        entries: list[Array] = []

        def put(first: Indices, where: Indices, block: Array) -> None:
            """Put blocks (b, n, m) into rows from ``first`` (b,) on and columns ``where`` (b, m)."""
            row = first[:, None, None] + np.arange(n)[:, None]
            for found, part in ((rows, row), (columns, where[:, None]), (entries, block)):
                found.append(np.broadcast_to(part, block.shape).ravel())

        half, parameters, first = self.samples * n, 2 * self.samples * n, 2 * n * k[:, 0]
        at = np.hstack([k * n + np.arange(n), half + k * n + np.arange(2 * n)])
        put(first, at, ((momentum[:, 1:] - momentum[:, :1]) / _DIFFERENCE).swapaxes(1, 2))
        put(first, parameters + np.tile(np.arange(len(free)), (steps, 1)), here.y[:, :, free])
        if self.edges:
            forces = np.array([edge.force_at(here.at(edge.step)) for edge in self.edges])
            edge_columns = parameters + len(free) + np.arange(len(self.edges))
            put(first[[edge.step for edge in self.edges]], edge_columns[:, None], -forces[..., None])
        at = np.hstack([k * n + np.arange(2 * n), half + k * n + np.arange(2 * n)])
        kinematics = np.kron([-1.0, 1.0, -earlier, -later], np.eye(n))
        put(first + n, at, np.broadcast_to(kinematics, (steps, n, 4 * n)))
        scale = np.concatenate([np.maximum(np.abs(theta[free]), 1e-6), np.full(len(self.edges), _IMPULSE)])
        parts = (np.concatenate(part) for part in (entries, rows, columns))
        data, row, column = parts
        size = 2 * n * steps, parameters + len(scale)
        jacobian = scipy.sparse.csr_matrix((data, (row, column)), shape=size)
        jacobian = jacobian @ scipy.sparse.diags(np.concatenate([self.sigma, scale]))
        norm = np.sqrt(np.asarray(jacobian.multiply(jacobian).sum(axis=1)).ravel())
        return _System(scipy.sparse.diags(1.0 / norm) @ jacobian, value.ravel() / norm, scale, norm)

    def _momentum(self, steps: Step, theta: Array, impulses: Array) -> Array:
        """Return Y theta - h f - J^T c (steps, ..., n)."""
        push = np.zeros(steps.y.shape[:-1])
        for edge, impulse in zip(self.edges, impulses):
            push[edge.step] += impulse * edge.force_at(steps.at(edge.step))
        return np.asarray(steps.y @ theta - steps.known - push)

    def newton(self, system: _System, residual: Array) -> tuple[Array, Array, Array]:
        """Return steps of the states [standard deviations], of theta (r,) and of the impulses (e,)."""
        solution = self._factor(system).solve(np.concatenate([-residual, np.zeros(len(system.scale)), -system.value]))
        extra = solution[len(residual) : len(residual) + len(system.scale)] * system.scale
        count = len(system.scale) - len(self.edges)
        dtheta = np.zeros(count + len(self.known))
        dtheta[[i for i in range(len(dtheta)) if i not in self.known]] = extra[:count]
        return solution[: len(residual)], dtheta, extra[count:]

    def _factor(self, system: _System) -> scipy.sparse.linalg.SuperLU:
        """Factorise the Karush-Kuhn-Tucker matrix."""
        m, size = system.jacobian.shape
        hessian = np.concatenate([np.ones(size - len(system.scale)), np.full(len(system.scale), _REGULAR)])
        top = [scipy.sparse.diags(hessian), system.jacobian.T]
        bottom = [system.jacobian, scipy.sparse.diags(np.full(m, -_REGULAR))]
        return scipy.sparse.linalg.splu(scipy.sparse.bmat([top, bottom], format="csc"))

    def _force_errors(self, system: _System, residual: Array, impulses: Array) -> ForceErrors:
        """Return score and information of errors of the known force.

        Args:
            system: constraints at the solution.
            residual: (measured - x) / sigma there.
            impulses: B (N, n, e) of a unit of each error.
        """
        steps, n, count = impulses.shape
        rows = np.zeros((steps, 2, n, count))
        rows[:, 0] = -impulses
        pushes = rows.reshape(len(system.norm), count) / system.norm[:, None]
        states, extra = len(residual), len(system.scale)
        factor, top = self._factor(system), np.zeros((states + extra, count))
        multipliers = factor.solve(np.concatenate([residual, np.zeros(extra), -system.value]))[states + extra :]
        by_error = factor.solve(np.vstack([top, -pushes]))
        free = [i for i in range(extra - len(self.edges) + len(self.known)) if i not in self.known]
        moves = np.zeros((extra - len(self.edges) + len(self.known), count))
        moves[free] = (by_error[states : states + extra] * system.scale[:, None])[: len(free)]
        return ForceErrors(pushes.T @ multipliers, pushes.T @ by_error[states + extra :], moves)

    def read_out(self, point: _Point, residual: Array, start: WindowEstimate, force_errors: Array) -> SmoothedWindow:
        """Return the result at a point; ``residual`` is (measured - x) / sigma."""
        x, theta, impulses, converged = point
        (q, v), std = self.states(x), np.zeros(len(theta))
        steps = self.steps(x)
        normal, tangent = np.zeros((2, len(steps), len(steps[0].gap)))
        for edge, impulse in zip(self.edges, impulses):
            normal[edge.step, edge.contact] += impulse
            tangent[edge.step, edge.contact] += edge.edge * steps[edge.step].friction[edge.contact] * impulse
        left = [s.y @ theta - s.known - s.normal.T @ a - s.tangent.T @ b for s, a, b in zip(steps, normal, tangent)]
        free = [i for i in range(len(theta)) if i not in self.known]
        system = self.linearise(x, theta, impulses)
        unit = np.zeros((sum(system.jacobian.shape), len(free)))
        unit[len(x) + np.arange(len(free)), np.arange(len(free))] = 1.0
        covariance = self._factor(system).solve(unit)[len(x) : len(x) + len(free)]
        std[free] = np.sqrt(np.maximum(np.diag(covariance), 0.0)) * system.scale[: len(free)]
        freedom = max(len(system.value) - len(system.scale), 1)
        status, reason = start.status, start.reason
        if status == "global":  # the joint problem is not convex
            status, reason = ("local", "") if converged else ("failed", "the states did not converge")
        if np.any(theta[free] <= std[free]):
            names = [i for i in free if theta[i] <= std[i]]
            status, reason = (
                "failed",
                f"parameters {names} are not above 0: the noise hides them, or the model is wrong",
            )
        estimate = WindowEstimate(theta, normal, tangent, np.array(left), start.identifiability, status, reason)
        shaped = np.hstack(list(residual.reshape(2, self.samples, self.n)))
        errors = self._force_errors(system, residual, force_errors)
        return SmoothedWindow(estimate, std, q, v, shaped, freedom, errors)
