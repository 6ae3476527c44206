"""Settings of the contact bank and of a robot's drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.friction import FrictionSettings
from contact_estimation.settings import find_config, from_yaml, key, non_negative, positive, probability

#: Parts of a contact that can be estimated, in the order they are packed.
KINDS = ("stiffness", "rest", "normal", "point", "tangential")


@dataclass(frozen=True, kw_only=True)
class ElasticSettings:
    """The second force channel of a robot with encoders on both sides of its gears: q - integral(dq) = (J^T F - G) / k
    + offset, where q is the joint-side position and dq the motor-side velocity over the gear ratio."""

    joints: list[int] = key([], doc="joints (0 is the base's) whose channel is used; none switches it off")
    stiffness: list[float] = key([], doc="joint stiffness k, one per entry of joints", unit="Nm/rad", check=positive)
    stiffness_spread: float = key(0.08, doc="relative uncertainty of k", check=positive)
    noise: float = key(3e-5, doc="noise of a block mean", unit="rad", check=positive)
    drift: float = key(
        5e-6,
        doc="drift of the offset in one second: the velocity signal's quantisation, integrated",
        unit="rad/s^0.5",
        check=non_negative,
    )
    travel: float = key(
        3e-4,
        doc="drift of the offset over a radian of travel: gears that do not transmit evenly, the velocity's scale",
        unit="rad/rad^0.5",
        check=non_negative,
    )
    lag: float = key(
        5e-4, doc="by how much older the velocity may be than the position of a sample", unit="s", check=non_negative
    )

    def __post_init__(self):
        if len(self.joints) != len(self.stiffness):
            raise ConfigError(
                f"elastic: {len(self.joints)} joints but {len(self.stiffness)} stiffnesses; give one per joint"
            )
        if len(set(self.joints)) != len(self.joints) or any(j < 0 for j in self.joints):
            raise ConfigError(f"elastic: joints must be different and not negative, found {self.joints}")


@dataclass(frozen=True, kw_only=True)
class DriveSettings:
    """What is known about a robot's drives before it moves: friction, torque noise, elasticity. One YAML per robot in
    ``config/drives``."""

    friction: FrictionSettings = key(doc="friction prior, as 'calibrate' writes it")
    deviation_std: list[float] = key(
        doc="slow deviation from the friction law, its standard deviation per joint",
        unit="Nm",
        check=non_negative,
        length="joints",
    )
    deviation_time: float = key(2.0, doc="how long such a deviation lasts", unit="s", check=positive)
    bias_drift: list[float] = key(
        doc="drift of the bias in one second, per joint", unit="Nm/s^0.5", check=non_negative, length="joints"
    )
    torque_noise: list[float] = key(
        doc="noise of the torque averaged over a block, per joint, with what its colour adds",
        unit="Nm",
        check=positive,
        length="joints",
    )
    model_error: float = key(
        0.1,
        doc="share of the changes of the rigid-body torque (gravity and inertia) by which its model may be wrong",
        check=non_negative,
    )
    velocity_noise: float = key(
        2e-4,
        doc="noise of the velocity signal; it enters through the momentum at both ends of a block",
        unit="rad/s",
        check=non_negative,
    )
    position_filter: float = key(
        8.0, doc="bandwidth of the low-pass in front of the presliding state", unit="Hz", check=positive
    )
    play: float = key(
        2.5e-5,
        doc="motion below this is encoder noise and does not move the presliding state",
        unit="rad",
        check=non_negative,
    )
    elastic: ElasticSettings = key(ElasticSettings(), doc="joint elasticity as a second force channel")

    def check_joints(self, n: int, robot: str) -> None:
        """Raises ConfigError where a list does not fit ``n`` joints."""
        self.friction.check_joints(n, robot)
        for name in ("deviation_std", "bias_drift", "torque_noise"):
            if len(getattr(self, name)) != n:
                raise ConfigError(
                    f"drives of robot '{robot}': {name} has {len(getattr(self, name))} entries, expected {n}"
                )
        if any(j >= n for j in self.elastic.joints):
            raise ConfigError(
                f"drives of robot '{robot}': elastic.joints {self.elastic.joints} reach beyond joint {n - 1}"
            )


@dataclass(frozen=True, kw_only=True)
class BankContact:
    """A contact that may open and close, before anything of it is known."""

    name: str = key("contact_1", doc="name of the contact in messages and reports")
    normal: list[float] = key(doc="direction in which the environment pushes", unit="base axes", length=3)
    normal_std: float = key(
        0.1, doc="uncertainty of the normal, per direction; used where it is estimated", unit="rad", check=non_negative
    )
    stiffness: float = key(
        2e4, doc="stiffness at first touch, in the middle of what is expected", unit="N/m", check=positive
    )
    stiffness_factor: float = key(2.2, doc="one standard deviation is this factor up or down", check=positive)
    stiffness_wander: float = key(
        0.05, doc="relative change of the stiffness in one second", unit="1/s^0.5", check=non_negative
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
    rest_wander: float = key(5e-5, doc="change of the rest position in one second", unit="m/s^0.5", check=non_negative)
    point: list[float] = key([0.0, 0.0, 0.0], doc="contact point on the robot", unit="m, TCP frame", length=3)
    point_std: list[float] = key(
        [0.01, 0.01, 0.0],
        doc="uncertainty of the contact point; a zero keeps that coordinate",
        unit="m",
        check=non_negative,
        length=3,
    )
    point_wander: float = key(0.0, doc="change of the contact point in one second", unit="m/s^0.5", check=non_negative)
    sticks: bool = key(
        False,
        doc="the point cannot slide: it is held sideways as stiffly as along the normal, as by a hinge, a hole or "
        "a rough edge; otherwise friction with an unknown coefficient acts sideways",
    )
    friction_std: float = key(
        0.1,
        doc="usual size of the friction coefficient in the contact, per direction; never more than three times that",
        check=non_negative,
    )
    friction_time: float = key(0.4, doc="how long a friction force keeps its direction", unit="s", check=positive)
    estimate: list[str] = key(
        ["stiffness", "rest", "point", "tangential"], doc="what is estimated; the rest stays as given", choices=KINDS
    )

    def __post_init__(self):
        if not np.linalg.norm(self.normal) > 0:
            raise ConfigError(
                f"contact '{self.name}': key 'normal' is zero; give the direction in which the environment pushes"
            )
        if self.sticks and "tangential" not in self.estimate:
            raise ConfigError(
                f"contact '{self.name}': key 'sticks' is true, so 'estimate' must have 'tangential': "
                "where the point is held is not known before it touches"
            )
        if not self.stiffness_factor > 1:
            raise ConfigError(
                f"contact '{self.name}': key 'stiffness_factor' must be greater than 1, found {self.stiffness_factor}"
            )


@dataclass(frozen=True, kw_only=True)
class BankSettings:
    """Bank of friction-aware filters, one per contact mode (free, contact_1, contact_1+contact_2, ...), mixed as an
    IMM."""

    observer: str = key("contact_bank", doc="kind of observer", choices=("contact_bank",))
    sensors: str | None = key(None, doc="sensor set used instead of the robot's own")
    models: dict[str, str] = key({}, doc="robot descriptions used instead of a robot's own, robot name to robot name")
    drives: str = key("robot", doc="drives: a name in config/drives, a YAML file, or 'robot' for the robot's own name")
    contacts: list[BankContact] = key(doc="contacts that may open and close, at most four")
    modes: list[list[str]] | None = key(
        None, doc="combinations of closed contacts that can happen, [] being free space; default all"
    )
    close_rate: float = key(1.0, doc="how often a contact closes", unit="1/s", check=positive)
    open_rate: float = key(3.0, doc="how often a closed contact opens", unit="1/s", check=positive)
    closed_at_start: float = key(0.3, doc="belief that anything is touched at the first sample", check=probability)
    decide: float = key(
        0.98,
        doc="probability from which a contact is named closed, and from which a kink in the force decides a touch or "
        "release at once; 1 leaves that to the filters",
        check=probability,
    )
    hypotheses: int | None = key(
        None,
        check=positive,
        doc="filters per combination of closed contacts, closed at different times; null: "
        "one where the elastic deflection is measured, three where slow presses must be told from "
        "friction by torque alone",
    )
    hypothesis_interval: float = key(
        0.1, doc="how often the least believed of them starts anew", unit="s", check=positive
    )
    block: float = key(0.01, doc="samples are averaged over this before an update", unit="s", check=positive)
    gate: float = key(
        3.0,
        doc="an innovation beyond this many standard deviations is an outlier: its noise is raised until it fits",
        check=positive,
    )

    def __post_init__(self):
        if self.decide < 0.5:
            raise ConfigError(f"key 'decide' is {self.decide}: a mode is decided from a probability of 0.5 to 1 on")
        names = [c.name for c in self.contacts]
        if not 1 <= len(names) <= 4:
            raise ConfigError(f"key 'contacts' has {len(names)} entries, expected one to four")
        if len(set(names)) != len(names):
            raise ConfigError(f"contacts need different names, found {names}")
        for mode in self.modes or []:
            for name in mode:
                if name not in names:
                    raise ConfigError(
                        f"key 'modes' names the contact '{name}', which is not in 'contacts' ({', '.join(names)})"
                    )
            if len(set(mode)) != len(mode):
                raise ConfigError(f"key 'modes' has a mode that names a contact twice: {mode}")
        as_sets = [frozenset(mode) for mode in self.modes or []]
        if len(set(as_sets)) != len(as_sets):
            raise ConfigError("key 'modes' lists the same combination twice")
        if self.modes is not None and len(as_sets) < 1:
            raise ConfigError("key 'modes' is empty; list at least one combination, [] being free space")


def load_drive_settings(name: str) -> DriveSettings:
    """Drives of a robot by name, or from a YAML file.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    return from_yaml(DriveSettings, find_config("drives", name))
