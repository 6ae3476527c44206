"""One step of the IMM filter: mode prediction, mixing, one update per filter, Bayes' rule for the mode probabilities.

Everything runs in generated code over shared buffers: the output buffer of one call is the input buffer of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.codegen import CompiledFunction
from contact_estimation.filters.imm.free_space_history import FreeSpaceHistory
from contact_estimation.filters.imm.free_starts import FilterBuffers, FreeStarts
from contact_estimation.filters.imm.friction_drift import FrictionDrift
from contact_estimation.filters.imm.kept_friction import KeptFriction
from contact_estimation.filters.imm.measurement import UNDECIDED, build_prior, build_update
from contact_estimation.filters.imm.mode_chain import ModeChain, build_mixing, build_mode_prediction, build_mode_update
from contact_estimation.filters.imm.push_course import CONTRADICTS, JUMPED, OutliersInARow, PushCourse, PushTracker
from contact_estimation.filters.imm.restarts import Restarts
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.touch_test import TouchTest
from contact_estimation.filters.kalman import pack_array, packed_places, packed_size, unpack_array
from contact_estimation.robot import Arm

#: Standard deviations of a block's random walk from which on a push changes faster than that.
_FAST = 2.0


def step_functions(arm: Arm, layout: StateLayout, chain: ModeChain) -> list[ca.Function]:
    """Return the functions of a step of all filters."""
    filters = len(chain.owner)
    mode_prediction = build_mode_prediction(chain.free, len(layout.contacts))
    mixing, mode_update = build_mixing(layout.size, filters), build_mode_update(filters)
    return [build_update(arm, layout), build_prior(arm, layout), mixing, mode_prediction, mode_update]


class _BlockDynamics(NamedTuple):
    """How the states of a filter change by themselves in a block (buffers).

    Attributes:
        decay: (N,) diagonal of the transition.
        noise: (N,) diagonal of the process noise.
        motion_share: (1,) share of what motion adds to the noise.
    """

    decay: np.ndarray
    noise: np.ndarray
    motion_share: np.ndarray

    @classmethod
    def of(cls, size: int, motion_share: float) -> _BlockDynamics:
        """Return buffers for a state of ``size`` entries."""
        return cls(np.zeros(size), np.zeros(size), np.full(1, motion_share))


class ImmStep:
    """States of M filters of N entries, and their update with a block of samples.

    Args:
        layout: parts of the filters' state.
        chain: modes and filters.
        functions: compiled :func:`step_functions` by name.
        signals: buffers by name: settings, and the block's measurement. Two are added: ``friction_drift`` of
            :class:`FrictionDrift`, and ``push_held`` of :class:`PushTracker`.

    Attributes:
        x: (M, N) means.
        p: (M, N (N + 1) / 2) packed covariances.
        probabilities: (M,).
        normalised: (M, m + n) innovations over their standard deviations before gating.
        unexplained: (M, n) [Nm] torque that the updated states leave unexplained.
        drift: errors of friction and deflection since the arm was last free.
        history: states of free space.
        restarts: of filters where torque changes its explanation.
        updates: per filter its update, from the mixed state into ``x`` and ``p``.
    """

    def __init__(
        self,
        layout: StateLayout,
        chain: ModeChain,
        functions: Mapping[str, CompiledFunction],
        signals: dict[str, np.ndarray],
    ) -> None:
        self._layout, self._chain, self._signals, count = layout, chain, signals, len(chain.owner)
        self._free, self._felt = np.flatnonzero(chain.free), np.flatnonzero(chain.felt)
        mixing, self._prior = functions["imm_mixing"], functions["imm_prior"]
        self._predict, mode_update = functions["imm_mode_prediction"], functions["imm_mode_update"]
        self.x, self.p = (mixing.inputs[k].reshape(count, -1) for k in ("X", "P"))
        self.probabilities, self._transition = (self._predict.inputs[k] for k in ("probabilities", "transition"))
        weights = self._predict.outputs["weights"].reshape(count, -1)
        # No filter is updated before all are mixed: the mixed states have buffers of their own.
        mixed_x, mixed_p = np.zeros((count, layout.size)), np.zeros((count, packed_size(layout.size)))
        self._mixed_x = mixed_x
        self._mixes = [
            mixing.bind([mixing.inputs["X"], mixing.inputs["P"], weights[j]], [mixed_x[j], mixed_p[j]])
            for j in range(count)
        ]
        most = JUMPED if layout.link_side else CONTRADICTS
        self._jump = OutliersInARow(layout.m + layout.n, signals["gate"], most)
        offset = layout.parts["offset"]
        self._offset_places = np.diagonal(packed_places(layout.size))[offset]
        self._offset_variance = layout.first_variance[offset]
        # Packed places of the external torque's covariance, and where its entries are in that of a push.
        places = packed_places(layout.size)[layout.parts["external"], layout.parts["external"]]
        self._external_places, self._lower = np.unique(places, return_index=True)
        self._likelihood = likelihood = mode_update.inputs["log_likelihood"]
        given = [self._predict.outputs["predicted"], likelihood, signals["least_probability"]]
        self._posterior = mode_update.bind(given, [self.probabilities])
        self._touch_test = TouchTest(layout, layout.commit_significance)
        self.history = FreeSpaceHistory(layout, signals)
        self.drift, self._push = FrictionDrift(layout, signals), PushTracker(signals)
        signals["friction_drift"], signals["push_held"] = self.drift.published, self._push.held
        between = self._transition.reshape(count, count, order="F")
        filters = FilterBuffers(self.x, self.p, mixed_x, mixed_p, self.probabilities, between, weights, likelihood)
        self._starts = FreeStarts(layout, chain, filters, self.history, self.drift)
        # Of the filters whose friction changes, and of those in which it is steady.
        self._changing = _BlockDynamics.of(layout.size, 1.0)
        self._steady = _BlockDynamics.of(layout.size, layout.frozen_share)
        self._bounds_in_contact, self._bounds_in_free_space = layout.bounds(free=False), layout.bounds(free=True)
        self.restarts = Restarts(self._starts, self._push, self._bounds_in_contact, signals)
        self._pressed = self._predict.inputs["pressed"].reshape(count, -1)
        self.normalised, self.unexplained = np.zeros((count, layout.m + layout.n)), np.zeros((count, layout.n))
        self._deflections = np.zeros((count, layout.m))
        self.updates = [self._update_of(j, functions["imm_update"], filters) for j in range(count)]

    def _update_of(self, j: int, update: CompiledFunction, filters: FilterBuffers) -> Callable[[], None]:
        """Return the update of a filter, from the mixed state into ``x`` and ``p``."""
        chain, before = self._chain, self._predict.outputs["pressed_before"].reshape(len(filters.x), -1)
        own = {"x": filters.x_mixed[j], "P": filters.p_mixed[j]}
        own |= {"closed": chain.closed[j].copy(), "pressed_before": before[j]}
        own |= self._bounds_in_free_space if chain.free[j] else self._bounds_in_contact
        own["felt"], own["walk"] = chain.felt[j : j + 1].copy(), chain.walk[j : j + 1].copy()
        own |= (self._steady if chain.steady_friction[j] else self._changing)._asdict()
        results = [self.x[j], self.p[j], self._likelihood[j : j + 1], self.normalised[j], self.unexplained[j]]
        results += [self._pressed[j], self._deflections[j]]
        return update.bind([(self._signals | own)[name] for name in update.inputs], results)

    def reset(self, q: np.ndarray, deflection: np.ndarray, probabilities: np.ndarray) -> None:
        """Set everything to its prior at a configuration.

        Args:
            q: positions (n,) [rad].
            deflection: what the elastic channels' offsets are taken to be (m,) [rad].
            probabilities: (M,) of the filters.
        """
        prior = self._prior.inputs
        for name, buffer in prior.items():
            buffer[:] = self._signals.get(name, 0.0)
        prior["q_mean"][:], prior["prior_variance"][:] = q, self._layout.first_variance
        self._prior()
        self.x[:], self.p[:] = self._prior.outputs["x"], self._prior.outputs["P"]
        self.x[:, self._layout.parts["offset"]] = deflection
        self.probabilities[:] = probabilities
        for name, values in self._layout.bounds(free=False).items():
            self._bounds_in_contact[name][:] = values
        self._pressed[:], self.unexplained[:] = UNDECIDED, 0.0
        self.drift.reset()
        self._starts.reset()
        self._push.reset()
        self._jump.reset()
        self.history.reset()

    def keep(self, kept: KeptFriction) -> None:
        """Start all filters, which have been reset, with what is known of the friction from before."""
        covariance = unpack_array(self.p[0], self._layout.size)
        covariance[kept.where], covariance[:, kept.where] = 0.0, 0.0
        covariance[np.ix_(kept.where, kept.where)] = kept.covariance
        self.x[:, kept.where], self.p[:] = kept.mean, pack_array(covariance)
        self._layout.friction_about(self.x[0], self._bounds_in_contact)

    def set_interval(self, duration: float, deciding: bool) -> None:
        """Prepare predictions over ``duration`` [s], for the modes' present newborns.

        Args:
            duration: [s].
            deciding: as of :meth:`ModeChain.transition`.
        """
        self._push.set_interval(duration)
        changing, steady = self._changing, self._steady
        changing.decay[:], changing.noise[:], _ = self._layout.drift(duration)
        steady.decay[:], steady.noise[:] = self._layout.frozen(changing.decay, changing.noise)
        self._transition[:] = self._chain.transition(duration, deciding, self.push).ravel(order="F")

    def run(self) -> None:
        """Take the measurement in the signals."""
        self._predict()
        for mix in self._mixes:
            mix()
        self._starts.choose()
        for update in self.updates:
            update()
        self._starts.compare()
        self._posterior()
        self._track_friction()
        if self._layout.has_external:
            self._track_push()

    @property
    def push(self) -> PushCourse:
        """Course of an unknown contact's force."""
        return self._push.course

    def log_evidence(self) -> float:
        """Return the logarithm of the probability density of the last measurement, of all filters together.

        An innovation beyond the gate has the density of the noise that puts it on the gate: a tail of 1 over its size.
        """
        largest = self._likelihood.max()
        total = np.dot(self._predict.outputs["predicted"], np.exp(self._likelihood - largest))
        return float(largest + np.log(total) - 0.5 * self.normalised.shape[1] * np.log(2 * np.pi))

    def shows_contact(self) -> bool:
        """Return whether the most probable filter of a contact differs from free space, by its force or friction."""
        j = int(np.where(self._chain.free, 0.0, self.probabilities).argmax())
        test, x, p = self._touch_test, self.x[j], self.p[j]
        if self._chain.felt[j]:
            force = test.pushes(x, p, self._signals["friction_drift"])
        else:
            force = test.presses(self._pressed[j][self._chain.closed[j] > 0])
        return force or test.exceeds_friction(x, p)

    def _track_friction(self) -> None:
        """Bound the friction of closed contacts around its value when the arm was last free, and follow its drift."""
        shares = self.probabilities[self._free]
        if shares.sum() > 0.5:
            self._layout.friction_about(self.x[self._free[shares.argmax()]], self._bounds_in_contact)
            self.drift.follow_free()
            self._starts.forget_fit()
        else:
            where, lag = self._layout.parts["disturbance"], self._lag() if self._layout.has_external else 0.0
            left_out = self._changing.noise[where] - self._steady.noise[where]
            self.drift.follow_contact(self._deflections[self.probabilities.argmax()], left_out, lag)

    def _lag(self) -> np.ndarray:
        """Return by how much the torque (n,) [Nm] of an unknown contact lags behind one that changes fast.

        The estimate is that of the middle of the last block, and is published until the end of the next one: a block
        later, on average. In a block the torque changes by what the block has corrected. Corrections that the random
        walk makes likely are in the covariance.
        """
        external, n = self._layout.parts["external"], self._layout.n
        probable = self._probable_push()
        corrected = self.x[probable, external] - self._mixed_x[probable, external]
        walk = self._signals["duration"] * self._chain.walk[probable]
        likely = walk * np.diagonal(self._signals["push_covariance"].reshape(n, n))
        return np.where(corrected**2 > _FAST**2 * likely, corrected, 0.0)

    def _track_push(self) -> None:
        """Follow an unknown contact's force: kept where a known contact takes over, forgotten in free space.

        Where its torque jumps behind the gears, the force becomes as uncertain as that of one more push. Before them
        friction that changes with the motion may be the jump, for a while. What lasts longer is not the force: then the
        deflections' offsets, too, are as uncertain as at the start.
        """
        if self._chain.free[self.probabilities.argmax()]:
            self._push.reset()
            self._jump.reset()
            return
        probable = self._probable_push()
        self._push.follow(self.x[probable, self._layout.parts["external"]])
        if not self._chain.felt[self.probabilities.argmax()]:
            self._jump.reset()
        elif self._jump.follow(self.normalised[probable]):
            born = self._signals["birth_time"] * self._signals["push_covariance"][self._lower]
            self.p[self._felt[:, None], self._external_places] += born
            if not self._layout.link_side:
                self._jump.reset()
                self.p[self._felt[:, None], self._offset_places] += self._offset_variance

    def _probable_push(self) -> int:
        """Return the most probable filter of an unknown contact."""
        return int(self._felt[self.probabilities[self._felt].argmax()])
