"""Settings of sensors and observers."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.contact import ContactSettings
from contact_estimation.filters.plausibility.settings import PlausibilitySettings
from contact_estimation.settings import find_config, from_yaml, key, non_negative, positive, probability

#: Where an arm's torque is measured, and what it can mean.
TORQUE_SIDES = ("motor", "link")
TORQUE_MEANINGS = ("total", "gravity_compensated", "external")


@dataclass(frozen=True, kw_only=True)
class SensorSettings:
    """What a robot's driver or a recording measures, and how its samples are checked."""

    rate: float = key(
        500.0, doc="nominal sample rate; a longer interval is integrated in several steps", unit="Hz", check=positive
    )
    max_periods: float = key(
        6.0,
        doc="estimates are invalid while samples further apart than this many periods (1 / rate) fill most of the time",
        check=positive,
    )
    torque_unit: str = key(
        "Nm",
        doc="unit of the effort signal: Nm, or A for motor current (needs the robot's torque constants)",
        choices=("Nm", "A"),
    )
    torque_meaning: str = key(
        "total",
        doc="total: drive or joint torque with gravity inside; gravity_compensated: "
        "gravity already removed; external: the environment's torque on the "
        "joints",
        choices=TORQUE_MEANINGS,
    )
    torque_side: str = key(
        "motor",
        doc="where it is measured: motor: before the gears (motor current), the rotors' inertia and viscous friction "
        "inside; link: by torque sensors behind the gears",
        choices=TORQUE_SIDES,
    )
    torque_scale: list[float] | None = key(
        None,
        doc="factor on the torque per joint, for a driver or recording whose "
        "constants are known to be off; null means 1",
        check=positive,
    )
    motor_side_velocity: bool = key(
        False,
        doc="the velocity is the motor's over the gear ratio while the position is "
        "the joint's: their difference shows the joints' elastic deflection, a "
        "second force channel",
    )
    max_gap: float = key(
        0.1, doc="a gap up to this is integrated; a longer one restarts the observer", unit="s", check=positive
    )
    max_pause: float = key(
        10.0,
        doc="after a gap up to this the observer goes on where every joint is where one period would have brought it: "
        "the arm stood still, or the clock jumped",
        unit="s",
        check=non_negative,
    )
    pause_way: float = key(
        2e-4,
        doc="by how much a joint may be elsewhere then; more is motion, or another load",
        unit="rad",
        check=positive,
    )
    max_torque: float = key(
        3.0, doc="samples with a torque beyond this multiple of the joint's effort limit are refused", check=positive
    )
    max_velocity: float = key(
        3.0,
        doc="samples whose velocity is beyond this multiple of the joint's limit, or whose position jumped faster, are "
        "refused",
        check=positive,
    )
    check_torque_unit: bool = key(
        True, doc="compare the torque with gravity and inertia, to detect another unit, meaning, sign or order"
    )
    plausibility: PlausibilitySettings = key(PlausibilitySettings(), doc="tolerances of the signal monitor")

    @property
    def longest_period(self) -> float:
        """Time between samples [s] that is not doubted: more of them must not fill most of the time."""
        return self.max_periods / self.rate


