"""Torque against gravity and inertia: is the effort signal what the configuration says?

A reading explains the present torque as that of a *free* arm when its residual

    r = (A effort + g G(q)) - (M ddq + C dq + G)

is within friction on every joint. The configured reading is proven against a rival when it does so and the rival does
not. No contact can undo that: a contact that cancels gravity makes a rival look free, but a proven stream does not
listen to it. Before proof, a rival that looks free where the configured reading does not makes the stream suspect: its
estimates are invalid, but nothing is decided. A change of torque that no friction makes clears a contact of the
suspicion; a suspicion that lasts (half a second of motion, three seconds at rest) is named. Every verdict ends when the
configured reading explains a free arm again.

A reading that changes in mid run shows as a step: from one sample to the next, on all joints at once, to exactly what a
rival makes of the torque before. Contacts and shocks take longer, or return.

Beside the readings of :mod:`.readings` there are two families of rivals: the torque is scaled by a common factor (the
one that fits best), and the torque of a single joint is wrong, whatever it says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.filters.plausibility.readings import configured_reading, rival_readings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import actuators_of

#: Share of gravity and of inertia by which the model may be wrong (payloads excluded; an acceleration is differenced
#: from velocities, and a torque may lag behind it).
GRAVITY_SHARE, INERTIA_SHARE = 0.05, 0.3
#: Viscous friction of a gear at its fastest, as a share of its effort limit: a UR10e's logs show 5 to 10 %.
VISCOUS_SHARE = 0.1
#: Mean square residual, in units of friction, below which a reading explains a free arm: the configured one, and a
#: rival, which has to be believed against the settings.
FREE, RIVAL_FREE = 1.0, 0.5
#: By how much (mean square) one reading must explain the torque better than another: with six joints, a likelihood
#: ratio of e^3.6. A rival that may choose a factor, or which joint is wrong, needs as much again.
BETTER = 1.2
#: Factors on the torque between these are no mistake of a unit: payloads and torque constants make them.
LEAST_SCALE, MOST_SCALE = 0.7, 1.5
#: [s] How long an explanation has to hold to be a proof.
PROOF_TIME = 0.2
#: [s] After which a suspicion is named: at rest, and while a joint moves.
REST_TIME, MOTION_TIME = 3.0, 0.5
#: [rad/s] Slower joints rest. [rad] Way after which a rival that was cleared may be suspected again.
REST_SPEED, NEW_POSTURE = 0.05, 0.1
#: A torque that changes by this share of the friction allowance, without a joint reversing, is not friction.
CHANGE_SHARE = 0.75
#: [s] Torque spikes of stops last 5 to 20 ms: a step is judged after this.
SETTLE_TIME = 0.05
#: Gain of the running mean before and after a step: at 500 Hz a memory of 10 ms, gone when the step is judged.
MEAN_GAIN = 0.2
#: Size of a step in units of friction, and how near (share of the step) a rival's prediction must be.
STEP_SIZE, STEP_MATCH = 3.0, 0.4


@dataclass
class Suspicion:
    """A rival that looks free where the configured reading does not.

    Attributes:
        rival: its index.
        residual: (n,) [Nm] under the rival when the suspicion arose, or when a joint reversed.
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
        jump: (n,) [Nm] change between the two samples, as configured.
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
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> None:
        self._arm = arm
        own = configured_reading(arm, sensors, scale)
        readings = [own, *rival_readings(arm, sensors, scale)]
        self._own = own.name
        self._matrices = np.array([r.matrix for r in readings])  # (1 + readings, n, n)
        self._added = np.array([r.gravity for r in readings])[:, None]  # (1 + readings, 1)
        self.rivals = [r.name for r in readings[1:]] + ["torque scaled by a common factor"]
        self.rivals += [f"wrong on {name} alone" for name in arm.joint_names]
        friction = actuators_of(arm, told=False)  # the observer warns where a robot's friction is not known
        law = friction.friction
        parts = (law.bias_std, law.coulomb, law.coulomb_std, friction.disturbance_std, friction.torque_noise)
        self._friction = np.sqrt(np.sum(np.square(parts), axis=0))  # (n,) [Nm]
        fastest = np.where(arm.velocity_limit > 0, arm.velocity_limit, np.inf)
        self._viscous = VISCOUS_SHARE * arm.effort_limit / fastest  # (n,) [Nms/rad]
        choices = np.array([*(r.choices for r in readings[1:]), 1, *[arm.n] * arm.n])
        free_number = np.arange(len(self.rivals)) >= len(readings) - 1
        # The best of many fits better by chance: its square is 2 ln(choices) less.
        self._price = BETTER * np.where(free_number, 2.0, 1.0) + 2 * np.log(choices) / arm.n
        self.margin = np.zeros(len(self.rivals))
        self._named = -1
        self.problem = ""
        self.restart()

    @property
    def proven(self) -> np.ndarray:
        """Return (R,) whether the configured reading was proven against each rival."""
        return self.margin > BETTER

    def restart(self) -> None:
        """Begin with a new stretch of samples; what was proven or named stays."""
        self._step: Step | None = None
        self._mean: np.ndarray | None = None
        self._suspicion: Suspicion | None = None
        self._cleared = np.zeros(len(self.rivals), dtype=bool)
        self._cleared_at: np.ndarray | None = None
        self._lead = np.zeros(len(self.rivals))
        self._acquittal_time = 0.0

    def _explain(self, torque: np.ndarray, target: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """Residuals (1 + R, n) [Nm] of the configured reading and every rival.

        Args:
            torque: (1 + readings, n) [Nm] what each reading makes of the effort.
            target: (n,) [Nm] the torque to be explained.
            sigma: (n,) [Nm] its allowance.
        """
        residual = torque - target
        own = torque[0] / sigma
        factor = float(own @ (target / sigma)) / max(float(own @ own), 1e-12)
        if LEAST_SCALE < 1 / max(factor, 1e-9) < MOST_SCALE:
            factor = 1.0
        alone = residual[0] * (1 - np.eye(len(target)))  # (n, n)
        return np.vstack([residual, factor * torque[0] - target, alone])

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
        gravity = self._arm.gravity(q)
        inertia = self._arm.mass(q) @ ddq + self._arm.coriolis(q, dq)
        sigma = self._friction + GRAVITY_SHARE * np.abs(gravity) + INERTIA_SHARE * np.abs(inertia)
        sigma += self._viscous * np.abs(dq)
        residual = self._explain(self._matrices @ effort + self._added * gravity, gravity + inertia, sigma)
        square = np.mean((residual / sigma) ** 2, axis=1)  # (1 + R,)
        felt = float(np.mean(((gravity + inertia) / sigma) ** 2))
        if square[0] < FREE:
            self._own_explains(duration, square, felt)
        else:
            self._acquittal_time = 0.0
            self._lead[:] = 0.0
            # Where gravity is not felt, whatever makes the torque small explains friction best.
            self._watch(duration, q, dq, residual[1:] / sigma, square if felt > BETTER else np.zeros_like(square))
        self._say()

    def _own_explains(self, duration: float, square: np.ndarray, felt: float) -> None:
        """Prove the configured reading against rivals that fail, and acquit it of what was named.

        Args:
            duration: length of the block [s].
            square: (1 + R,) mean square residuals.
            felt: mean square of gravity and inertia themselves.
        """
        self._suspicion = None
        joints = len(self.rivals) - self._arm.n
        lead = square[1:] - square[0]
        lead[joints:] = 2 * BETTER  # that a joint alone is wrong is refuted as soon as it is right
        lead[joints - 1] = felt - square[0]  # and a wrong factor as soon as there is something to scale
        # Averaged over the proof time, from zero: a moment proves nothing.
        self._lead += min(duration / PROOF_TIME, 1.0) * (lead - self._lead)
        self.margin = np.maximum(self.margin, self._lead)
        fails = lead > BETTER
        if self._named >= 0:
            self._acquittal_time += duration if fails[self._named] else 0.0
            if self._acquittal_time >= (PROOF_TIME if self._named < joints else 5 * PROOF_TIME):
                self._name(-1)

    def _name(self, rival: int) -> None:
        if self._named >= 0:
            self.margin[self._named] = 0.0  # what was wrong once may be wrong again
        self._named, self._acquittal_time, self._suspicion = rival, 0.0, None

    def _watch(self, duration: float, q: np.ndarray, dq: np.ndarray, residual: np.ndarray, square: np.ndarray) -> None:
        """Follow the likeliest unproven rival under which the arm would be free; residuals in units of friction."""
        if self._cleared_at is not None and np.max(np.abs(q - self._cleared_at)) > NEW_POSTURE:
            self._cleared[:], self._cleared_at = False, None
        own, rivals = square[0], square[1:]
        # What the configured reading explained better before counts for it, twice: a rival is believed reluctantly.
        proven = self.proven
        needed = self._price + np.where(proven, 0.0, 2 * self.margin)
        candidates = (rivals < RIVAL_FREE) & (own - rivals > needed) & ~self._cleared
        candidates[len(rivals) - len(q) :] &= ~proven[len(rivals) - len(q) :]
        if not candidates.any():
            self._suspicion = None
            return
        now = self._suspicion
        if now is None or not candidates[now.rival]:
            rival = int(np.argmax(candidates))
            now = self._suspicion = Suspicion(rival, residual[rival].copy(), np.sign(dq) * (np.abs(dq) > 1e-3))
        turned = np.sign(dq) * now.direction < 0
        now.residual[turned] = residual[now.rival][turned]
        moving = bool(np.max(np.abs(dq)) > REST_SPEED)
        if not moving and np.max(np.abs(residual[now.rival] - now.residual)) > CHANGE_SHARE:
            self._cleared[now.rival], self._cleared_at, self._suspicion = True, q.copy(), None
            return
        now.time += duration
        now.moving_time += duration if moving else 0.0
        if now.moving_time >= MOTION_TIME or (now.time >= REST_TIME and not proven[now.rival]):
            self._name(now.rival)

    def _say(self) -> None:
        if self._named >= 0:
            self.problem = (
                f"the effort is configured as {self._own}, but looks like {self.rivals[self._named]}: correct the "
                "driver, torque_unit or torque_meaning"
            )
        elif self._suspicion is not None and not self.proven[self._suspicion.rival]:
            self.problem = (
                f"the effort is configured as {self._own}; either it is {self.rivals[self._suspicion.rival]}, or a "
                "contact happens to look like that: motion or a change of the force will tell. Check torque_unit, "
                "torque_meaning and the driver"
            )
        else:
            self.problem = ""

    # -- steps between samples -----------------------------------------------------------------------------------------

    def add_sample(self, t: float, q: np.ndarray, effort: np.ndarray, before: np.ndarray) -> None:
        """Watch for a step of the effort between two samples.

        Args:
            t: stamp [s].
            q: (n,) position [rad].
            effort: (n,) effort as it comes.
            before: (n,) effort of the sample before.
        """
        if self._mean is None:
            self._mean = before.copy()
        if self._step is None:
            jump = self._matrices[0] @ (effort - before)
            if np.sum((jump / self._friction) ** 2) > STEP_SIZE**2:
                self._step = Step(t, self._mean.copy(), jump, q.copy())
        elif t - self._step.t >= SETTLE_TIME:
            step, self._step = self._step, None
            self._judge(step, self._mean, self._arm.gravity(step.q), self._arm.gravity(q))
            self._say()
        self._mean += MEAN_GAIN * (effort - self._mean)

    def _judge(self, step: Step, after: np.ndarray, gravity: np.ndarray, gravity_now: np.ndarray) -> None:
        """Name the rival that makes of the effort after a step what the configured reading made of it before.

        Args:
            step: the step.
            after: (n,) effort when it had settled.
            gravity: (n,) G [Nm] before.
            gravity_now: (n,) G [Nm] after.
        """
        torque = self._matrices @ step.effort + self._added * gravity + gravity_now - gravity
        was, now = torque[0], self._matrices @ after + self._added * gravity_now
        size = float(np.linalg.norm((now[0] - was) / self._friction))
        # The change came within one sample, and stayed: an impact goes on growing, a spike returns.
        rest = float(np.linalg.norm((now[0] - was - step.jump) / self._friction))
        if size < STEP_SIZE or rest > STEP_MATCH * size:
            return
        if 0 <= self._named < len(torque) - 1:
            back = np.linalg.norm((now[0] - torque[1 + self._named]) / self._friction)
            if back < STEP_MATCH * size:
                self._name(-1)
                return
        residual = self._explain(now, was, self._friction)[1:]
        misfit = np.linalg.norm(residual / self._friction, axis=1)
        misfit[len(self._matrices) - 1 :] += 1.0  # the price of a free number
        best = int(np.argmin(misfit))
        if misfit[best] < STEP_MATCH * size:
            self._name(best)
