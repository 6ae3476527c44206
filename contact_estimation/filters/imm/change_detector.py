"""Change points of the force, followed beside the filters: which change of mode they commit to."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from contact_estimation.codegen import CompiledFunction, DoubleBuffer, bind_recursion
from contact_estimation.filters.imm.change_point import BinLayout, build_bin, build_bin_sample, build_odds
from contact_estimation.filters.imm.imm_step import ImmStep
from contact_estimation.filters.imm.linearisation import build_linearisation
from contact_estimation.filters.imm.measurement import build_zero_depth
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import FilterState
from contact_estimation.robot import Arm


def detector_functions(arm: Arm, state: FilterState) -> list[ca.Function]:
    """Return the functions of the detector."""
    bins = BinLayout(state)
    change_point = [build_bin_sample(arm, state, bins), build_bin(state, bins), build_odds(state, bins)]
    return [*change_point, build_linearisation(arm, state), build_zero_depth(arm, state)]


class ChangeDetector:
    """Odds of a touch or release after every sample, from what the most probable filter knows.

    Args:
        settings: of the filter.
        state: the filters' state.
        chain: modes and filters.
        step: the filters.
        functions: compiled :func:`detector_functions` by name.
        signals: buffers by name: settings, and the sample.
        sample: the sample state.
    """

    def __init__(
        self,
        settings: ImmSettings,
        state: FilterState,
        chain: ModeChain,
        step: ImmStep,
        functions: Mapping[str, CompiledFunction],
        signals: dict[str, np.ndarray],
        sample: DoubleBuffer,
    ) -> None:
        self._chain, self._step, self._signals, self._n = chain, step, signals, state.n
        self._settings, self._per_bin = settings.change_detector, float(signals["per_bin"][0])
        self._limit = settings.commit_probability / (1.0 - settings.commit_probability)
        linearise, odds, end_bin = (functions[f"imm_{k}"] for k in ("linearisation", "change_odds", "bin"))
        self._zero_depth = functions["imm_zero_depth"]
        signals |= {name: linearise.inputs[name] for name in ("q_then", "closed")}
        signals |= {name: end_bin.inputs[name] for name in ("number", "age", "scatter_share")}
        signals |= linearise.outputs | odds.outputs | {k: end_bin.outputs[k] for k in ("since", "level", "slope")}
        duration = self._per_bin * signals["period"][0]
        signals["scatter_share"][0] = min(duration / self._settings.scatter_time, 1.0)
        self._linearisations = [
            linearise.bind([{**signals, "x": x, "P": p}[k] for k in linearise.inputs], list(linearise.outputs.values()))
            for x, p in zip(step.x, step.p)
        ]
        gather = functions["imm_bin_sample"]
        self._sums, self._bins = DoubleBuffer.of(gather), DoubleBuffer.of(end_bin)
        self._gather = bind_recursion(gather, [self._sums, sample], signals)
        self._finish_bin = bind_recursion(end_bin, [self._bins, self._sums], signals)
        self._evaluate = bind_recursion(odds, [self._bins, self._sums, sample], signals)
        self._number, self._most = signals["number"], signals["most"]
        self._probable, self._fresh = 0, True

    def start(self, q: np.ndarray) -> None:
        """Forget all samples; the arm is at ``q`` (n,) [rad]."""
        for bins, sums in zip(self._bins.copies, self._sums.copies):
            bins["starts"].reshape(-1, len(q))[:], bins["scatter"][:] = q, self._settings.scatter_limit
            sums["sums"][:], sums["momentum_last"][:] = 0.0, 0.0
        self._signals["number"][0] = self._signals["age"][0] = 0.0
        self._fresh = True
        self.follow(0, q)

    def follow(self, probable: int, q: np.ndarray) -> None:
        """From now on look for change points that contradict a filter.

        Args:
            probable: the most probable filter.
            q: positions (n,) [rad] that its state belongs to.
        """
        if self._chain.owner[probable] != self._chain.owner[self._probable]:
            self._signals["age"][0] = 0.0
        self._probable = probable
        self._signals["closed"][:], self._signals["q_then"][:] = self._chain.closed[probable], q
        self._linearisations[probable]()

    def gather(self) -> None:
        """Take the sample in the signals."""
        if self._number[0] >= self._per_bin:
            self._finish_bin()
            self._sums["sums"][:], self._number[0] = 0.0, 0.0
            self._signals["age"][0] += 1.0
        if self._fresh:  # whatever the momentum is, it was there before
            self._fresh = False
            self._sums["momentum_last"][:] = self._signals["momentum"]
        self._gather()
        self._number[0] += 1.0

    def commit(self, q: np.ndarray) -> bool:
        """Move the mode probabilities where a change of the mode is certain enough.

        Args:
            q: positions (n,) [rad] of the sample that was gathered last.

        Returns:
            Whether they were moved.
        """
        self._evaluate()
        if not self._most[0] > self._limit:
            return False
        contact = int(self._signals["odds"].argmax())
        start = int(self._chain.owner[self._probable])
        end = self._chain.toggled(start, contact)
        if end is None:
            return False
        odds = float(self._signals["odds"][contact])
        target = self._chain.move(self._step.probabilities, start, end, odds / (1.0 + odds))
        if self._chain.closed[target, contact]:
            self._close(target, contact, q)
        self.follow(int(self._step.probabilities.argmax()), q)
        return True

    def _close(self, target: int, contact: int, q: np.ndarray) -> None:
        """Filter ``target`` has closed ``contact`` where the likeliest candidate began, to half of the path since."""
        x, p = self._step.x[target], self._step.p[target]
        of_contact = slice(self._n * contact, self._n * (contact + 1))
        origin = self._signals["origin"][of_contact]
        path = float(self._signals["normal_jacobian"][of_contact] @ (q - origin))
        inputs = self._zero_depth.inputs
        inputs["x"][:], inputs["P"][:], inputs["q_touch"][:] = x, p, origin
        inputs["theta"][:], inputs["basis"][:] = self._signals["theta"], self._signals["basis"]
        inputs["depth_variance"][:] = (0.5 * path) ** 2 + self._settings.touch_std**2
        inputs["chosen"][:] = np.arange(len(inputs["chosen"])) == contact
        self._zero_depth()
        x[:], p[:] = self._zero_depth.outputs["x_next"], self._zero_depth.outputs["P_next"]
