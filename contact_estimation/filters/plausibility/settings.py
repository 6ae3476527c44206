"""What of the signal monitor depends on the robot: its encoders, its gears, its model and the forces on it.

The thresholds and windows of each test are constants beside its code.
"""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class KinematicsSettings:
    """Position against velocity: |D_q - D_v| <= a + s max(|D_q|, A_v), and values that do not change."""

    short_way: float = key(
        2.5e-3,
        doc="tolerance a over the short time; joints bend under load (a UR16e's shoulder by 2 mrad under 100 N)",
        unit="rad",
        check=positive,
    )
    long_way: float = key(4e-3, doc="tolerance a over the long time", unit="rad", check=positive)
    velocity_share: float = key(
        0.2, doc="s: share by which position and velocity may differ, for delays and scale", check=positive
    )
    velocity_delay: float = key(
        0.02, doc="a velocity may be as late as this, as filters make it", unit="s", check=non_negative
    )
    roughness: float = key(
        2.0,
        doc="root mean square of the effort's change within 2 ms, in units of friction, above which it is noise; a "
        "smooth change is none",
        check=positive,
    )
    hidden_way: float = key(
        5e-4,
        doc="distance that a frozen signal may hide: twenty steps of an 18-bit encoder",
        unit="rad",
        check=positive,
    )
    position_held: float = key(
        0.04, doc="a position may repeat to the last bit for this long while its joint moves", unit="s", check=positive
    )
    velocity_held: float = key(0.05, doc="the same for a velocity other than zero", unit="s", check=positive)
    effort_held: float = key(0.1, doc="the same for an effort while any joint moves", unit="s", check=positive)
    sample_held: float = key(
        0.05, doc="the same for whole samples, as drivers fill lost packets with the last one", unit="s", check=positive
    )


@dataclass(frozen=True, kw_only=True)
class TorqueReadingSettings:
    """Torque against gravity and inertia: which reading of the effort explains a free arm."""

    gravity_share: float = key(
        0.05, doc="share of gravity by which the model may be wrong, payloads excluded", check=non_negative
    )
    inertia_share: float = key(
        0.3,
        doc="share of the inertial torque by which it may be wrong: accelerations are differences of velocities",
        check=non_negative,
    )
    viscous_share: float = key(
        0.1,
        doc="viscous friction at the largest speed as a share of the effort limit; a UR10e's logs show 0.05 to 0.1",
        check=non_negative,
    )
    force: float = key(
        60.0, doc="standard deviation of a contact force at the tool before confirmation", unit="N", check=positive
    )
    moment: float = key(4.0, doc="standard deviation of its moment about the TCP", unit="Nm", check=positive)
    impact_force: float = key(
        30.0, doc="standard deviation of a contact force that rises within a sample", unit="N", check=positive
    )
    rest_speed: float = key(0.05, doc="slower joints rest", unit="rad/s", check=positive)


@dataclass(frozen=True, kw_only=True)
class PlausibilitySettings:
    """The signal monitor in front of every observer."""

    glitch: float = key(
        0.3,
        doc="an effort that changes by this share of its limit within 2 ms is refused, twice at most: a spike",
        check=positive,
    )
    settling: float = key(
        0.2,
        doc="after a doubt, a gap or a start in motion estimates are not valid before this, where observers do not say",
        unit="s",
        check=non_negative,
    )
    hold: float = key(0.2, doc="a contradiction that ended is forgotten after this", unit="s", check=positive)
    kinematics: KinematicsSettings = key(KinematicsSettings(), doc="position against velocity")
    torque: TorqueReadingSettings = key(TorqueReadingSettings(), doc="torque against gravity and inertia")
