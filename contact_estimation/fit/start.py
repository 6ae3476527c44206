"""Where the unbiased fit starts: rests and stiffness from a search over heights, the point from the way the tool turns.

The fit's cost has several minima. Over the rest there is a second one where the contact is always closed and its
preload looks like a torque bias. Over the point there are many once the tool turns: a point that is 10 cm off would
have moved by centimetres, which only a spring that is far too soft, or turned, explains. The search below is coarse,
but its friction and stiffness are the best ones (linear) for every trial.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.contact.settings import ContactSettings
from contact_estimation.fit.blocks import Blocks
from contact_estimation.fit.calibration.regression import robust_scale
from contact_estimation.fit.linear import project
from contact_estimation.fit.spring import evaluate
from contact_estimation.fit.unknowns import Unknowns
from contact_estimation.robot import Arm

_HEIGHTS = 25
#: A point that rests moves this much [m], independently every so many seconds.
_STILL, _STILL_TIME = 1e-3, 1.0


def search(arm: Arm, run, unknowns: Unknowns, contacts: list[ContactSettings], blocks: list[Blocks], share: float,
           options) -> np.ndarray:
    """Start theta (size,): along the configured normals, the rests, stiffness and points that explain most of the
    torque.

    Args:
        contacts: as configured; a rest of ``start`` is where the point was first. share: tangential share where it is
            estimated.
    """
    trials = [[np.asarray(c.point, float) for c in contacts]]
    if "point" in options.estimate:
        trials.append([pivot_point(blocks, point, options.priors[2]) for point in trials[0]])
    found = [_place(arm, run, unknowns, contacts, points, blocks, share, options) for points in trials]
    return min(found, key=lambda pair: pair[0])[1]


def pivot_point(blocks: list[Blocks], point: np.ndarray, std: float) -> np.ndarray:
    """The point (3,) of the tool that moves least while the tool turns, near ``point`` with the given ``std`` [m]:
    ridge regression of p + R point = constant, one constant per recording (pivot calibration)."""
    information, pull = np.eye(3) / std**2, np.zeros(3)
    for b in blocks:
        turn = (b.rotation - b.rotation.mean(axis=0)).reshape(-1, 3)
        place = (b.position - b.position.mean(axis=0)).reshape(-1)
        weight = 1.0 / (_STILL**2 * max(b.rate * _STILL_TIME, 1.0))
        information += weight * turn.T @ turn
        pull -= weight * turn.T @ (place + turn @ point)
    return point + np.linalg.solve(information, pull)


def _place(arm, run, unknowns, contacts, points, blocks, share, options) -> tuple[float, np.ndarray]:
    """Cost and theta with the contacts at ``points``; several contacts are placed in turn, twice."""
    theta = np.zeros(unknowns.size)
    heights = {}
    for c, (contact, point) in enumerate(zip(contacts, points)):
        for r, b in enumerate(blocks):
            first = b.position[0] + b.rotation[0] @ point
            centre = b.position.mean(axis=0) + b.rotation.mean(axis=0) @ point
            rest = first if isinstance(contact.rest, str) else np.asarray(contact.rest, float)
            if "tangential" in options.estimate and isinstance(contact.rest, str):
                rest = centre  # what holds the point pulls to both sides
            heights[c, r] = rest
            theta[unknowns.places(c, r)] = [*contact.stiffness, *rest, *point,
                                            share if "tangential" in options.estimate else 0.0]
    placed: set[int] = set()
    costs = np.zeros(len(blocks))
    for c in list(range(len(contacts))) * (1 if len(contacts) == 1 else 2):
        placed.add(c)
        factors = np.ones(len(blocks))
        for r, b in enumerate(blocks):
            others = sum((evaluate(run, theta[unknowns.places(k, r)], b.inputs, arm.n)[0] for k in placed - {c}),
                         np.zeros_like(b.y))
            costs[r], rest, factors[r] = _lowest(arm, run, theta[unknowns.places(c, r)], b, others,
                                                 "rest" in options.estimate)
            theta[unknowns.places(c, r)[3:6]] = rest
        if "stiffness" in options.estimate:
            theta[unknowns.places(c, 0)[:3]] *= float(np.median(factors))
    return float(costs.sum()), theta


def _lowest(arm, run, phi, b: Blocks, others, move: bool) -> tuple[float, np.ndarray, float]:
    """Lowest cost over the rest along the normal, with the rest (3,) and the factor on the stiffness there."""
    phi, ones = phi.copy(), np.ones_like(b.y)
    normal = phi[:3] / np.linalg.norm(phi[:3])
    start, height = phi[3:6].copy(), (b.position + b.rotation @ phi[6:9]) @ normal
    sigma, best = robust_scale(b.y - np.median(b.y, axis=0)), (np.inf, start, 1.0)
    y = project(b.nuisance, (b.y - others)[:, :, None], ones)[:, :, 0] / sigma
    levels = np.linspace(height.min(), height.max(), _HEIGHTS)[1:] if move else [normal @ start]
    for level in levels:
        phi[3:6] = start + normal * (level - normal @ start)
        torque, _ = evaluate(run, phi, b.inputs, arm.n)
        shape = project(b.nuisance, torque[:, :, None], ones)[:, :, 0] / sigma
        factor = float(np.sum(shape * y) / max(np.sum(shape**2), 1e-12))
        cost = float(np.sum((y - factor * shape) ** 2))
        if factor > 0 and cost < best[0]:
            best = (cost, phi[3:6].copy(), factor)
    return best
