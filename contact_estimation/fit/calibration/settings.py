"""How a calibration is made, and the file it writes."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.robot.friction import FrictionSettings
from contact_estimation.settings import key, non_negative, positive

#: What can be identified beside friction and bias, which always are.
OPTIONS = ("scale", "armature", "payload", "asymmetry", "links")


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings:
    """How recordings are filtered, what is identified, and when they are refused."""

    identify: list[str] = key(
        ["scale", "armature", "payload", "asymmetry"],
        choices=OPTIONS,
        doc="what is identified in addition to friction and bias; links corrects the description's inertias "
        "instead of the scale",
    )
    cutoff: float = key(6.0, doc="zero-phase low-pass of positions and torques", unit="Hz", check=positive)
    outlier: float = key(2.0, doc="residuals beyond this many standard deviations count less (Huber)", check=positive)
    min_travel: float = key(
        0.1, doc="least motion of a joint for the identification of its friction", unit="rad", check=positive
    )
    max_condition: float = key(
        50.0, doc="largest condition number of a joint's normalised friction regressor", check=positive
    )
    max_unexplained: float = key(
        0.6, doc="largest unexplained share of the torque's spread, relative to gravity and friction", check=positive
    )
    max_contact_force: float = key(
        25.0,
        doc="a force at the TCP that explains the residual and lasts is a contact beyond this",
        unit="N",
        check=positive,
    )
    max_scale_error: float = key(
        0.2, doc="largest deviation of a joint's torque scale from 1, where gravity determines it", check=positive
    )
    scale_std: float = key(0.15, doc="prior of the torque scale about 1", check=positive)
    payload_std: float = key(5.0, doc="prior of the payload's mass about 0", unit="kg", check=positive)
    link_std: float = key(
        0.2, doc="prior of the links' inertial parameters, relative to the description", check=positive
    )


@dataclass(frozen=True, kw_only=True)
class Payload:
    """A load behind the flange, beside the robot's configured tool. Its rotational inertia is not identified."""

    mass: float = key(doc="mass", unit="kg")
    mass_std: float = key(doc="its standard deviation", unit="kg", check=non_negative)
    com: list[float] = key(doc="centre of mass", unit="m, flange frame", length=3)
    com_std: list[float] = key(doc="its standard deviation", unit="m", check=non_negative, length=3)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Result of a calibration, as it is written."""

    robot: str = key(doc="robot it was made for")
    recordings: list[str] = key([], doc="recordings it was made from")
    friction: FrictionSettings = key(doc="joint friction, bias and torque scale")
    armature: list[float] = key(doc="reflected rotor inertia", unit="kg m^2", check=non_negative, length="joints")
    armature_std: list[float] = key(doc="its standard deviation", unit="kg m^2", check=non_negative, length="joints")
    payload: Payload | None = key(None, doc="load behind the flange, null where it was not identified")
    residual: list[float] = key(
        [], doc="torque that the calibrated model does not explain, RMS per joint", unit="Nm", check=non_negative
    )
