"""The observer protocol (reset, step, estimate) and the estimate it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from contact_estimation.exceptions import ConfigError, shape_error

#: A contact is closed from this probability on.
CLOSED = 0.5
#: Nothing is touched where free space has more than this probability.
FREE = 0.5


@dataclass(frozen=True)
class ContactPlace:
    """Posterior of the place of an unknown contact on the arm, from external joint torque.

    Attributes:
        links: links with their probabilities, the most probable one first; empty where no place is estimated.
        point: mean (3,) [m] in the base frame.
        covariance: (3, 3) [m^2] of it, base axes.
        force: mean force (3,) [N] on the robot, base axes; where no place is estimated, that of the wrench at
            the TCP.
        region: points (k, 3) [m] in the base frame that together hold the contact with 90 % probability (setting
            ``region_probability``), the most probable one first.
        reason: why no place is estimated.
    """

    links: dict[str, float] = field(default_factory=dict)
    point: np.ndarray = field(default_factory=lambda: np.full(3, np.nan))
    covariance: np.ndarray = field(default_factory=lambda: np.full((3, 3), np.nan))
    force: np.ndarray = field(default_factory=lambda: np.full(3, np.nan))
    region: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    reason: str = ""

    @property
    def link(self) -> str:
        """Name of the most probable link, empty where no place is estimated."""
        return next(iter(self.links), "")

    @property
    def spread(self) -> float:
        """Standard deviation of the place [m]."""
        return float(np.sqrt(np.trace(self.covariance)))


@dataclass(frozen=True)
class ContactState:
    """Estimate of one compliant contact (papers 1/2, eq. 4: F = K^T (x_rest - x)).

    Fields after the covariance are empty if an observer does not estimate them. A contact of unknown place and
    direction has no stiffness and no rest position (NaN), and no point if its place is too uncertain.

    Attributes:
        name: of the contact.
        probability: that the contact is closed.
        stiffness: stiffness vector K (3,) [N/m] in base axes: its direction is the contact normal, its norm the
            stiffness.
        rest: x_rest (3,) [m] in the base frame.
        point_tcp: contact point on the robot (3,) [m] in the TCP frame.
        point_base: the same point (3,) [m] in the base frame.
        covariance: (9, 9) of [stiffness; rest; point_tcp]; zero rows belong to parameters that are not estimated.
        parameters: names of what the observer estimates of the contact.
        remaining: per parameter its posterior over its prior standard deviation since the contact closed; 1: nothing
            was learnt.
        unseen: parameters that are weakly observed: their variance is above half its prior, so that their values are
            the settings', not the motion's.
        law: name of the contact law.
        law_parameters: names of the law's own parameters and their values [SI].
        link: name of the link that is touched.
        place: of an unknown contact: everything known of where it is.
    """

    name: str
    probability: float
    stiffness: np.ndarray
    rest: np.ndarray
    point_tcp: np.ndarray
    point_base: np.ndarray
    covariance: np.ndarray
    parameters: tuple[str, ...] = ()
    remaining: np.ndarray = field(default_factory=lambda: np.zeros(0))
    unseen: tuple[str, ...] = ()
    law: str = ""
    law_parameters: dict[str, float] = field(default_factory=dict)
    link: str = ""
    place: ContactPlace | None = None

    @property
    def closed(self) -> bool:
        """Whether the contact is closed; False where an observer does not know."""
        return self.probability >= CLOSED

    @property
    def normal(self) -> np.ndarray:
        """Unit vector (3,) in base axes along which the environment pushes; NaN where the contact is not closed.

        Of a known contact the direction of K. Of an unknown one the direction of its force: joint torque determines
        it better than the surface under it, whose outward normal is opposite within the friction cone.
        """
        vector = self.stiffness if self.place is None else self.place.force
        norm = float(np.linalg.norm(vector)) if self.closed else 0.0
        return vector / norm if norm > 0.0 else np.full(3, np.nan)


@dataclass(frozen=True)
class Estimate:
    """What an observer knows after a sample. Forces and torques are exerted by the environment ON the robot.

    Attributes:
        t: stamp of the sample [s].
        q: joint positions (n,) [rad].
        dq: joint velocities (n,) [rad/s].
        tau_ext: external joint torque (n,) [Nm].
        force_base: (3,) [N] in base axes.
        force_tcp: (3,) [N] in TCP axes.
        torque_tcp: (3,) [Nm] about the TCP, TCP axes.
        force_covariance: (3, 3) [N^2] in TCP axes.
        contacts: per contact its estimate.
        nis: normalised innovation squared; NaN where the observer has none.
        nis_dof: its degrees of freedom.
        mode: the contact mode committed to.
        modes: every mode and its probability.
        valid: False when the numbers must not be used.
        reason: why they must not.
        unexplained: joint torque (n,) [Nm] that neither the arm's model, its friction nor the external torque explains;
            empty for observers that call all of it external, or take the torque as an input.
        mismatch: what shows that model and data disagree, and the likely cause; empty while they agree.
    """

    t: float
    q: np.ndarray
    dq: np.ndarray
    tau_ext: np.ndarray
    force_base: np.ndarray
    force_tcp: np.ndarray
    torque_tcp: np.ndarray
    force_covariance: np.ndarray
    contacts: tuple[ContactState, ...] = ()
    nis: float = float("nan")
    nis_dof: int = 0
    mode: str = "unknown"
    modes: dict[str, float] = field(default_factory=dict)
    valid: bool = True
    reason: str = ""
    unexplained: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mismatch: str = ""

    def marked(self, t: float, valid: bool, reason: str, mismatch: str) -> Estimate:
        """Return a copy with another stamp, validity and mismatch; eight times as fast as ``dataclasses.replace``.

        Args:
            t: [s].
            valid: whether the numbers may be used.
            reason: why not, else empty.
            mismatch: contradiction of model and data, else empty.
        """
        copy = object.__new__(Estimate)
        copy.__dict__.update(self.__dict__, t=t, valid=valid, reason=reason, mismatch=mismatch)
        return copy

    def with_contacts(self, contacts: tuple[ContactState, ...]) -> Estimate:
        """Return a copy with other contacts."""
        copy = object.__new__(Estimate)
        copy.__dict__.update(self.__dict__, contacts=contacts)
        return copy

    @property
    def contact_link(self) -> tuple[str, ...]:
        """Per contact the name of the link that is touched, empty for none."""
        return tuple(contact.link for contact in self.contacts)

    @property
    def stiffness(self) -> float:
        """Norm of the first contact's stiffness vector [N/m], or NaN without one."""
        return float(np.linalg.norm(self.contacts[0].stiffness)) if self.contacts else float("nan")


