"""Autonomous exploration: the arm probes an unknown surface until every parameter's interval is below its target.

It approaches along the guessed normal, detects the touch, and then chooses stroke after stroke
(:mod:`~contact_estimation.identify.probing.active`). A control law on the measured force along the estimated normal
keeps contact and limits the force. The result is also a compliant contact for the controller
(:mod:`~contact_estimation.identify.probing.export`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError
from contact_estimation.filters.observer import ContactState
from contact_estimation.identify.probing.active import (
    Posture,
    Stroke,
    candidates,
    physical_deviation,
    predicted_covariance,
)
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.excitation import ExcitationSettings, lean_blend, normal_force, stroke_speed
from contact_estimation.identify.probing.export import compliant_contact
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.settings import key, non_negative, positive

#: Greatest speed along the normal [m/s] with which the force is corrected: 2 mm per sample at 25 Hz, so that one
#: sample cannot go from the air to the force limit.
_MAX_DESCENT = 0.05
#: Greatest speed of the lag's compensation, as a factor on the speed of a stroke.
_MAX_HASTE = 4.0


@dataclass(frozen=True)
class ExploreSettings:
    """Targets (half-widths of 95 % intervals) and limits of an exploration."""

    tip: float = key(1e-3, unit="m", check=positive, doc="target of every tip coordinate")
    angle: float = key(1e-2, unit="rad", check=positive, doc="target of both surface angles")
    offset: float = key(2e-3, unit="m", check=positive, doc="target of the surface's offset under the first touch")
    stiffness: float = key(300.0, unit="N/m", check=positive, doc="target of stiffness")
    friction: float = key(3e-3, check=positive, doc="target of friction")
    max_strokes: int = key(24, check=positive, doc="strokes after which the exploration ends")
    reach: float = key(0.05, unit="m", check=positive, doc="distance from the first touch that strokes keep to")
    force_limit: float = key(50.0, unit="N", check=positive, doc="force beyond which the tool retreats")
    approach_speed: float = key(0.01, unit="m/s", check=positive, doc="speed of the approach")
    approach_distance: float = key(0.04, unit="m", check=positive, doc="longest approach before giving up")
    force_gain: float = key(3e-3, unit="m/(s N)", check=positive, doc="speed along the normal per missing force")
    lag_gain: float = key(
        8.0, unit="1/s", check=non_negative, doc="speed along a stroke per distance by which the tip lags behind"
    )
    rate: float = key(25.0, unit="Hz", check=positive, doc="rate of the estimator")
    control_rate: float = key(250.0, unit="Hz", check=positive, doc="rate of the motion control")


class Tool(Protocol):
    """The carrier of the probe: a robot, or a simulated one."""

    @property
    def pose(self) -> np.ndarray:
        """Pose (4, 4) of the tool."""

    def move(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Move by ``twist`` (6,) for ``dt`` [s]; returns the twist carried out."""

    def sense(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Return the measured wrench (6,) ON the probe, tool axes, after a motion; called at the control rate."""

    def measure(self, twist: np.ndarray, wrench: np.ndarray) -> tuple[Any, ...]:
        """Return the sample of the estimator: the arguments of ``ProbingFilter.step`` behind ``dt``.

        They are measured pose, twist and wrench, and for a wrench from joint torque its covariance and bias map.
        """


@dataclass(frozen=True)
class Exploration:
    """Result of an exploration.

    Attributes:
        estimate: the last estimate.
        contact: the same as a compliant contact at the last pose, for the controller.
        reached: whether all targets were met.
        seconds: time since the touch [s].
        strokes: strokes made.
        restarts: how often the filter began anew because its predictions failed.
        max_force: largest measured force [N].
        history: estimate after every sample.
    """

    estimate: ProbingEstimate
    contact: ContactState
    reached: bool
    seconds: float
    strokes: tuple[Stroke, ...]
    restarts: int
    max_force: float
    history: tuple[ProbingEstimate, ...]


_DEFAULT_GOAL, _DEFAULT_STROKES = ExploreSettings(), ExcitationSettings()


class Explorer:
    """Explores one surface with one tip.

    Args:
        tool: moves and feels the probe.
        tip: guess of the tip (3,) in tool axes [m].
        surface: guess of the surface: a rotation (3, 3) whose third column is the normal.
        settings: priors and noise of the estimator.
        explore: targets and limits.
        excitation: shape of the strokes.
    """

    def __init__(
        self,
        tool: Tool,
        tip: ArrayLike,
        surface: ArrayLike,
        settings: ProbingSettings,
        explore: ExploreSettings = _DEFAULT_GOAL,
        excitation: ExcitationSettings = _DEFAULT_STROKES,
    ) -> None:
        self._tool, self._tip, self._surface = tool, np.asarray(tip), np.asarray(surface)
        self._cfg, self._goal, self._excitation = settings, explore, excitation
        self.model = SpatialModel(*settings.bounds(), [self._surface])
        self._filter = ProbingFilter(self.model, settings)
        half_widths = [explore.tip] * 3 + [explore.angle] * 2 + [explore.offset, explore.stiffness, explore.friction]
        self._targets = 0.5 * np.array(half_widths)  # (n_s,) standard deviations
        self._dt, self._every = 1.0 / explore.control_rate, round(explore.control_rate / explore.rate)
        self._count, self._max_force, self._lean = 0, 0.0, np.zeros(3)
        self._wrench = np.zeros(6)
        self._history: list[ProbingEstimate] = []

    def run(self) -> Exploration:
        """Approach, touch, and probe until every interval is below its target or the strokes are used up.

        Raises:
            IdentificationError: no contact within the approach distance, or the arm cannot go on.
        """
        self.touch()
        return self.probe()

    def touch(self) -> ProbingEstimate:
        """Approach until the touch is detected; returns the rough start.

        Raises:
            IdentificationError: no contact within the approach distance.
        """
        self._approach()
        touch = self._tool.pose
        self._upright = touch[:3, :3]
        self._start = self.model.start(self._cfg, touch, [self._tip])
        self._filter.start(0.0, touch, *self._start)
        self._count, self._restarts, self._history = 0, 0, [self._filter.estimate()]
        return self._history[0]

    def probe(self) -> Exploration:
        """Probe, after :meth:`touch`, until every interval is below its target or the strokes are used up.

        Raises:
            IdentificationError: the arm cannot go on.
        """
        strokes: list[Stroke] = []
        while not self._reached() and len(strokes) < self._goal.max_strokes:
            strokes.append(self._choose())
            self._perform(strokes[-1])
            self._restart_if_lost()
        estimate = self._filter.estimate()
        return Exploration(
            estimate,
            compliant_contact(estimate, self.model, self._tool.pose),
            self._reached(),
            self._count * self._dt,
            tuple(strokes),
            self._restarts,
            self._max_force,
            tuple(self._history),
        )

    def _choose(self) -> Stroke:
        """Choose the stroke after which the squared ratios of standard deviation to target have the least sum.

        This is A-optimality (Chernoff 1953) with the targets as units.
        """
        cfg = self._excitation
        posture = Posture(self._lean, self._surface, self._upright)
        samples = int(cfg.stroke_time * self._goal.rate)

        def cost(stroke: Stroke) -> float:
            left = predicted_covariance(self._filter, self.model, stroke, posture, cfg, samples)
            deviations = physical_deviation(self.model, self._filter.local()[0], left)
            return float(np.sum(np.square(deviations / self._targets)))

        return min(candidates(self._place(), cfg.speed * cfg.stroke_time, self._goal.reach, cfg.tilt), key=cost)

    def _restart_if_lost(self) -> None:
        """Restart from the guess at the touch after several wrenches in a row beyond the gate (NIS).

        A surface does not change while it is explored, so the filter took a wrong peak of the rough start's density.
        """
        if self._filter.changes:
            self._restarts += 1
            self._filter.start(self._count * self._dt, self._tool.pose, *self._start)

    def _reached(self) -> bool:
        s, covariance = self._filter.local()
        deviations = np.sqrt(np.diag(covariance))
        for i, interval in self.model.bounds.items():
            deviations[i] = interval.moments(s[i], deviations[i])[1]
        return bool(np.all(deviations < self._targets))

    def _approach(self) -> None:
        direction = np.concatenate([-self._goal.approach_speed * self._surface[:, 2], np.zeros(3)])
        for _ in range(int(self._goal.approach_distance / self._goal.approach_speed / self._dt)):
            self._advance(direction)
            if np.linalg.norm(self._wrench[:3]) > self._cfg.contact_force_min:
                return
        raise IdentificationError(
            f"no contact within {self._goal.approach_distance} m of the start; the guessed normal may point "
            "away from the surface, or the start is too far away"
        )

    def _place(self) -> np.ndarray:
        """Where the estimated tip is, in surface axes, relative to the first touch (2,)."""
        s, _ = self._filter.local()
        pose = self._tool.pose
        tip = pose[:3, 3] + pose[:3, :3] @ self.model.tip(s) - self._filter.origin
        return np.asarray((self._surface.T @ tip)[:2])

    def _advance(self, twist: np.ndarray) -> np.ndarray:
        done = self._tool.move(twist, self._dt)
        self._wrench = self._tool.sense(done, self._dt)
        self._max_force = max(self._max_force, float(np.linalg.norm(self._wrench[:3])))
        self._count += 1
        return done

    def _perform(self, stroke: Stroke) -> None:
        """Slide, lean and press for one stroke; the filter runs along.

        Friction deflects a compliant arm before the tip slides, so the speed has a term of the tip's lag.
        """
        cfg, steps = self._excitation, round(self._excitation.stroke_time / self._dt)
        start, last, wanted, begin = self._lean, self._lean, 0.0, self._place()
        for k in range(steps):
            lean = start + lean_blend(cfg, (k + 1) * self._dt) * (stroke.lean - start)
            turn = self._surface @ pin.log3(pin.exp3(-lean) @ pin.exp3(last)) / self._dt
            last = lean
            speed = stroke_speed(cfg, min(k, steps - 1 - k) * self._dt)
            wanted += self._dt * speed
            lag = wanted - stroke.direction[:2] @ (self._place() - begin)
            speed = np.clip(speed + self._goal.lag_gain * lag, -cfg.speed, _MAX_HASTE * cfg.speed)
            done = self._advance(self._twist(stroke, float(speed), turn))
            if self._count % self._every == 0:
                self._filter.step(self._every * self._dt, *self._tool.measure(done, self._wrench))
                self._history.append(self._filter.estimate())
        self._lean = last

    def _twist(self, stroke: Stroke, speed: float, turn: np.ndarray) -> np.ndarray:
        """Twist of the tool: along the estimated surface, pressing with the force asked for."""
        s, _ = self._filter.local()
        normal, pose = self.model.normal(s), self._tool.pose
        slide = self._surface @ stroke.direction
        slide = slide - normal * (normal @ slide)
        force = pose[:3, :3] @ self._wrench[:3]
        push = normal_force(self._excitation, self._count * self._dt)[0] - force @ normal
        if np.linalg.norm(force) > self._goal.force_limit:
            push = min(push, -0.5 * self._goal.force_limit)
        descent = np.clip(self._goal.force_gain * push, -_MAX_DESCENT, _MAX_DESCENT)
        arm = pose[:3, :3] @ self.model.tip(s)
        return np.concatenate([speed * slide - descent * normal - np.cross(turn, arm), turn])
