"""Joint friction and actuators: the parameters of a robot that an observer needs in addition to its links.

They are in ``actuators.yaml`` of a robot's profile. Without that file a wide prior is derived from the description.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot.arm import Arm
from contact_estimation.robot.friction import FrictionSettings
from contact_estimation.robot.settings import robot_file
from contact_estimation.settings import find_config, fraction, from_yaml, key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class ElasticSettings:
    """The second force channel of a robot with encoders on both sides of its gears.

    q - integral(dq) = (J^T F - G) / k + offset, with the joint-side position q and the motor-side velocity over the
    gear ratio dq.
    """

    joints: list[int] = key([], doc="joints (0 is the base's) whose channel is used; none switches it off")
    stiffness: list[float] = key([], doc="joint stiffness k, one per entry of joints", unit="Nm/rad", check=positive)
    stiffness_spread: float = key(0.08, doc="relative uncertainty of k", check=positive)
    noise: float = key(3e-5, doc="noise of a block mean", unit="rad", check=positive)
    stiffness_bound: float = key(
        3.0,
        doc="bound of k around its setting, in standard deviations; a larger deviation is a contact",
        check=positive,
    )
    offset_std: float = key(
        3e-3,
        doc="uncertainty of the offset at the start, where the deflection is unknown; only its changes give forces",
        unit="rad",
        check=positive,
    )
    offset_random_walk: float = key(
        5e-6,
        doc="drift of the offset in one second: the velocity signal's quantisation, integrated",
        unit="rad/s^0.5",
        check=non_negative,
        was="drift",
    )
    transmission_error: float = key(
        3e-4,
        doc="drift of the offset over a radian of motion: uneven gears, the velocity's scale",
        unit="rad/rad^0.5",
        check=non_negative,
        was="travel",
    )
    velocity_delay: float = key(
        5e-4,
        doc="by how much older the velocity may be than the position of a sample",
        unit="s",
        check=non_negative,
        was="lag",
    )
    hysteresis: float = key(
        0.0,
        doc="half the width of the loop of a gear's deflection over its load: what a push leaves of the deflection, "
        "and the least that shows another joint stiffness. Twice that widens the published force of an unknown contact",
        unit="rad",
        check=non_negative,
    )

    def __post_init__(self) -> None:
        if len(self.joints) != len(self.stiffness):
            raise ConfigError(
                f"elastic: {len(self.joints)} joints but {len(self.stiffness)} stiffnesses; give one per joint"
            )
        if len(set(self.joints)) != len(self.joints) or any(j < 0 for j in self.joints):
            raise ConfigError(f"elastic: joints must be different and not negative, found {self.joints}")


@dataclass(frozen=True, kw_only=True)
class ActuatorSettings:
    """What is known about a robot's joints before it moves: friction, torque noise, elasticity."""

    friction: FrictionSettings = key(doc="friction prior, as 'calibrate' writes it")
    disturbance_std: list[float] = key(
        doc="slow deviation from the friction law (Gauss-Markov), its standard deviation per joint",
        unit="Nm",
        check=non_negative,
        length="joints",
        was="deviation_std",
    )
    disturbance_time: float = key(
        2.0, doc="how long such a deviation lasts", unit="s", check=positive, was="deviation_time"
    )
    disturbance_speed: float = key(
        0.0,
        doc="the disturbance of a slower joint changes in proportion to its speed; 0: also at rest",
        unit="rad/s",
        check=non_negative,
    )
    bias_random_walk: list[float] = key(
        doc="drift of the bias in one second, per joint",
        unit="Nm/s^0.5",
        check=non_negative,
        length="joints",
        was="bias_drift",
    )
    torque_noise: list[float] = key(
        doc="noise of the torque averaged over a block, per joint, with what its colour adds",
        unit="Nm",
        check=positive,
        length="joints",
    )
    least_noise_share: float = key(
        1.0,
        doc="smallest share of the noise's variance that decides between modes; below 1 innovations that are smaller "
        "than the noise settings count for more. Only behind the gears: before them slow errors of friction would "
        "decide",
        check=fraction,
    )
    model_error: float = key(
        0.1,
        doc="share of the changes of the rigid-body torque (gravity and inertia) by which its model may be wrong",
        check=non_negative,
    )
    friction_error: float = key(0.0, doc="relative error of the Coulomb friction after a reversal", check=non_negative)
    stop_error: float = key(
        0.0,
        doc="error of the friction after a sudden stop, in Coulomb frictions: the joint springs back; without a "
        "velocity of the motors also of a joint that sets off from there, or from rest at the start",
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
    deadband: float = key(
        2.5e-5,
        doc="motion below this is encoder noise and does not move the presliding state",
        unit="rad",
        check=non_negative,
        was="play",
    )
    deadband_noise: float = key(
        1.2, doc="the deadband is at least this many standard deviations of the encoder noise", check=positive
    )
    velocity_deadband: float = key(
        4.0,
        doc="motors that are measured to move by less than this many standard deviations of their velocity's noise, "
        "behind the low-pass, do not turn their friction",
        check=non_negative,
    )
    noise_time: float = key(
        0.5, doc="the noise of encoders and of blocks' torques is averaged over about this", unit="s", check=positive
    )
    max_noise_ratio: float = key(
        25.0,
        doc="bound on the squared noise of one block, over its expected variance: a shock is not noise",
        check=positive,
    )
    load_blocks: float = key(
        4.0, doc="blocks in the average of the rigid-body torque, to whose changes model_error applies", check=positive
    )
    friction_bound: float = key(
        2.5,
        doc="standard deviations that bias and friction disturbance are off at most in free space; more is a contact",
        check=positive,
    )
    steady_push_rate: float = key(
        1e-3,
        doc="how often a push is constant from its first moment; 0: a constant push explains known contacts that do "
        "not fit, which only torque of little noise allows",
        unit="1/s",
        check=non_negative,
    )
    contact_friction_bound: float = key(
        2.5,
        doc="standard deviations by which they change at most while a contact is closed; more is another contact",
        check=positive,
    )
    elastic: ElasticSettings = key(ElasticSettings(), doc="joint elasticity as a second force channel")

    def check_joints(self, n: int, robot: str) -> None:
        """Check that every list has one entry per joint.

        Args:
            n: number of joints.
            robot: its name, for the error.

        Raises:
            ConfigError: a list has another number of entries.
        """
        self.friction.check_joints(n, robot)
        for name in ("disturbance_std", "bias_random_walk", "torque_noise"):
            if len(getattr(self, name)) != n:
                raise ConfigError(
                    f"actuators of robot '{robot}': {name} has {len(getattr(self, name))} entries, expected {n}"
                )
        if any(j >= n for j in self.elastic.joints):
            raise ConfigError(
                f"actuators of robot '{robot}': elastic.joints {self.elastic.joints} reach beyond joint {n - 1}"
            )


def load_actuators(name: str) -> ActuatorSettings:
    """Joint friction and actuators of a shipped robot, or from an actuators YAML or a profile folder.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    return from_yaml(ActuatorSettings, find_config("actuators", name))


def actuators_of(arm: Arm, choice: str | ActuatorSettings = "robot", warn: bool = True) -> ActuatorSettings:
    """Joint friction and actuators an observer of ``arm`` starts with.

    Args:
        arm: the robot.
        choice: ``robot``: the profile's own, derived with a warning where it has none; settings: these; else as
            :func:`load_actuators`.
        warn: whether to warn where they are derived.

    Raises:
        ConfigError: unknown name, an error in the file, or lists that do not fit the arm's joints.
    """
    if isinstance(choice, ActuatorSettings):
        settings = choice
    elif choice != "robot":
        settings = load_actuators(choice)
    elif (path := robot_file(arm.settings, "actuators")) is not None:
        settings = from_yaml(ActuatorSettings, path)
    else:
        settings = derived_actuators(arm)
        if warn:
            _warn_of_derived(arm)
    settings.check_joints(arm.n, arm.name)
    return settings


def _warn_of_derived(arm: Arm) -> None:
    warnings.warn(
        f"robot '{arm.name}' has no actuators.yaml in {arm.settings.folder or 'a profile folder'}: its joint "
        "friction is taken as 0 to 6 % of the effort limits, so forces are uncertain. Calibrate it with "
        f"'contact-estimation calibrate RECORDING --robot {arm.name} --out FOLDER' and use --robot FOLDER",
        stacklevel=4,
    )


def joint_strength(arm: Arm) -> np.ndarray:
    """Torque (n,) [Nm] that sets the scale of a joint's friction and noise: its effort limit.

    Where the URDF has none, 2.5 times the largest gravity torque over the joint's range: actuators are chosen to hold
    the arm with some such reserve. A joint that gravity does not load counts as the ones behind it, and not less than
    1 Nm.
    """
    rng = np.random.default_rng(0)
    lower, upper = arm.one_turn
    gravity = np.max([np.abs(arm.gravity(rng.uniform(lower, upper))) for _ in range(50)], axis=0)
    held = 2.5 * np.maximum.accumulate(gravity[::-1])[::-1]
    return np.where(arm.effort_limit > 0, arm.effort_limit, np.maximum(held, 1.0))


def derived_actuators(arm: Arm) -> ActuatorSettings:
    """Wide prior of joint friction and noise for a robot that nobody has calibrated, as shares of its effort limits.

    The shares enclose what calibrations of the shipped arms found (UR16e: limits 330, 330, 150, 54 Nm; Franka: 87,
    12 Nm).

    Args:
        arm: the robot.
    """
    n, strength = arm.n, joint_strength(arm)

    def share(factor: float) -> list[float]:
        return [float(value) for value in factor * strength]

    zero = [0.0] * n
    friction = FrictionSettings(
        viscous=zero,
        viscous_std=zero,
        coulomb=share(0.02),  # calibrated: 0.3 % (Franka pan) to 5.6 % (UR16e wrist 1)
        coulomb_std=share(0.02),  # two of them reach from none to 6 %
        presliding=[3e-4] * n,  # [rad] between 1.5e-4 (UR16e) and 5e-4 (Franka)
        presliding_std=zero,
        asymmetry=zero,
        asymmetry_std=zero,
        bias=zero,
        bias_std=share(0.02),  # calibrated: 0.6 to 2.8 %; gravity errors of some tenths of a kilogram are in it
        torque_scale=[1.0] * n,
        torque_scale_std=zero,
    )
    return ActuatorSettings(
        friction=friction,
        disturbance_std=share(0.015),  # calibrated: 0.2 to 1.9 %
        bias_random_walk=share(5e-4),  # calibrated: 0.01 to 0.07 % in a second
        torque_noise=share(0.01),  # calibrated: 0.3 to 1.3 %
        velocity_noise=1e-3,  # [rad/s] between 2e-4 (UR16e) and 3e-3 (Panda)
    )
