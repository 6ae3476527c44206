"""Tolerances of the signal monitor: what noise, elastic joints, friction and an imperfect model may make."""

from __future__ import annotations

from dataclasses import dataclass

from contact_estimation.settings import key, non_negative, positive


@dataclass(frozen=True, kw_only=True)
class KinematicsSettings:
    """Position against velocity: |D_q - D_v| <= a + s max(|D_q|, A_v), and values that do not change."""

    short_time: float = key(0.1, doc="time constant of the short comparison", unit="s", check=positive)
    long_time: float = key(
        2.0, doc="time constant of the long comparison, which detects small errors of scale", unit="s", check=positive
    )
    short_way: float = key(
        2.5e-3,
        doc="tolerance a over the short time; joints bend under load (a UR16e's shoulder by 2 mrad under 100 N)",
        unit="rad",
        check=positive,
    )
    long_way: float = key(4e-3, doc="a over the long time", unit="rad", check=positive)
    velocity_share: float = key(
        0.2, doc="s: share by which position and velocity may differ, for delays and scale", check=positive
    )
    step_speed: float = key(
        0.8,
        doc="from one sample to the next velocity and position may differ by this; more is a jump of the encoder or a "
        "spike of the velocity",
        unit="rad/s",
        check=positive,
    )
    step_share: float = key(
        0.5, doc="allowed difference from jittering stamps, as a share of the distance", check=positive
    )
    scale_share: float = key(
        0.15,
        doc="share by which the slope of position over velocity may differ from 1 over the long time: stamps, units",
        check=positive,
    )
    scale_motion: float = key(
        1e-3,
        doc="that slope counts where its error is larger than this: a tenth of 0.07 rad/s for 2 s",
        unit="rad^2/s",
        check=positive,
    )
    velocity_delay: float = key(
        0.02, doc="a velocity may be as late as this, as filters make it", unit="s", check=non_negative
    )
    agreed_way: float = key(
        0.05,
        doc="distance that a joint must move in agreement after a contradiction; a joint at rest gives no evidence",
        unit="rad",
        check=positive,
    )
    roughness: float = key(
        2.0,
        doc="root mean square of the effort's change within rise_time, in units of friction, above which it is noise",
        check=positive,
    )
    velocity_roughness: float = key(
        30.0,
        doc="root mean square of the velocity's second differences, in units of its noise (actuators.yaml), above "
        "which it is not that sensor's: degrees for radians are 57; over longer intervals than rise_time by the square "
        "of their share",
        check=positive,
    )
    least_velocity_noise: float = key(
        2e-4,
        doc="that noise is taken for at least this: calibrated from an arm at rest, whose velocity is exactly zero, it "
        "says nothing of motion",
        unit="rad/s",
        check=positive,
    )
    spike_share: float = key(
        0.1, doc="share of samples over short_time that may be spikes; more are noise", check=positive
    )
    rise_time: float = key(
        2e-3,
        doc="changes of the effort over longer intervals count by their share in this: stops and impacts rise as fast",
        unit="s",
        check=positive,
    )
    lost_speed: float = key(
        0.02,
        doc="where a joint is faster than this, positions or velocities that all repeat are a lost packet",
        unit="rad/s",
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

    block: float = key(0.02, doc="the torque is judged on means over this", unit="s", check=positive)
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
    free: float = key(
        1.0,
        doc="mean square residual, in units of friction, below which the configured reading explains a free arm",
        check=positive,
    )
    rival_free: float = key(0.5, doc="the same for an alternative to the settings", check=positive)
    better: float = key(
        1.2,
        doc="by how much (mean square) one reading must explain the torque better than another; with six joints 1.2 is "
        "a likelihood ratio of e^3.6",
        check=positive,
    )
    least_scale: float = key(
        0.7,
        doc="a common factor from here to most_scale is no mistake of a unit: torque constants vary",
        check=positive,
    )
    most_scale: float = key(1.5, doc="see least_scale", check=positive)
    delays: list[float] = key(
        [0.04, 0.08, 0.14], doc="delays of the torque that are looked for", unit="s", check=positive
    )
    delay_time: float = key(1.0, doc="memory of the means that find a delay", unit="s", check=positive)
    delay_cap: float = key(3.0, doc="larger misfits (mean square) count as this in these means", check=positive)
    delay_better: float = key(
        0.06, doc="by how much (mean square) a delay must explain the torque of a motion better", check=positive
    )
    delay_share: float = key(
        0.5, doc="and what share of the misfit of a punctual and of an early torque it may leave", check=positive
    )
    delay_weight: float = key(0.25, doc="weight of the means before they count: 0.3 s of motion", check=positive)
    force: float = key(
        60.0, doc="standard deviation of a contact force at the tool before confirmation", unit="N", check=positive
    )
    moment: float = key(4.0, doc="standard deviation of its moment about the TCP", unit="Nm", check=positive)
    proof_time: float = key(
        0.2, doc="time for which an explanation must hold to be confirmed", unit="s", check=positive
    )
    doubt_time: float = key(
        3.0,
        doc="an unexplained torque is doubted until a free arm is explained for the same time, at most for this time",
        unit="s",
        check=positive,
    )
    rest_time: float = key(3.0, doc="a suspicion that lasts this long at rest is named", unit="s", check=positive)
    motion_time: float = key(0.5, doc="the same while a joint moves", unit="s", check=positive)
    rest_speed: float = key(0.05, doc="slower joints rest", unit="rad/s", check=positive)
    new_posture: float = key(
        0.1, doc="distance after which a cleared alternative may be suspected again", unit="rad", check=positive
    )
    change_share: float = key(
        0.75,
        doc="a torque at rest that changes by this share of the friction allowance is no friction, but a contact",
        check=positive,
    )
    change_noise: float = key(
        6.0,
        doc="and where it changes by this many times what it changes from block to block: an exchanged joint's torque "
        "may be as noisy as friction is large",
        check=positive,
    )
    set_off_time: float = key(
        0.05,
        doc="for this long: the friction of a joint changes before it is seen to set off",
        unit="s",
        check=non_negative,
    )
    settle_time: float = key(
        0.05, doc="a step is judged after this; torque spikes of stops last 5 to 20 ms", unit="s", check=positive
    )
    mean_time: float = key(0.01, doc="memory of the running mean before and after a step", unit="s", check=positive)
    telling_share: float = key(
        0.1,
        doc="before proof, a rival that leaves less than this share of the residual (mean square) is suspected",
        check=positive,
    )
    telling_time: float = key(0.1, doc="for this long", unit="s", check=positive)
    usual_share: float = key(
        0.7,
        doc="a common factor is refuted where the best one leaves more than this share of the residual (mean square)",
        check=positive,
    )
    telling_residual: float = key(
        0.3, doc="the same holds above this residual (mean square, in units of friction)", check=positive
    )
    lone_residual: float = key(
        5.0,
        doc="above this residual (mean square) a joint beyond the second whose torque is wrong alone is a fault, "
        "proven or not, while the others explain a free arm (rival_free): a force on a link loads the joints before "
        "it, too",
        check=positive,
    )
    step: float = key(
        2.2, doc="size of a step between two samples that is judged, in units of friction", check=positive
    )
    step_match: float = key(
        0.4,
        doc="share of a step that may come after its sample: an impact goes on growing, a spike returns",
        check=positive,
    )
    strange_step: float = key(
        6.0,
        doc="a step of this size that stays, and that neither a contact nor an alternative explains, is a fault",
        check=positive,
    )
    step_odds: float = key(
        5.0,
        doc="log-likelihood by which a fault must explain a step better than a contact: contacts are more frequent",
        check=non_negative,
    )
    fault_size: float = key(
        0.3, doc="standard deviation of a faulty joint torque as a share of the effort limit", check=positive
    )
    factor_std: float = key(3.0, doc="standard deviation of a faulty common factor", check=positive)
    impact_force: float = key(
        30.0, doc="standard deviation of a contact force that rises within a sample", unit="N", check=positive
    )
    tool_lever: float = key(
        0.07, doc="lever arm about the TCP of such a force on the tool, standard deviation", unit="m", check=positive
    )
    link_lever: float = key(0.5, doc="the same on a link", unit="m", check=positive)
    least_noise: float = key(
        0.05, doc="least noise of a torque that is assumed in a step, as a share of friction", check=positive
    )
    moving_speed: float = key(
        0.01, doc="speed from which friction has the sign of the motion", unit="rad/s", check=positive
    )


@dataclass(frozen=True, kw_only=True)
class PlausibilitySettings:
    """The signal monitor in front of every observer."""

    glitch: float = key(
        0.3,
        doc="an effort that changes by this share of its limit within rise_time is refused, twice at most: a spike",
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
