"""Settings of the probing estimator; one class for the plane and for space."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True)
class ProbingSettings:
    """Priors, noise, events and rule of :class:`~contact_estimation.identify.probing.filter.ProbingFilter`.

    The defaults are those of the examples: a probe on rubber, an optical or encoder pose, a wrist wrench, 25 Hz.
    """

    stiffness_max: float = key(
        20000.0, unit="N/m", check=positive, doc="upper bound of the Johnson interval of stiffness"
    )
    friction_max: float = key(1.5, check=positive, doc="upper bound of the Johnson interval of friction")

    position_noise: float = key(1e-4, unit="m", check=positive, doc="standard deviation of a measured position axis")
    angle_noise: float = key(5e-4, unit="rad", check=positive, doc="standard deviation of a measured orientation axis")
    velocity_noise: float = key(2e-3, unit="m/s", check=positive, doc="standard deviation of a measured velocity axis")
    rate_noise: float = key(
        5e-3, unit="rad/s", check=positive, doc="standard deviation of a measured angular rate axis"
    )
    force_noise: float = key(0.15, unit="N", check=positive, doc="standard deviation of a measured force axis")
    torque_noise: float = key(0.01, unit="Nm", check=positive, doc="standard deviation of a measured moment axis")

    jerk: float = key(3.0, unit="m/s^2.5", check=positive, doc="root density of the white jerk of the position, eq. 8")
    angular_jerk: float = key(
        30.0, unit="rad/s^2.5", check=positive, doc="root density of the white angular jerk, eq. 8"
    )

    tip_start_std: float = key(0.01, unit="m", check=positive, doc="uncertainty of the tip at the start, per axis")
    tip_pair_start_std: float = key(
        0.001,
        unit="m",
        check=positive,
        doc="uncertainty at the start of one tip of a tool relative to its others, per axis",
    )
    angle_start_std: float = key(0.1, unit="rad", check=positive, doc="uncertainty of a surface angle at the start")
    offset_start_std: float = key(
        0.003,
        unit="m",
        check=positive,
        doc="uncertainty at the start of the height of the surface under the touching tip",
    )
    curvature_start_std: float = key(
        3.0, unit="1/m", check=positive, doc="uncertainty of a surface's curvature, where it is estimated (plane)"
    )
    stiffness_start: float = key(5000.0, unit="N/m", check=positive, doc="expected stiffness at the start")
    stiffness_start_std: float = key(2000.0, unit="N/m", check=positive, doc="uncertainty of stiffness at the start")
    friction_start: float = key(0.5, check=positive, doc="expected friction at the start")
    friction_start_std: float = key(0.2, check=positive, doc="uncertainty of friction at the start")

    slide_step: float = key(
        5e-3,
        unit="m",
        check=positive,
        doc="sliding distance after which the parameters may have changed, Delta s_tm of Algorithm 1",
    )
    tip_walk: float = key(5e-6, unit="m", check=non_negative, doc="change of a tip coordinate per slide_step")
    angle_walk: float = key(1e-4, unit="rad", check=non_negative, doc="change of a surface angle per slide_step")
    offset_walk: float = key(5e-6, unit="m", check=non_negative, doc="change of the offset per slide_step")
    stiffness_walk: float = key(1e-3, check=non_negative, doc="change of the free stiffness coordinate per slide_step")
    friction_walk: float = key(5e-4, check=non_negative, doc="change of the free friction coordinate per slide_step")

    slide_speed_min: float = key(
        6e-3, unit="m/s", check=positive, doc="tangential speed below which forces are not used, v_tm of Algorithm 1"
    )
    slide_distance_min: float = key(
        3e-3,
        unit="m",
        check=non_negative,
        doc="distance to slide after a stop before forces are used (presliding is over)",
    )
    presliding_stiffness: float = key(
        2e4,
        unit="N/m",
        check=positive,
        doc="tangential stiffness of the contact before it slides; in space friction follows the direction of sliding "
        "over the length friction force / presliding_stiffness",
    )
    contact_force_min: float = key(
        2.0, unit="N", check=non_negative, doc="force norm below which the probe is in the air"
    )

    gate_probability: float = key(
        1.5e-5, check=positive, doc="probability that a good wrench is left out (chi-square of the innovation)"
    )
    gated_in_a_row: int = key(
        3,
        check=positive,
        doc="wrenches beyond the gate in a row after which stiffness and friction count as changed: they get the "
        "variance of the start",
    )

    change_offset_std: float = key(
        5e-4,
        unit="m",
        check=non_negative,
        doc="standard deviation that offsets get when a change of stiffness is detected",
    )
    settling_time: float = key(
        2.0, unit="s", check=non_negative, doc="time after the first touch that the verdict on a recording leaves out"
    )
    false_alarm: float = key(0.01, check=positive, doc="probability of a false alarm of the verdict")
    degree: int = key(7, doc="degree of the integration rule: 3, 5 or 7")
    degree_several: int = key(
        5,
        doc="the same where a tool has several tips: the points of degree 7 grow with the cube of the "
        "dimension, and a contact that may open is no polynomial anyway",
    )
    residual_colour: float = key(
        8.0,
        check=positive,
        doc="factor on the residual variance of the linearisation in the parameters, which repeats from sample to "
        "sample and does not average out; 1 is the paper's",
    )
    torque_bias_std: tuple[float, ...] = key(
        (),
        unit="Nm",
        check=non_negative,
        doc="standard deviation of a slow error of each joint's torque, when the wrench "
        "is estimated from joint torque; empty for a measured wrench",
    )
    torque_bias_time: float = key(2.0, unit="s", check=positive, doc="correlation time of that error")
    force_bias_std: float = key(
        0.0,
        unit="N",
        check=non_negative,
        doc="standard deviation of a constant offset of each axis of a measured force, which is estimated; 0: none",
    )
    moment_bias_std: float = key(
        0.0, unit="Nm", check=non_negative, doc="the same of each axis of a measured moment; 0: none"
    )

    def __post_init__(self) -> None:
        for name in ("degree", "degree_several"):
            if getattr(self, name) not in (3, 5, 7):
                raise ConfigError(f"{name} is {getattr(self, name)}, expected 3, 5 or 7")
        if not self.stiffness_start < self.stiffness_max or not self.friction_start < self.friction_max:
            raise ConfigError(
                f"the start (stiffness {self.stiffness_start} N/m, friction {self.friction_start}) must lie "
                f"below the bounds ({self.stiffness_max} N/m, {self.friction_max})"
            )

    def bounds(self) -> tuple[Bounds, Bounds]:
        """Return the intervals of stiffness [N/m] and friction."""
        return Bounds(0.0, self.stiffness_max), Bounds(0.0, self.friction_max)
