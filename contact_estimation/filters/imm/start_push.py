"""A push that may have been there since the start: at rest it cannot be distinguished from a torque bias.

The torque of a block less that of a payload is y = J^T F - (b + c s + v), with bias b, Coulomb friction c, presliding
states s and friction disturbance v of known prior. Kalman filters of the torque alone take it, one without F and one
in which a force F at the TCP, constant in base axes, has pushed since the start. The ratio of their marginal
likelihoods is the Bayes factor of the push (Kass and Raftery, Bayes factors, 1995); at rest it is that of the first
blocks, which the modes of the IMM forget as they mix. Its prior is ``closed_at_start``.

The push is then likely, and acts; or unlikely, as motion may show; or undecided. Where a push begins, it may be the end
of the one since the start. Let y' be the torque now, and Y that of before. The hypotheses are compared by all data:

    a push begins     p(Y | no push)  N(y'; J^T F' - friction given Y and no push),    F' of its prior
    the push changes  p(Y | the push) N(y'; J^T (F + F') - friction given Y and the push)
    the push lasts    p(Y | the push) N(y'; J^T F - friction given Y and the push)
    the push has gone p(Y | the push) N(y'; - friction given Y and the push)

At rest the first and the last differ by the prior of the friction alone: what needs less of it is likelier. The prior
of the last is that of the push, times the ratio of the rates at which pushes end and begin. Torque that passes while a
force grows is not steady: the end must be likely in windows in a row.

A force at the TCP does not explain a push at a link: friction would take what is left of it. A third filter has a
constant joint torque tau_e with the covariance of a push anywhere on the arm in place of J^T F, and as much prior. It
stands for the push unless F is clearly likelier, as it soon is in motion. A push that the modes feel is theirs alone
once a window does not fit: it changes. Once it acts, none begins, and F and tau_e are random walks: a hand that guides
the arm turns it. Such a push follows its own end, too. It has ended where for two seconds it explains no more than that
does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.gaussian import ZeroMeanGaussian
from contact_estimation.filters.imm.kept_friction import FRICTION, KeptFriction
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import pack_array, unpack_array

#: Blocks in a window; windows in a row in which a push must have ended: 0.3 s.
_BLOCKS, _ENDED = 5, 6
#: Windows after which the push is judged: 0.5 s. Windows in motion after which an unlikely push is given up: 1 s.
#: Windows in which one that turns explains no more than its end does, after which it has ended: 2 s.
_LEAST, _MOVED, _UNNEEDED = 10, 20, 40
#: Probability that a push is not one at the TCP, below which it counts as one.
_OTHER_PLACE = 0.05
#: Keeps odds finite.
_LEAST_PROBABILITY = 1e-12
#: [N] The message has the force in multiples of this.
_ROUND = 10
#: While the push is neither likely nor unlikely.
_WORDS = (
    "a push of about {} N since the start cannot be distinguished from a torque bias: begin where nothing touches the "
    "arm, or call ~/zero there"
)


class StartVerdict(Enum):
    """What a window shows: nothing new, a push since the start, or its end."""

    NOTHING = 0
    PUSHES = 1
    ENDED = 2


class PushSinceStart:
    """Compares torque bias with a push that has been there since the start.

    Args:
        layout: parts of the filters' state, with an external torque.
        settings: of the filter.
        signals: buffers by name: the block's ``y``, ``R``, ``presliding_mean``, ``tcp_jacobian``, ``motion_noise``,
            the ``load``, ``tcp_pose``, ``push_covariance`` and ``push_regression``.

    Attributes:
        known: what has pushed since the start is: there is nothing more to compare.
        words: what is undecided, empty for nothing.
    """

    def __init__(self, layout: StateLayout, settings: ImmSettings, signals: Mapping[str, np.ndarray]) -> None:
        self._layout, self._signals, n = layout, signals, layout.n
        unknown, self._wait = settings.unknown, settings.decision_time
        self._friction = np.concatenate([np.arange(layout.size)[layout.parts[k]] for k in FRICTION])  # (3 n,)
        self._force_variance, self._birth_time = unknown.wrench_variance[:3], unknown.birth_time_first
        self._unsure = settings.mismatch.significance
        self._sure_of_place = -_log_odds(_OTHER_PLACE)
        self._certain, self._prior = -_log_odds(self._unsure), _log_odds(settings.closed_at_start)
        self._prior_ended = self._prior + math.log(unknown.rate_to_free / unknown.rate_from_free)
        self._largest = chi_square_quantile(n, self._unsure)
        self.reset()

    def reset(self, kept: KeptFriction | None = None) -> None:
        """Begin anew, at a start, with the friction's prior or with what is ``kept`` of it."""
        prior, size = self._layout.mean[self._friction], len(self._friction)
        friction, covariance = prior, np.diag(self._layout.first_variance[self._friction])
        if kept is not None:
            friction, covariance = kept.mean[:size], kept.covariance[:size, :size]
        n = self._layout.n
        self._free = _TorqueFilter(prior, friction, covariance, np.zeros((3, 3)), np.transpose)
        self._at_tool = _TorqueFilter(prior, friction, covariance, np.diag(self._force_variance), np.transpose)
        self._anywhere = _TorqueFilter(prior, friction, covariance, np.zeros((n, n)), lambda jacobian: np.eye(n))
        self._push = self._anywhere
        self._waited, self._count, self._ended, self.known, self._pushes = 0.0, 0, 0, False, False
        self._window: list[tuple[np.ndarray, ...]] = []
        self._time, self._moved, self._unneeded, self.words = 0.0, 0, 0, ""

    def end(self) -> None:
        """Compare nothing any more: what pushed at the start is known."""
        self.known, self.words = True, ""

    @property
    def undecided(self) -> bool:
        """Whether free space may still be a push: it is not compared yet, or neither is likely."""
        return not self.known and (self._count < _LEAST or bool(self.words))

    @property
    def probability(self) -> float:
        """Probability of the push, given that the arm seems free; zero where that is known."""
        if self.known or self._pushes or self._count < _LEAST:
            return 0.0
        log_odds = self._prior + self._push.log_evidence - self._free.log_evidence
        probability = 1.0 / (1.0 + math.exp(-max(min(log_odds, 50.0), -50.0)))
        return probability if probability > self._unsure else 0.0

    def hidden(self) -> np.ndarray:
        """Return the second moment (3, 3) [N^2] of what the force is beside zero, TCP axes."""
        force, covariance = self.force()
        rotation = self._signals["tcp_pose"][3:].reshape(3, 3, order="F")
        second = rotation.T @ (covariance + np.outer(force, force)) @ rotation
        return np.asarray(self.probability * second)

    def force(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the push as a force at the TCP (3,) [N] and its covariance (3, 3) [N^2], base axes."""
        to_force = np.eye(3)
        if self._push is not self._at_tool:
            to_force = self._signals["push_regression"].reshape(3, -1, order="F")
        return to_force @ self._push.push, to_force @ self._push.push_covariance @ to_force.T

    def add(self, duration: float, free: bool, touched: bool, moves: bool) -> StartVerdict:
        """Take a block.

        Args:
            duration: of it [s].
            free: the mode is free.
            touched: a known contact is probable.
            moves: the arm does.
        """
        if self.known:
            return StartVerdict.NOTHING
        self._waited += duration
        if self._waited <= self._wait:
            return StartVerdict.NOTHING
        if self._count == 0:
            self._felt = not free
        known = touched and (self._felt or self._pushes) and self._count >= _LEAST
        gone = free and self._felt and not self._pushes
        if known or gone:
            self.end()  # the mode probabilities decide it
            return StartVerdict.NOTHING
        s, n, m = self._signals, self._layout.n, self._layout.m
        jacobian = s["tcp_jacobian"].reshape(3, n, order="F")
        block = (s["y"][m:] - s["load"], s["presliding_mean"], s["R"][m:], s["motion_noise"][m:], jacobian)
        self._window.append(tuple(values.copy() for values in block))
        self._time += duration
        if len(self._window) < _BLOCKS:
            return StartVerdict.NOTHING
        if self._count == 0:
            self._anywhere.push_covariance[:] = self._birth_time * s["push_covariance"].reshape(n, n)
        y, presliding, noise, motion, jacobian = (np.mean(values, axis=0) for values in zip(*self._window))
        window, time = _Window(y, presliding, noise, jacobian), self._time
        self._window, self._time = [], 0.0
        decay, walk, _ = self._layout.drift(time).of(self._friction)
        walk[-n:] += _BLOCKS * motion
        for torque_filter in (self._free, self._at_tool, self._anywhere):
            torque_filter.predict(decay, walk)
        if self._pushes:
            self._at_tool.push_covariance[:] += np.diag(time / self._birth_time * self._force_variance)
            self._anywhere.push_covariance[:] += time * s["push_covariance"].reshape(n, n)
        before = not self._pushes and (free or self._felt)
        return self._decide(window, touched, moves) if before else self._decide_end(window, free, touched)

    def _decide(self, window: _Window, touched: bool, moves: bool) -> StartVerdict:
        """Take a window of before: nothing has changed since the start."""
        if self._felt and self._push.log_density(window)[1] > self._largest:
            self.end()
            return StartVerdict.NOTHING
        misfit = min(self._free.log_density(window)[1], self._push.log_density(window)[1])
        if self._count >= _LEAST and misfit > self._largest:  # something begins or ends: it says nothing of the start
            self._ended = 0
            return StartVerdict.NOTHING
        for torque_filter in (self._free, self._at_tool, self._anywhere):
            torque_filter.update(window)
        at_tool = self._at_tool.log_evidence - self._anywhere.log_evidence > self._sure_of_place
        self._push = self._at_tool if at_tool else self._anywhere
        self._last, self._ended = window, 0
        self._count += 1
        if self._count < _LEAST:
            return StartVerdict.NOTHING
        probability = self.probability
        self._moved += moves
        if self._moved >= _MOVED and probability == 0.0:
            self.end()
        if touched:
            return StartVerdict.NOTHING
        size = _ROUND * max(round(float(np.linalg.norm(self.force()[0])) / _ROUND), 1)
        self._pushes = probability >= 1.0 - self._unsure
        self.words = _WORDS.format(size) if probability > 0.0 and not self._pushes else ""
        return StartVerdict.PUSHES if self._pushes else StartVerdict.NOTHING

    def _decide_end(self, window: _Window, free: bool, touched: bool) -> StartVerdict:
        """Take a window in which something seems to push, a known contact where ``touched``."""
        self._last, evidence = window, self._push.log_evidence
        ended, misfit = self._push.log_density(window, pushes=False)
        lasts, left = self._push.log_density(window)
        changes, _ = self._push.log_density(window, np.diag(self._force_variance))
        others = evidence + max(lasts, changes)
        if not self._pushes:
            begins, _ = self._free.log_density(window, np.diag(self._force_variance))
            others = max(others, self._free.log_evidence + begins)
        ratio = evidence + ended - others + self._prior_ended
        fits = misfit < self._largest and not touched
        likely = fits and ratio > self._certain
        if self._pushes and not likely and left < self._largest:
            self._push.update(window)
        self._ended = self._ended + 1 if likely else 0
        self._unneeded = self._unneeded + 1 if fits and ratio > 0.0 else 0
        unneeded = self._pushes and self._unneeded >= _UNNEEDED
        if unneeded and free:  # the modes have found its end
            self.end()
            return StartVerdict.NOTHING
        return StartVerdict.ENDED if self._ended >= _ENDED or unneeded else StartVerdict.NOTHING

    @property
    def left(self) -> np.ndarray:
        """Torque (n,) [Nm] of the last window beside the friction of the push's filter."""
        return np.asarray(self._last.y - self._push.rows(self._last, pushes=False) @ self._push.x)

    def state(
        self, x: np.ndarray, packed: np.ndarray, acts: bool, feels: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a filter's mean (N,) and covariance (N, N), given that something has pushed since the start.

        The modes had explained the push by friction, and by the offsets of the gears' deflections.

        Args:
            x: mean (N,) of a filter of free space or of an unknown contact.
            packed: its covariance.
            acts: it pushes still.
            feels: the filter feels that.
        """
        parts, n = self._layout.parts, self._layout.n
        x, p = x.copy(), unpack_array(packed, self._layout.size)
        jacobian = self._signals["tcp_jacobian"].reshape(3, n, order="F")  # that of the window's middle is of the past
        to_torque, joints = self._push.torque(jacobian), self._layout.elastic_joints  # (n, k)
        components = to_torque.shape[1]
        rows = np.zeros((self._layout.size, 3 * n + components))
        rows[self._friction, np.arange(3 * n)] = 1.0
        compliance = np.exp(-x[parts["joint_stiffness"]])  # [rad/Nm]
        x[parts["offset"]] += compliance * x[parts["external"]][joints]
        if acts:
            rows[parts["offset"], -components:] = -compliance[:, None] * to_torque[joints]
        known = [*self._friction]
        if feels:
            rows[parts["external"], -components:] = to_torque
            known += [*range(self._layout.size)[parts["external"]]]
        x[known], p[known], p[:, known] = 0.0, 0.0, 0.0
        if feels:  # torque that is J^T F without any error would have no wrench once the arm moves on
            p[parts["external"], parts["external"]] = np.diag(self._last.noise)
        return x + rows @ self._push.x, p + rows @ self._push.p @ rows.T

    def packed_state(self, x: np.ndarray, packed: np.ndarray, feels: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`state` while it pushes, with a packed covariance; arguments as there."""
        x, p = self.state(x, packed, acts=True, feels=feels)
        return x, pack_array(p)


def _log_odds(probability: float) -> float:
    """Return ln(p / (1 - p)), finite also for zero and one."""
    bounded = min(max(probability, _LEAST_PROBABILITY), 1.0 - _LEAST_PROBABILITY)
    return math.log(bounded / (1.0 - bounded))


class _Window:
    """Mean of some blocks: torque y (n,) [Nm], presliding states (n,), noise (n,) [Nm^2], Jacobian J (3, n)."""

    def __init__(self, y: np.ndarray, presliding: np.ndarray, noise: np.ndarray, jacobian: np.ndarray) -> None:
        self.y, self.presliding, self.noise, self.jacobian = y, presliding, noise, jacobian


class _TorqueFilter:
    """Kalman filter of friction b, c, v (n,) each and of a constant push of k components.

    Args:
        prior: mean (3 n,) [Nm] that friction decays to.
        friction: mean (3 n,) [Nm] at the start.
        covariance: of it (3 n, 3 n).
        covariance_of_push: prior (k, k); zero for none.
        torque: TCP Jacobian (3, n) -> derivative (n, k) of the joint torque by the push.

    Attributes:
        x: mean (3 n + k,).
        p: its covariance.
        log_evidence: logarithm of the density of all data, but for a constant.
    """

    def __init__(
        self,
        prior: np.ndarray,
        friction: np.ndarray,
        covariance: np.ndarray,
        covariance_of_push: np.ndarray,
        torque: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self._n, self.torque = len(friction), torque
        self.x = np.append(friction, np.zeros(len(covariance_of_push)))
        self.p = np.zeros((len(self.x), len(self.x)))
        self.p[: self._n, : self._n], self.push_covariance[:] = covariance, covariance_of_push
        self._mean, self.log_evidence = prior, 0.0

    @property
    def push(self) -> np.ndarray:
        """Mean (k,) of the push."""
        return self.x[self._n :]

    @property
    def push_covariance(self) -> np.ndarray:
        """Covariance (k, k) of the push (a view)."""
        return self.p[self._n :, self._n :]

    def rows(self, window: _Window, pushes: bool = True) -> np.ndarray:
        """Return the derivative (n, 3 n + k) of a window's torque by friction and push."""
        unit = -np.eye(len(window.y))
        return np.hstack([unit, unit * window.presliding, unit, self.torque(window.jacobian) * float(pushes)])

    def predict(self, decay: np.ndarray, noise: np.ndarray) -> None:
        """Go on by a window, with the friction's ``decay`` and ``noise`` (3 n,)."""
        still = np.zeros_like(self.push)
        keep = np.append(decay, still + 1.0)
        self.x = keep * self.x + np.append((1.0 - decay) * self._mean, still)
        self.p = self.p * np.outer(keep, keep) + np.diag(np.append(noise, still))

    def log_density(self, window: _Window, force: np.ndarray | None = None, pushes: bool = True) -> tuple[float, float]:
        """Return the logarithm of the density of a window, and the square of its normalised innovation.

        Args:
            window: of torque.
            force: covariance (3, 3) [N^2] of one more force at the TCP, None for none.
            pushes: whether the push acts.
        """
        rows = self.rows(window, pushes)
        covariance = rows @ self.p @ rows.T
        if force is not None:
            covariance += window.jacobian.T @ force @ window.jacobian
        innovation = ZeroMeanGaussian(covariance + np.diag(window.noise))
        deviation = window.y - rows @ self.x
        return innovation.log_density(deviation), innovation.square(deviation)

    def update(self, window: _Window) -> None:
        """Take a window."""
        self.log_evidence += self.log_density(window)[0]
        rows = self.rows(window)
        cross = self.p @ rows.T
        gain = np.linalg.solve(rows @ cross + np.diag(window.noise), cross.T).T
        self.x = self.x + gain @ (window.y - rows @ self.x)
        left = self.p - gain @ cross.T
        self.p = 0.5 * (left + left.T)
