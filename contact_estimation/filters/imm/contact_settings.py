"""Settings of one contact of the contact IMM filter: its prior, and what is estimated of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contact_estimation.contact.law import FRICTION, LAW_GROUPS, LawParameter
from contact_estimation.contact.registry import find_law
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import key, non_negative, positive

#: Parts of a contact that can be estimated, in the order they are packed.
CONTACT_PARAMETERS = ("stiffness", "rest", "normal", "point", *LAW_GROUPS)


@dataclass(frozen=True, kw_only=True)
class ImmContact:
    """A contact that may open and close, with its prior."""

    name: str = key("contact_1", doc="name of the contact in messages and reports")
    normal: list[float] = key(doc="direction in which the environment pushes", unit="base axes", length=3)
    normal_std: float = key(
        0.05, doc="uncertainty of the normal at touch, per direction", unit="rad", check=non_negative
    )
    normal_random_walk: float = key(
        0.3,
        doc="change of the normal over one metre of way along the surface, towards that way",
        unit="rad/m^0.5",
        check=non_negative,
    )
    geometry_from_torque: bool = key(
        False,
        doc="the torque tells the normal and how long an unknown tool is, not only motion; for torque behind the "
        "gears: before them friction of the joints would pass as a slope or a lever",
    )
    stiffness: float = key(
        2e4, doc="stiffness at first touch, in the middle of what is expected", unit="N/m", check=positive
    )
    stiffness_factor: float = key(2.2, doc="one standard deviation is this factor up or down", check=positive)
    stiffness_random_walk: float = key(
        0.05,
        doc="relative change of the stiffness in one second of motion along the normal ('stiffness_way')",
        unit="1/s^0.5",
        check=non_negative,
        was="stiffness_wander",
    )
    stiffness_depth_walk: float = key(
        0.0,
        doc="relative change of the stiffness over one metre of depth; more learns the stiffness of soft surfaces, "
        "into which the tool sinks far; hard ones hardly notice it",
        unit="1/m^0.5",
        check=non_negative,
    )
    law_error: float = key(
        0.03,
        doc="relative change of the force in one second that the contact law does not explain",
        unit="1/s^0.5",
        check=non_negative,
    )
    depth_error: float = key(
        2e-4,
        doc="by how much the depth is off the contact law, as hysteresis of the surface and of what holds it; widens "
        "the published force where the elastic deflection is measured",
        unit="m",
        check=non_negative,
    )
    rest: float | str = key(
        "touch",
        doc="height of the rest position along the normal, or 'touch': where the contact closes",
        unit="m, base frame",
        choices=("touch",),
    )
    rest_std: float = key(
        4e-4, doc="uncertainty of the rest position when the contact closes", unit="m", check=positive
    )
    rest_std_first: float = key(
        2e-3,
        doc="the same for the first sample, where the contact may have been closed for long",
        unit="m",
        check=positive,
    )
    rest_random_walk: float = key(
        5e-5, doc="change of the rest position in one second", unit="m/s^0.5", check=non_negative, was="rest_wander"
    )
    point: list[float] = key([0.0, 0.0, 0.0], doc="contact point on the robot", unit="m, TCP frame", length=3)
    point_std: list[float] = key(
        [0.01, 0.01, 0.0],
        doc="uncertainty of the contact point; a zero keeps that coordinate",
        unit="m",
        check=non_negative,
        length=3,
    )
    tool_length_std: float = key(
        0.1,
        doc="uncertainty of the contact point along z of the flange where no tool with a TCP is configured",
        unit="m",
        check=non_negative,
    )
    point_random_walk: float = key(
        0.0, doc="change of the contact point in one second", unit="m/s^0.5", check=non_negative, was="point_wander"
    )
    law: str = key(
        "sliding",
        doc="contact law: sliding (friction with an unknown coefficient acts sideways), sticking (the point is held "
        "sideways as stiffly as along the normal, as by a hinge, a hole or a rough edge), spring (frictionless), "
        "mindlin, the name of an entry point, or a law of your own as module:Class or file.py:Class",
        was="sticks",
    )
    friction_std: float = key(
        0.1,
        doc="of law sliding: usual size of the friction coefficient, per direction; never more than three times that",
        check=non_negative,
    )
    friction_time: float = key(
        0.4, doc="of law sliding: how long a friction force keeps its direction", unit="s", check=positive
    )
    slip_friction: float = key(
        0.2, doc="of law sliding: coefficient of the friction opposite to the slip, at first touch", check=non_negative
    )
    slip_friction_std: float = key(
        0.2, doc="uncertainty of that coefficient, which stays within two of these; zero keeps it", check=non_negative
    )
    estimate: list[str] = key(
        ["stiffness", "rest", "normal", "point", "tangential"],
        doc="estimated parts of the contact; the others keep their values",
        choices=CONTACT_PARAMETERS,
    )

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.normal) > 0:
            raise ConfigError(
                f"contact '{self.name}': key 'normal' is zero; give the direction in which the environment pushes"
            )
        if find_law(self.law).feels_slip and "tangential" not in self.estimate:
            raise ConfigError(
                f"contact '{self.name}': law '{self.law}' feels slip, so 'estimate' must have 'tangential': "
                "where the point is held is not known before it touches"
            )
        if self.rest == "touch" and "rest" not in self.estimate:
            raise ConfigError(
                f"contact '{self.name}': 'rest: touch' needs 'rest' among 'estimate', found {self.estimate}; "
                "or give the height of the rest position along the normal"
            )
        if not self.stiffness_factor > 1:
            raise ConfigError(
                f"contact '{self.name}': key 'stiffness_factor' must be greater than 1, found {self.stiffness_factor}"
            )

    @property
    def known_tool(self) -> ImmContact:
        """The contact on a tool whose TCP is configured."""
        return replace(self, tool_length_std=0.0)

    @property
    def friction(self) -> list[int]:
        """Which of the law's own parameters are friction coefficients, tangent 1 before tangent 2; empty: none."""
        names = [p.name for p in find_law(self.law).parameters]
        return [names.index(name) for name in FRICTION if name in names]

    @property
    def law_prior(self) -> list[LawParameter]:
        """The law's own parameters, friction coefficients as the settings know them."""
        return [
            replace(p, std=self.friction_std, time_constant=self.friction_time) if k in self.friction else p
            for k, p in enumerate(find_law(self.law).parameters)
        ]
