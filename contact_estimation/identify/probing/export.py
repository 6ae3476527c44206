"""Convert the estimate to the compliant contact of papers 1 and 2, which observers and controller use.

F = K^T (x_rest - x) with K = kappa n, x the tip and x_rest the foot of the tip on the undeformed surface, so that
F = kappa delta. The compliant contact has no friction; it stays in the probing estimate.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.contact.settings import ContactSettings
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.spatial import SpatialModel


def compliant_contact(
    estimate: ProbingEstimate,
    model: SpatialModel,
    pose: np.ndarray,
    contact: int = 0,
    probability: float = 1.0,
    name: str = "probe",
    link: str = "",
) -> ContactState:
    """Express the contact of one tip as a compliant contact.

    Args:
        estimate: estimate of a spatial filter.
        model: its model.
        pose: present pose (4, 4) of the tool in the base frame.
        contact: index of the tip.
        probability: probability that the contact is closed.
        name: name of the contact.
        link: name of the link that carries the probe, where the contact is closed.

    Returns:
        stiffness vector K [N/m], x_rest [m], tip [m], and their covariance (9, 9), to first order from the free
        parameters'.
    """
    centre = _terms(model, estimate.free, pose, contact)
    deviations = np.sqrt(np.diag(estimate.free_covariance))
    steps = np.diag(1e-3 * np.where(deviations > 0.0, deviations, 1.0))
    jacobian = np.column_stack(
        [
            (_terms(model, estimate.free + step, pose, contact) - _terms(model, estimate.free - step, pose, contact))
            / (2.0 * step.sum())
            for step in steps
        ]
    )  # (9, n_s)
    stiffness, rest, tip = centre.reshape(3, 3)
    point = pose[:3, 3] + pose[:3, :3] @ tip
    covariance = jacobian @ estimate.free_covariance @ jacobian.T
    return ContactState(name, probability, stiffness, rest, tip, point, covariance, link=link)


def contact_settings(state: ContactState) -> ContactSettings:
    """Return the contact with every parameter fixed: for the controller's model, or as another observer's start.

    Args:
        state: the contact, as :func:`compliant_contact` gives it.
    """
    return ContactSettings(
        name=state.name, stiffness=state.stiffness.tolist(), rest=state.rest.tolist(), point=state.point_tcp.tolist()
    )


def surface_estimate(
    contact: ContactState, t: float, q: np.ndarray, dq: np.ndarray, rotation: np.ndarray, wrench: np.ndarray
) -> Estimate:
    """Return the estimate of an arm whose surface is known from an earlier probing.

    Args:
        contact: what :func:`compliant_contact` gave at the present pose.
        t: stamp [s].
        q: measured joint positions (n,) [rad].
        dq: measured joint velocities (n,) [rad/s].
        rotation: orientation (3, 3) of the TCP.
        wrench: wrench (6,) of the environment ON the robot, TCP axes [N, Nm].

    Returns:
        an estimate as observers give it; what probing does not tell is NaN.
    """
    return Estimate(
        t=t,
        q=q,
        dq=dq,
        tau_ext=np.full(len(q), np.nan),
        force_base=rotation @ wrench[:3],
        force_tcp=wrench[:3],
        torque_tcp=wrench[3:],
        force_covariance=np.diag(np.full(3, np.nan)),
        contacts=(contact,),
        mode="contact",
        modes={"contact": contact.probability},
    )


def _terms(model: SpatialModel, s: np.ndarray, pose: np.ndarray, contact: int) -> np.ndarray:
    """[K; x_rest; tip] (9,) of the free parameters ``s``, offsets in the world."""
    surface = model.surface_of(contact)
    offset, stiffness = model.surface_terms(s, surface)
    normal, tip = model.normal(s, surface), model.tip(s, contact)
    point = pose[:3, 3] + pose[:3, :3] @ tip
    return np.concatenate([stiffness * normal, point + normal * (offset - normal @ point), tip])
