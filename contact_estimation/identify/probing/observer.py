"""The probing estimator as an observer: joint positions and torque or wrench in, contact geometry and dynamics out.

It runs in the estimator node. In free space it learns the offset (tare) of the joint torque, or of a measured wrench.
At the first touch it starts the filter from the configured guess. Then it feeds the filter with block means at a low
rate. The paper assumes slow motion without inertial forces; here the arm's inertial torque is subtracted.

The estimate holds while the probe slides as modelled. It is invalid, with the reason, until the probe has slid, while
the wrench pulls at the surface, and where the filter's predictions fail.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import ObserverSettings
from contact_estimation.identify.probing.estimate import ProbingEstimate, bound_problem
from contact_estimation.identify.probing.export import compliant_contact
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.joint_torque import TorqueBlock, tool_jacobian, torque_to_wrench
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel, frame_from_normal, homogeneous
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import joint_strength
from contact_estimation.settings import key, positive

#: Samples of the estimator over which :attr:`ProbingObserverSettings.gated_max` counts: a second at the default rate.
_RECENT = 25
_NO_WRENCH = (
    "no wrench was measured since the last update: publish it on the topic wrench, name a recording that has one, or "
    "set wrench: torque"
)


@dataclass(frozen=True, kw_only=True)
class ProbingObserverSettings(ObserverSettings):
    """The probing observer of paper 4 in space, with the wrench from joint torque."""

    observer: str = key("probing", doc="kind of observer", choices=("probing",))
    rate: float = key(25.0, doc="rate of the estimator; samples in between are averaged", unit="Hz", check=positive)
    tip: list[float] = key(doc="guess of the probe's tip", unit="m, TCP frame", length=3)
    wrench: str = key(
        "torque",
        choices=("torque", "measured"),
        doc="source of the wrench: joint torque, or a sensor (topic wrench of the node, wrench of a recording)",
    )
    normal: list[float] = key(doc="guess of the surface's outward normal, any length", unit="base axes", length=3)
    touch_force: float = key(5.0, doc="force above the tare that counts as the first touch", unit="N", check=positive)
    tare_time: float = key(
        0.5,
        doc="time constant with which the offset of torque or wrench is learnt before the touch",
        unit="s",
        check=positive,
    )
    torque_std: list[float] | None = key(
        None,
        doc="white error of the external torque of each joint, per averaged sample; null: this and "
        "probing.torque_bias_std are derived from the effort limits",
        unit="Nm",
        check=positive,
        length="joints",
    )
    gated_max: float = key(
        0.25, check=positive, doc="share of the last wrenches beyond the gate from which estimates are invalid"
    )
    probing: ProbingSettings = key(ProbingSettings(), doc="priors, noise, events and rule of the estimator")


class ProbingObserver:
    """Observer of a probed surface.

    Args:
        arm: the robot.
        settings: guess, noise, rate.
        name: name in reports.

    Raises:
        ConfigError: a list has not one entry per joint, or the normal is zero.
    """

    backend = "python"

    def __init__(self, arm: Arm, settings: ProbingObserverSettings, name: str = "probing") -> None:
        self.needs_wrench = settings.wrench == "measured"
        settings, torque_std = (settings, [1.0] * arm.n) if self.needs_wrench else _with_torque_errors(arm, settings)
        bias = settings.probing.torque_bias_std
        for what, count in (("torque_std", len(torque_std)), ("probing.torque_bias_std", len(bias) or arm.n)):
            if count != arm.n:
                raise ConfigError(f"{what} has {count} entries, but robot '{arm.name}' has {arm.n} joints")
        if self.needs_wrench and bias:
            raise ConfigError("probing.torque_bias_std belongs to wrench: torque; leave it out with wrench: measured")
        if not np.linalg.norm(settings.normal) > 0.0:
            raise ConfigError("normal is zero; give the rough direction out of the surface, for example [0, 0, 1]")
        self.name, self.arm, self.settings = name, arm, settings
        self._variance, self._slow_variance = np.square(torque_std), np.square(bias)
        self._samples = TorqueBlock(arm)
        self._model = SpatialModel(*settings.probing.bounds(), [frame_from_normal(settings.normal)])
        self._filter = ProbingFilter(self._model, settings.probing)
        self._gated: deque[bool] = deque(maxlen=_RECENT)

    def reset(self, t: float, q: np.ndarray) -> None:
        """Forget everything; the arm is at rest at ``q`` in free space."""
        n = self.arm.n
        self._t, self._touched, self._missing = float(t), False, self.needs_wrench
        self._q, self._dq, self._torque = np.array(q, dtype=float), np.zeros(n), np.zeros(n)
        self._tare, self._tared, self._wrench = np.zeros(6 if self.needs_wrench else n), 0.0, np.zeros(6)
        self._covariance = np.full((6, 6), np.nan)
        self._samples.reset()
        self._readings: list[np.ndarray] = []
        self._gated.clear()

    def take_wrench(self, wrench: np.ndarray) -> None:
        """Take a measured wrench (6,) of the environment ON the robot, TCP axes about the TCP [N, Nm]."""
        if self.needs_wrench:
            self._readings.append(np.array(wrench, dtype=float))

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample; every 1/rate the mean of the samples since goes to the estimator."""
        self._t += dt
        self._samples.add(dt, q, dq, tau)
        if self._samples.elapsed >= 1.0 / self.settings.rate - 1e-9:
            self._block(self._samples.elapsed)

    def _block(self, elapsed: float) -> None:
        """One update with the means of a block of ``elapsed`` [s]."""
        self._q, self._dq, signal = self._samples.take()
        jacobian, pose = tool_jacobian(self.arm, self._q), self._pose()
        to_wrench, white = np.eye(6), self._filter.wrench_noise
        if self.needs_wrench:
            self._missing = not self._readings
            if not self._missing:
                signal = np.mean(self._readings, axis=0)
                self._readings = []
                self._update(elapsed, signal, pose, jacobian, to_wrench, white)
            elif self._touched:
                self._filter.step(elapsed, pose, self._twist(pose, jacobian), None)
            self._torque = jacobian.T @ self._wrench
        else:
            to_wrench, white = torque_to_wrench(jacobian, self._variance)
            self._update(elapsed, signal, pose, jacobian, to_wrench, white)
            self._torque = signal - self._tare

    def _update(
        self,
        elapsed: float,
        signal: np.ndarray,
        pose: np.ndarray,
        jacobian: np.ndarray,
        to_wrench: np.ndarray,
        white: np.ndarray,
    ) -> None:
        """Tare, touch or filter with the mean of a block: torque (n,) or wrench (6,), ``to_wrench`` (6, n or 6)."""
        self._wrench = to_wrench @ (signal - self._tare)
        slow = np.diag(self._slow_variance) if len(self._slow_variance) else None
        if self._touched:
            bias_map = None if slow is None else to_wrench
            self._filter.step(elapsed, pose, self._twist(pose, jacobian), self._wrench, white, bias_map)
            self._gated.append(self._filter.gated)
            if len(self._filter.bias):  # what is reported is without the error that the filter has learnt
                slow = self._filter.bias_covariance
                self._wrench = self._wrench - to_wrench @ self._filter.bias
        elif self._tared >= self.settings.tare_time and np.linalg.norm(self._wrench[:3]) > self.settings.touch_force:
            start = self._model.start(self.settings.probing, pose, [self.settings.tip])
            self._filter.start(self._t, pose, *start)
            self._touched = True
        else:
            self._learn_tare(elapsed, signal)
            self._wrench = to_wrench @ (signal - self._tare)
        self._covariance = white if slow is None else white + to_wrench @ slow @ to_wrench.T

    def _twist(self, pose: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """Twist (6,) [m/s, rad/s] of a block in world axes, of its Jacobian in tool axes."""
        return np.concatenate([pose[:3, :3] @ part for part in (jacobian @ self._dq).reshape(2, 3)])

    def _learn_tare(self, elapsed: float, signal: np.ndarray) -> None:
        """Follow the mean of torque or wrench in the air: a plain mean at first, then exponential."""
        self._tared += elapsed
        share = elapsed / min(self._tared, self.settings.tare_time)
        self._tare = self._tare + min(share, 1.0) * (signal - self._tare)

    def _pose(self) -> np.ndarray:
        position, rotation = self.arm.tcp_pose(self._q)
        return homogeneous(rotation, position)

    def estimate(self) -> Estimate:
        """Return the estimate after the last block; the contact appears once the surface was touched."""
        pose = self._pose()
        force = pose[:3, :3] @ self._wrench[:3]
        closed = bool(np.linalg.norm(force) > self.settings.probing.contact_force_min)
        contacts: tuple[ContactState, ...] = ()
        mode, nis, dof, reason = "free", float("nan"), 0, _NO_WRENCH if self._missing else ""
        if self._touched:
            probing = self._filter.estimate()
            link = self.arm.tool_link if closed else ""
            contacts = (compliant_contact(probing, self._model, pose, probability=float(closed), link=link),)
            nis, dof = probing.nis, probing.nis_dof
            mode = "free" if not closed else ("slide" if probing.used else "stick")
            reason = reason or self._doubt(probing, force)
        modes = {word: float(word == mode) for word in ("free", "stick", "slide")}
        return Estimate(
            t=self._t,
            q=self._q.copy(),
            dq=self._dq.copy(),
            tau_ext=self._torque.copy(),
            force_base=force,
            force_tcp=self._wrench[:3].copy(),
            torque_tcp=self._wrench[3:].copy(),
            force_covariance=self._covariance[:3, :3].copy(),
            contacts=contacts,
            nis=nis,
            nis_dof=dof,
            mode=mode,
            modes=modes,
            valid=not reason,
            reason=reason,
        )

    def _doubt(self, probing: ProbingEstimate, force: np.ndarray) -> str:
        """Say why the estimate must not be used; ``force`` (3,) [N] in base axes."""
        pull = float(-force @ self._model.normal(probing.free))
        if pull > self.settings.touch_force:
            return (
                f"the wrench pulls at the surface by {pull:.0f} N, which no contact does: its offset has changed since "
                "the tare (joint friction turned); go into free space, wait for tare_time, and reset"
            )
        if unseen := self._filter.unlearnt():
            return f"{' and '.join(unseen)} not learnt yet; slide the probe forth and back, lean it and press"
        if sum(self._gated) > self.settings.gated_max * _RECENT:
            return (
                f"{sum(self._gated)} of the last {len(self._gated)} wrenches lie far off the prediction (NIS "
                f"{probing.nis:.0f} of {probing.nis_dof}): surface, tip or noise are not as the settings say"
            )
        return bound_problem(probing, self.settings.probing)

    def probing(self) -> ProbingEstimate | None:
        """Return the probing estimate itself (friction and intervals included), or None before the first touch."""
        return self._filter.estimate() if self._touched else None


def _with_torque_errors(arm: Arm, settings: ProbingObserverSettings) -> tuple[ProbingObserverSettings, list[float]]:
    """Return the settings, and the white torque error per joint [Nm]; derived where the settings have none.

    A UR16e has 0.1 to 0.3 % of its effort limits as white error, 0.4 to 0.9 % as slow one.
    """
    if settings.torque_std is not None:
        return settings, settings.torque_std
    strength = joint_strength(arm)
    probing = settings.probing
    if not probing.torque_bias_std:
        probing = dataclasses.replace(probing, torque_bias_std=tuple(float(v) for v in 7e-3 * strength))
    return dataclasses.replace(settings, probing=probing), [float(v) for v in 2e-3 * strength]
