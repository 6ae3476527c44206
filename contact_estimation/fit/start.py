"""Start of the unbiased fit: rests and stiffness from a search over heights, the point from the tool's rotation.

The fit's cost has several minima. Over the rest there is a second one: the contact is always closed, and its preload
looks like a torque bias. Over the point there are many if the tool rotates: a point that is 10 cm off moves by
centimetres, and only a far too soft or turned spring explains that. The search below is coarse, but each trial has the
optimal friction and stiffness (a linear problem).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contact_estimation.filters.settings import EkfSettings
from contact_estimation.fit.blocks import Blocks
from contact_estimation.fit.calibration.regression import robust_scale
from contact_estimation.fit.contact_torque import FitContact
from contact_estimation.fit.linear import project
from contact_estimation.fit.unknowns import Unknowns

if TYPE_CHECKING:
    from contact_estimation.fit.unbiased import UnbiasedSettings

_HEIGHTS = 25
#: A point that rests moves this much [m], independently every so many seconds.
_STILL, _STILL_TIME = 1e-3, 1.0


def start_problem(settings: object, one: bool = False) -> str:
    """Say why a fit cannot start from these settings; an empty string where it can.

    Args:
        settings: of an observer.
        one: whether the fit is for one contact only.
    """
    count = len(getattr(settings, "contacts", []))
    if isinstance(settings, EkfSettings) and count >= 1 and not (one and count > 1):
        return ""
    return (
        f"a fit starts from an EKF with {'one contact' if one else 'at least one contact'}, found an observer of kind "
        f"'{getattr(settings, 'observer', settings)}' with {count} contacts"
    )


def search(unknowns: Unknowns, blocks: list[Blocks], options: UnbiasedSettings) -> NDArray[np.float64]:
    """Return the start theta (size,): the rests, stiffness and points that explain most of the torque.

    Normals stay as configured; a rest of ``start`` is where the point was first.

    Args:
        unknowns: of the fit.
        blocks: of each recording.
        options: of the fit.
    """
    trials = [[np.asarray(c.settings.point, float) for c in unknowns.contacts]]
    if "point" in options.estimate:
        trials.append([pivot_point(blocks, point, options.priors[2]) for point in trials[0]])
    found = [_place(unknowns, points, blocks, options) for points in trials]
    return min(found, key=lambda pair: pair[0])[1]


def pivot_point(blocks: list[Blocks], point: NDArray[np.float64], std: float) -> NDArray[np.float64]:
    """Return the point (3,) of the tool that moves least while the tool turns (pivot calibration).

    Ridge regression of p + R point = constant, one constant per recording.

    Args:
        blocks: one per recording.
        point: (3,) prior mean [m].
        std: prior standard deviation [m].
    """
    information, pull = np.eye(3) / std**2, np.zeros(3)
    for b in blocks:
        turn = (b.rotation - b.rotation.mean(axis=0)).reshape(-1, 3)
        place = (b.position - b.position.mean(axis=0)).reshape(-1)
        weight = 1.0 / (_STILL**2 * max(b.rate * _STILL_TIME, 1.0))
        information += weight * turn.T @ turn
        pull -= weight * turn.T @ (place + turn @ point)
    return point + np.linalg.solve(information, pull)


def _first_guess(contact: FitContact, point: NDArray[np.float64], b: Blocks) -> NDArray[np.float64]:
    """Parameters (size,) of a contact at ``point`` in one recording, as configured."""
    rest = np.asarray(contact.settings.rest)
    if isinstance(contact.settings.rest, str):
        rest = b.position[0] + b.rotation[0] @ point
        if contact.law.feels_slip:  # what holds the point pulls to both sides
            rest = b.position.mean(axis=0) + b.rotation.mean(axis=0) @ point
    return np.concatenate([contact.settings.stiffness, rest, point, [mean for _, mean, _ in contact.prior]])


def _place(
    unknowns: Unknowns, points: list[NDArray[np.float64]], blocks: list[Blocks], options: UnbiasedSettings
) -> tuple[float, NDArray[np.float64]]:
    """Cost and theta with the contacts at ``points``; several contacts are placed in turn, twice."""
    theta, contacts = np.zeros(unknowns.size), unknowns.contacts
    for c, point in enumerate(points):
        for r, b in enumerate(blocks):
            theta[unknowns.places(c, r)] = _first_guess(contacts[c], point, b)
    placed: set[int] = set()
    costs = np.zeros(len(blocks))
    for c in list(range(len(contacts))) * (1 if len(contacts) == 1 else 2):
        placed.add(c)
        factors = np.ones(len(blocks))
        for r, b in enumerate(blocks):
            others = sum(
                (contacts[k].evaluate(theta[unknowns.places(k, r)], b.inputs)[0] for k in placed - {c}),
                np.zeros_like(b.y),
            )
            costs[r], rest, factors[r] = _lowest(
                contacts[c], theta[unknowns.places(c, r)], b, others, "rest" in options.estimate
            )
            theta[unknowns.places(c, r)[3:6]] = rest
        if "stiffness" in options.estimate:
            theta[unknowns.places(c, 0)[:3]] *= float(np.median(factors))
    return float(costs.sum()), theta


def _lowest(
    contact: FitContact, phi: NDArray[np.float64], b: Blocks, others: NDArray[np.float64], move: bool
) -> tuple[float, NDArray[np.float64], float]:
    """Lowest cost over the rest along the normal, with the rest (3,) and the factor on the stiffness there."""
    phi, ones = phi.copy(), np.ones_like(b.y)
    normal = phi[:3] / np.linalg.norm(phi[:3])
    start, height = phi[3:6].copy(), (b.position + b.rotation @ phi[6:9]) @ normal
    sigma, best = robust_scale(b.y - np.median(b.y, axis=0)), (np.inf, start, 1.0)
    y = project(b.nuisance, (b.y - others)[:, :, None], ones)[:, :, 0] / sigma
    levels = np.linspace(height.min(), height.max(), _HEIGHTS)[1:] if move else [normal @ start]
    for level in levels:
        phi[3:6] = start + normal * (level - normal @ start)
        torque, _ = contact.evaluate(phi, b.inputs)
        shape = project(b.nuisance, torque[:, :, None], ones)[:, :, 0] / sigma
        factor = float(np.sum(shape * y) / max(np.sum(shape**2), 1e-12))
        cost = float(np.sum((y - factor * shape) ** 2))
        if factor > 0 and cost < best[0]:
            best = (cost, phi[3:6].copy(), factor)
    return best
