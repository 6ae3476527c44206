"""The monitor of signal consistency: every sample, before every observer.

It names what is wrong and the likely cause, and falls silent by itself when the signals agree again.
"""

from __future__ import annotations

import math

import numpy as np

from contact_estimation.codegen import DoubleBuffer, bind_recursion, compile_built
from contact_estimation.filters.plausibility.kinematics import (
    RISE_TIME,
    SHORT_TIME,
    STATE,
    TESTS,
    TOLERANCES,
    build_kinematics,
)
from contact_estimation.filters.plausibility.stamps import SampleIntervals
from contact_estimation.filters.plausibility.torque_readings import BLOCK, STEP, TorqueReadings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import actuators_of

_AT = {name: k for k, name in enumerate(STATE)}
#: [rad/s] The velocity's noise is taken for at least this: calibrated from an arm at rest, whose velocity is exactly
#: zero, it says nothing of motion.
_LEAST_VELOCITY_NOISE = 2e-4
#: Share of samples over the short time that may be spikes; more are noise.
_SPIKE_SHARE = 0.1
#: [rad] A joint must move so far in agreement after a contradiction; at rest it gives no evidence.
_AGREED_WAY = 0.05
#: Shares of a way over the window that choose the words for a disagreement, not whether there is one. As large as the
#: tolerance ``velocity_share``: ways that cancel to less have opposite signs.
_CANCELLED = 0.2
#: Share of a joint's disagreement: two joints that disagree by less once their velocities are exchanged are exchanged.
_EXCHANGED = 0.4
#: A way below this share of the other signal's is none.
_ABSENT = 0.1
#: Ratios of the signals that differ among the joints by less than this share of their mean are one factor.
_COMMON = 0.3


