"""Localise the unknown contact of an observer's estimate, at a bounded rate, while it is likely."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_estimation.exceptions import CodegenError, ModelError
from contact_estimation.filters.estimate_row import contact_numbers, contact_words, numbers_of
from contact_estimation.filters.localization.settings import LocalizationSettings, load_localization_settings
from contact_estimation.filters.observer import ContactPlace, ContactState, Estimate, Observer
from contact_estimation.robot import Arm

if TYPE_CHECKING:
    from contact_estimation.filters.localization.localizer import ContactLocalizer

#: Name of the contact in estimates, as that of the mode.
NAME = "unknown"
_NAN = np.full(3, np.nan)
#: Probability from which on the tool may be what touches.
_POSSIBLE = 0.05
_OPEN = ContactState(NAME, 0.0, _NAN, _NAN, _NAN, _NAN, np.zeros((9, 9)), place=ContactPlace())


def link_contact_of(observer: Observer, arm: Arm, period: float) -> LinkContact | None:
    """Return the unknown contact of an observer that has ``external_torque``, else None.

    A description without collision geometry, or a computer without C compiler, has none either; a warning says so.

    Args:
        observer: any.
        arm: the robot.
        period: of samples [s].
    """
    settings = load_localization_settings(arm.settings.folder)
    if getattr(observer, "external_torque", None) is None or not settings.candidates:
        return None
    from contact_estimation.filters.localization.localizer import ContactLocalizer  # which other observers spare

    try:
        return LinkContact(observer, ContactLocalizer(arm, settings), period)
    except (ModelError, CodegenError) as error:
        warnings.warn(f"contacts on links are not localised: {error}", stacklevel=3)
        return None


class LinkContact:
    """Runs a localiser: a frame at its rate, and with every sample a share of the candidates.

    Args:
        observer: has ``external_torque``, an :class:`~contact_estimation.filters.imm.unknown.ExternalTorque`.
        localizer: finds the place.
        period: of samples [s].

    Attributes:
        words: everything in this contact that is no number.
    """

    def __init__(self, observer: Any, localizer: ContactLocalizer, period: float) -> None:
        self._observer, self._localizer = observer, localizer
        self.settings: LocalizationSettings = localizer.settings
        self._interval, self._period = 1.0 / self.settings.rate, period
        self._share = math.ceil(localizer.count * period / (0.8 * self._interval))
        self.reset()

    def reset(self) -> None:
        """Forget the contact."""
        # Frames are taken two samples after the end of an observer's block, to spread the load.
        self._elapsed, self._next = -2.0 * self._period, -1
        self._set(_OPEN)
        self._localizer.reset()

    def _set(self, state: ContactState) -> None:
        self._state, self._numbers, self.words = state, numbers_of(contact_numbers(state)), contact_words(state)

    def step(self, dt: float, q: np.ndarray) -> None:
        """Take the sample that the observer has just taken.

        Args:
            dt: time since the last one [s].
            q: joint positions (n,) [rad].
        """
        self._elapsed += dt
        localizer = self._localizer
        if self._next >= localizer.count:
            self._next = -1
            self._take_place(localizer.place())
        elif self._next >= 0:
            localizer.scan(self._next, self._next + self._share)
            self._next += self._share
        elif self._elapsed > self._interval - 0.5 * dt:
            external = self._observer.external_torque
            if external.probability >= self.settings.start_probability:
                localizer.add(self._elapsed, q, external.torque, external.covariance)
                self._next, self._external = 0, external
            elif self._state is not _OPEN:
                self._set(_OPEN)
                localizer.reset()
            self._elapsed = 0.0

    def _take_place(self, place: ContactPlace) -> None:
        """Make the contact of a place; it has a point where the spread allows it."""
        position, rotation = self._localizer.arm.tcp_pose(self._localizer.q)
        covariance, point, local = np.zeros((9, 9)), _NAN, _NAN
        if place.spread <= self.settings.largest_spread:
            point, local = place.point, rotation.T @ (place.point - position)
            covariance[6:, 6:] = rotation.T @ place.covariance @ rotation
        probability = self._external.probability
        state = ContactState(NAME, probability, _NAN, _NAN, local, point, covariance, link=place.link, place=place)
        self._set(self._with_stiffness(state))

    def _with_stiffness(self, state: ContactState) -> ContactState:
        """Return a contact with its stiffness along its force, where the tool may be what touches.

        Motion of the TCP shows it.
        """
        external, place = self._external, state.place or ContactPlace()
        on_tool = place.reason or place.links.get(self._localizer.arm.tool_link, 0.0) >= _POSSIBLE
        size = float(np.linalg.norm(place.force))
        if not (on_tool and size > 0.0 and math.isfinite(external.stiffness)):
            return state
        normal, covariance = place.force / size, state.covariance.copy()
        covariance[:3, :3] = external.stiffness_std**2 * np.outer(normal, normal)
        return dataclasses.replace(state, stiffness=external.stiffness * normal, covariance=covariance)

    def add_to(self, estimate: Estimate) -> Estimate:
        """Return the estimate with this contact behind its others."""
        return estimate.with_contacts((*estimate.contacts, self._with_force(estimate.force_base)))

    def numbers(self, force_base: np.ndarray) -> np.ndarray:
        """Return the numbers of this contact, which end the row of an estimate with the force ``force_base`` (3,)."""
        state = self._with_force(force_base)
        return self._numbers if state is self._state else numbers_of(contact_numbers(state))

    def _with_force(self, force_base: np.ndarray) -> ContactState:
        """Return the contact; without a link its force is that of the wrench at the TCP."""
        place = self._state.place
        if place is None or not place.reason:
            return self._state
        return self._with_stiffness(
            dataclasses.replace(self._state, place=dataclasses.replace(place, force=force_base))
        )
