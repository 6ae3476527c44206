"""Whether model and data agree, and what does not: the filter's own evidence, in words.

- Joint stiffness: :mod:`.deflection`.
- Innovations: their mean square over N independent ones is chi-square with N degrees of freedom, over N (Bar-Shalom, Li
  and Kirubarajan, Estimation with Applications to Tracking and Navigation, 2001, section 5.4).
- One channel's innovations beyond the gate, to one side, for 0.2 s: the estimate follows the other channels.
- A payload: :mod:`.payload`.
- A push since the start: while the arm has not been free, a payload or an error of the model may be part of it. If it
  ends undecided, or a payload disappears, a hand may be lifting a load. Free space is then uncertain, too, if the push
  pointed downwards, as a weight.
- Free space in which a contact was likelier for long: friction may have taken a part of the push that is named next.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.gaussian import ZeroMeanGaussian
from contact_estimation.filters.imm.deflection import DeflectionTest
from contact_estimation.filters.imm.innovation import InnovationStatistics
from contact_estimation.filters.imm.payload import FeltTorque, PayloadTest
from contact_estimation.filters.imm.push_course import CONTRADICTS, OutliersInARow
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings

#: The tests of payload and deflection take one block of so many: torque of friction hardly changes faster.
_EVERY = 10
#: [s] Free space that lasts so long from the start on shows that the arm carries nothing untold.
_SHOWN_FREE = 0.1
#: [s] The same once something may have acted: friction that has taken it may balance what acts now, or a hand lifts it.
_DECIDED = 2.0
#: Probability that the estimate of a weight has larger parts across gravity than one that is still taken for a weight.
_ACROSS = 0.05
_DOUBTED = "a contact was likelier than free space before this push: friction may have taken a part of it"
_ENDED = (
    "what has acted before has gone, or is a payload that something lifts: its weight would be an error of the push; "
    "name payloads with --tool"
)
_LIFTED = (
    "what may have acted since the start has gone, or it is a payload that something lifts: move the arm freely, or "
    "name payloads with --tool"
)
_CONTRADICTION = "no mode explains the {}: the other channels say another force, or a load that is not told"
_NEVER_FREE = (
    "the arm has not been free since the start: a payload or an error of the model would be part of the push; name "
    "payloads with --tool"
)


class MismatchTest:
    """Collects evidence against the model.

    Args:
        arm: the robot.
        actuators: joint friction and elasticity.
        layout: parts of the filters' state.
        settings: of the filter.
        channels: names of the measurement channels, elastic joints first.

    Attributes:
        innovations: statistics of them.
        payload: test for one.
        deflection: test of the joints' stiffness.
        words: what disagrees, empty for nothing.
        names_load: the words name a payload.
        contradiction: a channel that the estimate has departed from just now, empty for none.
        free_time: how long the arm has been free [s], without an end once that shows that it carries nothing.
    """

    def __init__(
        self, arm: Arm, actuators: ActuatorSettings, layout: StateLayout, settings: ImmSettings, channels: list[str]
    ) -> None:
        s = settings.mismatch
        self.innovations = InnovationStatistics(channels, settings.gate, s.window / settings.block)
        self.payload = PayloadTest(arm, actuators, s)
        self.deflection = DeflectionTest(arm, actuators, s.significance)
        self._outliers = OutliersInARow(len(channels), np.full(1, settings.gate), CONTRADICTS)
        self._gravity = np.array(arm.settings.gravity)
        self._joints = [arm.joint_names[j] for j in layout.elastic_joints]
        count = max(s.window / s.innovation_time, 1.0)
        self._largest = chi_square_quantile(count, s.significance / len(channels)) / count
        self.reset()

    def reset(self, anew: bool = True, seen: bool = False) -> None:
        """Forget all evidence, and the payload that is carried if the arm starts ``anew``.

        Args:
            anew: nothing of before is known to hold.
            seen: every sample was: those of before show a payload, too.
        """
        self.innovations.reset()
        self._outliers.reset()
        self.contradiction = ""
        if anew:
            self.free_time, self._least_free, self._not_free = 0.0, _SHOWN_FREE, _NEVER_FREE
            self._lifted = False
        if not seen:
            self.payload.reset(anew)
        self.deflection.reset()
        self._torque_blocks, self._torque_time, self._deflection_blocks, self._deflection_time = 0, 0.0, 0, 0.0
        self.words = self._load()  # what is carried on is left out of the force from the first block on
        self.names_load = bool(self.words)

    def add(self, normalised: np.ndarray) -> None:
        """Take the innovations (m + n,) of a block over their standard deviations."""
        beyond = self._outliers.follow(normalised)
        self.contradiction = _CONTRADICTION.format(self.innovations.channels[self._outliers.worst]) if beyond else ""
        if self.innovations.add(normalised):
            load = self._load()
            self.words = "; ".join(filter(None, [self._stiffness(), load, self._innovation()]))
            self.names_load = bool(load)

    def follow_mode(self, duration: float, free: bool, acts: bool, moves: bool) -> None:
        """Take the mode of a block.

        Args:
            duration: of it [s].
            free: the arm is surely free.
            acts: something may act: what touches the arm, or an undecided push since the start.
            moves: the arm does; at rest a hand may lift a payload for any time.
        """
        if self.free_time < self._least_free:
            if not free:
                self.free_time = 0.0
            elif moves or self._not_free is not _ENDED:
                self.free_time += duration
            if acts:
                self._least_free = _DECIDED

    def end_push(self, force: np.ndarray, covariance: np.ndarray) -> None:
        """Take the end of what has acted since the start, where the arm has not been free: it may be lifted.

        Args:
            force: (3,) [N] of it at the TCP, base axes.
            covariance: (3, 3) [N^2] of that.
        """
        if self.free_time < self._least_free:
            self.end_payload()
            self._lifted = self._may_be_weight(force, covariance)

    def _may_be_weight(self, force: np.ndarray, covariance: np.ndarray) -> bool:
        """Return whether a force points downwards, but for its error."""
        if force @ self._gravity <= 0.0:
            return False
        across = np.linalg.svd(self._gravity[None])[2][1:]  # (2, 3)
        square = ZeroMeanGaussian(across @ covariance @ across.T).square(across @ force)
        return square < chi_square_quantile(2, _ACROSS)

    def end_payload(self) -> None:
        """Take that a payload has gone, or is lifted."""
        self.free_time, self._least_free, self._not_free, self._lifted = 0.0, _DECIDED, _ENDED, False

    def doubt_free_space(self) -> None:
        """Take that free space is named, but for long a contact has been likelier."""
        if self.free_time >= self._least_free:
            self.free_time, self._least_free, self._not_free, self._lifted = 0.0, _DECIDED, _DOUBTED, False

    @property
    def words_of_push(self) -> str:
        """What may be wrong with the force of an unknown contact; empty where free space or a payload was seen."""
        return "" if self.names_load or self.free_time >= self._least_free else self._not_free

    @property
    def words_of_free_space(self) -> str:
        """What may act all the same where the arm seems free; empty where free space or a payload was seen."""
        return _LIFTED if self._lifted and self.free_time < self._least_free and not self.names_load else ""

    def add_deflection(self, duration: float, q: np.ndarray, presliding: np.ndarray, y: np.ndarray) -> None:
        """Take a block, as :meth:`.deflection.DeflectionTest.add`; ``y`` (m + n,) are deflections, then torques."""
        self._deflection_blocks += 1
        self._deflection_time += duration
        if self._joints and self._deflection_blocks >= _EVERY:
            m = len(self._joints)
            self.deflection.add(self._deflection_time, q, presliding, y[m:], y[:m])
            self._deflection_blocks, self._deflection_time = 0, 0.0

    def add_torque(
        self,
        duration: float,
        q: np.ndarray,
        presliding: np.ndarray,
        torque: np.ndarray,
        felt: Callable[[], FeltTorque | None],
    ) -> bool:
        """Take the torque of a block without a known contact, as :meth:`.payload.PayloadTest.add`."""
        self._torque_blocks += 1
        self._torque_time += duration
        if self._torque_blocks < _EVERY:
            return False
        passed, self._torque_blocks, self._torque_time = self._torque_time, 0, 0.0
        changed = self.payload.add(passed, q, presliding, torque, felt)
        if changed and self.payload.carried is None:
            self.end_payload()
        return changed

    def _stiffness(self) -> str:
        worst = self.deflection.worst() if self._joints else None
        if worst is None:
            return ""
        if self.deflection.slope[worst] < 1:
            return (
                f"{self._joints[worst]} bends less than its stiffness says: the stiffness is set too small, or the "
                "velocity is the joints', not the motors' (motor_side_velocity)"
            )
        return f"{self._joints[worst]} bends more than its stiffness says: the stiffness is set too large"

    def _load(self) -> str:
        load = self.payload.carried or self.payload.found
        if load is None:
            gone = self.payload.relieved
            if gone is not None and gone.mass < 0.0:
                return f"the {-gone.mass:.1f} kg of the tool that were missing are back, or something pushes down"
            return f"the payload of about {gone.mass:.1f} kg has gone, or is lifted" if gone is not None else ""
        if load.mass < 0.0:
            return (
                f"about {-load.mass:.1f} kg less than named is behind the flange: the tool has come off or is lighter, "
                "or something pushes up and stays: name what is there with --tool"
            )
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
