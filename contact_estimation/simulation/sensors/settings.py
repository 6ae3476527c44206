"""Settings of a simulated arm's imperfections: ``simulation.yaml`` of a robot's profile.

Every group has ``enabled`` and ``scale``: 0 equals off, 1 is as configured, 2 doubles the effect.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import joint_strength
from contact_estimation.robot.settings import robot_file
from contact_estimation.settings import find_config, from_yaml, key, non_negative, positive, probability

#: Largest factor on an effect: beyond it numbers overflow.
_MAX_SCALE = 1e6
#: [rad] Travel over which friction builds up, as on a UR16e.
_PRESLIDING = 1.5e-4


def _switch() -> Any:
    return key(True, doc="whether this effect acts at all")


def _scale() -> Any:
    return key(1.0, doc="factor on the size of this effect; 0 equals off", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """Joint position measurement."""

    enabled: bool = _switch()
    scale: float = _scale()
    side: str = key("motor", doc="where the position is measured, of an elastic joint", choices=("motor", "link"))
    resolution: float = key(0.0, doc="quantisation step", unit="rad", check=non_negative)
    noise: float = key(0.0, doc="standard deviation of white noise", unit="rad", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class VelocitySettings:
    """Joint velocity measurement."""

    enabled: bool = _switch()
    scale: float = _scale()
    side: str = key("motor", doc="where the velocity is measured, of an elastic joint", choices=("motor", "link"))
    resolution: float = key(0.0, doc="quantisation step", unit="rad/s", check=non_negative)
    noise: float = key(0.0, doc="standard deviation of white noise", unit="rad/s", check=non_negative)
    deadband: float = key(0.0, doc="speeds below this read exactly zero", unit="rad/s", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class TorqueSettings:
    """Joint torque measurement: motor current times drive gain, or a torque sensor behind the gear."""

    enabled: bool = _switch()
    scale: float = _scale()
    side: str = key(
        "motor",
        doc="motor: drive torque, friction and rotor inertia inside; link: behind the gear",
        choices=("motor", "link"),
    )
    resolution: list[float] | None = key(
        None,
        doc="quantisation step per joint; on a motor side the current's times the drive gain",
        unit="Nm",
        check=non_negative,
        length="joints",
    )
    noise: list[float] | None = key(
        None, doc="standard deviation of white noise per joint", unit="Nm", check=non_negative, length="joints"
    )
    coloured_noise: list[float] | None = key(
        None,
        doc="standard deviation of noise with the correlation time below, per joint",
        unit="Nm",
        check=non_negative,
        length="joints",
    )
    correlation_time: float = key(0.02, doc="correlation time of the coloured noise", unit="s", check=positive)
    bias: list[float] | None = key(None, doc="constant offset per joint", unit="Nm", length="joints")


@dataclass(frozen=True, kw_only=True)
class WrenchSettings:
    """Force/torque sensor at the flange; without imperfections it reads the true wrench."""

    present: bool = key(True, doc="whether the arm has one; recordings of one without it hold no measured wrench")
    enabled: bool = _switch()
    scale: float = _scale()
    noise: float = key(0.0, doc="standard deviation of white noise on the force", unit="N", check=non_negative)
    torque_noise: float = key(0.0, doc="standard deviation of white noise on the torque", unit="Nm", check=non_negative)
    bias: list[float] = key([0.0, 0.0, 0.0], doc="constant offset of the force, TCP axes", unit="N", length=3)


@dataclass(frozen=True, kw_only=True)
class FrictionSettings:
    """Joint friction before the gear: Coulomb with Stribeck and presliding (LuGre)."""

    enabled: bool = _switch()
    scale: float = _scale()
    coulomb: list[float] | None = key(
        None, doc="Coulomb friction per joint; none without it", unit="Nm", check=non_negative, length="joints"
    )
    static_ratio: float = key(1.05, doc="static over Coulomb friction", check=positive)
    stribeck_velocity: float = key(
        2.0e-3, doc="speed over which static friction falls to Coulomb friction", unit="rad/s", check=positive
    )
    presliding: float = key(_PRESLIDING, doc="travel over which the friction builds up", unit="rad", check=positive)


@dataclass(frozen=True, kw_only=True)
class ElasticitySettings:
    """Elastic gears: rotor and link are two masses with a spring between them."""

    enabled: bool = _switch()
    scale: float = key(1.0, doc="factor on the compliance (1 / stiffness); 0 equals off", check=non_negative)
    stiffness: list[float] | None = key(
        None, doc="joint stiffness per joint; rigid without it", unit="Nm/rad", check=positive, length="joints"
    )
    damping_time: float = key(1.0e-3, doc="joint damping over joint stiffness", unit="s", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class PayloadSettings:
    """What the arm carries and its model does not know."""

    enabled: bool = _switch()
    scale: float = _scale()
    mass: float = key(0.0, doc="unknown mass at the TCP", unit="kg", check=non_negative)
    com: list[float] = key([0.0, 0.0, 0.0], doc="its centre of mass in the TCP frame", unit="m", length=3)
    gravity_error: list[float] | None = key(
        None,
        doc="standard deviation of a constant unmodelled torque per joint, drawn once per seed",
        unit="Nm",
        check=non_negative,
        length="joints",
    )


@dataclass(frozen=True, kw_only=True)
class TimingSettings:
    """When samples are taken, stamped and delivered."""

    enabled: bool = _switch()
    scale: float = _scale()
    jitter: float = key(0.0, doc="standard deviation of the time between samples", unit="s", check=non_negative)
    stamp_jitter: float = key(
        0.0, doc="standard deviation of the stamp around the true time of the sample", unit="s", check=non_negative
    )
    delay: float = key(
        0.0,
        doc="age of a sample when it is delivered; its stamp is the time it was taken",
        unit="s",
        check=non_negative,
    )
    loss: float = key(0.0, doc="probability that a sample is lost", check=probability)


@dataclass(frozen=True, kw_only=True)
class ImperfectionSettings:
    """All of a simulated arm's imperfections."""

    sensors: str = key("joint_torque", doc="sensor set of config/sensors that describes the simulated torque")
    encoder: EncoderSettings = key(EncoderSettings(), doc="joint position measurement")
    velocity: VelocitySettings = key(VelocitySettings(), doc="joint velocity measurement")
    torque: TorqueSettings = key(TorqueSettings(), doc="joint torque measurement")
    wrench: WrenchSettings = key(WrenchSettings(), doc="force/torque sensor")
    friction: FrictionSettings = key(FrictionSettings(), doc="joint friction")
    elasticity: ElasticitySettings = key(ElasticitySettings(), doc="joint elasticity")
    payload: PayloadSettings = key(PayloadSettings(), doc="payload and gravity error")
    timing: TimingSettings = key(TimingSettings(), doc="rate jitter, delay, loss")


