"""Torque against gravity and inertia: is the effort signal what the configuration says?

A reading is what the effort may mean: the configured one, or a rival. It explains a *free* arm when the mean square of
its residual in units of friction (:mod:`.explanation`) is below FREE, a rival's below RIVAL_FREE. These are the states,
with what leads to them and what ends them:

    proven    (per rival) the configured reading explains a free arm better by _BETTER, in the mean over PROOF_TIME.
              Ends: with the end of a verdict on the rival; where positions jump, for rivals that exchange joints.
    doubted   after the start or a long gap, neither a free arm nor a force at the tool explains the torque.
              Ends: a free arm was explained for as long; or soon, a force at the tool explains the torque after all.
    suspect   a rival explains a free arm and the configured reading does not, or the rival leaves next to nothing of
              what the configured reading leaves, for _TELLING_TIME.
              Ends: this holds no longer, or the rival is cleared.
    cleared   (per rival) the arm rests and the torque changes by more than friction makes. What the effort means does
              not change at rest, so a contact does (:mod:`.suspicion`).
              Ends: a joint moved by _NEW_POSTURE, or there was a gap.
    named     a suspicion lasted for MOTION_TIME of motion or REST_TIME, a rival explains a step, or a torque is late.
              Ends: the configured reading explains a free arm better by _BETTER for PROOF_TIME (of one joint alone:
              _ACQUITTAL_TIME), or a step leads back.
    stepped   the effort stepped from one sample to the next and stayed; neither a contact nor a rival explains that.
              Ends: a free arm is explained for _ACQUITTAL_TIME, or a step leads back.

Estimates are invalid while the stream is doubted, suspect, named or stepped. A contact that cancels gravity makes a
rival look free. So a proven rival is asked again only after a long gap or a jump of the effort between two samples,
until a free arm is explained for PROOF_TIME. It is then named after motion alone. The exception is a joint beyond the
second whose torque alone is far off (_LONE_RESIDUAL).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from contact_estimation.codegen import compile_built
from contact_estimation.filters.plausibility.delays import DELAYS, DelayEvidence
from contact_estimation.filters.plausibility.exchange import JointExchanges
from contact_estimation.filters.plausibility.explanation import FREE, RIVAL_FREE, build_explanation
from contact_estimation.filters.plausibility.readings import configured_reading, rival_readings
from contact_estimation.filters.plausibility.settings import TorqueReadingSettings
from contact_estimation.filters.plausibility.steps import Step, StepHypotheses
from contact_estimation.filters.plausibility.suspicion import FreeAtRest, Suspicion
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import actuators_of

#: What an unnamed payload looks like, too, as long as the arm keeps near one posture.
SCALED = "torque scaled by a common factor"

#: [s] The torque is judged on means over this.
BLOCK = 0.02
#: By how much (mean square) one reading must explain the torque better than another. With six joints this is a
#: likelihood ratio of e^3.6.
_BETTER = 1.2
#: [s] So long must an explanation hold to be confirmed.
PROOF_TIME = 0.2
#: [s] The same for a verdict to end: of a step without a known cause, or of a joint that is wrong alone.
_ACQUITTAL_TIME = 5 * PROOF_TIME
#: [s] An unexplained torque is doubted until a free arm was explained for as long, at most for this time.
_DOUBT_TIME = 3.0
#: [s] A suspicion that lasts this long at rest, or with a joint in motion, is named.
REST_TIME, MOTION_TIME = 3.0, 0.5
#: [rad] After so far a way a cleared alternative may be suspected again.
_NEW_POSTURE = 0.1
#: [s] The friction of a joint changes for this long before the joint is seen to set off.
_SET_OFF_TIME = 0.05
#: [s] A step is judged after this; torque spikes of stops last 5 to 20 ms.
SETTLE_TIME = 0.05
#: A rival that leaves less than this share of the residual (mean square) for so long [s] is suspected before proof ...
_TELLING_SHARE, _TELLING_TIME = 0.1, 0.1
#: ... where the residual (mean square, in units of friction) is larger than this.
_TELLING_RESIDUAL = 0.3
#: A common factor is refuted where the best one leaves more than this share of the residual (mean square).
_USUAL_SHARE = 0.7
#: Above this residual (mean square) a joint beyond the second whose torque is wrong alone is a fault, proven or not,
#: while the others explain a free arm: a force on a link loads the joints before it, too.
_LONE_RESIDUAL = 5.0
#: Size of a step between two samples that is judged, in units of friction, and of one that stays and is a fault if
#: neither a contact nor a rival explains it.
STEP, _STRANGE_STEP = 2.2, 6.0
#: Share of a step that may come after its sample: an impact goes on growing, a spike returns.
_STEP_MATCH = 0.4
#: A fault must explain a step better than a contact by this log-likelihood: contacts are more frequent.
_STEP_ODDS = 5.0
#: Least noise of a torque in a step, as a share of friction.
_LEAST_NOISE = 0.05


class TorqueReadings:
    """Follows which readings of the effort explain the torque.

    Args:
        arm: the robot as its torque sensors see it.
        sensors: what is configured.
        scale: (n,) [Nm per unit of effort].

    Attributes:
        problem: why the configured reading cannot be used now, or an empty string.
        suspects: the problem is a suspicion only: a contact may have raised it.
        rivals: names of the rivals.
        margin: (R,) by how much the configured reading explained a free arm better (mean square), at its best.
        per_friction: (n,) one unit of effort in units of friction.
        load: (n,) [Nm] external torque of a payload that an observer has found.

    What the blocks have shown so far:

    - ``_named`` (index of a rival, -1 for none) and ``_stepped`` (a step without a known cause) are verdicts. They end
      once the configured reading has explained a free arm for ``_acquittal_time`` [s].
    - ``_suspicion`` is the rival under watch, None for none: it becomes the verdict, or it ends.
    - ``_telling`` (R,): rivals that have left next to nothing of the residual for ``_TELLING_TIME``; ``_telling_time``
      (R,) [s] counts it. They are watched also after proof.
    - ``_at_rest``: what the torque was as a free arm came to rest.
    - ``_cleared`` (R,): rivals that a change of the force has contradicted, in a posture near ``_cleared_at``.
    - ``_lead`` (R,): running mean of the lead of the configured reading, whose largest value is ``margin``.
    - ``_doubt`` [s]: for how long a free arm still has to be explained after a long gap. Until then ``_strange`` notes
      a torque that neither a free arm nor a force at the tool explains.
    - ``_settled_time`` [s]: how long a free arm was explained since the last long gap or jump of the effort.
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> None:
        s, n = sensors.plausibility.torque, arm.n
        self._arm, self._rest_speed = arm, s.rest_speed
        own = configured_reading(arm, sensors, scale)
        self._readings = [own, *rival_readings(arm, sensors, scale)]
        self._own = own.name
        friction = actuators_of(arm, warn=False)  # the observer warns where a robot's friction is not known
        law = friction.friction
        parts = (law.bias_std, law.coulomb_std, friction.disturbance_std, friction.torque_noise)
        self._unknown, self._coulomb = np.sqrt(np.sum(np.square(parts), axis=0)), np.asarray(law.coulomb)  # (n,) [Nm]
        self._friction = np.hypot(self._unknown, self._coulomb)
        self.per_friction = np.abs(own.factor) / self._friction
        self._explain = compile_built(build_explanation, arm, self._readings, len(DELAYS))
        self._set_inputs(self._explain.inputs, s)
        out = self._explain.outputs
        self._explained = out["residual"].reshape(-1, n), out["misfit"]
        self._exchanges = JointExchanges(arm, own, self._explain.inputs)
        delays = [f"torque that is {delay:g} s late" for delay in DELAYS]
        self.rivals = [*(r.name for r in self._readings[1:]), SCALED, *delays, "torque of an arm mounted otherwise"]
        self._alone = len(self.rivals)  # index of the first rival that blames one joint alone
        self.rivals += [f"wrong on {name} alone" for name in arm.joint_names]
        # What a step may be, in the order of its hypotheses: a delay makes none.
        self._step_rivals = np.r_[: len(self._readings), self._alone - 1 : len(self.rivals)]
        self._hypotheses = StepHypotheses(arm, self._readings, s.impact_force)
        self._exchanged = len(self.rivals)  # index of the first rival that exchanges whole joints
        self.rivals += self._exchanges.names
        pairs = len(self._exchanges.names)
        # The best of many fits better by chance: its square is 2 ln(choices) less. A free number costs as much as the
        # proof itself.
        kinds = [(r.choices, 0) for r in self._readings[1:]] + [(1, 1)] + [(len(delays), 0)] * len(delays) + [(1, 2)]
        choices, numbers = np.array(kinds + [(n, 1)] * n + [(pairs, 0)] * pairs).T
        self.load = np.zeros(n)
        self._delays, self._late = DelayEvidence(), slice(len(self._readings), self._alone - 1)
        self._price = _BETTER * (1.0 + numbers) + 2 * np.log(choices) / n
        self._lone = np.zeros(len(self.rivals), dtype=bool)
        self._lone[self._alone : self._exchanged] = True
        self._least = np.where(self._lone, FREE, np.where(numbers < 2, _TELLING_RESIDUAL, np.inf))
        self._telling, self._telling_time = np.zeros(len(self.rivals), dtype=bool), np.zeros(len(self.rivals))
        self._residual, self._misfit = np.zeros((1 + len(self.rivals), n)), np.zeros(1 + len(self.rivals))
        self._at_rest = FreeAtRest(self._lone)
        self.margin = np.zeros(len(self.rivals))
        self.reset()

    def _set_inputs(self, inputs: dict[str, np.ndarray], s: TorqueReadingSettings) -> None:
        arm = self._arm
        fastest = np.where(arm.velocity_limit > 0, arm.velocity_limit, np.inf)
        inputs["factor"][:] = np.concatenate([r.factor for r in self._readings])
        inputs["added"][:] = [r.gravity for r in self._readings]
        inputs["friction"][:], inputs["coulomb"][:] = self._unknown, self._coulomb
        inputs["viscous"][:] = s.viscous_share * arm.effort_limit / fastest
        inputs["share"][:] = s.gravity_share, s.inertia_share
        inputs["contact"][:] = [s.force] * 3 + [s.moment] * 3

    @property
    def proven(self) -> np.ndarray:
        """Return (R,) whether the configured reading was proven against each rival."""
        return self.margin > _BETTER

    def reset(self) -> None:
        """Begin with a stream that nothing is known of."""
        self.margin[:] = 0.0
        self._telling[:], self._telling_time[:] = False, 0.0
        self._named, self._stepped = -1, False
        self._delays.reset()
        self.problem, self.suspects = "", False
        self.restart()

    def restart(self, doubted: bool = True) -> None:
        """Begin with a new stretch of samples; what was proven or named stays.

        Args:
            doubted: the driver may be another one; a free arm has to be explained anew.
        """
        longest = max(DELAYS)
        #: (2, n) [Nm] of the last blocks: the model's torque, and what the configured reading says.
        self._past: deque[np.ndarray] = deque(maxlen=1 + round(longest / BLOCK))
        self._step: Step | None = None
        self._at_rest.forget()
        self._suspicion: Suspicion | None = None
        self._strange = False
        if doubted:
            self._settled_time, self._doubt = 0.0, PROOF_TIME
        self._doubt = min(self._doubt, PROOF_TIME)
        self._cleared = np.zeros(len(self.rivals), dtype=bool)
        self._cleared_at: np.ndarray | None = None
        self._lead = np.zeros(len(self.rivals))
        self._acquittal_time = 0.0

    def forget_exchanges(self) -> None:
        """Doubt the order of the joints again."""
        self.margin[self._exchanged :] = 0.0

    # -- blocks of samples ---------------------------------------------------------------------------------------------

    def add_block(self, duration: float, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, effort: np.ndarray) -> None:
        """Judge a block of samples.

        Args:
            duration: length of the block [s].
            q: (n,) mean position [rad].
            dq: (n,) mean velocity [rad/s].
            ddq: (n,) mean acceleration [rad/s^2].
            effort: (n,) mean effort as it comes.
        """
        inputs, out = self._explain.inputs, self._explain.outputs
        inputs["q"][:], inputs["dq"][:], inputs["ddq"][:], inputs["effort"][:] = q, dq, ddq, effort
        inputs["load"][:] = self.load
        self._remember(inputs["past_model"].reshape(-1, self._arm.n), inputs["past_torque"].reshape(-1, self._arm.n))
        self._explain()
        self._past.append(np.stack([out["model"], out["torque"]]))
        count, felt = len(self._explained[1]), float(out["felt"][0])
        self._residual[:count], self._misfit[:count] = self._explained
        if self._misfit[0] > _TELLING_RESIDUAL or not self.proven[self._exchanged :].all():
            self._misfit[count:] = self._exchanges.misfit(q, dq, ddq, effort)
            self._residual[count:] = self._exchanges.residual
        misfit, moves = self._misfit, bool(np.abs(dq).max() > self._rest_speed)
        if moves:
            self._delays.add(duration, float(misfit[0]), misfit[1:][self._late], out["early"])
        self._at_rest.follow(q, moves)
        pushed = self._at_rest.contradicted(self._residual)
        telling = self._explained_by_others(misfit, felt) & ~pushed
        self._telling_time = np.where(telling, self._telling_time + duration, 0.0)
        self._telling = self._telling_time > _TELLING_TIME - 0.5 * BLOCK
        if misfit[0] < FREE and not self._telling.any():
            self._confirm_configured(duration, misfit, felt)
            if not moves:
                self._at_rest.add(q, self._residual)
        else:
            self._acquittal_time = 0.0
            self._lead[:] = 0.0
            # Where gravity is not felt, whatever makes the torque small explains friction best.
            self._watch(duration, q, dq, misfit if felt > _BETTER else np.zeros_like(misfit), pushed)
            self._update_doubt(duration, bool(out["pushed"][0] > FREE))
        self._report()

    def _remember(self, model: np.ndarray, torque: np.ndarray) -> None:
        """Fill (delays, n) [Nm] with the model's torque some time ago, and with what the configured reading said."""
        for k, delay in enumerate(DELAYS):
            blocks = round(delay / BLOCK)
            model[k], torque[k] = self._past[-blocks] if len(self._past) >= blocks else (1e9, 1e9)

    def _explained_by_others(self, misfit: np.ndarray, felt: float) -> np.ndarray:
        """Tell the rivals that leave next to nothing of a residual, even of one that friction alone might make.

        Friction has no reason to lie along the torque of a wrong unit. One joint's friction may be high: there the
        residual has to be larger, until the suspicion has begun. What was proven is not asked again, but for a joint
        beyond the second whose torque is far off while the others are free: a force on a link loads those before it.

        Args:
            misfit: (1 + R,) mean square residuals.
            felt: mean square of gravity and inertia themselves; a reading that makes the torque small explains neither.

        Returns:
            (R,) whether the rival does.
        """
        least = self._least
        if self._suspicion is not None:
            least = least.copy()
            least[self._suspicion.rival] = min(least[self._suspicion.rival], _TELLING_RESIDUAL)
        found = (misfit[0] > least) & (misfit[1:] < _TELLING_SHARE * min(misfit[0], felt)) & ~self.proven
        lone = np.flatnonzero(self._lone)[2:]
        if misfit[0] > _LONE_RESIDUAL:
            found[lone] |= misfit[1 + lone] < min(_TELLING_SHARE * misfit[0], RIVAL_FREE)
        return np.asarray(found)

    def _confirm_configured(self, duration: float, misfit: np.ndarray, felt: float) -> None:
        """Prove the configured reading against rivals that fail, and acquit it of what was named.

        Args:
            duration: length of the block [s].
            misfit: (1 + R,) mean square residuals.
            felt: mean square of gravity and inertia themselves.
        """
        self._suspicion = None
        self._settled_time += duration
        self._doubt -= duration
        self._strange &= self._doubt > 0
        lead = misfit[1:] - misfit[0]
        right = np.abs(self._residual[0]) < 1.0  # that a joint alone is wrong is refuted as soon as it is right
        lead[self._alone : self._exchanged] = 2 * _BETTER * right
        scaled = len(self._readings) - 1
        # A common factor and another direction of gravity are refuted as soon as there is something to scale; a factor
        # only where the best one is usual, or fits hardly better than the configured reading.
        lead[[scaled, self._alone - 1]] = felt - misfit[0]
        lead[scaled] *= misfit[1 + scaled] > _USUAL_SHARE * misfit[0]
        # Averaged over the proof time, from zero: a moment proves nothing.
        self._lead += min(duration / PROOF_TIME, 1.0) * (lead - self._lead)
        np.maximum(self.margin, self._lead, out=self.margin)
        if self._stepped:
            self._acquittal_time += duration if right.all() else 0.0
            self._stepped = self._acquittal_time < _ACQUITTAL_TIME
        elif self._named >= 0:
            self._acquittal_time += duration if lead[self._named] > _BETTER else 0.0
            if self._acquittal_time >= (_ACQUITTAL_TIME if self._lone[self._named] else PROOF_TIME):
                self._name(-1)

    def _update_doubt(self, duration: float, strange: bool) -> None:
        """Doubt what neither a free arm nor a force at the tool explains, until a free arm explains it as long."""
        if self._doubt <= 0:  # confirmed, until the next long gap
            return
        self._strange |= strange
        if strange:
            self._doubt = min(self._doubt + duration, _DOUBT_TIME)
        elif self._doubt <= PROOF_TIME:
            self._strange = False

    def _name(self, rival: int) -> None:
        if self._named >= 0:
            self.margin[self._named] = 0.0  # what was wrong once may be wrong again
        self._named, self._acquittal_time, self._suspicion, self._stepped = rival, 0.0, None, False

    def _watch(self, duration: float, q: np.ndarray, dq: np.ndarray, misfit: np.ndarray, pushed: np.ndarray) -> None:
        """Follow the likeliest unproven rival under which the arm would be free.

        Args:
            duration: length of the block [s].
            q: (n,) mean position [rad].
            dq: (n,) mean velocity [rad/s].
            misfit: (1 + R,) mean square residuals.
            pushed: (R,) rivals that the torque of the arm at rest has contradicted before.
        """
        if self._cleared_at is not None and np.max(np.abs(q - self._cleared_at)) > _NEW_POSTURE:
            self._cleared[:], self._cleared_at = False, None
        own, rivals = misfit[0], misfit[1:]
        # What the configured reading explained better before counts for it, with weight two against every rival.
        proven = self.proven
        needed = self._price + np.where(proven, 0.0, 2 * self.margin)
        candidates = (rivals < RIVAL_FREE) & (own - rivals > needed)
        candidates &= ~(proven & (self._lone | (self._settled_time >= PROOF_TIME)))
        candidates |= self._telling
        moving = bool(np.max(np.abs(dq)) > self._rest_speed)
        direction = np.sign(dq) * (np.abs(dq) > 1e-3)
        now = self._suspicion
        if now is not None:
            near = bool(np.abs(q - now.q).max() < _NEW_POSTURE)
            changed = now.contradicted(self._residual, direction, near)
            now.changed = now.changed + duration if changed[now.rival] and not moving else 0.0
            candidates[now.rival] |= now.changed > 0  # until it is clear whether a joint sets off
            if now.changed > _SET_OFF_TIME:  # no reading changes at rest
                self._cleared |= changed
                self._cleared_at, now = q.copy(), None
        candidates &= ~(self._cleared | pushed)
        if not candidates.any():
            self._suspicion = None
            return
        if now is None or not candidates[now.rival]:
            rival = int(np.argmax(candidates))
            now = self._suspicion = Suspicion.of(rival, self._residual, direction, q)
        now.time += duration
        now.moving_time += duration if moving else 0.0
        if now.moving_time >= MOTION_TIME or (now.time >= REST_TIME and not proven[now.rival]):
            self._name(now.rival)

    def _report(self) -> None:
        self.suspects = False
        named = self.rivals[self._late.start + self._delays.found] if self._delays.found >= 0 else ""
        if self._named >= 0:
            named = self.rivals[self._named]
        if named:
            payload = ", or name the payload with --tool" if named == SCALED else ""
            self.problem = (
                f"the effort is configured as {self._own}, but looks like {named}: correct the "
                f"driver, torque_unit or torque_meaning{payload}"
            )
        elif self._stepped:
            self.problem = (
                "the effort stepped from one sample to the next and stayed, which no contact does: check the driver "
                "and the torque sensors, or free the arm"
            )
        elif self._suspicion is not None and (self._telling | ~self.proven)[self._suspicion.rival]:
            self.suspects = True
            self.problem = (
                f"the effort is configured as {self._own}; either it is {self.rivals[self._suspicion.rival]}, or a "
                "contact happens to look like that: motion or a change of the force will tell. Check torque_unit, "
                "torque_meaning and the driver"
            )
        elif self._strange:
            self.problem = (
                f"the effort is configured as {self._own}, but neither a free arm nor a force at the tool explains it: "
                "check the driver, the payload and the mounting, or free the arm"
            )
        else:
            self.problem = ""

    # -- steps between samples -----------------------------------------------------------------------------------------

    def add_step(
        self, t: float, q: np.ndarray, before: np.ndarray, after: np.ndarray, mean: np.ndarray, noise: np.ndarray
    ) -> None:
        """Note a step of the effort, which is judged when it has settled; while one is open smaller ones are not noted.

        Args:
            t: stamp [s].
            q: (n,) position [rad].
            before: (n,) effort of the last sample.
            after: (n,) effort of this one.
            mean: (n,) running mean of the effort before.
            noise: (n,) root mean square change between samples before, in units of friction.
        """
        self._settled_time = 0.0
        self._at_rest.forget()
        now, size = self._step, self.per_friction * (after - before)
        if now is None:
            self._step = Step(t, mean.copy(), before.copy(), after.copy(), noise, q.copy())
        elif np.linalg.norm(size) > np.linalg.norm(self.per_friction * (now.after - now.before)):
            self._step = Step(t, now.mean, before.copy(), after.copy(), now.noise, now.q)

    def settle(self, t: float, q: np.ndarray, mean: np.ndarray) -> None:
        """Judge an open step once it has settled.

        Args:
            t: [s].
            q: (n,) [rad].
            mean: (n,) of the effort.
        """
        if self._step is not None and t - self._step.t >= SETTLE_TIME:
            step, self._step = self._step, None
            self._judge_step(step, mean, self._arm.gravity(step.q), self._arm.gravity(q))
            self._report()

    @property
    def has_step(self) -> bool:
        """Whether a step waits to be judged."""
        return self._step is not None

    def _judge_step(self, step: Step, after: np.ndarray, gravity: np.ndarray, gravity_now: np.ndarray) -> None:
        """Name the fault that explains a step that stayed, where no contact does.

        Args:
            step: the step.
            after: (n,) mean effort when it had settled.
            gravity: (n,) G [Nm] before.
            gravity_now: (n,) G [Nm] after.
        """
        own = self._readings[0]
        was = (own.torque(step.mean, gravity) + gravity_now - gravity) / self._friction
        now = own.torque(after, gravity_now) / self._friction
        jump = self.per_friction * (step.after - step.before)
        size = float(np.linalg.norm(now - was))
        if size < STEP or np.linalg.norm(np.abs(now - was) - np.abs(jump)) > _STEP_MATCH * size:
            return
        if 0 <= self._named < len(self._readings) - 1:
            named = self._readings[1 + self._named].torque(after, gravity_now) / self._friction
            if np.linalg.norm(now - named) < _STEP_MATCH * size:
                self._name(-1)
                return
        if self._stepped and np.all(np.abs(now) < 1.0):
            self._stepped = False
            return
        sigma = self._friction * np.hypot(step.noise, _LEAST_NOISE)
        faults = self._hypotheses.faults(step, gravity, sigma)
        best = int(np.argmax(faults))
        if faults[best] < self._hypotheses.healthy(step, gravity, sigma) + _STEP_ODDS:
            return
        if best < len(self._step_rivals):
            self._name(int(self._step_rivals[best]))
        elif size > _STRANGE_STEP:
            self._stepped, self._acquittal_time = True, 0.0
