"""Ranges of numbers on the command line: an error says what was given and what is expected."""

from __future__ import annotations

import math

from contact_estimation.exceptions import ConfigError


def check_number(
    option: str,
    value: float | None,
    unit: str = "",
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    hint: str = "",
) -> None:
    """Refuse a number that is not finite or outside its range.

    Args:
        option: that was given.
        value: its number; None where it was not given.
        unit: of the number, for the error.
        above: the number must be greater.
        least: smallest number.
        most: largest number.
        hint: what to give instead, or why.

    Raises:
        ConfigError: says what is expected.
    """
    if value is None:
        return
    low = -math.inf if least is None else least
    inside = low <= value and (above is None or value > above) and (most is None or value <= most)
    if math.isfinite(value) and inside:
        return
    bounds = ((above, "greater than"), (least, "at least"), (most, "at most"))
    expected = " and ".join(f"{words} {bound:g}" for bound, words in bounds if bound is not None)
    shown = f"{expected} {unit}".rstrip() if expected else "finite"
    raise ConfigError(f"{option} must be {shown}, found {value:g}" + (f": {hint}" if hint else ""))
