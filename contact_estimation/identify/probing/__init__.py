"""Probing (paper 4): contact geometry and dynamics identified together, online, in the plane and in space.

The estimator is :class:`ProbingFilter` over a :class:`PlanarModel` or :class:`SpatialModel` (with two tips
:class:`HypothesisFilter`); :class:`~contact_estimation.identify.probing.observer.ProbingObserver` runs it in the
estimator node, :class:`~contact_estimation.identify.probing.explore.Explorer` moves the arm until it knows enough, and
:func:`compliant_contact` exports the result to the controller.
"""

from contact_estimation.identify.probing.curved import CurvedPlanarModel
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.export import compliant_contact, contact_settings
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.hypotheses import HypothesisFilter
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel

__all__ = [
    "CurvedPlanarModel",
    "HypothesisFilter",
    "PlanarModel",
    "ProbingEstimate",
    "ProbingFilter",
    "ProbingSettings",
    "SpatialModel",
    "compliant_contact",
    "contact_settings",
]
