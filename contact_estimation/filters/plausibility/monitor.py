"""The monitor of signal consistency: every sample, before every observer.

It names what is wrong and the likely cause, and falls silent by itself when the signals agree again.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.codegen import DoubleBuffer, bind_recursion, compile_function
from contact_estimation.filters.plausibility.kinematics import STATE, TESTS, build_kinematics
from contact_estimation.filters.plausibility.torque_readings import TorqueReadings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm

#: [s] The torque is judged on means over this, and a cause that is gone is forgotten after this.
BLOCK, HOLD = 0.02, 0.2
#: Time constants [s] of the short and the long comparison of position and velocity, and what elastic joints, encoder
#: noise and the delay of the velocity may make of it [rad].
SHORT, LONG = 0.1, 2.0
SHORT_WIDTH, LONG_WIDTH = 2.5e-3, 4e-3
#: Share by which velocity and position may differ in scale.
SHARE = 0.2
#: [rad] Way that a frozen signal may hide: ten steps of an encoder of 18 bits.
HIDDEN = 2.5e-4
#: [s] For which a position, a velocity, a torque and a whole sample may repeat to the last bit. Drivers fill lost
#: packets with the last one; a Panda's recording has 30 ms of that.
HELD_TIMES = (0.04, 0.05, 0.1, 0.05)


class SignalMonitor:
    """Consistency of one stream of samples.

    Args:
        arm: the robot as its torque sensors see it.
        sensors: what its signals are configured to be.
        scale: (n,) [Nm per unit of effort].

    Attributes:
        problem: what is wrong now and the likely cause; an empty string while the signals agree.
        readings: the judgement of the torque, None where the settings switch it off.
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> None:
        self._arm = arm
        self.readings = TorqueReadings(arm, sensors, scale) if sensors.check_torque_unit else None
        function = compile_function(build_kinematics(arm.n))
        inputs, outputs = function.inputs, function.outputs
        widths = (SHORT, LONG, SHORT_WIDTH, LONG_WIDTH, SHARE, HIDDEN)
        inputs["tolerance"][:] = [*widths, *HELD_TIMES]
        self._inputs, self._worst = inputs, outputs["worst"]
        self._ratios = outputs["ratios"].reshape(len(TESTS), arm.n)
        self._state = DoubleBuffer.of(function)
        self._advance = bind_recursion(function, [self._state])
        self._sums = np.zeros((3, arm.n))
        self.problem = ""
        self._started = False

    def restart(self) -> None:
        """Begin with a new stretch of samples, as after a gap."""
        self._started = False
        if self.readings is not None:
            self.readings.restart()

    def add(self, t: float, dt: float, q: np.ndarray, dq: np.ndarray, effort: np.ndarray) -> None:
        """Judge one sample.

        Args:
            t: stamp [s].
            dt: time since the last sample [s].
            q: (n,) position [rad].
            dq: (n,) velocity [rad/s].
            effort: (n,) effort as it comes.
        """
        inputs = self._inputs
        inputs["q"][:], inputs["dq"][:], inputs["effort"][:] = q, dq, effort
        if not self._started:
            self._start(t)
            return
        inputs["h"][0] = dt
        before = self._now()[STATE.index("last_effort")].copy()
        self._advance()
        if self._worst[0] > 1.0:
            self._kinematic = self._describe()
            self._bad_until = t + HOLD
        elif self._kinematic and t > self._bad_until:
            self._kinematic = ""
        if self.readings is not None:
            self.readings.add_sample(t, q, effort, before)
            self._gather(self.readings, t, q, dq, effort)
        self.problem = self._kinematic or ("" if self.readings is None else self.readings.problem)

    def _start(self, t: float) -> None:
        state = self._now()
        state[:] = 0.0
        for k, name in enumerate(("q", "dq", "effort")):
            state[k] = self._inputs[name]
        self._kinematic, self._bad_until = "", t
        self._clear_block(t, state[1])
        self._started = True
        self.problem = "" if self.readings is None else self.readings.problem

    def _now(self) -> np.ndarray:
        return self._state["w"].reshape(len(STATE), self._arm.n)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _clear_block(self, t: float, dq: np.ndarray) -> None:
        self._sums[:] = 0.0
        self._count, self._block_start, self._first_dq = 0, t, dq.copy()

    def _gather(self, readings: TorqueReadings, t: float, q: np.ndarray, dq: np.ndarray, effort: np.ndarray) -> None:
        self._sums[0] += q
        self._sums[1] += dq
        self._sums[2] += effort
        self._count += 1
        duration = t - self._block_start
        if duration < BLOCK - 1e-6:
            return
        means = self._sums / self._count
        acceleration = (dq - self._first_dq) / duration
        readings.add_block(duration, means[0], means[1], acceleration, means[2])
        self._clear_block(t, dq)

    # -- words ---------------------------------------------------------------------------------------------------------

    def _describe(self) -> str:
        """Name the joint and the likely cause of the worst test."""
        test, joint = np.unravel_index(int(np.argmax(self._ratios)), self._ratios.shape)
        name, kind = self._arm.joint_names[joint], TESTS[test]
        if kind == "q_frozen":
            return f"the position of {name} is frozen while its velocity is not"
        if kind == "dq_frozen":
            return f"the velocity of {name} is frozen while its position moves otherwise"
        if kind == "repeated":
            return "the same sample comes again and again while the arm moves: the driver repeats what it had last"
        if kind == "effort_frozen":
            return f"the torque of {name} is frozen while the arm moves"
        state = dict(zip(STATE, self._now()))
        way, integral = state[f"{kind}_q"], state[f"{kind}_v"]
        return self._compare(int(joint), way, integral)

    def _compare(self, joint: int, way: np.ndarray, integral: np.ndarray) -> str:
        """Say how position and velocity disagree, from their ways (n,) over the window [rad]."""
        name = self._arm.joint_names[joint]
        ways = f"{name} moved {way[joint]:.4f} rad, its velocity says {integral[joint]:.4f}"
        text = f"position and velocity disagree: {ways}"
        moving = np.maximum(np.abs(way), np.abs(integral)) > SHORT_WIDTH
        other = np.argmin(np.abs(way[joint] - integral) + np.abs(way - integral[joint]))
        if other != joint and abs(way[joint] - integral[other]) + abs(way[other] - integral[joint]) < 0.4 * abs(
            way[joint] - integral[joint]
        ):
            return f"{text}; {name} and {self._arm.joint_names[other]} look exchanged"
        if abs(way[joint]) < 0.1 * abs(integral[joint]):
            return f"{text}; the position is stuck"
        if abs(integral[joint]) < 0.1 * abs(way[joint]):
            return f"{text}; the velocity is missing"
        ratio = integral[moving] / np.where(way[moving] == 0, np.inf, way[moving])
        if ratio.size > 1 and np.ptp(ratio) < 0.3 * abs(np.mean(ratio)) and np.mean(ratio) > 0:
            return f"{text}; every joint by the factor {np.mean(ratio):.2f}: stamps or velocity scale are wrong"
        if way[joint] * integral[joint] < 0:
            return f"{text}; the sign of one of them is wrong"
        return f"{text}; one of them is scaled, delayed or offset"
