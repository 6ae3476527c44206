"""Functions and vectors with named parts: symbols in, expressions out, no index arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np


def symbols(kind: Any = ca.SX, /, **shapes: int | tuple[int, int]) -> SimpleNamespace:
    """Return symbols by name.

    Args:
        kind: ``casadi.SX`` or ``casadi.MX``.
        shapes: rows, or (rows, columns), of every symbol.
    """
    sized = {name: shape if isinstance(shape, tuple) else (shape, 1) for name, shape in shapes.items()}
    return SimpleNamespace(**{name: kind.sym(name, *shape) for name, shape in sized.items()})


def named_function(name: str, inputs: SimpleNamespace, outputs: Mapping[str, Any]) -> ca.Function:
    """Return the dense function of named symbols and named expressions.

    Args:
        name: the function's name.
        inputs: symbols, as :func:`symbols` makes them.
        outputs: expressions by name.
    """
    given = vars(inputs)
    results = [ca.densify(e) for e in outputs.values()]
    return ca.Function(name, list(given.values()), results, list(given), list(outputs))


def call_named(function: ca.Function, *sources: SimpleNamespace | Mapping[str, Any]) -> SimpleNamespace:
    """Call a function by the names of its arguments and return its results by name.

    Args:
        function: the function.
        sources: expressions by name; the first that has a name is asked.

    Raises:
        KeyError: no source has an argument.
    """
    known: dict[str, Any] = {}
    for source in reversed(sources):
        known |= vars(source) if isinstance(source, SimpleNamespace) else source
    results = function.call([known[name] for name in function.name_in()])
    return SimpleNamespace(**dict(zip(function.name_out(), results)))


class Parts:
    """A vector whose parts have names.

    Args:
        sizes: number of entries of every part, in order.

    Attributes:
        size: entries in all.
        where: slice of every part.
    """

    def __init__(self, **sizes: int) -> None:
        ends = np.cumsum(list(sizes.values())).tolist()
        self.where = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}
        self.size = ends[-1] if ends else 0

    def __getitem__(self, name: str) -> slice:
        return self.where[name]

    def split(self, vector: Any) -> SimpleNamespace:
        """Return the parts of a CasADi vector or, as views, of a numpy array, by name."""
        return SimpleNamespace(**{name: vector[where] for name, where in self.where.items()})

    def join(self, parts: SimpleNamespace) -> Any:
        """Return the CasADi vector of all parts; the inverse of :meth:`split`."""
        return ca.vertcat(*[getattr(parts, name) for name in self.where])
