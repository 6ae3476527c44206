"""The kinks of the force, followed beside the filters: which change of mode they decide."""

from __future__ import annotations

import numpy as np

from contact_estimation.codegen import CompiledFunction, compile_function
from contact_estimation.filters.bank.cycle import Cycle
from contact_estimation.filters.bank.kink import SCATTER_START, KinkLayout, build_cell, build_context, build_kink
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.mix import Modes
from contact_estimation.filters.bank.settings import BankSettings, DriveSettings
from contact_estimation.robot import Arm


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
        told = {**context.outputs, "closed": self._closed}
        self._contexts = [context.bind([x, p, *shared], list(context.outputs.values())) for x, p in zip(cycle.x, cycle.p)]
        # Cells: two bindings take turns, as for samples.
        cell = compile_function(build_cell(layout, kinks))
        sample = compile_function(build_kink(arm, layout, settings, drives, kinks, 1.0 / rate))
        kept = ("ring", "starts", "scatter")
        self._kept = [[cell.inputs[k] for k in kept], [cell.outputs[k + "_next"] for k in kept]]
        lines = {k: cell.outputs[k] for k in ("since", "level", "slope")}
        self._sums = [sample.inputs["sums"], sample.outputs["sums_next"]]
        self._momentum = [sample.inputs["momentum_before"], sample.outputs["momentum_now"]]
        self._number, self._age, self._duration = cell.inputs["number"], cell.inputs["age"], cell.inputs["duration"]
        self._duration[:] = kinks.per_cell / rate
        self._odds, self._most, ratios = (sample.outputs[k] for k in ("odds", "most", "ratios"))
        self._cells = [
            [
                cell.bind(
                    [*self._kept[k][:2], sums, self._number, track.inputs["q"], ratios, self._kept[k][2], self._age]
                    + [self._duration],
                    [*self._kept[1 - k], *lines.values()],
                )
                for sums in self._sums
            ]
            for k in (0, 1)
        ]
        given = {**{k: track.inputs[k] for k in ("q", "dq", "tau", "dt")}, **lines, **told}
        given |= {"momentum": track.outputs["momentum"], "known": track.outputs["known"]}
        given |= {"number": self._number, "age": self._age}
        results = list(sample.outputs)

        def bound(state, k, turn):
            own = {"w": state, "sums": self._sums[turn], "momentum_before": self._momentum[turn]}
            own |= {"starts": self._kept[k][1], "scatter": self._kept[k][2]}
            out = {"sums_next": self._sums[1 - turn], "momentum_now": self._momentum[1 - turn]}
            return sample.bind([(given | own)[name] for name in sample.inputs],
                               [out.get(name, sample.outputs[name]) for name in results])

        # By the state of the track, the kept cells, and the turn of the sums.
        self._samples = [[[bound(state, k, turn) for turn in (0, 1)] for k in (0, 1)] for state in w]
        self._cell_turn, self._turn, self._believed = 0, 0, 0

    def start(self, q: np.ndarray) -> None:
        """Nothing was seen yet; the arm is at ``q`` (n,)."""
        for _, _, scatter in self._kept:
            scatter[:] = SCATTER_START
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

    def changed(self, turn: int) -> tuple[int, int, float] | None:
        """Take the sample whose track is ``w[turn]``: combinations (from, to) and the probability of the change, if it
        is certain enough to act upon."""
        self._number[0] += 1.0
        self._samples[turn][self._cell_turn][self._turn]()
        self._turn = 1 - self._turn
        if self._number[0] >= self._per_cell:
            self._end_cell()
        if not self._most[0] > self._limit:
            return None
        contact = int(self._odds.argmax())
        start = int(self._modes.owner[self._believed])
        end = self._modes.toggled(start, contact)
        if end is None:
            return None
        odds = float(self._odds[contact])
        return start, end, odds / (1.0 + odds)

    def _end_cell(self) -> None:
        self._cells[self._cell_turn][self._turn]()
        self._cell_turn = 1 - self._cell_turn
        self._sums[self._turn][:] = 0.0
        self._number[0] = 0.0
        self._age[0] += 1.0
