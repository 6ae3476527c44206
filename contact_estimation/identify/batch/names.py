"""Names that a scene file gives and the scene must have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Return the sentence that a name is not in the scene, with the nearest one and all that are.

    Args:
        what: noun of the element, such as ``geom``.
        given: its name.
        known: names of such elements that the scene has; an element without a name does not count.
    """
    names = list(dict.fromkeys(name for name in known if name))
    if not names:
        return f"the scene has no {what} '{given}': it has none with a name"
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.0)[0]
    return f"the scene has no {what} '{given}' (nearest: '{near}'); it has {', '.join(names)}"
