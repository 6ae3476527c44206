"""Settings of one compliant contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.contact.law import LAW_GROUPS, LawParameter
from contact_estimation.contact.registry import find_law
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import key, non_negative

#: Geometry and stiffness of a contact, in the order they are packed; phi_i = (K_i, x_i^o, x_i^ee) of paper 2. The
#: parameters of its law follow them.
CONTACT_PARAMETERS = ("stiffness", "rest", "point")


@dataclass(frozen=True, kw_only=True)
class ContactSettings:
    """A compliant contact (paper 2, eq. 4): what it is at the start, and which of its parameters are estimated."""

    name: str = key("contact_1", doc="name of the contact in messages and reports")
    law: str = key(
        "spring",
        doc="contact law: spring, sliding, sticking, mindlin, each also as unilateral_... (unilateral: the spring that "
        "never pulls), the name of an entry point, or a law of your own as module:Class or file.py:Class",
    )
    stiffness: list[float] = key(
        doc="stiffness vector K: its direction is the contact normal, its norm the stiffness; never zero",
        unit="N/m",
        length=3,
    )
    rest: list[float] | str = key(
        "start",
        doc="rest position x_rest where the force is zero, or the word 'start' for "
        "the contact point's position at the first sample",
        unit="m, base frame",
        length=3,
        choices=("start",),
    )
    point: list[float] = key([0.0, 0.0, 0.0], doc="contact point on the robot", unit="m, TCP frame", length=3)
    law_parameters: dict[str, float] = key(
        {}, doc="values of the law's own parameters by name, SI; a missing one has the law's prior mean"
    )
    law_std: dict[str, float] = key(
        {},
        doc="initial uncertainty of the law's own parameters by name, SI; a missing one has the law's prior",
        check=non_negative,
    )
    estimate: list[str] = key(
        [],
        doc="parameters estimated online, the others stay as given; tangential and law are those of the law that act "
        "sideways, and its others",
        choices=(*CONTACT_PARAMETERS, *LAW_GROUPS),
    )
    stiffness_std: float = key(
        1e4, doc="uncertainty of the initial stiffness, per component", unit="N/m", check=non_negative
    )
    rest_std: float = key(
        1e-2, doc="uncertainty of the initial rest position, per component", unit="m", check=non_negative
    )
    point_std: float = key(
        1e-1, doc="uncertainty of the initial contact point, per component", unit="m", check=non_negative
    )

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.stiffness) > 0:
            raise ConfigError(
                f"contact '{self.name}': key 'stiffness' is zero, where the model is singular (no "
                f"normal); give an initial stiffness such as [0, 0, 1000] N/m"
            )
        if len(set(self.estimate)) != len(self.estimate):
            raise ConfigError(f"contact '{self.name}': key 'estimate' names a parameter twice: {self.estimate}")
        law = find_law(self.law)
        known = [p.name for p in law.parameters]
        for name, values in (("law_parameters", self.law_parameters), ("law_std", self.law_std)):
            for word in values:
                if word not in known:
                    raise ConfigError(
                        f"contact '{self.name}': key '{name}' names '{word}', but law '{self.law}' has "
                        f"{', '.join(known) or 'no parameters'}"
                    )
        for word in LAW_GROUPS:
            if word in self.estimate and not any(p.group == word for p in law.parameters):
                raise ConfigError(
                    f"contact '{self.name}': key 'estimate' has '{word}', but law '{self.law}' has no such parameters"
                )

    @property
    def law_prior(self) -> list[tuple[LawParameter, float, float]]:
        """The law's parameters, each with its mean and standard deviation [SI] at the start."""
        return [
            (p, self.law_parameters.get(p.name, p.mean), self.law_std.get(p.name, p.std))
            for p in find_law(self.law).parameters
        ]