def load_imperfections(name: str) -> ImperfectionSettings:
    """Return the imperfections of a shipped robot, ``ideal`` ones, or those of a YAML file or a profile folder.

    Args:
        name: of the robot, ``ideal``, file or folder.

    Raises:
        ConfigError: there is no such file, or it has an error.
    """
    return from_yaml(ImperfectionSettings, find_config("simulation", name))


def imperfections_of(arm: Arm, choice: str = "", timestep: float = 1.0e-3) -> ImperfectionSettings:
    """Imperfections with which ``arm`` is simulated.

    Args:
        arm: the robot.
        choice: as :func:`load_imperfections`; empty: the profile's own, plain ones derived where it has none.
        timestep: of the simulation [s]; derived friction is stable with it.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    if choice:
        return load_imperfections(choice)
    path = robot_file(arm.settings, "simulation")
    return derived_imperfections(arm, timestep) if path is None else from_yaml(ImperfectionSettings, path)


def derived_imperfections(arm: Arm, timestep: float = 1.0e-3) -> ImperfectionSettings:
    """Plain imperfections of an arm of which only the description is known: friction, some noise.

    Torque is that of the motors, or behind the gears for an arm whose sensor set is ``link_torque``. Shares of the
    effort limits within what the shipped arms have, so that an observer's derived prior
    (:func:`~contact_estimation.robot.actuators.derived_actuators`) holds for them.

    Args:
        arm: the robot.
        timestep: of the simulation [s]; the presliding is long enough for it.
    """
    strength_of = joint_strength(arm)
    coulomb = 0.01 * strength_of  # (n,) [Nm] UR16e 0.3 to 5.6 %, FR3 0.3 to 1.3 %

    def share(factor: float) -> list[float]:
        return [float(value) for value in factor * strength_of]

    sensors = "link_torque" if arm.settings.sensors == "link_torque" else "joint_torque"
    return ImperfectionSettings(
        sensors=sensors,
        encoder=EncoderSettings(noise=1.0e-5),  # [rad] UR16e 1.2e-5, FR3 3e-6
        velocity=VelocitySettings(noise=5.0e-4),  # [rad/s] FR3 5e-4
        torque=TorqueSettings(
            side="link" if sensors == "link_torque" else "motor",
            noise=share(1e-3),  # FR3 0.06 to 0.25 %
            coloured_noise=share(2e-3),  # FR3 0.1 to 0.4 %
        ),
        friction=FrictionSettings(
            coulomb=[float(value) for value in coulomb],
            presliding=max(_PRESLIDING, _stable_presliding(arm, coulomb, timestep)),
        ),
    )


def _stable_presliding(arm: Arm, coulomb: np.ndarray, timestep: float) -> float:
    """Return the presliding length l [rad] with which the bristles of all joints are stable in explicit steps h.

    The bristles are springs of stiffness Fc / l on the mass matrix M, rotors included. Semi-implicit Euler steps are
    stable for h^2 lambda_max(M^-1 diag(Fc)) / l < 4. The length keeps to 1: six steps in a period of the fastest
    oscillation. Where the rotor inertia is unknown, a light last link decides.

    Args:
        arm: the robot.
        coulomb: Fc (n,) [Nm].
        timestep: h [s].
    """
    rng = np.random.default_rng(0)
    lower, upper = arm.one_turn
    masses = np.array([arm.mass(rng.uniform(lower, upper)) for _ in range(50)])  # (50, n, n)
    stiffest = np.linalg.eigvals(np.linalg.solve(masses, np.diag(coulomb))).real.max()
    return float(timestep**2 * stiffest)


def scaled(settings: ImperfectionSettings, **scales: float) -> ImperfectionSettings:
    """Copy with the scale of some groups changed: ``scaled(settings, friction=0.0, torque=2.0)``.

    Raises:
        ConfigError: unknown group, or a negative scale.
    """
    groups = {field.name for field in dataclasses.fields(settings) if dataclasses.is_dataclass(field.default)}
    changes = {}
    for name, scale in scales.items():
        if name not in groups:
            raise ConfigError(f"there is no imperfection '{name}'; known: {', '.join(sorted(groups))}")
        if not 0 <= scale <= _MAX_SCALE:
            raise ConfigError(f"the scale of '{name}' must not be negative or above {_MAX_SCALE:g}, found {scale:g}")
        changes[name] = dataclasses.replace(getattr(settings, name), enabled=scale > 0, scale=float(scale))
    return dataclasses.replace(settings, **changes)


def per_joint(values: list[float] | None, n: int, owner: str) -> np.ndarray:
    """Return values per joint as an array (n,), zeros without any.

    Args:
        values: one per joint, or None.
        n: number of joints.
        owner: what has them, for the error.

    Raises:
        ConfigError: wrong number of entries.
    """
    if values is None:
        return np.zeros(n)
    if len(values) != n:
        raise ConfigError(f"{owner} has {len(values)} entries, the arm has {n} joints")
    return np.array(values)


def strength(group: Any) -> float:
    """Effective scale of a group of settings."""
    return group.scale if group.enabled else 0.0
