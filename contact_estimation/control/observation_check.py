"""Whether a controller may plan from an observation: its age, its numbers, and the names of contacts and modes."""

from __future__ import annotations

import numpy as np

from contact_estimation.control.controller import Observation
from contact_estimation.control.mpc.settings import MpcSettings


def unusable(observation: Observation, joints: int, names: list[str], max_age: float) -> str:
    """Return why an observation cannot be planned from, or an empty string.

    Args:
        observation: present estimate.
        joints: how many the robot has.
        names: of the contacts that are planned with.
        max_age: an older one is stale [s].
    """
    if not observation.valid:
        return f"estimate not valid: {observation.reason}"
    if not -max_age <= observation.age <= max_age:  # clocks of two machines may differ a little
        return f"estimate stale: {1e3 * observation.age:.0f} ms old, at most {1e3 * max_age:.0f} ms"
    if (joints, joints) != (found := (len(observation.q), len(observation.dq))):
        return f"the estimate has {found[0]} joint positions and {found[1]} velocities, the robot {joints} joints"
    numbers: list[np.ndarray | list[float]] = [observation.q, observation.dq, *observation.contacts.values()]
    numbers += [some for some in (observation.force, observation.second_force) if some is not None]
    numbers += [list(some.values()) for some in (observation.probabilities, observation.mode_probabilities)]
    numbers += [list(values.values()) for _, values in observation.laws.values()]
    if not all(np.isfinite(some).all() for some in numbers):
        return "estimate not finite"
    missing = [name for name in names if name not in observation.contacts]
    if missing and observation.force is None:
        return f"the estimate has no contact {', '.join(missing)}; it has {', '.join(observation.contacts) or 'none'}"
    if soft := [name for name in names if name not in missing and not observation.contacts[name][:3].any()]:
        return f"the estimate's stiffness of {', '.join(soft)} is zero, so that the contact has no normal"
    return ""


def foreign_names(observation: Observation, task: MpcSettings) -> str:
    """Return which contacts or modes of a task an estimate does not know, or an empty string.

    An observer that names none at all, such as one of the force alone, is no contradiction: the task's values count.

    Args:
        observation: present estimate.
        task: the task.
    """
    contacts = dict.fromkeys([*observation.contacts, *observation.probabilities])
    wanted = {"contact": [contact.name for contact in task.contacts], "mode": list(task.modes)}
    for kind, known in (("contact", contacts), ("mode", observation.mode_probabilities)):
        missing = [name for name in wanted[kind] if known and name not in known]
        if missing:
            return (
                f"the estimate has no {kind} '{', '.join(missing)}'; it has {', '.join(known)}; "
                f"name the {kind}s of the task as the observer does"
            )
    return ""