@dataclass(frozen=True, kw_only=True)
class ProcessNoise:
    """Intensities of white process noise: the variance that grows per second."""

    position: float = key(doc="joint positions", unit="rad^2/s", check=non_negative)
    velocity: float = key(
        doc="joint velocities: unmodelled torque squared over inertia squared", unit="(rad/s)^2/s", check=non_negative
    )
    unknown_torque: float = key(
        0.0,
        doc="standard deviation of unmodelled joint torque, mainly friction: the part that is equal for all joints",
        unit="Nm",
        check=non_negative,
    )
    unknown_torque_share: float = key(
        0.0,
        doc="standard deviation of that torque: the part that grows with the joint, as a share of its effort limit",
        check=non_negative,
    )
    unknown_torque_time: float = key(0.1, doc="time within which that torque changes", unit="s", check=positive)
    stiffness: float = key(0.0, doc="stiffness vector, per component", unit="(N/m)^2/s", check=non_negative)
    rest: float = key(0.0, doc="rest position, per component", unit="m^2/s", check=non_negative)
    point: float = key(0.0, doc="contact point, per component", unit="m^2/s", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class MeasurementNoise:
    """Variances of the measurements, per sample."""

    position: float = key(doc="joint positions", unit="rad^2", check=positive)
    torque: float = key(1.0, doc="external joint torque, where it is measured", unit="Nm^2", check=positive)


@dataclass(frozen=True, kw_only=True)
class ConsistencySettings:
    """When the force of an observer of given contacts is not to be used."""

    significance: float = key(
        1e-2,
        doc="an estimate is invalid where the torque shows a force at the tool that the given contacts do not explain, "
        "and friction and noise would show it with less than this probability; 0: never",
        check=probability,
    )
    gain: float = key(20.0, doc="bandwidth of that force, as of a momentum observer", unit="1/s", check=positive)
    force_std: float = key(
        1e3, doc="usual size of that force; without a lever at any joint it stays finite", unit="N", check=positive
    )
    largest_std: float | None = key(
        None,
        doc="an estimate is invalid where its force has a larger standard deviation along an axis of the TCP, averaged "
        "over the settling time; null: never",
        unit="N",
        check=positive,
    )


@dataclass(frozen=True, kw_only=True)
class ObserverSettings:
    """Keys that every kind of observer has; the section of an observer lists them too."""

    observer: str = key(doc="kind of observer")
    sensors: str | None = key(None, doc="sensor set used instead of the robot's own")
    models: dict[str, str] = key({}, doc="robot descriptions used instead of a robot's own, robot name to robot name")


@dataclass(frozen=True, kw_only=True)
class EkfSettings(ObserverSettings):
    """The extended Kalman filter of papers 1 and 2 (eq. 13-22)."""

    observer: str = key("ekf", doc="kind of observer", choices=("ekf",))
    measure: str = key(
        "position",
        doc="position: torque is an input; position_torque: the external torque is measured as well",
        choices=("position", "position_torque"),
    )
    actuators: str | None = key(
        None,
        doc="calibrated torque scale and friction: 'robot' for the robot's own, a robot's name, or an actuators YAML; "
        "null: none but viscous_friction",
    )
    contacts: list[ContactSettings] = key(doc="compliant contacts in parallel")
    process_noise: ProcessNoise = key(doc="process noise Q")
    measurement_noise: MeasurementNoise = key(doc="measurement noise R")
    settling: float = key(
        0.2,
        doc="time after a doubt, a gap or a start in motion before estimates are valid",
        unit="s",
        check=non_negative,
    )
    consistency: ConsistencySettings = key(ConsistencySettings(), doc="when its force is not to be used")
    initial_position_std: float = key(
        1e-3, doc="uncertainty of the joint positions at the start", unit="rad", check=positive
    )
    initial_velocity_std: float = key(
        1e-1, doc="uncertainty of the joint velocities at the start", unit="rad/s", check=positive
    )


@dataclass(frozen=True, kw_only=True)
class UkfSettings(EkfSettings):
    """The unscented Kalman filter: everything the EKF has, and where its sigma points are."""

    observer: str = key("ukf", doc="kind of observer", choices=("ukf",))
    alpha: float = key(
        0.1,
        doc="spread of the sigma points: they are alpha sqrt(N + kappa) standard deviations from "
        "the mean; small where "
        "the stiffness is uncertain, because the force is even in K",
        check=positive,
    )
    beta: float = key(
        2.0, doc="knowledge of the distribution in the central weight; 2 is right for a Gaussian", check=non_negative
    )
    kappa: float = key(0.0, doc="second scaling of the spread", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class MomentumSettings(ObserverSettings):
    """The momentum observer (baseline) and its first-difference stiffness (paper 1, eq. 26-28)."""

    observer: str = key("momentum", doc="kind of observer", choices=("momentum",))
    gain: float = key(20.0, doc="K_O, the bandwidth of the residual", unit="1/s", check=positive)
    settling: float = key(
        0.12,
        doc="time after a doubt, a gap or a start in motion before estimates are valid; 0.1 s bring it within 15 N",
        unit="s",
        check=non_negative,
    )
    form: str = key(
        "textbook",
        doc="textbook: residual of the momentum's increment; printed: eq. 26 as printed, which "
        "adds M dq itself every step",
        choices=("textbook", "printed"),
    )
    wrench: str = key(
        "force",
        doc="force: the pure force at the TCP that fits the joint torques best; full: force and torque, which the "
        "wrist joints dominate",
        choices=("force", "full"),
    )
    actuators: str | None = key(
        None,
        doc="calibrated torque scale and friction: 'robot' for the robot's own, a robot's name, or an actuators YAML; "
        "null: none but viscous_friction",
        was="drives",
    )
    force_std: float = key(
        100.0,
        doc="usual size of a force; the deviation of one that the posture does not determine",
        check=positive,
        unit="N",
    )
    torque_std: float = key(20.0, doc="the same of a torque at the TCP", unit="Nm", check=positive)
    torque_error: float = key(
        1.0,
        doc="damps the pseudo-inverse: a force is halved where its lever is as short as this over force_std",
        unit="Nm",
        check=positive,
    )
    window: float = key(
        0.1, doc="interval W over which force and position are differenced for the stiffness", unit="s", check=positive
    )
    min_displacement: float = key(
        5e-4, doc="displacements below this are taken as this (eq. 28)", unit="m", check=positive
    )


@dataclass(frozen=True, kw_only=True)
class DisturbanceSettings(ObserverSettings):
    """The disturbance Kalman filter: momentum, and external joint torque as a random walk."""

    observer: str = key("disturbance", doc="kind of observer", choices=("disturbance",))
    actuators: str | None = key(
        "robot",
        doc="calibrated torque scale and friction: 'robot' for the robot's own, a robot's name, or an actuators YAML; "
        "null: none but viscous_friction",
    )
    force_random_walk: float = key(
        40.0,
        doc="change of the force in one second: more follows faster and smooths less",
        unit="N/s^0.5",
        check=positive,
    )
    torque_random_walk: float = key(
        4.0, doc="the same of the torque about the point it acts at", unit="Nm/s^0.5", check=positive
    )
    link_share: float = key(
        0.1, doc="variance of pushes at every link, in that of pushes at the TCP", check=non_negative
    )
    noise_time: float = key(
        0.01, doc="the actuators' torque_noise is that of a mean over this", unit="s", check=positive
    )
    force_std: float = key(
        100.0,
        doc="usual size of a force; the deviation of one that the posture does not determine",
        unit="N",
        check=positive,
    )
    torque_std: float = key(5.0, doc="the same of a torque at the TCP", unit="Nm", check=positive)


def load_sensor_settings(name: str, folder: str | None = None) -> SensorSettings:
    """Load a sensor set by name, or from a YAML file by path.

    Args:
        name: a name in config/sensors or in the sensors/ of a robot's profile, or a path.
        folder: profile folder that is looked into first.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    return from_yaml(SensorSettings, find_config("sensors", name, folder))
