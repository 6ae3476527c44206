"""A payload that no tool describes: joint torque that turns with gravity, by Bayesian linear regression.

A load of mass m with its centre of mass at r in the flange's frame is an external joint torque

    tau_e = Y(q) pi,    pi = [m; m r],    Y = [J_v^T g, J_w^T (R e_k x g)],

with gravity g and the flange's Jacobian J and rotation R in base axes. Free of contact the torque of a block is then
y = Y pi - b - c s + noise, with torque bias b, Coulomb friction c and presliding states s of known prior. The posterior
of pi (Bishop, Pattern Recognition and Machine Learning, 2006, section 3.3) shows a payload where

- its mass differs from zero by the one-sided quantile of the normal distribution; below zero it is a tool that is named
  but not there, or lighter, by no more than what is named,
- the data are within the chi-square quantile of what the prior of pi, b and c predicts, and
- what an unknown contact is felt to push is as likely as a load's weight Y pi as it is as a force at the tool, each of
  its prior (Kass and Raftery, Bayes factors, 1995). It is felt with the friction that was learnt before; the prior of
  friction explains most pushes to the side as those of a load.

The data are forgotten within ``payload_memory``, and at once where they change. What may have been there since the
first sample is told as soon as the data need a mass: a payload, or a push that lasts. It is told until they have needed
none for ``payload_time``. What comes later is told after that time: most pushes are shorter.

At rest a payload and a steady push downwards have the same torque. A contact of stiffness k at a height h changes by
-k dh where the arm moves. A payload is therefore no contact where the regression of the vertical force on the height
excludes the softest k and allows zero; below zero the push moves an arm that gives way. Its torque Y pi is then left
out of the contact's, and what it misses is a bias. It ends where the data are explained without a mass. Where they need
another mass it is replaced, until they are explained by the one of before: a push that had lasted ends.

A torque that is scaled by a common factor looks like a load, too, as long as the arm keeps near one posture. It is one
once a Bayes factor says so: the rival has a torque s G(q), with gravity torque G and s of a prior of one, in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function, symbols
from contact_estimation.filters.chi_square import chi_square_survival
from contact_estimation.filters.gaussian import ZeroMeanGaussian, gaussian_survival
from contact_estimation.filters.imm.payload_change import PayloadChange
from contact_estimation.filters.imm.settings import MismatchSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings

#: [s] Data are collected over this before anything is judged.
_COLLECT = 1.0
#: Keeps a regression without samples defined.
_FEW = 1e-9
#: Parameters of a payload: its mass, and its first moment.
_PAYLOAD = 4


@dataclass(frozen=True)
class Payload:
    """A load behind the flange, beside the tool that is named.

    Attributes:
        mass: [kg]; below zero where that tool is not there, or lighter.
        mass_std: its standard deviation [kg].
        com: centre of mass (3,) [m] in the flange's frame.
        covariance: of mass and first moment (4, 4).
    """

    mass: float
    mass_std: float
    com: np.ndarray
    covariance: np.ndarray

    @property
    def parameters(self) -> np.ndarray:
        """Mass [kg] and first moment [kg m], pi (4,)."""
        return self.mass * np.append(1.0, self.com)


class FeltTorque(NamedTuple):
    """What an unknown contact is felt to push, beside the payload that is carried.

    Attributes:
        torque: (n,) [Nm].
        covariance: of it (n, n) [Nm^2], by friction and noise.
        push: prior covariance (n, n) [Nm^2] of a force at the tool.
    """

    torque: np.ndarray
    covariance: np.ndarray
    push: np.ndarray


class Separation(NamedTuple):
    """What distinguishes a load from friction and pushes in a block.

    Attributes:
        touched: something pushes that may be a table below the load.
        friction: k -> covariance (n, n) [Nm^2] of the friction of a time.
        noise: variance (n,) [Nm^2] of the block's torque.
        push: covariance (n, n) [Nm^2] of pushes.
    """

    touched: bool
    friction: Callable[[int], np.ndarray]
    noise: np.ndarray
    push: np.ndarray


class _RegressionSums:
    """Sums of a linear regression y = X pi over blocks, weighted by the inverse variance W of y.

    Args:
        size: number p of parameters.

    Attributes:
        matrix: X^T W X (p, p).
        vector: X^T W y (p,).
        square: y^T W y.
        samples: effective number of independent samples.
        time: [s] over which they were taken.
        vertical: (3, 3) sums of (1, h, F) times its transpose, with the vertical force F [N] at a height h [m].
    """

    def __init__(self, size: int) -> None:
        self.matrix, self.vector = np.zeros((size, size)), np.zeros(size)
        self.square = self.samples = self.time = 0.0
        self.vertical = np.zeros((3, 3))

    def add(self, other: _RegressionSums, keep: float) -> None:
        """Add what ``other`` knows, and keep a share of what was known."""
        self.matrix, self.vector = keep * self.matrix + other.matrix, keep * self.vector + other.vector
        self.square, self.samples = keep * self.square + other.square, keep * self.samples + other.samples
        self.vertical = keep * self.vertical + other.vertical
        self.time += other.time

    def with_slow_friction(self) -> _RegressionSums:
        """Return the sums for a friction disturbance with 1 + t / (2 T) independent samples in a time t."""
        found, factor = _RegressionSums(len(self.vector)), 1.0 + 1.0 / max(self.samples, 1e-9)
        found.matrix, found.vector = factor * self.matrix, factor * self.vector
        found.square, found.samples, found.time = factor * self.square, self.samples + 1.0, self.time
        return found

    def stiffness(self, variance: float) -> tuple[float, float]:
        """Return k [N/m] of F = F_0 - k h by linear regression, and its standard deviation; F has a ``variance``."""
        samples, moment, total = self.vertical[0] + [_FEW, 0.0, 0.0]
        spread = self.vertical[1, 1] - moment**2 / samples
        slope = (self.vertical[1, 2] - moment * total / samples) / max(spread, 1e-12)
        # As many independent samples of friction as in :meth:`with_slow_friction`.
        return -slope, math.sqrt(variance / max(spread * (1.0 + 1.0 / samples), 1e-12))

    def misfit(self, mean: np.ndarray, covariance: np.ndarray) -> float:
        """Return the chi-square of the data where the parameters are known with a mean and a covariance."""
        left = self.vector - self.matrix @ mean
        total = self.square - 2 * self.vector @ mean + mean @ self.matrix @ mean
        return float(total - left @ np.linalg.solve(np.linalg.inv(covariance) + self.matrix, left))

    def log_evidence(self, prior: np.ndarray) -> float:
        """Return the log density of the data, but for a constant; the parameters have mean zero, and a prior (p, p)."""
        spread = np.linalg.slogdet(np.eye(len(prior)) + prior @ self.matrix)[1]
        return -0.5 * (self.misfit(np.zeros(len(prior)), prior) + float(spread))


class PayloadTest:
    """Compares torque that is free of known contacts with that of a payload.

    Args:
        arm: the robot.
        actuators: prior of bias and friction, and noise.
        settings: prior of the payload, and how sure to be.

    Attributes:
        found: the payload, None while the torque shows none.
        carried: the payload that is no contact, None for none.
        relieved: the one that was carried until it went, for as long as it may be back at once.
        left: torque (n,) [Nm] beside load and friction, when :meth:`change` last changed what is carried.
        is_no_scale: the data have shown that what is carried is a load, and no torque that is scaled.
    """

    def __init__(self, arm: Arm, actuators: ActuatorSettings, settings: MismatchSettings) -> None:
        self._n, self._settings = arm.n, settings
        self._regressor = compile_built(build_regressor, arm)
        friction = actuators.friction
        self._known = np.array(friction.bias), np.array(friction.coulomb)
        load = [settings.payload_std] + [settings.payload_std * settings.payload_lever] * 3
        std = np.maximum(np.concatenate([friction.bias_std, friction.coulomb_std, load, [0.0]]), 1e-6)
        self._of_load = slice(2 * arm.n, 2 * arm.n + _PAYLOAD)
        self._prior = np.diag(np.square(std))
        std[self._of_load] = 1e-6
        self._unloaded = np.diag(np.square(std))
        std[-1] = 1.0
        self._scaled = np.diag(np.square(std))
        self._variance = np.square(actuators.torque_noise) + np.square(actuators.disturbance_std)
        self._gravity = float(np.linalg.norm(arm.settings.gravity))
        self._named = arm.tool.mass + arm.settings.tool_mass  # [kg] that may not be there
        self._model_error = actuators.model_error
        # To none or again, and to the one of before, each by two frictions.
        self._changes = [[PayloadChange(arm.n, settings.significance) for _ in range(2)] for _ in range(2)]
        self.left = np.zeros(arm.n)
        # Between two independent samples [s]. A disturbance that lasts longer is a bias, which has a prior of its own.
        self._correlation = min(2.0 * actuators.disturbance_time, settings.payload_correlation)
        self.reset()

    def reset(self, anew: bool = True) -> None:
        """Forget the data, and what is carried if the arm starts ``anew``."""
        self.found: Payload | None = None
        self._forget()
        self._forget_change()
        if anew:
            self.carried: Payload | None = None
            self.relieved: Payload | None = None
            self._former: Payload | None = None  # what is carried now has replaced it
            self._relieved_time, self._height = 0.0, math.inf  # no height is known to be above every table
            self.is_no_scale = False
            self._needed = 0.0  # what is there at the first sample is no short push
            self._at_start: Payload | None = None  # found then

    def _forget(self) -> None:
        self._past, self._now = _RegressionSums(len(self._prior)), _RegressionSums(len(self._prior))
        self._needed = self._settings.payload_time

    def _forget_change(self) -> None:
        for change in (*self._changes[0], *self._changes[1]):
            change.reset()

    @property
    def may_change(self) -> bool:
        """Whether there is a payload that may go, or be back."""
        return self.carried is not None or self.relieved is not None

    def torque(self, q: np.ndarray) -> np.ndarray:
        """Return the external torque (n,) [Nm] of the payload that is carried, at ``q`` (n,) [rad]."""
        return np.zeros(self._n) if self.carried is None else self._rows(q) @ self.carried.parameters

    def change(
        self, duration: float, q: np.ndarray, torques: Sequence[np.ndarray], separation: Separation
    ) -> int | None:
        """Take a block, and carry the payload no longer, or again, or the one of before, where the torque shows it.

        Args:
            duration: of the block [s].
            q: joint positions (n,) [rad].
            torques: measured less friction (n,) [Nm], for the friction of one time or two.
            separation: what distinguishes a load from friction and pushes.

        Returns:
            Index of the friction by which it has changed, None where it has not.
        """
        self._forget_relieved(duration)
        known = self.carried or self.relieved
        if known is None:
            return None
        rows, weight = self._rows(q), abs(known.mass) * self._gravity
        nothing = np.zeros(self._n)
        present = rows @ known.parameters if self.carried else nothing
        height = float(self._regressor.outputs["height"][0])
        if not separation.touched:
            self._height = height
        others = [None, self._former] if self.carried and self._former else [None if self.carried else known]
        for other, changes in zip(others, self._changes):
            then = nothing if other is None else rows @ other.parameters
            for k, (change, torque) in enumerate(zip(changes, torques)):
                if not change.add(duration, height, torque, present, then):
                    continue
                uncertain = separation.friction(k) + rows @ known.covariance @ rows.T
                changed = change.has_changed(uncertain, separation.noise, separation.push)
                if changed and (
                    not separation.touched or change.is_no_table(self._height, weight, self._settings.softest_contact)
                ):
                    self.left = change.left
                    self._carry(other)
                    self.found = self._at_start = None
                    self._forget()
                    return k
        return None

    def _forget_relieved(self, duration: float) -> None:
        """Forget what has gone for longer than ``payload_time``, after another block of ``duration`` [s]."""
        if self.carried is None:
            self._relieved_time += duration
            if self._relieved_time > self._settings.payload_time:
                self.relieved = None

    def torque_covariance(self, q: np.ndarray) -> np.ndarray:
        """Return the covariance (n, n) [Nm^2] of the torque of what is carried, or was, at ``q`` (n,) [rad]."""
        known = self.carried or self.relieved
        rows = self._rows(q)
        return np.zeros((self._n, self._n)) if known is None else rows @ known.covariance @ rows.T

    def _carry(self, payload: Payload | None, former: Payload | None = None) -> None:
        """Carry another payload from now on, None for none; ``former`` is one that it replaces."""
        self.relieved = self.carried if payload is None else None
        self.carried, self._former = payload, former
        self.is_no_scale &= payload is not None
        self._relieved_time = 0.0
        self._forget_change()

    def _rows(self, q: np.ndarray) -> np.ndarray:
        """Return Y(q) (n, 4)."""
        self._regressor.inputs["q"][:] = q
        self._regressor()
        return np.asarray(self._regressor.outputs["regressor"].reshape(self._n, _PAYLOAD, order="F"))

    def add(
        self,
        duration: float,
        q: np.ndarray,
        presliding: np.ndarray,
        torque: np.ndarray,
        felt: Callable[[], FeltTorque | None] = lambda: None,
    ) -> bool:
        """Take the torque of a block without a known contact.

        Args:
            duration: time since the last one [s].
            q: joint positions (n,) [rad] of the block.
            presliding: states (n,) of the friction.
            torque: tau_e less friction (n,) [Nm], as measured.
            felt: returns what an unknown contact pushes now, None where none is probable.

        Returns:
            Whether what is carried has changed.
        """
        of_load = self._rows(q)
        gravity = self._regressor.outputs["gravity"].reshape(self._n, 1)
        rows = np.hstack([-np.eye(self._n), -np.diag(presliding), of_load, gravity])  # (n, 2 n + 5)
        bias, coulomb = self._known
        measured = torque + bias + coulomb * presliding
        samples = min(duration / self._correlation, 1.0)
        lever = -of_load[:, 0] / self._gravity  # (n,) [m] of an upward force
        self._force_variance = 1.0 / (lever @ (lever / self._variance))
        force = self._force_variance * lever @ (measured / self._variance)
        vertical = np.array([1.0, self._regressor.outputs["height"][0], force])
        weight = samples / (self._variance + (self._model_error * measured) ** 2)
        now, weighted = self._now, rows.T * weight
        now.matrix += weighted @ rows
        now.vector += weighted @ measured
        now.vertical += samples * np.outer(vertical, vertical)
        now.square += float(weight @ measured**2)
        now.samples += samples
        now.time += duration
        return now.time >= _COLLECT and self._judge(of_load, felt)

    def _judge(self, of_load: np.ndarray, felt: Callable[[], FeltTorque | None]) -> bool:
        """Add what was collected to what was known, or start anew where the two contradict each other.

        Args:
            of_load: Y(q) (n, 4) now.
            felt: as in :meth:`add`.

        Returns:
            Whether what is carried has changed.
        """
        s, now = self._settings, self._now
        past = self._past.with_slow_friction()
        covariance = self._covariance(past.matrix)
        # Slow friction is one sample of its distribution for as long as the data were collected, not a part of one.
        misfit = now.misfit(covariance @ past.vector, covariance) / min(now.samples, 1.0)
        if chi_square_survival(self._n, misfit) < s.significance**2:
            self._forget()
            now.vertical[:] = 0.0  # what begins or ends may move the arm
        self._past.add(now, float(np.exp(-now.time / s.payload_memory)))
        self._now = _RegressionSums(len(self._prior))
        no_contact = self._excludes_contact()
        if self._past.time < self._needed:
            self.found = self._at_start if self._needs_mass() else None
            return False
        payload = self._payload()
        new = self.found is None and self.carried is None  # what is felt beside one that is known is another push
        if new and payload is not None and self._is_push(of_load, felt()):
            payload = None
        self.found = payload
        if not self._needed or payload is None:
            self._at_start = payload
        if self.carried and payload and not self.is_no_scale:
            self.is_no_scale = self._excludes_scale()
        if not no_contact or not self._is_another(payload):
            return False
        if payload is None and not self._explained(self._unloaded):
            return False
        if payload and self.carried and self._is_push(of_load, felt()):
            return False
        self._carry(payload, self.carried if payload else None)
        return True

    def _excludes_scale(self) -> bool:
        """Return whether the data are likelier by a load than by a torque that is scaled, by a Bayes factor."""
        past = self._past.with_slow_friction()
        return past.log_evidence(self._prior) - past.log_evidence(self._scaled) > -math.log(self._settings.significance)

    def _is_another(self, payload: Payload | None) -> bool:
        """Return whether a payload, or none, is not what is carried: a part was put down, or one more picked up."""
        if payload is None or self.carried is None:
            return payload is not self.carried
        difference = ZeroMeanGaussian(payload.covariance + self.carried.covariance)
        square = difference.square(payload.parameters - self.carried.parameters)
        return chi_square_survival(_PAYLOAD, square) < self._settings.significance

    def _excludes_contact(self) -> bool:
        """Return whether the vertical force has changed too little with the height for the softest contact.

        A force that grows downwards where the arm goes down (k < 0) bends an arm that gives way. It is no payload.
        """
        s, (stiffness, std) = self._settings, self._past.stiffness(self._force_variance)
        softest = (s.softest_contact - max(stiffness, 0.0)) / std
        return gaussian_survival(softest) < s.significance <= gaussian_survival(-stiffness / std)

    def _covariance(self, matrix: np.ndarray) -> np.ndarray:
        """Return the posterior covariance (p, p) of the parameters after data with the information ``matrix``."""
        return np.asarray(np.linalg.inv(np.linalg.inv(self._prior) + matrix))

    def _payload(self) -> Payload | None:
        """Return the payload where its mass is sure and possible, and the prior explains the data."""
        past = self._past.with_slow_friction()
        covariance = self._covariance(past.matrix)
        mean, covariance = (covariance @ past.vector)[self._of_load], covariance[self._of_load, self._of_load]
        mass, std = float(mean[0]), float(np.sqrt(covariance[0, 0]))
        no_mass = gaussian_survival(abs(mass) / std)  # probability of the other sign
        possible = gaussian_survival((-self._named - mass) / std)  # probability that no more is missing than is named
        if no_mass > self._settings.significance or possible <= self._settings.significance:
            return None
        if not self._explained(self._prior):
            return None
        return Payload(mass, std, mean[1:] / mass, covariance)

    def _is_push(self, of_load: np.ndarray, felt: FeltTorque | None) -> bool:
        """Return whether what is felt is likelier a force at the tool than a load, with Y(q) (n, 4)."""
        if felt is None:
            return False  # friction has absorbed it, or it is there no more
        load = of_load @ self._prior[self._of_load, self._of_load] @ of_load.T
        pushed, loaded = (ZeroMeanGaussian(felt.covariance + prior) for prior in (felt.push, load))
        return pushed.log_density(felt.torque) > loaded.log_density(felt.torque)

    def _needs_mass(self) -> bool:
        """Return whether a payload explains the data better than none, by a likelihood ratio; neither need explain all.

        Beside the load something may push, and what was collected as it went is of both.
        """
        past, zero = self._past.with_slow_friction(), np.zeros(len(self._prior))
        gained = past.misfit(zero, self._unloaded) - past.misfit(zero, self._prior)
        return chi_square_survival(_PAYLOAD, gained) < self._settings.significance

    def _explained(self, prior: np.ndarray) -> bool:
        """Return whether parameters of mean zero and covariance ``prior`` (p, p) explain the data."""
        past = self._past.with_slow_friction()
        misfit = past.misfit(np.zeros(len(prior)), prior)
        return chi_square_survival(past.samples * self._n, misfit) >= self._settings.significance


def build_regressor(arm: Arm) -> ca.Function:
    """Return the function of q (n,) [rad].

    Outputs: regressor (n, 4) of mass [kg] and first moment [kg m]; height (1,) of the flange [m]; gravity (n,) [Nm].
    """
    s = symbols(q=arm.n)
    kinematics, flange = arm.kinematics(s.q), arm.settings.tcp_frame
    jacobian, (rotation, place) = kinematics.jacobian(flange), kinematics.frame(flange)
    gravity = ca.DM(arm.settings.gravity)
    columns = [jacobian[:3, :].T @ gravity]
    columns += [jacobian[3:, :].T @ ca.cross(rotation[:, k], gravity) for k in range(3)]
    outputs = {"regressor": ca.horzcat(*columns), "height": -ca.dot(place, gravity) / ca.norm_2(gravity)}
    outputs["gravity"] = arm.body.gravity_torque(kinematics)
    return named_function("payload_regressor", s, outputs)
