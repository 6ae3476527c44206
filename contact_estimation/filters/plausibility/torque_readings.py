"""Torque against gravity and inertia: is the effort signal what the configuration says?

A reading explains the present torque as that of a *free* arm when its residual (:mod:`.explanation`) is within friction
on every joint. The configured reading is proven against a rival when it does so and the rival does not. No contact can
undo that: a contact that cancels gravity makes a rival look free, but a proven stream does not listen to it. Before
proof, a rival that looks free where the configured reading does not makes the stream suspect, and so does a torque that
neither a free arm nor a force at the tool explains: estimates are invalid, but nothing is decided. A change of torque
that no friction makes clears a contact of the suspicion; a suspicion that lasts (half a second of motion, three seconds
at rest) is named. Every verdict ends when the configured reading explains a free arm again.

A reading that changes in mid run shows as a step (:mod:`.steps`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.plausibility.explanation import build_explanation
from contact_estimation.filters.plausibility.readings import configured_reading, rival_readings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import actuators_of


@dataclass
class Suspicion:
    """A rival that looks free where the configured reading does not.

    Attributes:
        rival: its index.
        residual: (n,) in units of friction, under the rival when the suspicion arose, or when a joint reversed.
        direction: (n,) sign of the joints' motion then.
        time: how long it has lasted [s].
        moving_time: how long of that a joint moved [s].
    """

    rival: int
    residual: np.ndarray
    direction: np.ndarray
    time: float = 0.0
    moving_time: float = 0.0


@dataclass
class Step:
    """A step of the effort from one sample to the next.

    Attributes:
        t: its stamp [s].
        effort: (n,) mean effort before it, as it comes.
        jump: (n,) change between the two samples, in units of friction.
        q: (n,) position then [rad].
    """

    t: float
    effort: np.ndarray
    jump: np.ndarray
    q: np.ndarray


class TorqueReadings:
    """Follows which readings of the effort explain the torque.

    Args:
        arm: the robot as its torque sensors see it.
        sensors: what is configured.
        scale: (n,) [Nm per unit of effort].

    Attributes:
        problem: why the configured reading cannot be used now, or an empty string.
        rivals: names of the rivals.
        margin: (R,) by how much the configured reading explained a free arm better (mean square), at its best.
        per_friction: (n,) one unit of effort in units of friction.
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> None:
        self._arm, self.settings = arm, sensors.plausibility.torque
        s, n = self.settings, arm.n
        own = configured_reading(arm, sensors, scale)
        self._readings = [own, *rival_readings(arm, sensors, scale)]
        self._own = own.name
        friction = actuators_of(arm, told=False)  # the observer warns where a robot's friction is not known
        law = friction.friction
        parts = (law.bias_std, law.coulomb_std, friction.disturbance_std, friction.torque_noise)
        self._unknown, self._coulomb = np.sqrt(np.sum(np.square(parts), axis=0)), np.asarray(law.coulomb)  # (n,) [Nm]
        self._friction = np.hypot(self._unknown, self._coulomb)
        self.per_friction = np.abs(own.factor) / self._friction
        self._explain = compile_function(build_explanation(arm, self._readings, len(s.delays)))
        self._fill(self._explain.inputs)
        out = self._explain.outputs
        self._residual = out["residual"].reshape(-1, n)  # (1 + R, n)
        self._misfit = out["misfit"]  # (1 + R,)
        delays = [f"torque that is {delay:g} s late" for delay in s.delays]
        names = [r.name for r in self._readings[1:]]
        self.rivals = [*names, "torque scaled by a common factor", *delays, "torque of an arm mounted otherwise"]
        self._alone = len(self.rivals)  # index of the first rival that blames one joint alone
        self.rivals += [f"wrong on {name} alone" for name in arm.joint_names]
        # The best of many fits better by chance: its square is 2 ln(choices) less. A free number costs as much as the
        # proof itself.
        choices = np.array([r.choices for r in self._readings[1:]] + [1] + [len(delays)] * len(delays) + [1] + [n] * n)
        numbers = np.array([0] * len(names) + [1] + [0] * len(delays) + [2] + [1] * n)
        self._price = s.better * (1.0 + numbers) + 2 * np.log(choices) / n
        self.margin = np.zeros(len(self.rivals))
        self.forget()

    def _fill(self, inputs: dict[str, np.ndarray]) -> None:
        s, arm = self.settings, self._arm
        fastest = np.where(arm.velocity_limit > 0, arm.velocity_limit, np.inf)
        inputs["factor"][:] = np.concatenate([r.factor for r in self._readings])
        inputs["added"][:] = [r.gravity for r in self._readings]
        inputs["friction"][:], inputs["coulomb"][:], inputs["moving"][0] = self._unknown, self._coulomb, s.moving_speed
        inputs["viscous"][:] = s.viscous_share * arm.effort_limit / fastest
        inputs["share"][:] = s.gravity_share, s.inertia_share
        inputs["scales"][:] = s.least_scale, s.most_scale
        inputs["contact"][:] = [s.force] * 3 + [s.moment] * 3

    @property
    def proven(self) -> np.ndarray:
        """Return (R,) whether the configured reading was proven against each rival."""
        return self.margin > self.settings.better

    def forget(self) -> None:
        """Begin with a stream that nothing is known of."""
        self.margin[:] = 0.0
        self._named, self._stepped = -1, False
        self.problem = ""
        self.restart()

    def restart(self) -> None:
        """Begin with a new stretch of samples; what was proven or named stays."""
        longest = max(self.settings.delays)
        self._past: deque[np.ndarray] = deque(maxlen=1 + round(longest / self.settings.block))
        self._step: Step | None = None
        self._suspicion: Suspicion | None = None
        self._confirmed = self._strange = False
        self._doubt = self.settings.proof_time  # [s] for which a free arm has to be explained
        self._cleared = np.zeros(len(self.rivals), dtype=bool)
        self._cleared_at: np.ndarray | None = None
        self._lead = np.zeros(len(self.rivals))
        self._acquittal_time = 0.0

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
        s, inputs, out = self.settings, self._explain.inputs, self._explain.outputs
        inputs["q"][:], inputs["dq"][:], inputs["ddq"][:], inputs["effort"][:] = q, dq, ddq, effort
        self._remember(inputs["past"].reshape(-1, self._arm.n))
        self._explain()
        self._past.append(out["model"].copy())
        misfit, felt = self._misfit, float(out["felt"][0])
        if misfit[0] < s.free:
            self._own_explains(duration, misfit, felt)
        else:
            self._acquittal_time = 0.0
            self._lead[:] = 0.0
            # Where gravity is not felt, whatever makes the torque small explains friction best.
            self._watch(duration, q, dq, misfit if felt > s.better else np.zeros_like(misfit))
            self._question(duration, bool(out["pushed"][0] > s.free))
        self._say()

    def _remember(self, past: np.ndarray) -> None:
        """Fill (delays, n) [Nm] with the model's torque some time ago."""
        for k, delay in enumerate(self.settings.delays):
            blocks = round(delay / self.settings.block)
            past[k] = self._past[-blocks] if len(self._past) >= blocks else 1e9

    def _own_explains(self, duration: float, misfit: np.ndarray, felt: float) -> None:
        """Prove the configured reading against rivals that fail, and acquit it of what was named.

        Args:
            duration: length of the block [s].
            misfit: (1 + R,) mean square residuals.
            felt: mean square of gravity and inertia themselves.
        """
        s = self.settings
        self._suspicion = None
        if not self._confirmed:
            self._doubt -= duration
            self._confirmed = self._doubt <= 0
            self._strange &= not self._confirmed
        lead = misfit[1:] - misfit[0]
        right = np.abs(self._residual[0]) < 1.0  # that a joint alone is wrong is refuted as soon as it is right
        lead[self._alone :] = 2 * s.better * right
        free_numbers = (len(self._readings) - 1, self._alone - 1)  # a common factor, another direction of gravity:
        lead[list(free_numbers)] = felt - misfit[0]  # refuted as soon as there is something to scale
        # Averaged over the proof time, from zero: a moment proves nothing.
        self._lead += min(duration / s.proof_time, 1.0) * (lead - self._lead)
        np.maximum(self.margin, self._lead, out=self.margin)
        if self._stepped:
            self._acquittal_time += duration if right.all() else 0.0
            self._stepped = self._acquittal_time < 5 * s.proof_time
        elif self._named >= 0:
            self._acquittal_time += duration if lead[self._named] > s.better else 0.0
            if self._acquittal_time >= (s.proof_time if self._named < self._alone else 5 * s.proof_time):
                self._name(-1)

    def _question(self, duration: float, strange: bool) -> None:
        """Doubt what neither a free arm nor a force at the tool explains, until a free arm explains it as long."""
        if self._confirmed:
            return
        self._strange |= strange
        if strange:
            self._doubt = min(self._doubt + duration, self.settings.doubt_time)
        elif self._doubt <= self.settings.proof_time:
            self._strange = False

    def _name(self, rival: int) -> None:
        if self._named >= 0:
            self.margin[self._named] = 0.0  # what was wrong once may be wrong again
        self._named, self._acquittal_time, self._suspicion, self._stepped = rival, 0.0, None, False

    def _watch(self, duration: float, q: np.ndarray, dq: np.ndarray, misfit: np.ndarray) -> None:
        """Follow the likeliest unproven rival under which the arm would be free."""
        s = self.settings
        if self._cleared_at is not None and np.max(np.abs(q - self._cleared_at)) > s.new_posture:
            self._cleared[:], self._cleared_at = False, None
        own, rivals = misfit[0], misfit[1:]
        # What the configured reading explained better before counts for it, twice: a rival is believed reluctantly.
        proven = self.proven
        needed = self._price + np.where(proven, 0.0, 2 * self.margin)
        candidates = (rivals < s.rival_free) & (own - rivals > needed) & ~self._cleared
        candidates[self._alone :] &= ~proven[self._alone :]
        if not candidates.any():
            self._suspicion = None
            return
        now, residual = self._suspicion, self._residual[1:]
        if now is None or not candidates[now.rival]:
            rival = int(np.argmax(candidates))
            now = self._suspicion = Suspicion(rival, residual[rival].copy(), np.sign(dq) * (np.abs(dq) > 1e-3))
        direction = np.sign(dq) * (np.abs(dq) > 1e-3)
        turned = direction * now.direction < np.abs(direction)  # a joint that sets off or reverses: friction changes
        now.residual[turned], now.direction[turned] = residual[now.rival][turned], direction[turned]
        moving = bool(np.max(np.abs(dq)) > s.rest_speed)
        if not moving and np.max(np.abs(residual[now.rival] - now.residual)) > s.change_share:
            self._cleared[now.rival], self._cleared_at, self._suspicion = True, q.copy(), None
            return
        now.time += duration
        now.moving_time += duration if moving else 0.0
        if now.moving_time >= s.motion_time or (now.time >= s.rest_time and not proven[now.rival]):
            self._name(now.rival)

    def _say(self) -> None:
        if self._named >= 0:
            self.problem = (
                f"the effort is configured as {self._own}, but looks like {self.rivals[self._named]}: correct the "
                "driver, torque_unit or torque_meaning"
            )
        elif self._stepped:
            self.problem = (
                "the effort stepped from one sample to the next and stayed, which no contact does: check the driver "
                "and the torque sensors, or free the arm"
            )
        elif self._suspicion is not None and not self.proven[self._suspicion.rival]:
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

    def _torques(self, effort: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """Total torque (1 + readings, n) [Nm] that each reading makes of an effort."""
        return np.array([r.factor * effort[r.order] + r.gravity * gravity for r in self._readings])

    def add_step(self, t: float, q: np.ndarray, jump: np.ndarray, mean: np.ndarray) -> None:
        """Note a step of the effort, which is judged when it has settled; while one is open others are not noted.

        Args:
            t: stamp [s].
            q: (n,) position [rad].
            jump: (n,) change of the effort from the sample before.
            mean: (n,) running mean of the effort before it.
        """
        if self._step is None:
            self._step = Step(t, mean.copy(), self.per_friction * jump, q.copy())

    def settle(self, t: float, q: np.ndarray, mean: np.ndarray) -> None:
        """Judge an open step once it has settled; arguments as in :meth:`add_step`."""
        if self._step is not None and t - self._step.t >= self.settings.settle_time:
            step, self._step = self._step, None
            self._judge(step, mean, self._arm.gravity(step.q), self._arm.gravity(q))
            self._say()

    @property
    def stepped(self) -> bool:
        """Whether a step waits to be judged."""
        return self._step is not None

    def _judge(self, step: Step, after: np.ndarray, gravity: np.ndarray, gravity_now: np.ndarray) -> None:
        """Name the rival that makes of the effort after a step what the configured reading made of it before.

        Args:
            step: the step.
            after: (n,) effort when it had settled.
            gravity: (n,) G [Nm] before.
            gravity_now: (n,) G [Nm] after.
        """
        s, count = self.settings, len(self._readings)
        was = (self._torques(step.effort, gravity)[0] + gravity_now - gravity) / self._friction
        now = self._torques(after, gravity_now) / self._friction
        size = float(np.linalg.norm(now[0] - was))
        # The change came within one sample, and stayed: an impact goes on growing, a spike returns.
        if size < s.step or np.linalg.norm(np.abs(now[0] - was) - np.abs(step.jump)) > s.step_match * size:
            return
        if 0 <= self._named < count - 1 and np.linalg.norm(now[0] - now[1 + self._named]) < s.step_match * size:
            self._name(-1)
            return
        if self._stepped and np.all(np.abs(now[0]) < 1.0):
            self._stepped = False
            return
        factor = float(now[0] @ was) / max(float(now[0] @ now[0]), 1e-12)
        factor = 1.0 if s.least_scale < 1 / max(factor, 1e-9) < s.most_scale else factor
        misfit = np.full(len(self.rivals), np.inf)
        misfit[: count - 1] = np.linalg.norm(now[1:] - was, axis=1)
        misfit[count - 1] = np.linalg.norm(factor * now[0] - was) + 1.0  # the price of a free number
        left = (now[0] - was) * (1 - np.eye(len(was)))  # (n, n)
        misfit[self._alone :] = np.linalg.norm(left, axis=1) + 1.0
        best = int(np.argmin(misfit))
        # A reading that makes everything small explains whatever came after a small torque.
        told = min(size, float(np.linalg.norm(was))) if best < count else size
        if misfit[best] < s.step_match * told:
            self._name(best)
        elif size > s.strange_step:
            self._stepped, self._acquittal_time = True, 0.0
