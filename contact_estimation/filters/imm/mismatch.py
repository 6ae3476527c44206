"""Whether model and data agree, and what does not: the filter's own evidence, in words.

- Joint stiffness: with its estimates z in prior standard deviations, z^T z is chi-square with as many degrees of
  freedom as there are elastic joints, or less; so is each entry with one (prior predictive check: Box, Sampling and
  Bayes' inference in scientific modelling and robustness, 1980).
- Innovations: their mean square over N independent ones is chi-square with N degrees of freedom, over N (Bar-Shalom, Li
  and Kirubarajan, Estimation with Applications to Tracking and Navigation, 2001, section 5.4).
- A payload: :mod:`.payload`.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.imm.innovation import InnovationStatistics
from contact_estimation.filters.imm.payload import PayloadTest
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import FilterState
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings

#: Every so many blocks one is looked at for a payload: torque of friction hardly changes faster.
_PAYLOAD_BLOCKS = 10


class MismatchTest:
    """Collects evidence against the model.

    Args:
        arm: the robot.
        actuators: joint friction and elasticity.
        state: the filters' state.
        settings: of the filter.
        channels: names of the measurement channels, elastic joints first.

    Attributes:
        innovations: statistics of them.
        payload: test for one.
        words: what disagrees, empty for nothing.
    """

    def __init__(
        self, arm: Arm, actuators: ActuatorSettings, state: FilterState, settings: ImmSettings, channels: list[str]
    ) -> None:
        s, self._state = settings.mismatch, state
        self.innovations = InnovationStatistics(channels, settings.gate, s.window / settings.block)
        self.payload = PayloadTest(arm, actuators, s)
        self._joints = [arm.joint_names[j] for j in state.elastic_joints]
        self._of_stiffness = state.parts["joint_stiffness"]
        count = max(s.window / s.innovation_time, 1.0)
        self._largest = chi_square_quantile(count, s.significance / len(channels)) / count
        elastic = max(state.m, 1)
        of_all, of_one = s.significance, s.significance / elastic
        self._likely = chi_square_quantile(elastic, of_all), chi_square_quantile(1, of_one)
        self._window = s.window
        self.clear()

    def clear(self, anew: bool = True) -> None:
        """Forget all evidence, and the payload that is carried if the arm starts ``anew``."""
        self.innovations.clear()
        self.payload.clear(anew)
        self._deviation = np.zeros(self._state.m)  # squared, in prior standard deviations
        self._judged, self._blocks, self._time, self.words = 0.0, 0, 0.0, ""

    def add(self, duration: float, normalised: np.ndarray, x: np.ndarray) -> None:
        """Take a block.

        Args:
            duration: of it [s].
            normalised: (m + n,) innovations over their standard deviations.
            x: (N,) state of the most probable filter after it.
        """
        self._judged += duration
        if self.innovations.add(normalised):
            where = self._of_stiffness
            z = (x[where] - self._state.mean[where]) / np.sqrt(self._state.variance[where])
            self._deviation += min(self._judged / self._window, 1.0) * (z**2 - self._deviation)
            self._judged = 0.0
            self.words = "; ".join(filter(None, [self._stiffness(z), self._load(), self._innovation()]))

    def add_torque(self, duration: float, q: np.ndarray, presliding: np.ndarray, torque: np.ndarray) -> bool:
        """Take the torque of a block without a known contact, as :meth:`.payload.PayloadTest.add`."""
        self._blocks, self._time = self._blocks + 1, self._time + duration
        if self._blocks < _PAYLOAD_BLOCKS:
            return False
        passed, self._blocks, self._time = self._time, 0, 0.0
        return self.payload.add(passed, q, presliding, torque)

    def _stiffness(self, z: np.ndarray) -> str:
        together, alone = self._likely
        if not self._deviation.sum() > together and not (self._deviation > alone).any():
            return ""
        worst = int(np.argmax(self._deviation))
        if z[worst] > 0:
            return (
                f"{self._joints[worst]} bends less than its stiffness says: the stiffness is set too small, or the "
                "velocity is the joints', not the motors' (motor_side_velocity)"
            )
        return f"{self._joints[worst]} bends more than its stiffness says: the stiffness is set too large"

    def _load(self) -> str:
        load = self.payload.carried or self.payload.found
        if load is None:
            return ""
        place = ", ".join(f"{value:.2f}" for value in load.com)
        return (
            f"a payload of about {load.mass:.1f} kg, its centre of mass at [{place}] m from the flange, or a push that "
            "lasts: name it with --tool"
        )

    def _innovation(self) -> str:
        running = self.innovations.running
        worst = int(np.argmax(running))
        if running[worst] <= self._largest:
            return ""
        return (
            f"no mode explains the {self.innovations.channels[worst]}: its normalised innovations have a mean square "
            f"of {running[worst]:.1f}, at most {self._largest:.1f} is expected"
        )
