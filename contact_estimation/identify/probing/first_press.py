"""Evidence of the first press: wrenches before the first slide, against the contact that the sliding has identified.

The filter leaves these wrenches out, because their friction is unknown. Their normal part needs none: it is the mean of
the predictions for all directions of sliding. A force that is linear in depth only around the force of the strokes
(Hertz's contact, foam) shows here, at the smallest depths of the recording.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.disturbances import Samples, hardening_wrench
from contact_estimation.identify.probing.model import ContactModel, Mean
from contact_estimation.identify.probing.passes import Pass
from contact_estimation.identify.probing.settings import ProbingSettings

#: Step of the numerical derivative, as a share of what it is taken by, and the least of it [SI].
_STEP = 1e-3


def first_press_evidence(data: Samples, plain: Pass, model: ContactModel, settings: ProbingSettings) -> float:
    """Return (g^T C^-1 r)^2 / (g^T C^-1 g) ~ chi-square of 1, of the normal forces r (n,) less those predicted.

    g is what a force that is not linear in depth adds to them. C holds the noise of force and pose, which is new in
    every sample, and the covariance of the parameters, which is common to all.

    Args:
        data: the recording, whose samples begin at the first touch.
        plain: its pass through the filter; these wrenches have no part in it.
        model: of that pass.
        settings: noise of force and pose, and the least force of a contact.

    Returns:
        the statistic; 0 where the recording begins with a slide, or never slides.
    """
    force = data.wrench[:, : model.force_size]
    pressed = np.linalg.norm(force, axis=1) > settings.contact_force_min
    early = np.flatnonzero(pressed & (data.t < np.append(plain.innovations.t, data.t[0])[0]))
    if not len(early):
        return 0.0
    added = hardening_wrench(data, model.force_size)[:, : model.force_size]
    rows = [_along_normal(model, data.pose[k], plain.estimate.free, settings) for k in early]
    normals, predicted, slope, white = (np.array(part) for part in zip(*rows))
    covariance = slope @ plain.estimate.free_covariance @ slope.T + np.diag(white)
    residual, pattern = (np.einsum("ki,ki->k", normals, wrench[early]) for wrench in (force, added))
    weight = np.linalg.solve(covariance, pattern)
    return float((weight @ (residual - predicted)) ** 2 / (weight @ pattern))


def _along_normal(
    model: ContactModel, pose: np.ndarray, s: np.ndarray, settings: ProbingSettings
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """Return normal (tool axes), normal force [N], its derivative (n_s,) by the parameters, noise variance [N^2]."""
    mean = Mean(pose, np.zeros(model.axes), s)
    by_motion, axes = model.prepare(mean)
    centre = np.concatenate([s, np.zeros(len(by_motion))])
    steps = _STEP * np.diag(np.maximum(np.abs(centre), _STEP))
    points = np.hstack([centre[:, None], centre[:, None] + steps, centre[:, None] - steps])
    force = np.mean(model.wrenches(mean, points, axes, model.modes), axis=0)[: model.force_size]
    slope = (force[:, 1 : len(centre) + 1] - force[:, len(centre) + 1 :]) / (2.0 * np.diag(steps))
    by_depth = slope[:, len(s)]  # the first noise is that of the depth
    stiffness = np.linalg.norm(by_depth)
    turns = model.axes - model.force_size
    noise = np.array([settings.position_noise] * model.force_size + [settings.angle_noise] * turns)
    white = stiffness**2 * np.sum(np.square(by_motion[0, : model.axes] * noise)) + settings.force_noise**2
    normal = by_depth / stiffness
    return normal, float(normal @ force[:, 0]), normal @ slope[:, : len(s)], float(white)
