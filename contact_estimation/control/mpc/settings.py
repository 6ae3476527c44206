"""Settings of a contact task and its controllers: one YAML per task, ``mpc_*.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contact_estimation.contact import ContactSettings
from contact_estimation.control.impedance import ImpedanceSettings
from contact_estimation.control.mpc.task_checks import check_task
from contact_estimation.settings import key, load_task, non_negative, positive, probability

#: Solvers by name; see :func:`contact_estimation.control.mpc.solver.make_solver`.
SOLVERS = ("rti", "sqp", "ipopt")


@dataclass(frozen=True, kw_only=True)
class CostWeights:
    """Weights of the stage cost (paper 2, eq. 30): weight * ||residual||^2."""

    velocity: float = key(doc="Q_v on the TCP's velocity", unit="s^2/m^2", check=non_negative)
    angular_velocity: float = key(0.01, doc="on the TCP's angular velocity", unit="s^2/rad^2", check=non_negative)
    force: list[float] = key(doc="Q_f on the force error per base axis", unit="1/N^2", check=non_negative, length=3)
    force_rate: float = key(
        0.0,
        doc="on the rate of the contact force; a force error then decays no faster than the root of this over Q_f, "
        "which keeps the loop off the resonances of an arm with elastic joints on a stiff surface; 0: without",
        unit="s^2/N^2",
        check=non_negative,
    )
    position: list[float] = key(
        [0.0, 0.0, 0.0], doc="on the position error per base axis", unit="1/m^2", check=non_negative, length=3
    )
    spring: float = key(
        1e-4,
        doc="on the spring force beyond the wanted force; above 0, or the control is not determined",
        unit="1/N^2",
        check=positive,
    )
    attitude: float = key(
        1.0, doc="on the attitude error, where the orientation is controlled", unit="1/rad^2", check=non_negative
    )
    moment: float = key(
        1e-3, doc="on the spring moment, where the orientation is controlled", unit="1/(Nm)^2", check=positive
    )
    joint_margin: float = key(100.0, doc="on joints within the margin of a limit", unit="1/rad^2", check=non_negative)
    joint_torque: float = key(
        1e4, doc="on joint torque beyond torque_share of its limit, over that limit", check=non_negative
    )


@dataclass(frozen=True, kw_only=True)
class SupervisionSettings:
    """When a contact controller may no longer be trusted, and what it does then."""

    max_age: float = key(0.06, doc="an estimate older than this is stale", unit="s", check=positive)
    deadline: float | None = key(
        None,
        doc="a solve that took longer is late and its result is not used; null: one period",
        unit="s",
        check=positive,
    )
    patience: int = key(
        2, doc="ticks in a row without a usable estimate or plan that follow the remaining plan", check=non_negative
    )
    recover_time: float = key(
        0.1,
        doc="after holding, estimates must be good for this long before the task continues",
        unit="s",
        check=positive,
    )
    resume_distance: float = key(
        0.01,
        doc="after holding, a task whose tool was moved by more than this continues only when activated again; what "
        "the relaxed spring lets it give way does not count",
        unit="m",
        check=positive,
    )
    resume_angle: float = key(
        0.1,
        doc="after holding, a task whose tool was turned by more than this continues only when activated again; what "
        "the spring of the attitude turns it back does not count",
        unit="rad",
        check=positive,
    )
    max_outage: float = key(
        2.0,
        doc="after a longer time without a plan, the task continues only when activated again",
        unit="s",
        check=positive,
    )
    max_speed: float = key(0.4, doc="largest speed of the TCP", unit="m/s", check=positive)
    max_travel: float = key(0.3, doc="largest distance of the TCP from where the task began", unit="m", check=positive)
    force_margin: float = key(
        0.97,
        doc="share of max_force the plan may use, so that motion between two solves stays inside",
        check=probability,
    )
    overload: float = key(
        1.2,
        doc="largest contact force over the target force; it limits the push and the energy of an approach",
        check=positive,
    )
    unexplained: float = key(
        0.3,
        doc="share of the target force, at least 3 N, by which the spring may push more than the estimated force "
        "explains, beside what motion needs: friction and gravity error, or an estimate that is too low",
        check=non_negative,
    )
    ringing: float = key(
        0.2,
        doc="share of the target force, at least 1 N, by which the force swings where the loop is not stable: after "
        "six swings within a second the controller holds",
        check=positive,
    )
    loss_force: float = key(
        0.2, doc="a contact whose force is below this share of the target force is lost", check=probability
    )
    loss_time: float = key(0.04, doc="... for this long", unit="s", check=positive)
    made_force: float = key(
        0.5,
        doc="share of the target force from which a contact counts as made; a smaller force of an improbable contact "
        "is a loss",
        check=probability,
    )
    loss_probability: float = key(
        0.5,
        doc="probability below which a contact is open; larger answers sooner, also to a doubt of the observer",
        check=probability,
    )
    loss_speed: float = key(
        0.05,
        doc="a tool that sinks faster, along the push, while the force falls has lost its contact; at twice this speed "
        "whatever the force",
        unit="m/s",
        check=positive,
    )
    loss_window: float = key(
        0.08, doc="time over which sinking is measured; shorter answers sooner, also to noise", unit="s", check=positive
    )
    loss_fall: float = key(
        0.35,
        doc="share of the target force by which the force of a sinking tool falls within that time where nothing is "
        "below it",
        check=probability,
    )
    on_loss: str = key(
        "hold",
        doc="answer to a lost contact: hold where it was lost, search along the push, retract against it, or return: "
        "retract, go back to where the tool pressed before, search there, and follow the path the other way",
        choices=("hold", "search", "retract", "return"),
    )
    search_speed: float = key(0.02, doc="speed of a search and of a retreat", unit="m/s", check=positive)
    search_travel: float = key(0.05, doc="distance after which a search ends and holds", unit="m", check=positive)
    retract_distance: float = key(0.03, doc="distance of a retreat", unit="m", check=positive)
    return_distance: float = key(0.02, doc="distance of a return, across the push", unit="m", check=positive)


@dataclass(frozen=True, kw_only=True)
class PiGains:
    """Gains of the PI force controller."""

    proportional: float = key(0.5, doc="push per force error", unit="N/N", check=non_negative)
    integral: float = key(5.0, doc="growth of the push per force error", unit="1/s", check=non_negative)


@dataclass(frozen=True, kw_only=True)
class ForceAdmittanceGains:
    """Gain of the force admittance."""

    time: float = key(
        0.15,
        doc="a force error decays within this time; the damping is this times the stiffness of contact and impedance "
        "in series",
        unit="s",
        check=positive,
    )


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """iCEM, the sampling warm start (Pinneri et al. 2020)."""

    samples: int = key(64, doc="samples per iteration", check=positive)
    iterations: int = key(10, doc="iterations", check=positive)
    elites: int = key(10, doc="best samples the distribution is fitted to", check=positive)
    exponent: float = key(2.0, doc="colour of the noise over the horizon: 0 white, 2 slow", check=non_negative)
    std: float = key(0.5, doc="initial standard deviation, as a share of the force limit", check=positive)
    momentum: float = key(0.1, doc="share of the old mean and deviation kept in an update", check=probability)


@dataclass(frozen=True, kw_only=True)
class MpcSettings:
    """The contact-aware MPC (paper 2, section 5)."""

    horizon: int = key(15, doc="number of stages H", check=positive)
    dt: float = key(0.04, doc="length of a stage", unit="s", check=positive)
    rate: float = key(100.0, doc="solves per second", unit="Hz", check=positive)
    solver: str = key(
        "rti",
        doc="rti: one Gauss-Newton SQP iteration per tick; sqp: iterations until the plan converges; ipopt: an older "
        "name of sqp",
        choices=SOLVERS,
    )
    orientation: bool = key(False, doc="control the equilibrium's orientation as well")
    warm_start: str = key(
        "previous",
        doc="previous: the last solution; icem: sampling where the plan's cost jumped",
        choices=("previous", "icem"),
    )
    impedance: ImpedanceSettings = key(
        doc="the impedance controller under the MPC (eq. 26): the same numbers as its own"
    )
    weights: CostWeights = key(doc="weights of the cost")
    contacts: list[ContactSettings] = key(
        doc="contacts of the model, named as the estimator names them; an estimate replaces their parameters"
    )
    modes: dict[str, list[str]] = key(
        {},
        doc="contact modes of the expected cost: mode name to the names of its closed contacts; "
        "empty: one mode with every contact closed",
    )
    force: list[float] = key(
        doc="target contact force F_d of the environment ON the robot, base axes", unit="N", length=3
    )
    path: list[float] = key(
        [0.0, 0.0, 0.0], doc="displacement of the position target from where the task begins", unit="m", length=3
    )
    turn: list[float] = key(
        [0.0, 0.0, 0.0], doc="rotation vector of the attitude along the path, base axes", unit="rad", length=3
    )
    path_time: float = key(
        4.0, doc="time to go through path and turn once, smooth at both ends", unit="s", check=positive
    )
    path_back: bool = key(True, doc="they are then followed back, and again; otherwise they end there")
    disturbance_time: float = key(
        0.3,
        doc="time constant of the disturbance estimate (friction, gravity error), which removes the offset of the "
        "force",
        unit="s",
        check=positive,
    )
    rest_time: float = key(
        0.015,
        doc="time constant that smooths the place of a contact; shorter takes an estimate over at once, also the part "
        "of a commanded step that an observer takes for force: commands may then ring from tick to tick",
        unit="s",
        check=non_negative,
    )
    rest_velocity_time: float = key(
        0.06,
        doc="time constant of the velocity at which the plan lets a contact's place move on; shorter follows a moving "
        "surface or a slope sooner, and passes on more of the estimate's noise; on a contact softer than 1 kN/m "
        "longer, by the root of their ratio",
        unit="s",
        check=positive,
    )
    explained_force: float = key(
        0.8,
        doc="share of the felt force that the estimate's contact must have for its stiffness to replace the last one: "
        "a wrist sensor feels what an observer that was restarted on a contact does not",
        check=probability,
    )
    force_deadband: float = key(
        0.0,
        doc="once the force is as wanted, the equilibrium rests along the push until they differ by more; for a force "
        "without a sensor, whose error friction of gears changes with every motion; a sensed one is always controlled, "
        "and so is every one with 0",
        unit="N",
        check=non_negative,
    )
    joint_margin: float = key(
        0.05, doc="distance from a joint limit where the cost begins to push back", unit="rad", check=non_negative
    )
    torque_share: float = key(
        0.9,
        doc="share of a joint's effort limit that gravity and the impedance's springs may use before the cost begins "
        "to push back",
        check=positive,
    )
    safety: SupervisionSettings = key(SupervisionSettings(), doc="limits and fallback")
    sampling: SamplingSettings = key(SamplingSettings(), doc="the sampling warm start")
    pi: PiGains = key(PiGains(), doc="gains of controller pi")
    admittance: ForceAdmittanceGains = key(ForceAdmittanceGains(), doc="gain of controller admittance")

    def __post_init__(self) -> None:
        check_task(self)

    def closed_contacts(self) -> dict[str, list[int]]:
        """Mode name to indices of its closed contacts, in the order of the modes."""
        names = [contact.name for contact in self.contacts]
        modes = self.modes or {"contact": names}
        return {mode: [names.index(name) for name in closed] for mode, closed in modes.items()}


def load_mpc_settings(name: str, folder: Path | str | None = None) -> MpcSettings:
    """Return a shipped task by name (``mpc_plane_fr3``, ...) or a YAML file by path.

    Args:
        name: of the task, or path.
        folder: profile of a robot; its tasks come first.

    Raises:
        ConfigError: unknown name, or an error in the file.
    """
    return load_task(MpcSettings, "mpc", name, folder)