class SignalMonitor:
    """Consistency of one stream of samples.

    Args:
        arm: the robot as its torque sensors see it.
        sensors: what its signals are configured to be, and the tolerances.
        scale: (n,) [Nm per unit of effort].

    Attributes:
        arm: the robot.
        problem: what is wrong now and the likely cause; an empty string while the signals agree.
        intervals: the judgement of the times between samples.
        readings: the judgement of the torque, None where the settings switch it off.
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> None:
        self.arm, self._settings = arm, sensors.plausibility
        self.intervals = SampleIntervals(sensors.longest_period)
        self.readings = TorqueReadings(arm, sensors, scale) if sensors.check_torque_unit else None
        function = compile_built(build_kinematics, arm.n)
        inputs, outputs = function.inputs, function.outputs
        inputs["tolerance"][:] = [getattr(self._settings.kinematics, name) for name in TOLERANCES]
        self._rise = inputs["rise_time"]
        inputs["period"][0] = 1.0 / sensors.rate
        inputs["velocity_noise"][0] = max(actuators_of(arm, warn=False).velocity_noise, _LEAST_VELOCITY_NOISE)
        if self.readings is not None:
            inputs["per_friction"][:] = self.readings.per_friction
        limit = np.where(arm.effort_limit > 0, arm.effort_limit, np.inf)
        inputs["per_limit"][:] = np.abs(scale) / (self._settings.glitch * limit)
        self._q, self._dq, self._effort = inputs["q"], inputs["dq"], inputs["effort"]
        self._h = inputs["h"]
        self._alarm = outputs["alarm"].data  # reads a number ten times as fast as an array does
        self._ratios = outputs["ratios"].reshape(len(TESTS), arm.n)
        self._state = DoubleBuffer.of(function)
        self._advance = bind_recursion(function, [self._state])

        self._to_agree = np.zeros(arm.n)  # way [rad] that a joint has still to move in agreement
        self.reset()

    def restart(self, doubted: bool = True) -> None:
        """Begin with a new stretch of samples, as after a gap; ``doubted``: the driver may be another one."""
        self._started = False
        if self.readings is not None:
            self.readings.restart(doubted)

    def reset(self) -> None:
        """Begin with a stream that nothing is known of."""
        self._kinematic, self._bad_until, self._spikes = "", -np.inf, 0
        self._last_spike, self._spike_share = -np.inf, 0.0
        self._rise[0] = RISE_TIME
        self._to_agree[:] = 0.0
        self.intervals.reset()
        self.problem = ""
        self._started = False
        if self.readings is not None:
            self.readings.reset()

    @property
    def suspects(self) -> bool:
        """Whether the problem is only a suspicion about the torque, which a contact may have raised."""
        contradicted = self.intervals.problem or self._kinematic
        return not contradicted and self.readings is not None and self.readings.suspects

    def forget_exchanges(self) -> None:
        """Doubt the order of the joints again, as after positions that jumped."""
        if self.readings is not None:
            self.readings.forget_exchanges()

    def add(self, t: float, dt: float, q: np.ndarray, dq: np.ndarray, effort: np.ndarray, queued: bool = False) -> bool:
        """Judge one sample; return False where it is a spike that must not be used.

        Args:
            t: stamp [s].
            dt: time since the last sample [s].
            q: (n,) position [rad].
            dq: (n,) velocity [rad/s].
            effort: (n,) effort as it comes.
            queued: the sample had to wait, so that its stamp is too close to the last one's.
        """
        self._q[:], self._dq[:], self._effort[:] = q, dq, effort
        if not self._started:
            self._start(t)
            return True
        self._h[0] = dt
        self.intervals.add(dt, queued)
        self._advance()
        worst, step, repeated, spike = self._alarm
        if spike > 1.0 and self._spikes < 2 and not self.intervals.problem:
            self._spikes += 1
            self._rise += RISE_TIME  # the next one is a change over as many samples
            self._state.turn = 1 - self._state.turn  # as if it had never come
            self._count_spike(t, dt)
            return False
        if worst > 1.0:
            self._disagree(t)
        elif self._kinematic:
            self._recover(t)
        if self.readings is not None:
            if step > STEP or self.readings.has_step:
                self._watch_step(self.readings, t, step)
            self._count += 1.0 - repeated
            if t - self._block_start > BLOCK - 1e-6 and self._count:
                self._judge_block(self.readings, t)
        self.problem = self._first_problem()
        if self._spikes:
            self._spikes, self._rise[0] = 0, RISE_TIME
        return True

    def _count_spike(self, t: float, dt: float) -> None:
        """Contradict a signal whose spikes are so frequent that the samples between them are noise, too."""
        passed = (t - self._last_spike) / SHORT_TIME
        self._spike_share = self._spike_share * math.exp(-passed) + dt / SHORT_TIME
        self._last_spike = t
        if self._spike_share > _SPIKE_SHARE:
            self.problem = self._kinematic = "spikes of velocity or torque come so often that the signal is noise"
            self._bad_until = t + self._settings.hold

    def _disagree(self, t: float) -> None:
        """Note what fails now; position and velocity must be seen to agree in motion before it is forgotten."""
        self._kinematic = self._describe()
        self._bad_until = t + self._settings.hold
        failing = self._ratios[: TESTS.index("scale") + 1].max(axis=0) > 1.0
        if (self._ratios[0] > 1.0).sum() > 1:  # positions of several joints jumped
            self.forget_exchanges()
        self._to_agree[failing] = _AGREED_WAY

    def _recover(self, t: float) -> None:
        """Forget a contradiction that ended."""
        state = self._now()
        before = self._state.copies[1 - self._state.turn]["w"].reshape(state.shape)
        self._to_agree -= np.abs(state[_AT["last_q"]] - before[_AT["last_q"]])
        frozen = state[_AT["q_held"]] != 0  # it did not change since
        if t > self._bad_until and not frozen.any() and (self._to_agree <= 0).all():
            self._kinematic = ""

    def _start(self, t: float) -> None:
        state = self._now()
        state[:] = 0.0
        state[_AT["last_q"]], state[_AT["last_dq"]], state[_AT["last_effort"]] = self._q, self._dq, self._effort
        state[_AT["mean_effort"]], state[_AT["first_dq"]] = self._effort, self._dq
        if self._kinematic:  # a gap proves nothing either
            self._bad_until = t
        self._count, self._block_start = 0.0, t
        self._started = True
        self.problem = self._first_problem()

    def _first_problem(self) -> str:
        of_torque = "" if self.readings is None else self.readings.problem
        return self.intervals.problem or self._kinematic or of_torque

    def _now(self) -> np.ndarray:
        return self._state["w"].reshape(len(STATE), self.arm.n)

    def _watch_step(self, readings: TorqueReadings, t: float, step: float) -> None:
        mean = self._now()[_AT["mean_effort"]]
        if step > STEP:
            state = self._state.copies[1 - self._state.turn]["w"].reshape(len(STATE), -1)
            before = state[_AT["last_effort"]]
            share = min(1.0, self._rise[0] / self._h[0])  # what rises slowly is no step
            after = before + share * (self._effort - before)
            readings.add_step(t, self._q, before, after, mean, np.sqrt(state[_AT["rough"]]))
        readings.settle(t, self._q, mean)

    def _judge_block(self, readings: TorqueReadings, t: float) -> None:
        state, duration = self._now(), t - self._block_start
        sums = state[_AT["sum_q"] : _AT["sum_effort"] + 1]  # (3, n)
        q, dq, effort = sums / self._count
        readings.add_block(duration, q, dq, (self._dq - state[_AT["first_dq"]]) / duration, effort)
        sums[:] = 0.0
        state[_AT["first_dq"]] = self._dq
        self._count, self._block_start = 0.0, t

    # -- words ---------------------------------------------------------------------------------------------------------

    def _describe(self) -> str:
        """Name the joint and the likely cause of the worst test."""
        test, joint = np.unravel_index(int(np.argmax(self._ratios)), self._ratios.shape)
        name, kind = self.arm.joint_names[joint], TESTS[test]
        if kind == "step":
            return f"position and velocity of {name} disagree between two samples: one of them jumped"
        if kind == "rough":
            return f"the torque of {name} is noise: it changes from sample to sample by more than friction"
        if kind == "dq_rough":
            return (
                f"the velocity of {name} is noise: it changes from sample to sample by far more than its sensor's noise"
            )
        if kind == "q_frozen":
            return f"the position of {name} is frozen while its velocity is not"
        if kind == "dq_frozen":
            return f"the velocity of {name} is frozen while its position moves otherwise"
        if kind == "repeated":
            return "the same sample comes again and again while the arm moves: the driver repeats what it had last"
        if kind == "effort_frozen":
            return f"the torque of {name} is frozen while the arm moves"
        state, window = self._now(), "short" if kind == "short" else "long"
        return self._compare(int(joint), state[_AT[f"{window}_q"]], state[_AT[f"{window}_v"]])

    def _compare(self, joint: int, way: np.ndarray, integral: np.ndarray) -> str:
        """Say how position and velocity disagree, from their ways (n,) over the window [rad]."""
        name = self.arm.joint_names[joint]
        ways = f"{name} moved {way[joint]:.4f} rad, its velocity says {integral[joint]:.4f}"
        text = f"position and velocity disagree: {ways}"
        if abs(way[joint] + integral[joint]) < _CANCELLED * abs(way[joint]):
            return f"{text}; the sign of one of them is wrong"
        moving = np.maximum(np.abs(way), np.abs(integral)) > self._settings.kinematics.short_way
        other = np.argmin(np.abs(way[joint] - integral) + np.abs(way - integral[joint]))
        exchanged = abs(way[joint] - integral[other]) + abs(way[other] - integral[joint])
        if other != joint and exchanged < _EXCHANGED * abs(way[joint] - integral[joint]):
            return f"{text}; {name} and {self.arm.joint_names[other]} look exchanged"
        if abs(way[joint]) < _ABSENT * abs(integral[joint]):
            return f"{text}; the position is stuck"
        if abs(integral[joint]) < _ABSENT * abs(way[joint]):
            return f"{text}; the velocity is missing"
        ratio = integral[moving] / np.where(way[moving] == 0, np.inf, way[moving])
        if ratio.size > 1 and np.ptp(ratio) < _COMMON * abs(np.mean(ratio)) and np.mean(ratio) > 0:
            return f"{text}; every joint by the factor {np.mean(ratio):.2f}: stamps or velocity scale are wrong"
        return f"{text}; one of them is scaled, delayed or offset"
