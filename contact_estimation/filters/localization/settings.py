"""Settings of the localisation of contacts on links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contact_estimation.settings import find_config, from_yaml, key, non_negative, positive, probability


@dataclass(frozen=True, kw_only=True)
class LocalizationSettings:
    """Localisation of an unknown contact on the arm."""

    candidates: int = key(
        1000,
        doc="points on the links' surfaces that are tried, at least one per link; more cost time; 0: contacts on links "
        "are not localised",
        check=non_negative,
    )
    rate: float = key(
        50.0,
        doc="rate of localisation; the candidates are spread over the samples in between",
        unit="Hz",
        check=positive,
    )
    start_probability: float = key(
        0.9,
        doc="probability of the mode unknown from which a contact is localised, and below which it ends",
        check=probability,
    )
    friction: float = key(
        0.8, doc="largest ratio of tangential to normal force; larger admits more places", check=positive
    )
    force_std: float = key(40.0, doc="usual size of the normal force", unit="N", check=positive)
    friction_std: float = key(0.3, doc="usual ratio of tangential to normal force", check=positive)
    memory: float = key(
        1.0,
        doc="time over which torque is collected; longer uses more motion and follows slower",
        unit="s",
        check=positive,
    )
    correlation_time: float = key(
        0.1,
        doc="correlation time of the torque error; a shorter one gives smaller covariances",
        unit="s",
        check=positive,
    )
    torque_error: float = key(0.03, doc="error of the external torque that grows with it, as a share", check=positive)
    torque_floor: float = key(
        1e-3,
        doc="least standard deviation of the external torque, as a share of a joint's effort limit",
        check=positive,
    )
    change: float = key(
        0.05,
        doc="relative change of the torque between two frames that halves the weight of earlier frames",
        check=positive,
    )
    region_probability: float = key(0.9, doc="probability of the published region", check=probability)
    largest_spread: float = key(
        0.05, doc="standard deviation of the place up to which a point is published", unit="m", check=positive
    )
    significance: float = key(
        1e-4,
        doc="a misfit less likely than this refuses the place: no single pushing contact explains the torque",
        check=probability,
    )


def load_localization_settings(folder: Path | str | None = None) -> LocalizationSettings:
    """Load the shipped settings, or those in a robot's profile ``folder``: ``localization/links.yaml``."""
    return from_yaml(LocalizationSettings, find_config("localization", "links", folder))
