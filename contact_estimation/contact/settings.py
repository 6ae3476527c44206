"""Settings of one compliant contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import key, non_negative

#: Parameters of a contact, in the order they are packed; phi_i = (K_i, x_i^o, x_i^ee) of paper 2.
KINDS = ("stiffness", "rest", "point")


@dataclass(frozen=True, kw_only=True)
class ContactSettings:
    """A compliant contact (paper 2, eq. 4): what it is at the start, and which of its parameters are estimated."""

    name: str = key("contact_1", doc="name of the contact in messages and reports")
    stiffness: list[float] = key(doc="stiffness vector K: its direction is the contact normal, its norm the stiffness; "
                                     "never zero",
                                 unit="N/m", length=3)
    rest: list[float] | str = key("start", doc="rest position x_rest where the force is zero, or the word 'start' for "
                                               "the contact point's position at the first sample",
                                  unit="m, base frame", length=3, choices=("start",))
    point: list[float] = key([0.0, 0.0, 0.0], doc="contact point on the robot", unit="m, TCP frame", length=3)
    estimate: list[str] = key([], doc="parameters estimated online, the others stay as given", choices=KINDS)
    stiffness_std: float = key(1e4, doc="uncertainty of the initial stiffness, per component", unit="N/m",
                               check=non_negative)
    rest_std: float = key(1e-2, doc="uncertainty of the initial rest position, per component", unit="m",
                          check=non_negative)
    point_std: float = key(1e-1, doc="uncertainty of the initial contact point, per component", unit="m",
                           check=non_negative)

    def __post_init__(self):
        if not np.linalg.norm(self.stiffness) > 0:
            raise ConfigError(f"contact '{self.name}': key 'stiffness' is zero, where the model is singular (no "
                              f"normal); give an initial stiffness such as [0, 0, 1000] N/m")
        if len(set(self.estimate)) != len(self.estimate):
            raise ConfigError(f"contact '{self.name}': key 'estimate' names a parameter twice: {self.estimate}")
