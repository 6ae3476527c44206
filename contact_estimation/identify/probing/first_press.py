"""Evidence of the first press: wrenches before the first slide, against the contact that the sliding has identified.

The filter leaves these wrenches out, because their friction is unknown. Their normal part needs none: it is the mean of
the predictions for all directions of sliding. A force that is linear in depth only around the force of the strokes
(Hertz's contact, foam) shows here, at the smallest depths of the recording.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from contact_estimation.identify.probing.disturbances import Samples, hardening_wrench
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.model import ContactModel, Mean
from contact_estimation.identify.probing.passes import Pass
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.update import Density, differentiate


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
    rows = [_along_normal(model, data.pose[k], plain.estimate, settings) for k in early]
    normals, predicted, slope, white = (np.array(part) for part in zip(*rows))
    covariance = slope @ plain.estimate.free_covariance @ slope.T + np.diag(white)
    residual, pattern = (np.einsum("ki,ki->k", normals, wrench[early]) for wrench in (force, added))
    weight = np.linalg.solve(covariance, pattern)
    return float((weight @ (residual - predicted)) ** 2 / (weight @ pattern))


def _along_normal(
    model: ContactModel, pose: np.ndarray, found: ProbingEstimate, settings: ProbingSettings
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """Return normal (tool axes), normal force [N], its derivative (n_s,) by the parameters, noise variance [N^2]."""
    mean, size = Mean(pose, np.zeros(model.axes), found.free), len(found.free)
    by_motion, axes = model.prepare(mean)
    noises = by_motion * ProbingFilter(model, settings).kinematic_noise @ by_motion.T
    centre = np.concatenate([found.free, np.zeros(len(by_motion))])
    density = Density(centre, block_diag(found.free_covariance, noises), model.conditions_at(mean, axes))
    wrench, slope = (np.mean(part, axis=0)[: model.force_size] for part in differentiate(model, density))
    by_depth = slope[:, size]  # the first noise is that of the depth
    normal = by_depth / np.linalg.norm(by_depth)
    noisy = normal @ slope[:, size:]
    white = float(noisy @ noises @ noisy) + settings.force_noise**2
    return normal, float(normal @ wrench), normal @ slope[:, :size], white
