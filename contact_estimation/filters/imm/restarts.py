"""Restarts of filters where torque changes its explanation: friction, a push of an unknown contact, or a payload.

A filter knows torque and friction by their sum. What friction has absorbed of a push is no surprise in any block, so no
likelihood gives it back. Tests beside the filters find it over seconds. Then the states are written anew, and one kind
of filter is the only probable one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contact_estimation.filters.imm.free_space_history import REMEMBERED, FreeState
from contact_estimation.filters.imm.free_starts import FreeStarts
from contact_estimation.filters.imm.push_course import PushTracker
from contact_estimation.filters.kalman import pack_array


class LoadChange(NamedTuple):
    """A known load that has changed.

    Attributes:
        torque: by how much (n,) [Nm].
        covariance: of it (n, n) [Nm^2].
    """

    torque: np.ndarray
    covariance: np.ndarray


class Restarts:
    """Writes states and probabilities of the filters.

    Args:
        starts: of free filters, with the parts that both write: layout, chain, filters, history and drift.
        push: course of the force of an unknown contact.
        bounds: of the friction in filters of contacts.
        signals: buffers by name: ``R`` of the block, and ``least_probability``.
    """

    def __init__(
        self, starts: FreeStarts, push: PushTracker, bounds: dict[str, np.ndarray], signals: Mapping[str, np.ndarray]
    ) -> None:
        self._starts, self._push, self._signals, self._bounds = starts, push, signals, bounds
        self._layout, self._chain = starts.layout, starts.chain
        self._history, self._drift = starts.history, starts.drift
        self._x, self._p, self._probabilities = starts.filters.x, starts.filters.p, starts.filters.probabilities
        self._free, self._felt = np.flatnonzero(starts.chain.free), np.flatnonzero(starts.chain.felt)

    def follow_free_space(self, undecided: bool) -> None:
        """Keep the state of the most probable free filter, if the arm is free; look for a push that grew slowly.

        In free space, or beside a known contact, friction may still absorb such a push.

        Args:
            undecided: something may have pushed since the start.
        """
        shares, probable = self._probabilities[self._free], int(self._probabilities.argmax())
        if shares.sum() > 0.5:
            best = int(self._free[shares.argmax()])
            grown = self._history.follow_free(self._x[best], self._p[best], undecided)
            if grown is not None:
                self._start_grown_push(best, grown)
                self._history.append(self._x[best], self._p[best])
        elif self._chain.touched[probable]:
            grown = self._history.follow_touch(self._x[probable], self._p[probable])
            if grown is not None:
                self._start_grown_push(probable, grown)
        else:
            self._history.follow_push()

    def start_push(self, free: tuple[np.ndarray, np.ndarray], push: tuple[np.ndarray, np.ndarray]) -> None:
        """Let an unknown contact act, that friction of free space has explained since the start.

        Args:
            free: mean (N,) and packed covariance of free space, once the push has ended.
            push: those of a filter that feels it.
        """
        for j in self._free:
            self._x[j], self._p[j] = free
        for j in self._felt:
            self._x[j], self._p[j] = push
        self._start_in(self._felt, self._history.present(*free))

    def assign_to_friction(self, load: np.ndarray) -> None:
        """Take a load's torque out of what has explained it until now: external torque, or bias and elastic offset.

        Args:
            load: by how much the known load's torque has changed (n,) [Nm].
        """
        parts, felt = self._layout.parts, self._chain.felt > 0
        if self._layout.has_external:
            self._x[felt, parts["external"]] -= load
        compliance = np.exp(-self._x[~felt, parts["joint_stiffness"]])  # [rad/Nm]
        self._x[~felt, parts["bias"]] += load
        self._x[~felt, parts["offset"]] -= compliance * load[self._layout.elastic_joints]
        self._history.reset()

    @property
    def free_before(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean (N,) and packed covariance of free space some seconds ago, None where none is kept."""
        return self._history.ago(REMEMBERED)[:2] if self._history else None

    def start_free(
        self, x: np.ndarray, covariance: np.ndarray, rows: np.ndarray, left: np.ndarray, load: LoadChange
    ) -> None:
        """Let free space follow, with the friction of before, where it was the load that changed.

        The load's error was taken for an error of torque and deflection: of bias and offset. What is left of the torque
        is measured, as an error of friction and load.

        Args:
            x: mean (N,) of before.
            covariance: (N, N) of it.
            rows: derivative (n, N) of the friction by the state.
            left: torque (n,) [Nm] beside the friction of ``x`` and the load.
            load: what changed.
        """
        parts, n, joints = self._layout.parts, self._layout.n, self._layout.elastic_joints
        stiffness = self._x[self._probabilities.argmax(), parts["joint_stiffness"]]
        wrong = np.zeros((self._layout.size, n))
        wrong[parts["bias"]] = np.eye(n)
        wrong[parts["offset"]] = -np.exp(-stiffness)[:, None] * np.eye(n)[joints]
        covariance = covariance + wrong @ load.covariance @ wrong.T
        for name, variance in (("bias", self._drift.variance), ("offset", self._drift.slack() ** 2)):
            covariance[parts[name], parts[name]] += np.diag(variance)
        cross = covariance @ rows.T
        noise = np.diag(self._signals["R"][self._layout.m :])
        gain = np.linalg.solve(rows @ cross + noise, cross.T).T
        if self._layout.has_external:
            self._x[self._felt, parts["external"]] -= load.torque
        self._x[self._free], self._p[self._free] = x - gain @ left, pack_array(covariance - gain @ cross.T)
        for j in self._free:
            self._x[j, parts["joint_stiffness"]] = stiffness
        self._start_in(self._free, self._history.present(x, pack_array(covariance)))
        self._push.reset()

    def _start_grown_push(self, probable: int, before: FreeState) -> None:
        """Let an unknown contact act: friction and the gears' offsets have absorbed a push that grew slowly.

        It starts from the state of before, and so does free space; nothing else is probable.

        Args:
            probable: filter whose joint stiffness is kept.
            before: the state of free space before the push.
        """
        where = self._layout.parts["joint_stiffness"]
        stiffness, unknown = self._x[probable, where].copy(), self._felt[0]
        for j in [*self._free, unknown]:
            self._x[j], self._p[j], self._x[j, where] = before.x, before.p, stiffness
        self._start_in(self._felt[:1], before)

    def _start_in(self, filters: np.ndarray, free: FreeState) -> None:
        """Let some filters be the only probable ones, and begin anew with what changes while something touches the arm.

        Args:
            filters: which ones; equally probable now.
            free: the state of free space, before a push or once it has ended.
        """
        self._probabilities[:] = self._signals["least_probability"]
        self._probabilities[filters] = 1.0 / len(filters)
        self._history.keep_only(free)
        self._layout.friction_about(free.x, self._bounds)
        self._drift.reset()
        self._starts.forget_fit()
