"""What every observer is: reset, step, estimate; and what an estimate carries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class ContactState:
    """Estimate of one compliant contact (papers 1/2, eq. 4: F = K^T (x_rest - x)).

    ``stiffness`` is the stiffness vector K [N/m] in base axes: its direction is the contact normal, its norm the
    stiffness. ``rest`` is x_rest [m] in the base frame, ``point_tcp`` the contact point on the robot [m] in the TCP
    frame, ``point_base`` the same point [m] in the base frame. ``covariance`` (9, 9) is that of [stiffness; rest;
    point_tcp]; zero rows belong to parameters that are not estimated. ``probability`` is the belief that the contact is
    closed.

    ``parameters`` names what the observer estimates of the contact and ``remaining`` says of each how much of its prior
    standard deviation is left since the contact closed (1: nothing was learnt). ``unseen`` names those whose variance
    is still above half its prior: their values are the settings', not the motion's. All three are empty where an
    observer cannot tell.
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


@dataclass(frozen=True)
class Estimate:
    """What an observer knows after a sample.

    ``t`` [s] is the sample's stamp. ``force_base``/``force_tcp`` (3,) [N] and ``torque_tcp`` (3,) [Nm, about the TCP,
    TCP axes] are exerted by the environment ON the robot; ``force_covariance`` (3, 3) [N^2] is in TCP axes. ``tau_ext``
    (n,) [Nm] is the external joint torque. ``nis`` is the normalised innovation squared with ``nis_dof`` degrees of
    freedom (NaN where the observer has none). ``mode`` names the contact mode decided upon and ``modes`` maps every
    mode to its belief. ``valid`` is False when the numbers must not be used; ``reason`` then says why.
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

    def marked(self, t: float, valid: bool, reason: str) -> Estimate:
        """Copy with another stamp and validity; what ``dataclasses.replace`` does, at an eighth of its time."""
        copy = object.__new__(Estimate)
        copy.__dict__.update(self.__dict__, t=t, valid=valid, reason=reason)
        return copy

    @property
    def stiffness(self) -> float:
        """Norm of the first contact's stiffness vector [N/m], or NaN without one."""
        return float(np.linalg.norm(self.contacts[0].stiffness)) if self.contacts else float("nan")


@runtime_checkable
class Observer(Protocol):
    """An observer of contact. Samples reach it through a :class:`~contact_estimation.filters.stream.SampleStream`,
    which has already checked shape, finiteness and time; an observer therefore never sees a NaN or a step back in
    time."""

    #: Name under which the observer is chosen (``--observer``) and plotted.
    name: str
    #: What computes it: ``c`` (generated and compiled), ``vm`` (CasADi's virtual machine), ``python``.
    backend: str

    def reset(self, t: float, q: np.ndarray) -> None:
        """Forget everything; the arm is at rest at ``q`` (n,) [rad] at time ``t`` [s]."""

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take the sample (``q`` [rad], ``dq`` [rad/s], ``tau`` [Nm], each (n,)) that came ``dt`` [s] after the last
        one."""

    def estimate(self) -> Estimate:
        """The estimate after the last sample (``t`` is the time since reset plus the reset's time)."""