def check_estimate(estimate: Any, observer: str, n: int) -> None:
    """Refuse what an observer of another package gives as its estimate of an arm with n joints.

    Args:
        estimate: what its ``estimate()`` returned.
        observer: its name.
        n: number of joints.

    Raises:
        ConfigError: no :class:`Estimate`, or an array of the wrong shape.
    """
    if not isinstance(estimate, Estimate):
        raise ConfigError(f"observer '{observer}': estimate() returned {estimate!r}; return an Estimate")
    shapes: dict[str, tuple[int, ...]] = {"q": (n,), "dq": (n,), "tau_ext": (n,), "force_covariance": (3, 3)}
    shapes |= dict.fromkeys(("force_base", "force_tcp", "torque_tcp"), (3,))
    for name, expected in shapes.items():
        found = np.shape(getattr(estimate, name))
        if found != expected:
            raise shape_error(f"observer '{observer}'", f"{name} of its estimate", found, expected)


class Innovation(NamedTuple):
    """Innovation of one measurement update.

    Attributes:
        normalised: (channels,) innovations over their standard deviations: independent, of variance one, if the noise
            is right.
        log_likelihood: natural logarithm of the probability density of the measurement.
    """

    normalised: np.ndarray
    log_likelihood: float


@runtime_checkable
class Observer(Protocol):
    """An observer of contact.

    Samples reach it through a :class:`~contact_estimation.filters.stream.SampleStream`, which has already checked
    shape, finiteness and time: an observer never sees a NaN or a step back in time.

    An observer may also have some of these attributes, which change what is done with it:

    - ``settling`` [s]: time after a reset in motion before its estimates are valid; default that of the sensor set.
    - ``keeps_rotors``, of the class: it gets the arm with its reflected rotors also where the torque is measured behind
      the gears.
    - ``uses_sensors``, of the class: its constructor takes the :class:`~.settings.SensorSettings` as ``sensors``.
    - ``needs_wrench`` and ``take_wrench(wrench)``: it takes a measured wrench (6,) before each sample.
    - ``external_torque``, an :class:`~contact_estimation.filters.imm.unknown.ExternalTorque`: the link and the place of
      an unknown contact are estimated from it (:mod:`.localization`).
    - ``known_load``: external torque (n,) [Nm] of a payload, always the same array; the signal monitor takes it for a
      part of the arm's own torque.
    - ``facts()``: lines for diagnostics by name.
    - the methods of :class:`KalmanObserver`, of :class:`ResumingObserver`, of :class:`~.consistency.GivenContacts` (an
      observer that knows only the contacts it was given), or of :class:`~.estimate_row.RowObserver` (one that gives its
      numbers without objects).

    Attributes:
        name: under which the observer is chosen (``--observer``) and plotted.
    """

    name: str

    @property
    def backend(self) -> str:
        """What computes it: ``c`` (generated and compiled), ``vm`` (CasADi's virtual machine), ``python``."""

    def reset(self, t: float, q: np.ndarray) -> None:
        """Restart; the arm is at rest at ``q`` (n,) [rad] at time ``t`` [s].

        An observer may keep what a restart cannot change, as a payload, if ``t`` is later than the last sample. From
        time 0 on it forgets everything.
        """

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take a sample.

        The arrays belong to the stream, which writes the next sample into them: copy what is kept, write into none.

        Args:
            dt: time since the last sample [s].
            q: joint positions (n,) [rad].
            dq: joint velocities (n,) [rad/s].
            tau: joint torques (n,) [Nm].
        """

    def estimate(self) -> Estimate:
        """Return the estimate after the last sample; ``t`` is the reset's time plus the time since then."""


@runtime_checkable
class ResumingObserver(Observer, Protocol):
    """An observer that knows more behind a gap than at its first sample."""

    def resume(self, t: float, q: np.ndarray, dq: np.ndarray, unseen: float) -> None:
        """Start behind a time without samples, in place of ``reset``.

        Args:
            t: [s].
            q: joint positions (n,) [rad].
            dq: joint velocities (n,) [rad/s].
            unseen: the time without samples [s]; 0 where doubts about them proved wrong.
        """


@runtime_checkable
class KalmanObserver(Observer, Protocol):
    """An observer whose noise can be judged by its innovations.

    Attributes:
        channels: names of the measurement channels.
    """

    channels: list[str]

    @property
    def updated(self) -> float:
        """Time of the last update [s]."""

    def innovation(self) -> Innovation:
        """Return the innovation of the last update."""
