"""The estimate in the terms of the compliant contact (papers 1 and 2), which the observers and the controller speak.

F = K^T (x_rest - x) with K = kappa n, x the tip and x_rest the foot of the tip on the undeformed surface, so that F =
kappa delta. Friction has no place there; it stays in the probing estimate.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.contact.settings import ContactSettings
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.spatial import SpatialModel


def compliant_contact(estimate: ProbingEstimate, model: SpatialModel, pose: np.ndarray, contact: int = 0,
                      probability: float = 1.0, name: str = "probe") -> ContactState:
    """The contact of one tip as a compliant contact.

    Args:
        estimate: of a spatial filter. model: its model. pose: present pose (4, 4) of the tool in the base frame.
        contact: which tip. probability: belief that the contact is closed. name: name of the contact.

    Returns:
        stiffness vector K [N/m], x_rest [m], tip [m], and their covariance (9, 9), to first order from the free
        parameters'.
    """
    centre = _terms(model, estimate.free, pose, contact)
    deviations = np.sqrt(np.diag(estimate.free_covariance))
    steps = 1e-3 * np.where(deviations > 0.0, deviations, 1.0)
    jacobian = np.empty((9, len(estimate.free)))
    for i, step in enumerate(steps):
        ahead, behind = estimate.free.copy(), estimate.free.copy()
        ahead[i] += step
        behind[i] -= step
        jacobian[:, i] = (_terms(model, ahead, pose, contact) - _terms(model, behind, pose, contact)) / (2.0 * step)
    tip = centre[6:]
    return ContactState(name, probability, centre[:3], centre[3:6], tip, pose[:3, 3] + pose[:3, :3] @ tip,
                        jacobian @ estimate.free_covariance @ jacobian.T)


def contact_settings(state: ContactState) -> ContactSettings:
    """The contact as settings with every parameter fixed, for the controller's model or as the start of another
    observer."""
    return ContactSettings(name=state.name, stiffness=state.stiffness.tolist(), rest=state.rest.tolist(),
                           point=state.point_tcp.tolist())


def surface_estimate(
    contact: ContactState, t: float, q: np.ndarray, dq: np.ndarray, rotation: np.ndarray, wrench: np.ndarray
) -> Estimate:
    """What an observer would say now, of an arm that knows its surface from an earlier probing.

    Args:
        contact: of :func:`compliant_contact` at the present pose. t: stamp [s]. q, dq: (n,) measured.
        rotation: (3, 3) of the TCP. wrench: (6,) of the environment ON the robot, TCP axes [N, Nm].
    """
    unknown = np.full(3, np.nan)
    return Estimate(
        t=t,
        q=q,
        dq=dq,
        tau_ext=np.full(len(q), np.nan),
        force_base=rotation @ wrench[:3],
        force_tcp=wrench[:3],
        torque_tcp=wrench[3:],
        force_covariance=np.diag(unknown),
        contacts=(contact,),
        mode="contact",
        modes={"contact": contact.probability},
    )


def _terms(model, s, pose, contact):
    """[K; x_rest; tip] (9,) of the free parameters ``s``, offsets in the world."""
    surface = model.surface_of(contact)
    offset, stiffness = model.surface_terms(s, surface)
    normal, tip = model.normal(s, surface), model.tip(s, contact)
    point = pose[:3, 3] + pose[:3, :3] @ tip
    return np.concatenate([stiffness * normal, point + normal * (offset - normal @ point), tip])
