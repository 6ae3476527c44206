"""Settings of the contact IMM filter, and the inputs of generated code that they and the actuators' become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.settings import ObserverSettings
from contact_estimation.robot.actuators import ActuatorSettings
from contact_estimation.settings import fraction, key, non_negative, positive, probability

#: Name of the mode in which an unmodelled external torque acts.
UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class UnknownContactSettings:
    """The mode ``unknown``: the external joint torque is a random walk.

    Its covariance per second is that of a random force and torque at the TCP and, as a share of it, at every link.
    """

    filters: int = key(
        2, doc="filters of the mode, born at different times; 0: there is no such mode", check=non_negative
    )
    force_random_walk: float = key(
        16.0,
        doc="change of the force in one second, in any direction; larger values follow pushes that turn, smaller ones "
        "favour known contacts less",
        unit="N/s^0.5",
        check=positive,
    )
    torque_random_walk: float = key(
        3.2, doc="the same of the torque about the point it acts at", unit="Nm/s^0.5", check=positive
    )
    relative_random_walk: float = key(
        0.0,
        doc="change of a push in one second along its own direction, relative to its size; with a slow random walk a "
        "push then keeps its direction",
        unit="1/s^0.5",
        check=non_negative,
    )
    stiffness: float = key(
        5e3,
        doc="usual stiffness of what pushes, along the push and across it; motion of the TCP tells it, and changes the "
        "push accordingly; zero: as at rest",
        unit="N/m",
        check=non_negative,
    )
    stiffness_random_walk: float = key(
        0.3, doc="change of that stiffness in one second, relative to the usual one", unit="1/s^0.5", check=non_negative
    )
    speed: float = key(
        0.02,
        doc="speed of the TCP up to which a contact holds it, so that motion changes a push; above, it has less effect",
        unit="m/s",
        check=positive,
    )
    link_share: float = key(
        0.1,
        doc="variance of pushes at every link, in that of pushes at the TCP; an arm of seven joints in motion needs "
        "it: no force at the TCP explains the torque of a push at a link",
        check=non_negative,
    )
    steady_share: float = key(
        0.03,
        doc="variance of the random walk of a push that is held, in that of one that begins or changes",
        check=positive,
    )
    rate_to_steady: float = key(
        3.0, doc="rate at which a push becomes steady, or changes again", unit="1/s", check=positive
    )
    birth_time: float = key(
        1.0,
        doc="a push begins as uncertain as a random walk of this duration: less sees small and slow pushes",
        unit="s",
        check=positive,
    )
    birth_time_first: float = key(
        14.0,
        doc="the same at the first sample, where it may have lasted for long: 60 N and 12 Nm by default",
        unit="s",
        check=positive,
    )
    lever: float = key(
        0.05,
        doc="usual distance from the TCP at which the tool is touched: a prior of the published wrench, which matters "
        "where the arm is nearly singular",
        unit="m",
        check=positive,
    )
    frozen_friction: float = key(
        0.01,
        doc="share of their random walks that bias, friction disturbance and elastic offset keep where friction is "
        "steady: while the mode lasts, and in one of two filters of free space",
        check=non_negative,
    )
    friction_change_rate: float = key(
        1.0, doc="how often the friction of free space begins to change, or becomes steady", unit="1/s", check=positive
    )
    rate_from_free: float = key(0.2, doc="rate of pushes that begin in free space", unit="1/s", check=positive)
    rate_to_free: float = key(2.0, doc="how often it ends", unit="1/s", check=positive)
    rate_if_reversed: float = key(
        20.0,
        doc="how often it ends where the force has reversed: a contact that would pull has probably ended",
        unit="1/s",
        check=positive,
    )
    end_significance: float = key(
        0.05,
        doc="a push may have ended where a chi-square test of this significance accepts the torque left as an error of "
        "the friction; smaller ends more pushes, and hides small ones",
        check=probability,
    )
    sliding_way: float = key(
        0.02,
        doc="where the velocity of the motors is not measured: way of a joint since a push began beyond which its "
        "friction has changed; less may be its bending by the push",
        unit="rad",
        check=positive,
    )
    rate_from_contact: float = key(
        0.01, doc="rate at which a known contact becomes an unknown one", unit="1/s", check=positive
    )
    rate_to_contact: float = key(1.0, doc="rate of its becoming a known contact", unit="1/s", check=positive)

    @property
    def wrench_variance(self) -> np.ndarray:
        """Prior variance (6,) of the published wrench at the TCP: force [N^2], torque [Nm^2]."""
        force = self.birth_time_first * self.force_random_walk**2
        return np.array([force] * 3 + [force * self.lever**2] * 3)


@dataclass(frozen=True, kw_only=True)
class MismatchSettings:
    """When the filter says that model and data disagree (``mismatch``)."""

    significance: float = key(
        0.01, doc="probability of a false alarm; smaller reports later and more rarely", check=fraction
    )
    window: float = key(2.0, doc="innovations and joint stiffness are averaged over this", unit="s", check=positive)
    innovation_time: float = key(
        0.5, doc="correlation time of the innovations; a longer one needs more of them", unit="s", check=positive
    )
    payload_std: float = key(3.0, doc="usual mass of a payload that no tool names", unit="kg", check=positive)
    payload_lever: float = key(
        0.15, doc="usual distance of its centre of mass from the flange, per axis", unit="m", check=positive
    )
    payload_memory: float = key(10.0, doc="memory of the torque for the payload test", unit="s", check=positive)
    payload_correlation: float = key(
        4.0,
        doc="longest correlation time of the friction disturbance in the payload test; a slower one acts as a bias",
        unit="s",
        check=positive,
    )
    payload_time: float = key(
        5.0,
        doc="a payload is told this long after the torque changed, or at once if it is there at the first sample; one "
        "that went is carried again if back within it",
        unit="s",
        check=positive,
    )
    softest_contact: float = key(
        1e3,
        doc="softest contact there is: a payload's weight that changes less with the height is left out of the "
        "contact's force; if it is there at the first sample it need not last for payload_time then",
        unit="N/m",
        check=positive,
    )


@dataclass(frozen=True, kw_only=True)
class ImmSettings(ObserverSettings):
    """IMM filter: friction-aware filters, one or more per contact mode (free, contact_1, contact_1+contact_2, ...)."""

    observer: str = key("contact_imm", doc="kind of observer", choices=("contact_imm", "contact_bank"))
    actuators: str = key(
        "robot",
        doc="joint friction and actuators: 'robot' for the robot's own, a robot's name, or an actuators YAML",
        was="drives",
    )
    contacts: list[ImmContact] = key(doc="contacts that may open and close, at most four")
    modes: list[list[str]] | None = key(
        None, doc="combinations of closed contacts that can happen, [] being free space; default all"
    )
    close_rate: float = key(1.0, doc="how often a contact closes", unit="1/s", check=positive)
    open_rate: float = key(3.0, doc="how often a closed contact opens", unit="1/s", check=positive)
    closed_at_start: float = key(0.3, doc="probability that anything is touched at the first sample", check=probability)
    decision_time: float = key(
        0.2,
        doc="no contact closes for at least this long after the start: first it is decided whether one was closed at "
        "the first sample. Time at rest does not count while something touches the arm",
        unit="s",
        check=non_negative,
    )
    decision_error: float = key(
        0.01,
        doc="a contact that may be closed since the first sample is given up below this probability; only then may a "
        "contact close. Smaller keeps a press that began before the start, larger lets a touch soon after it close",
        check=probability,
    )
    least_probability: float = key(
        1e-60,
        doc="least probability of a filter: a value of 1e-6 would discard all evidence against a mode",
        check=positive,
    )
    commit_probability: float = key(
        0.99,
        doc="the mode is a contact where anything is touched with this probability, and was likely a block before; "
        "larger names contacts later, smaller names some that are none in fast motion",
        check=probability,
    )
    commit_time: float = key(
        0.1, doc="the mode is a contact that has been likelier than free space for this long", unit="s", check=positive
    )
    commit_significance: float = key(
        1e-4,
        doc="a contact is named once a test of this significance rejects that its force is zero, or that free space "
        "has as much friction; larger names small touches earlier, and friction",
        check=probability,
    )
    published_probability: float = key(
        1e-4, doc="a filter less probable than this is left out of the published mixture", check=positive
    )
    hypotheses: int | None = key(
        None,
        check=positive,
        doc="filters per combination of closed contacts, closed at different times; null: one with measured "
        "elastic deflection, three with torque alone",
    )
    hypothesis_interval: float = key(
        0.1,
        doc="interval after which the least probable of them restarts; the memory of free space has steps of it too",
        unit="s",
        check=positive,
    )
    settling: float = key(
        0.05,
        doc="time after a doubt, a gap or a start in motion before estimates are valid",
        unit="s",
        check=non_negative,
    )
    block: float = key(
        0.01,
        doc="samples are averaged over this before an update; tests that need blocks in a row count them",
        unit="s",
        check=positive,
    )
    gate: float = key(
        3.0,
        doc="an innovation beyond this many standard deviations is an outlier: its noise is raised until it fits",
        check=positive,
    )
    max_stiffness_step: float = key(
        0.7,
        doc="largest change of the stiffness's logarithm by one measurement that counts as linear: a larger rise is "
        "one of the stiffness itself, a larger fall is cut off",
        check=positive,
    )
    stiffness_way: float = key(
        0.07,
        doc="motion along a contact's normal within a second, over its depth, from which on an update of the stiffness "
        "counts in full, once that is better known than at touch; less motion counts for a part. The same holds for "
        "the point where joint friction is in the torque",
        check=positive,
    )
    slip_length: float = key(
        2e-4,
        doc="way of the tool after which friction opposes it; more than the noise of the tool's position",
        unit="m",
        check=positive,
    )
    position_deadband: float = key(
        4.0,
        doc="motion of the tool along a contact's normal, to and fro within this many standard deviations of its "
        "position by the encoders' noise, shows no stiffness",
        check=non_negative,
    )
    moving_before_start: float = key(
        0.1,
        doc="an arm that moves at its first sample is assumed to have moved like that for this long: its friction "
        "has that direction",
        unit="s",
        check=non_negative,
    )
    unknown: UnknownContactSettings = key(
        UnknownContactSettings(), doc="contact of unknown place and direction, in addition to the contacts"
    )
    mismatch: MismatchSettings = key(MismatchSettings(), doc="test for a disagreement of model and data")

    def __post_init__(self) -> None:
        names = [c.name for c in self.contacts]
        if not 1 <= len(names) <= 4:
            raise ConfigError(f"key 'contacts' has {len(names)} entries, expected one to four")
        if len(set(names)) != len(names):
            raise ConfigError(f"contacts need different names, found {names}")
        if UNKNOWN in names:
            raise ConfigError(f"a contact is named '{UNKNOWN}', as the mode of unknown contact is; name it otherwise")
        _check_modes(self.modes, names)

    @property
    def has_unknown(self) -> bool:
        """Whether there is a mode of unknown contact: one is asked for, and the arm may be free."""
        return self.unknown.filters > 0 and (self.modes is None or [] in self.modes)


def _check_modes(modes: list[list[str]] | None, names: list[str]) -> None:
    """Raise ConfigError where ``modes`` are no different combinations of the contacts ``names``."""
    if modes is not None and not modes:
        raise ConfigError("key 'modes' is empty; list at least one combination, [] being free space")
    for mode in modes or []:
        for name in mode:
            if name not in names:
                raise ConfigError(
                    f"key 'modes' names the contact '{name}', which is not in 'contacts' ({', '.join(names)})"
                )
        if len(set(mode)) != len(mode):
            raise ConfigError(f"key 'modes' has a mode that names a contact twice: {mode}")
    if len({frozenset(mode) for mode in modes or []}) != len(modes or []):
        raise ConfigError("key 'modes' lists the same combination twice")


def run_time_inputs(settings: ImmSettings, actuators: ActuatorSettings) -> dict[str, np.ndarray]:
    """Return the inputs of generated code that settings become, flat arrays by name.

    What has the name of its key is that key; the others are derived here. No value of a setting is in the code.

    Args:
        settings: of the filter.
        actuators: of the robot.
    """
    elastic, friction = actuators.elastic, actuators.friction
    n, contacts, unknown = len(friction.viscous), settings.contacts, settings.unknown
    sources: tuple[tuple[object, str], ...] = (
        (settings, "block gate max_stiffness_step stiffness_way least_probability slip_length position_deadband"),
        (friction, "viscous viscous_std asymmetry asymmetry_std torque_scale"),
        (actuators, "friction_error stop_error velocity_noise noise_time max_noise_ratio load_blocks deadband_noise"),
        (actuators, "velocity_deadband disturbance_speed"),
        (elastic, "transmission_error velocity_delay hysteresis"),
    )
    same_name = {name: getattr(source, name) for source, names in sources for name in names.split()}
    derived = {
        "deadband": [actuators.deadband] * n,
        "torque_variance": np.square(actuators.torque_noise),
        "elastic_variance": elastic.noise**2,
        # The configured noise of the elastic channel has the usual encoder noise in it, for which the deadband was
        # chosen.
        "usual_noise": (actuators.deadband / actuators.deadband_noise) ** 2,
        # A wrong torque scale has an error proportional to the torque, as the model has.
        "model_error": np.hypot(actuators.model_error, friction.torque_scale_std),
        "coulomb_prior": friction.coulomb,
        "presliding_length": (presliding := np.maximum(friction.presliding, 1e-6)),  # [rad] an encoder's resolution
        "presliding_spread": friction.presliding_std / presliding,
        "joint_stiffness": elastic.stiffness,
        "touch": [float(isinstance(c.rest, str)) for c in contacts],
        "push_variance": np.square([unknown.force_random_walk] * 3 + [unknown.torque_random_walk] * 3),
        "relative_variance": unknown.relative_random_walk**2,
        "normal_variance": np.square([c.normal_random_walk for c in contacts]),
        "geometry_from_torque": [float(c.geometry_from_torque) for c in contacts],
        "depth_error": [c.depth_error for c in contacts],
        "law_variance": np.square([c.law_error for c in contacts]),
        "depth_variance": np.square([c.stiffness_depth_walk for c in contacts]),
        "unit_stiffness": unknown.stiffness,
        "push_speed": unknown.speed,
        "link_share": unknown.link_share,
        "birth_time": unknown.birth_time,
        "birth_time_first": unknown.birth_time_first,
        "wrench_variance": unknown.wrench_variance,
    }
    return {name: np.array(value, float).reshape(-1) for name, value in (same_name | derived).items()}
