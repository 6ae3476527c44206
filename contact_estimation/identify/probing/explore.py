"""Autonomous exploration: the arm probes a surface it hardly knows until every parameter's interval is below its
target.

It approaches along the guessed normal, notices the touch, and then chooses stroke after stroke (:mod:`active`).
Contact is kept and the force limited with the measured force along the estimated normal. What it found goes to the
controller as a compliant contact (:mod:`handover`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.exceptions import IdentificationError
from contact_estimation.filters.observer import ContactState
from contact_estimation.identify.probing.active import Stroke, candidates, choose
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.handover import compliant_contact
from contact_estimation.identify.probing.runs import bounds
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.settings import key, positive


@dataclass(frozen=True)
class ExploreSettings:
    """Targets (half-widths of 95 % intervals) and limits of an exploration."""

    tip: float = key(1e-3, unit="m", check=positive, doc="target of every tip coordinate")
    angle: float = key(1e-2, unit="rad", check=positive, doc="target of both surface angles")
    offset: float = key(2e-3, unit="m", check=positive, doc="target of the surface's offset under the first touch")
    stiffness: float = key(300.0, unit="N/m", check=positive, doc="target of stiffness")
    friction: float = key(3e-3, check=positive, doc="target of friction")
    max_strokes: int = key(24, check=positive, doc="strokes after which the exploration gives up")
    reach: float = key(0.05, unit="m", check=positive, doc="distance from the first touch that strokes keep to")
    force_limit: float = key(50.0, unit="N", check=positive, doc="force beyond which the tool retreats")
    approach_speed: float = key(0.01, unit="m/s", check=positive, doc="speed of the approach")
    approach_distance: float = key(0.04, unit="m", check=positive, doc="longest approach before giving up")
    force_gain: float = key(3e-3, unit="m/(s N)", check=positive, doc="speed along the normal per force that lacks")
    rate: float = key(25.0, unit="Hz", check=positive, doc="rate of the estimator")
    control_rate: float = key(250.0, unit="Hz", check=positive, doc="rate of the motion control")


@dataclass(frozen=True)
class Exploration:
    """Result: the estimate, the same as a compliant contact at the last pose (for the controller), whether all
    targets were met, time since touch [s], strokes made, largest force [N], and the estimate after every sample."""

    estimate: ProbingEstimate
    contact: ContactState
    reached: bool
    seconds: float
    strokes: tuple[Stroke, ...]
    max_force: float
    history: tuple[ProbingEstimate, ...]


class Explorer:
    """Explores one surface with one tip.

    Args:
        tool: moves the probe: ``pose`` and ``move(twist, dt)``, as :class:`ArmTool`.
        sense: function of (pose, twist carried out, dt) that returns the measured wrench (6,); called at the control
            rate.
        measure: function of (pose, twist, wrench) that returns the arguments of :meth:`ProbingFilter.step` after
            ``dt``: measured pose (4, 4), twist and wrench, for a wrench from joint torque its covariance and bias map.
        tip, surface: guess of the tip (3,) in tool axes, and of the surface as a rotation (3, 3) whose third column
            is the normal.
    """

    def __init__(self, tool, sense, measure, tip, surface, settings: ProbingSettings, explore: ExploreSettings,
                 excitation: ExcitationSettings):
        self._tool, self._sense, self._measure = tool, sense, measure
        self._tip, self._surface = np.asarray(tip), np.asarray(surface)
        self._cfg, self._goal, self._excitation = settings, explore, excitation
        self._model = SpatialModel(*bounds(settings), [self._surface], (0,))
        self._filter = ProbingFilter(self._model, settings)
        self._targets = 0.5 * np.array(
            [explore.tip] * 3 + [explore.angle] * 2 + [explore.offset, explore.stiffness, explore.friction]
        )
        self._dt, self._every = 1.0 / explore.control_rate, int(round(explore.control_rate / explore.rate))
        self._count, self._max_force, self._lean = 0, 0.0, np.zeros(3)
        self._wrench = np.zeros(6)

    def run(self) -> Exploration:
        """Approach, touch, and probe until every interval is below its target or the strokes are used up.

        Raises:
            IdentificationError: no contact within the approach distance, or the arm cannot go on.
        """
        self.touch()
        return self.probe()

    def touch(self) -> ProbingEstimate:
        """Approach until the surface is felt; returns what is known then, the rough start.

        Raises:
            IdentificationError: no contact within the approach distance.
        """
        self._approach()
        touch = self._tool.pose
        self._upright = touch[:3, :3]
        self._filter.start(0.0, touch, *self._model.start(self._cfg, touch, [self._tip]))
        self._count, self._history = 0, [self._filter.estimate()]
        return self._history[0]

    def probe(self) -> Exploration:
        """After :meth:`touch`: probe until every interval is below its target or the strokes are used up.

        Raises:
            IdentificationError: the arm cannot go on.
        """
        strokes = []
        samples = int(self._excitation.stroke_time * self._goal.rate)
        while not self._reached() and len(strokes) < self._goal.max_strokes:
            options = candidates(
                self._place(),
                self._excitation.speed * self._excitation.stroke_time,
                self._goal.reach,
                self._excitation.tilt,
            )
            stroke = choose(
                self._filter,
                options,
                self._targets,
                samples,
                lean=self._lean,
                surface=self._surface,
                rotation=self._upright,
                excitation=self._excitation,
            )
            self._perform(stroke)
            strokes.append(stroke)
        estimate = self._filter.estimate()
        return Exploration(
            estimate,
            compliant_contact(estimate, self._model, self._tool.pose),
            self._reached(),
            self._count * self._dt,
            tuple(strokes),
            self._max_force,
            tuple(self._history),
        )

    @property
    def model(self) -> SpatialModel:
        """Model that the estimates refer to."""
        return self._model

    def _reached(self):
        _, covariance = self._filter.local()
        deviations = np.sqrt(np.diag(covariance))
        for i, interval in self._model.bounds.items():
            deviations[i] = interval.moments(self._filter.local()[0][i], deviations[i])[1]
        return bool(np.all(deviations < self._targets))

    def _approach(self):
        direction = np.concatenate([-self._goal.approach_speed * self._surface[:, 2], np.zeros(3)])
        for _ in range(int(self._goal.approach_distance / self._goal.approach_speed / self._dt)):
            self._advance(direction)
            if np.linalg.norm(self._wrench[:3]) > self._cfg.contact_force_min:
                return
        raise IdentificationError(
            f"no contact within {self._goal.approach_distance} m of the start; the guessed normal may point "
            "away from the surface, or the start is too far away"
        )

    def _place(self):
        """Where the estimated tip is, in surface axes, relative to the first touch (2,)."""
        s, _ = self._filter.local()
        pose = self._tool.pose
        tip = pose[:3, 3] + pose[:3, :3] @ self._model.tip(s) - self._filter.origin
        return (self._surface.T @ tip)[:2]

    def _advance(self, twist):
        done = self._tool.move(twist, self._dt)
        self._wrench = self._sense(self._tool.pose, done, self._dt)
        self._max_force = max(self._max_force, float(np.linalg.norm(self._wrench[:3])))
        self._count += 1
        return done

    def _perform(self, stroke):
        """Slide, lean and press for one stroke; the filter runs along."""
        cfg, steps = self._excitation, int(round(self._excitation.stroke_time / self._dt))
        start, last = self._lean, self._lean
        for k in range(steps):
            rest = min(k, steps - 1 - k) * self._dt - 0.5 * cfg.dwell_time
            ramp = np.clip(rest / cfg.ramp_time, 0.0, 1.0)
            blend = 0.5 * (1.0 - np.cos(np.pi * min((k + 1) * self._dt / cfg.tilt_time, 1.0)))
            lean = start + blend * (stroke.lean - start)
            turn = self._surface @ pin.log3(pin.exp3(-lean) @ pin.exp3(last)) / self._dt
            last = lean
            done = self._advance(self._twist(stroke, cfg.speed * ramp**2 * (3.0 - 2.0 * ramp), turn))
            if self._count % self._every == 0:
                self._filter.step(self._every * self._dt, *self._measure(self._tool.pose, done, self._wrench))
                self._history.append(self._filter.estimate())
        self._lean = last

    def _twist(self, stroke, speed, turn):
        """Twist of the tool: along the estimated surface, pressing with the force asked for."""
        cfg, (s, _) = self._excitation, self._filter.local()
        normal, pose = self._model.normal(s), self._tool.pose
        slide = self._surface @ stroke.direction
        slide = slide - normal * (normal @ slide)
        phase = 2.0 * np.pi * cfg.force_frequency * self._count * self._dt
        onset = min(self._count * self._dt / 0.3, 1.0)
        force = pose[:3, :3] @ self._wrench[:3]
        push = onset * (cfg.force + cfg.force_swing * np.sin(phase)) - force @ normal
        if np.linalg.norm(force) > self._goal.force_limit:
            push = min(push, -0.5 * self._goal.force_limit)
        descent = np.clip(self._goal.force_gain * push, -0.05, 0.05)
        arm = pose[:3, :3] @ self._model.tip(s)
        return np.concatenate([speed * slide - descent * normal - np.cross(turn, arm), turn])
