"""An estimate as one row of numbers and a key of words: what nodes send, without an object per sample.

The words are everything that is no number: names, mode, which contacts are closed. They change seldom, the numbers
always. Who has built something from an estimate writes only numbers into it while the words stay the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from contact_estimation.codegen import Parts
from contact_estimation.filters.observer import ContactPlace, ContactState, Estimate

#: Fields of an estimate that are numbers, in the order of a row; then come its modes and its contacts.
ARM = ("nis", "q", "force_tcp", "torque_tcp", "force_base", "tau_ext", "force_covariance", "dq", "unexplained")
#: Fields of a contact that are numbers, in the order of a row; then comes its place.
CONTACT = (
    "probability",
    "stiffness",
    "rest",
    "point_tcp",
    "covariance",
    "point_base",
    "law_parameters",
    "remaining",
    "normal",
)
#: Fields of a place that are numbers, in the order of a row.
PLACE = ("links", "point", "covariance", "force", "region")


@dataclass(slots=True)
class EstimateRow:
    """An estimate without objects.

    Attributes:
        numbers: (R,) :data:`ARM`, probabilities of the modes, per contact :data:`CONTACT` and :data:`PLACE` (a view,
            which the next sample overwrites).
        words: equal for two estimates of one stream that differ in numbers only.
        valid: False when the numbers must not be used.
        reason: why they must not.
        mismatch: what shows that model and data disagree.
    """

    numbers: np.ndarray
    words: Hashable
    valid: bool
    reason: str
    mismatch: str = ""


@runtime_checkable
class RowObserver(Protocol):
    """An observer that returns its estimate as a row, without building it."""

    def row(self) -> np.ndarray:
        """Return :func:`numbers_of` the estimate after the last sample.

        Returns:
            (R,) view.
        """

    @property
    def mismatch(self) -> str:
        """What shows that model and data disagree."""

    def words(self) -> Hashable:
        """Return a key that changes when anything in the estimate changes that is no number."""


def arm_parts(n: int) -> Parts:
    """Return where the numbers of an arm with ``n`` joints stand in a row, as far as every observer has them."""
    sizes = {"nis": 1, "q": n, "tau_ext": n, "force_covariance": 9, "dq": n}
    return Parts(**{name: sizes.get(name, 3) for name in ARM if name != "unexplained"})


def first_contact(estimate: Estimate) -> dict[str, slice]:
    """Return where :data:`CONTACT` of the first contact stand in a row, as far as their sizes are always the same.

    Args:
        estimate: of an observer with a contact.
    """
    sizes = dict(zip(CONTACT, (1, 3, 3, 3, 81, 3)))
    start = arm_parts(len(estimate.q)).size + len(estimate.unexplained) + len(estimate.modes)
    return {k: slice(start + where.start, start + where.stop) for k, where in Parts(**sizes).where.items()}


def _numbers(estimate: Any) -> Iterator[tuple[Any, str]]:
    """Yield the owner and the name of every field that is a number, in the order of a row."""
    yield from ((estimate, name) for name in (*ARM, "modes"))
    for contact in estimate.contacts:
        yield from contact_numbers(contact)


def contact_numbers(contact: Any) -> Iterator[tuple[Any, str]]:
    """Yield the owner and the name of every number of a contact, in the order of a row."""
    yield from ((contact, name) for name in CONTACT)
    if contact.place is not None:
        yield from ((contact.place, name) for name in PLACE)


def numbers_of(owners: Iterator[tuple[Any, str]]) -> np.ndarray:
    """Return the numbers (R,) of fields, each flattened.

    Args:
        owners: objects, each with the name of its field.
    """
    values = [getattr(owner, name) for owner, name in owners]
    return np.concatenate([np.ravel(list(v.values()) if isinstance(v, dict) else v) for v in values]).astype(float)


def row_of(estimate: Estimate) -> EstimateRow:
    """Return the row of an estimate."""
    numbers = numbers_of(_numbers(estimate))
    return EstimateRow(numbers, _words(estimate), estimate.valid, estimate.reason, estimate.mismatch)


def with_numbers(estimate: Estimate, numbers: np.ndarray) -> Any:
    """Return something with the attributes of ``estimate`` whose numbers are those of a row (R,)."""
    copy = _plain(estimate)
    copy.contacts = [_plain(contact) for contact in estimate.contacts]
    for contact, known in zip(copy.contacts, estimate.contacts):
        contact.place = None if known.place is None else _plain(known.place)
        contact.normal = known.normal
    at = 0
    for owner, name in _numbers(copy):
        value = getattr(owner, name)
        size = len(value) if isinstance(value, dict) else int(np.size(value))
        given, at = numbers[at : at + size], at + size
        if isinstance(value, dict):
            setattr(owner, name, dict(zip(value, given.tolist())))
        else:
            setattr(owner, name, given.reshape(np.shape(value)) if np.ndim(value) else float(given[0]))
    return copy


def _plain(record: Estimate | ContactState | ContactPlace) -> SimpleNamespace:
    return SimpleNamespace(**{field.name: getattr(record, field.name) for field in fields(record)})


def _words(estimate: Estimate) -> Hashable:
    """Return everything in an estimate that is no number."""
    contacts = tuple(contact_words(contact) for contact in estimate.contacts)
    return estimate.mode, tuple(estimate.modes), estimate.nis_dof, contacts


def contact_words(contact: ContactState) -> Hashable:
    """Return everything in a contact that is no number."""
    c, place = contact, contact.place
    of_place = None if place is None else (tuple(place.links), len(place.region), place.reason)
    return c.name, c.parameters, c.unseen, c.law, tuple(c.law_parameters), c.link, of_place
