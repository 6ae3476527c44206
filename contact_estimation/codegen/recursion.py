"""Recursions x+ = f(x, u) over two copies of the state, so that a result is the next argument without a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from contact_estimation.codegen.compile import CompiledFunction
from contact_estimation.exceptions import CodegenError

_NEXT = "_next"


class DoubleBuffer:
    """State vectors of a recursion, each twice: functions read the present copy and write the other one.

    Args:
        sizes: number of entries of every state vector, by name.

    Attributes:
        copies: both copies, buffers by name.
        turn: which of them is the present one.
    """

    def __init__(self, **sizes: int) -> None:
        self.copies = tuple({name: np.zeros(size) for name, size in sizes.items()} for _ in range(2))
        self.turn = 0

    def __getitem__(self, name: str) -> np.ndarray:
        """Present values of a state vector (a view of the live buffer)."""
        return self.copies[self.turn][name]

    @classmethod
    def of(cls, function: CompiledFunction) -> DoubleBuffer:
        """Make buffers for the arguments ``x`` that ``function`` has a result ``x_next`` for."""
        names = [name for name in function.inputs if name + _NEXT in function.outputs]
        return cls(**{name: function.inputs[name].size for name in names})


def bind_recursion(
    function: CompiledFunction, states: Sequence[DoubleBuffer], shared: Mapping[str, np.ndarray] | None = None
) -> Callable[[], None]:
    """Return a callable that evaluates ``function`` on the present state and makes its results the present state.

    Args:
        function: an argument that one of ``states`` has is read from there; a result ``<name>_next`` is written to the
            other copy of it, and that state flips after the call. A state none of whose vectors is a result is only
            read.
        states: the states.
        shared: buffers of further arguments and results by name; where none is given, the function's own.

    Raises:
        CodegenError: a function writes some vectors of a state and not the others.
    """
    flips = []
    for state in states:
        written = {name + _NEXT in function.outputs for name in state.copies[0]}
        if len(written) > 1:
            raise CodegenError(f"{function.function.name()} must write all of {', '.join(state.copies[0])} or none")
        if written == {True}:
            flips.append(state)
    calls = []
    for turns in product((0, 1), repeat=len(states)):
        given = {**function.inputs, **function.outputs, **(shared or {})}
        for state, turn in zip(states, turns):
            given |= state.copies[turn]
            given |= {name + _NEXT: buffer for name, buffer in state.copies[1 - turn].items()}
        calls.append(function.bind([given[k] for k in function.inputs], [given[k] for k in function.outputs]))
    run = _selected(states, calls)
    if not flips:
        return run
    if len(flips) == 1:
        (flip,) = flips

        def advance() -> None:
            run()
            flip.turn = 1 - flip.turn

        return advance

    def advance_all() -> None:
        run()
        for state in flips:
            state.turn = 1 - state.turn

    return advance_all


def _selected(states: Sequence[DoubleBuffer], calls: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return the call of the present turns; loops would cost as much as a small function's evaluation."""
    if len(states) == 1:
        (first,) = states
        return lambda: calls[first.turn]()
    halves = len(calls) // 2
    first = states[0]
    if len(states) == 2:
        second = states[1]
        return lambda: calls[2 * first.turn + second.turn]()
    rest = (_selected(states[1:], calls[:halves]), _selected(states[1:], calls[halves:]))
    return lambda: rest[first.turn]()
