"""The kinks of the force, followed beside the filters: which change of mode they decide."""

from __future__ import annotations

import numpy as np

from contact_estimation.codegen import CompiledFunction, compile_function
from contact_estimation.filters.bank.cycle import Cycle
from contact_estimation.filters.bank.kink_context import build_anchor, build_context
from contact_estimation.filters.bank.kink_odds import SCATTER_START, KinkLayout, build_cell, build_gather, build_odds
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.mix import Modes
from contact_estimation.filters.bank.settings import BankSettings, DriveSettings
from contact_estimation.robot import Arm

#: [m] How well the place of a touch is known at best.
_PLACE_STD = 5e-5


class Kinks:
    """Odds of a touch or release after every sample, from what the believed filter knows.

    Args:
        track, w: the sample function and its two states, the present one being ``w[turn]``. rate: samples per second.
    """

    def __init__(
        self,
        arm: Arm,
        settings: BankSettings,
        drives: DriveSettings,
        layout: BankLayout,
        cycle: Cycle,
        modes: Modes,
        track: CompiledFunction,
        w: list[np.ndarray],
        rate: float,
    ):
        self._modes, kinks = modes, KinkLayout(layout, rate)
        self._limit, self._per_cell = settings.decide / (1.0 - settings.decide), kinks.per_cell
        # What the believed filter knows.
        context = compile_function(build_context(arm, layout, settings))
        context.inputs["theta"][:], context.inputs["basis"][:] = layout.constants
        self._q, self._closed = context.inputs["q"], context.inputs["closed"]
        shared = [context.inputs[k] for k in ("q", "closed", "theta", "basis")]
        self._contexts = [
            context.bind([x, p, *shared], list(context.outputs.values())) for x, p in zip(cycle.x, cycle.p)
        ]
        # Samples and cells: bindings take turns, so that results are the next ones' arguments without a copy.
        gather, cell = compile_function(build_gather(arm, layout, kinks)), compile_function(build_cell(layout, kinks))
        odds = compile_function(build_odds(arm, layout, settings, drives, kinks, 1.0 / rate))
        self._sums = [gather.inputs["sums"], gather.outputs["sums_next"]]
        self._momentum = [gather.inputs["momentum_before"], gather.outputs["momentum_now"]]
        kept = ("ring", "starts", "scatter")
        self._kept = [[cell.inputs[k] for k in kept], [cell.outputs[k + "_next"] for k in kept]]
        self._number, self._age = cell.inputs["number"], cell.inputs["age"]
        cell.inputs["duration"][:] = kinks.per_cell / rate
        self._odds, self._most = odds.outputs["odds"], odds.outputs["most"]
        told = {
            **track.inputs,
            **track.outputs,
            **context.outputs,
            "closed": self._closed,
            "q_then": self._q,
            **cell.inputs,
            **cell.outputs,
        }
        told |= {"ratios": odds.outputs["ratios"], "q": track.inputs["q"]}

        def bound(function, outputs, **own):
            return function.bind([own.get(k, told.get(k)) for k in function.inputs], outputs)

        self._gathers = [
            [
                bound(
                    gather,
                    [self._sums[1 - k], self._momentum[1 - k]],
                    w=state,
                    sums=self._sums[k],
                    momentum_before=self._momentum[k],
                )
                for k in (0, 1)
            ]
            for state in w
        ]
        lines = [cell.outputs[k] for k in ("since", "level", "slope")]
        self._cells = [
            [
                bound(cell, [*self._kept[1 - k], *lines], sums=sums, **dict(zip(kept, self._kept[k])))
                for sums in self._sums
            ]
            for k in (0, 1)
        ]
        self._samples = [
            [
                [
                    bound(odds, list(odds.outputs.values()), w=state, sums=sums, **dict(zip(kept, self._kept[k])))
                    for sums in self._sums
                ]
                for k in (0, 1)
            ]
            for state in w
        ]
        self._cycle, self._now = cycle, track.outputs["momentum"]
        self._anchor = anchor = compile_function(build_anchor(arm, layout))
        anchor.inputs["theta"][:], anchor.inputs["basis"][:] = layout.constants
        self._g, self._origin = context.outputs["g"], odds.outputs["origin"]
        self._cell_turn, self._turn, self._believed, self._fresh = 0, 0, 0, True

    def start(self, q: np.ndarray) -> None:
        """Nothing was seen yet; the arm is at ``q`` (n,)."""
        for _, starts, scatter in self._kept:
            starts.reshape(-1, len(q))[:], scatter[:] = q, SCATTER_START
        self._fresh = True
        for buffer in (*self._sums, *self._momentum, self._number, self._age):
            buffer[:] = 0.0
        self.follow(0, q)

    def follow(self, believed: int, q: np.ndarray) -> None:
        """From now on filter ``believed`` is the one that a kink must contradict; its state is that of position ``q``
        (n,)."""
        if self._modes.owner[believed] != self._modes.owner[self._believed]:
            self._age[0] = 0.0
        self._believed = believed
        self._closed[:] = self._modes.closed[believed]
        self._q[:] = q
        self._contexts[believed]()

    def gather(self, turn: int) -> None:
        """Take the sample whose track is ``w[turn]``."""
        if self._number[0] >= self._per_cell:
            self._end_cell()
        if self._fresh:  # whatever the momentum is, it was there before
            self._fresh = False
            self._momentum[self._turn][:] = self._now
        self._gathers[turn][self._turn]()
        self._turn = 1 - self._turn
        self._number[0] += 1.0

    def decide(self, turn: int, q: np.ndarray) -> bool:
        """After :meth:`gather` at ``q`` (n,): move the beliefs where a change of the mode is certain enough; whether
        one was."""
        self._samples[turn][self._cell_turn][self._turn]()
        if not self._most[0] > self._limit:
            return False
        contact = int(self._odds.argmax())
        start = int(self._modes.owner[self._believed])
        end = self._modes.toggled(start, contact)
        if end is None:
            return False
        odds = float(self._odds[contact])
        target = self._modes.move(self._cycle.beliefs, start, end, odds / (1.0 + odds))
        if self._modes.closed[target, contact]:
            self._close(target, contact, q)
        self.follow(int(self._cycle.beliefs.argmax()), q)
        return True

    def _close(self, target: int, contact: int, q: np.ndarray) -> None:
        """Filter ``target`` has closed ``contact`` where the likeliest candidate began, to within half of the path
        since."""
        n, anchor = len(q), self._anchor
        origin = self._origin[n * contact : n * (contact + 1)]
        path = float(self._g[n * contact : n * (contact + 1)] @ (q - origin))
        anchor.inputs["x"][:], anchor.inputs["P"][:] = self._cycle.x[target], self._cycle.p[target]
        anchor.inputs["q"][:], anchor.inputs["variance"][:] = origin, (0.5 * path) ** 2 + _PLACE_STD**2
        anchor.inputs["chosen"][:] = np.arange(len(anchor.inputs["chosen"])) == contact
        anchor()
        self._cycle.x[target], self._cycle.p[target] = anchor.outputs["x_next"], anchor.outputs["P_next"]

    def _end_cell(self) -> None:
        self._cells[self._cell_turn][self._turn]()
        self._cell_turn = 1 - self._cell_turn
        self._sums[self._turn][:] = 0.0
        self._number[0] = 0.0
        self._age[0] += 1.0
