"""The contact IMM filter as an observer: blocks of samples into friction-aware filters, some per contact mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

import casadi as ca
import numpy as np

from contact_estimation.codegen import STRAIGHT_FLAGS, compile_all_built
from contact_estimation.filters.imm.free_space_history import REMEMBERED
from contact_estimation.filters.imm.imm_step import ImmStep, step_functions
from contact_estimation.filters.imm.innovation import VarianceFactors
from contact_estimation.filters.imm.kept_friction import KeptFriction, predict_friction
from contact_estimation.filters.imm.mismatch import MismatchTest
from contact_estimation.filters.imm.mode_chain import ModeChain, NamedMode
from contact_estimation.filters.imm.output import Output, output_functions
from contact_estimation.filters.imm.payload import FeltTorque, Separation
from contact_estimation.filters.imm.pre_contact_friction import PreContactFriction
from contact_estimation.filters.imm.preintegration import Preintegration, build_block, build_sample
from contact_estimation.filters.imm.restarts import LoadChange
from contact_estimation.filters.imm.settings import UNKNOWN, ImmSettings, run_time_inputs
from contact_estimation.filters.imm.start_decision import StartDecision
from contact_estimation.filters.imm.start_push import PushSinceStart, StartVerdict
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.unknown import ExternalTorque
from contact_estimation.filters.observer import Estimate, Innovation
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings, ElasticSettings, actuators_of

#: Share by which a block's duration may differ from the last one's before predictions are made anew: jitter of stamps.
_JITTER = 0.02
#: Duration [s] for which predictions are prepared that no longer hold.
_STALE = -1.0
#: [s] Free space is named for so long, while a contact is likelier, before that is said.
_UNDECIDED = 0.5
#: Vectorising costs time of the compiler: the code is straight lines of scalars, without loops.
_FLAGS = (*STRAIGHT_FLAGS, "-fno-tree-slp-vectorize")
#: Run at a reset only.
_RARE = ("imm_prior",)


class ContactImm:
    """IMM filter over contact modes, with joint friction, torque bias and joint elasticity in the state.

    Args:
        arm: the robot.
        settings: of the filter.
        name: name in reports.
        sensors: what is measured, default :class:`SensorSettings`'s defaults: whether the elastic deflection is seen.
        actuators: joint friction and actuators, default those that the settings name.

    Attributes:
        actuators: joint friction and actuators.
        layout: parts of the filters' state.
        chain: the combinations of closed contacts and their filters.
        filters: their states, and their common step.
        channels: names of the measurement channels, elastic joints first.
        settling: [s] after a start for which estimates are not valid.
        backend: of the generated code.
        updated: time of the last update [s].
        known_load: external torque (n,) [Nm] of a payload that the data have shown to be no torque that is scaled.
    """

    #: The registry passes the sensor settings.
    uses_sensors = True

    def __init__(
        self,
        arm: Arm,
        settings: ImmSettings,
        name: str = "contact_imm",
        sensors: SensorSettings | None = None,
        actuators: ActuatorSettings | None = None,
    ) -> None:
        self.name, self.arm, self.settings = name, arm, settings
        self.settling = settings.settling
        sensors = sensors or SensorSettings()
        actuators = actuators_of(arm, actuators or settings.actuators)
        if not sensors.motor_side_velocity:
            actuators = dataclasses.replace(actuators, elastic=ElasticSettings())
        self.actuators = actuators
        if arm.tool.has_tcp:
            settings = dataclasses.replace(settings, contacts=[c.known_tool for c in settings.contacts])
        sides = sensors.motor_side_velocity, sensors.torque_side == "link"
        self.layout = layout = StateLayout(settings, actuators, arm.n, *sides)
        self.chain = chain = ModeChain(
            settings, settings.hypotheses or (1 if actuators.elastic.joints else 3), actuators.steady_push_rate
        )
        self._named, self._decision = NamedMode(settings, chain.free_mode), StartDecision(chain, settings)
        compiled = compile_all_built(build_filter, arm, layout, chain, flags=_FLAGS, rare=_RARE)
        sample, block = compiled["imm_sample"], compiled["imm_block"]
        self.backend = compiled["imm_update"].backend
        # All functions read and write the same buffers, by the names of their arguments and results.
        self._signals = signals = run_time_inputs(settings, actuators) | layout.inputs
        signals["q_now"], signals["nis"] = self._q_now, self._nis = np.zeros(arm.n), np.full(1, np.nan)
        self._variance_factors = VarianceFactors(layout.m + arm.n, settings.gate, actuators.least_noise_share)
        signals["variance_factor"] = self._variance_factors.factors
        signals["noise_share"] = self._variance_factors.evidence
        signals["unexplained"], signals["load"] = self._unexplained, self._load = np.zeros((2, arm.n))
        self.known_load = np.zeros(arm.n)
        self._samples = Preintegration(arm, layout, sample, block, signals, actuators.position_filter)
        self._q, self._dq, self._tau = (signals[name] for name in ("q", "dq", "tau"))
        self.filters = step = ImmStep(layout, chain, compiled, signals)
        self._output = Output(settings, layout, chain, step, compiled, signals, arm.tool_link)
        self.channels = [f"elastic deflection of {arm.joint_names[j]}" for j in layout.elastic_joints]
        self.channels += [f"torque of {name}" for name in arm.joint_names]
        self._mismatch = MismatchTest(arm, actuators, layout, settings, self.channels)
        self._torque_of_block = signals["q_mean"], signals["presliding_mean"], signals["y"][layout.m :]
        self._rest_speed = actuators.velocity_deadband * actuators.velocity_noise  # [rad/s]
        self._before = PreContactFriction(layout, REMEMBERED * settings.hypothesis_interval)
        self._since_start = PushSinceStart(layout, settings, signals) if layout.has_external else None
        self._dt, self._t, self._first, self._used = -1.0, 0.0, True, False
        self.reset(0.0, np.zeros(arm.n))

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities (M,) of the filters (a view of the live buffer)."""
        return self.filters.probabilities

    @property
    def external_torque(self) -> ExternalTorque | None:
        """Joint torque of an unknown contact, its covariance and the probability of that mode, after the last block.

        None where the settings have no such mode.
        """
        return self._output.external_torque() if self.layout.has_external else None

    # -- samples ----------------------------------------------------------------------------------------------

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` (n,) [rad] at time ``t`` [s]; whether a contact is closed is not known.

        A payload is kept where time goes on: the arm carries it through gaps and doubts.
        """
        self._start(t, q, None, seen=False)

    def resume(self, t: float, q: np.ndarray, dq: np.ndarray, unseen: float) -> None:
        """Start behind a time without samples: as :meth:`reset`, but friction is known from before.

        An unknown contact of before has hardly become a known one in that time.

        Where there is no such time, because doubts about the samples proved wrong, they still show a payload. What
        raised the doubts may have become friction, which starts anew.

        Args:
            t: [s].
            q: positions (n,) [rad].
            dq: velocities (n,) [rad/s]; a joint at rest may have any friction within its Coulomb friction.
            unseen: the time without samples [s]; 0 where doubts about them proved wrong.
        """
        if unseen == 0.0:
            self._start(t, q, None, seen=True)
            return
        step, k = self.filters, int(self.filters.probabilities.argmax())
        slid = np.abs(dq) * self.settings.moving_before_start / self._signals["presliding_length"]
        kept = predict_friction(self.layout, step.x[k], step.p[k], unseen, np.exp(-slid))
        finite = np.isfinite(kept.covariance).all() and np.isfinite(kept.mean).all()
        if not finite:
            self._start(t, q, None, seen=False)
            return
        past = step.history.past()
        self._start(t, q, kept, seen=False, last=k)
        step.history.recall(past, unseen)

    def _start(self, t: float, q: np.ndarray, kept: KeptFriction | None, seen: bool, last: int | None = None) -> None:
        joints = self.layout.elastic_joints
        anew = t < self._t or not self._used  # another recording, or none yet
        self._mismatch.reset(anew=anew, seen=seen)
        self._load[:] = self._mismatch.payload.torque(q)
        self.known_load[:] = self._mismatch.payload.is_no_scale * self._load
        self._samples.reset(q)
        self._t = self._born = self.updated = t
        self._q_now[:] = q
        # The elastic offset starts where the deflection under gravity and payload alone puts it.
        deflection = (self.arm.gravity(q) - self._load)[joints] / self._signals["joint_stiffness"] + q[joints]
        self.filters.reset(q, deflection, self.chain.reset(self.settings.closed_at_start, last))
        if kept is not None:
            self.filters.keep(kept)
        self._named.reset(self._mode_probabilities())
        self._decision.reset()
        self._probable = 0
        self._output.reset()
        if self._since_start:
            self._since_start.reset(kept)
        self._variance_factors.reset()
        self._nis[0], self._first, self._used = np.nan, True, self._used and not anew
        self._unexplained[:] = 0.0
        self._duration, self._push, self._elapsed, self._count = _STALE, self.filters.push, 0.0, 0

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take a sample; every ``block`` seconds the filters are updated.

        Args:
            dt: time since the last sample [s].
            q: positions (n,) [rad].
            dq: velocities (n,) [rad/s].
            tau: torques (n,) [Nm].
        """
        self._q[:], self._dq[:], self._tau[:] = q, dq, tau
        if dt != self._dt:
            self._dt, self._block_end = dt, self.settings.block - 0.5 * dt
            self._samples.set_interval(dt)
        if self._first:
            self._first, self._used = False, True
            self._samples.start_moving(self._q_now, dq, self.settings.moving_before_start)
        self._samples.take()
        self._q_now[:] = q
        self._t += dt
        self._elapsed += dt
        self._count += 1
        if self._elapsed > self._block_end:
            self._end_block()

    def _end_block(self) -> None:
        """Update the filters with the block that is complete."""
        duration, step = self._elapsed, self.filters
        self._samples.finish(duration, self._count)
        self._elapsed, self._count = 0.0, 0
        payload, q_mean = self._mismatch.payload, self._torque_of_block[0]
        if payload.carried is not None:
            self._load[:] = payload.torque(q_mean)
        deciding, moves = self._decision.pending, bool(np.abs(self._dq).max() > self._rest_speed)
        step.history.advance(duration, moves)
        if abs(duration - self._duration) > _JITTER * duration or step.push != self._push:
            self._duration, self._push = duration, step.push
            step.set_interval(duration, deciding)
        step.run()
        if deciding:
            self._decision.keep(step.probabilities, step.normalised, rests=not moves)
        probable = int(step.probabilities.argmax())
        self._named.update(self._mode_probabilities(), duration, step.shows_contact)
        undecided = self._since_start is not None and self._since_start.undecided
        acts = self._named.mode != self.chain.free_mode or (self._since_start is not None and self._since_start.words)
        self._mismatch.follow_mode(duration, self._named.surely_free and not undecided, bool(acts), moves)
        if self._free_is_doubtful:
            self._mismatch.doubt_free_space()
        self._probable, self.updated = probable, self._t
        self._nis[0] = np.dot(step.normalised[probable], step.normalised[probable])
        self._mismatch.add(step.normalised[probable])
        self._variance_factors.add(step.normalised[probable], duration)
        self._mismatch.add_deflection(duration, *self._torque_of_block[:2], self._signals["y"])
        if not self.chain.touched[probable] and self._mismatch.add_torque(
            duration, *self._torque_of_block, self._felt_torque
        ):
            step.restarts.assign_to_friction(payload.torque(q_mean) - self._load)
            self._load[:] = payload.torque(q_mean)
        if payload.may_change:
            self._follow_payload(duration, probable)
        self.known_load[:] = payload.is_no_scale * self._load
        if self._since_start and not self._since_start.known:
            self._follow_start(self._since_start, duration, probable, moves)
        self._unexplained[:] = step.unexplained[probable]
        changed = deciding and self._decision.add(step.probabilities, duration, moves)
        if self._t - self._born > self.settings.hypothesis_interval:
            self._born = self._t
            step.restarts.follow_free_space(undecided)
            changed |= self.chain.give_birth(step.probabilities)
        if changed:
            self._duration = _STALE

    @property
    def _free_is_doubtful(self) -> bool:
        """Whether free space has been named for long although a contact is likelier."""
        return self._named.undecided_for > _UNDECIDED

    def _felt_torque(self) -> FeltTorque | None:
        """Return what an unknown contact pushes, None where that mode is improbable."""
        felt, noise = self.external_torque, self._signals["R"][self.layout.m :]
        if felt is None or felt.probability < 0.5:
            return None
        jacobian = self._signals["tcp_jacobian"].reshape(3, -1, order="F")
        push = jacobian.T @ np.diag(self.settings.unknown.wrench_variance[:3]) @ jacobian
        return FeltTorque(felt.torque, felt.covariance + np.diag(self.filters.drift.variance + noise), push)

    def _follow_payload(self, duration: float, probable: int) -> None:
        """Let free space follow where a payload has gone, or is back, in a block of ``duration`` [s].

        Args:
            duration: [s].
            probable: the most probable filter.
        """
        step, before, payload, n = self.filters, self._before, self._mismatch.payload, self.arm.n
        q, presliding, torque = self._torque_of_block
        touched = bool(self.chain.touched[probable])
        if not touched:
            before.keep(step.x[probable], step.p[probable], step.restarts.free_before)
        rows = before.rows(presliding)
        torques = [torque + friction for friction in before.torques(presliding)]
        push = self.settings.unknown.birth_time_first * self._signals["push_covariance"].reshape(n, n)

        def friction(k: int) -> np.ndarray:
            return np.asarray(rows @ before.state(k)[1] @ rows.T + np.diag(step.drift.variance))

        noise = self._signals["R"][self.layout.m :]
        # A table that the load is pressed on is an unknown contact, too.
        pressed = touched or (payload.carried is not None and bool(self.chain.felt[probable]))
        which = payload.change(duration, q, torques, Separation(pressed, friction, noise, push))
        if which is not None:
            load = LoadChange(payload.torque(q) - self._load, payload.torque_covariance(q))
            step.restarts.start_free(*before.state(which), rows, payload.left, load)
            self._load[:] = payload.torque(q)
            if payload.carried is None:
                self._mismatch.end_payload()

    def _follow_start(self, since_start: PushSinceStart, duration: float, probable: int, moves: bool) -> None:
        """Let a push act that has been there since the start, or free space follow it, where the torque shows it.

        Args:
            since_start: what compares them.
            duration: of the block [s].
            probable: the most probable filter.
            moves: the arm does.
        """
        step, free = self.filters, self._named.mode == self.chain.free_mode
        if self._mismatch.payload.carried is not None:
            since_start.end()
        present, touched = (step.x[probable], step.p[probable]), bool(self.chain.touched[probable])
        verdict = since_start.add(duration, free, touched, moves)
        if verdict is StartVerdict.PUSHES:
            step.restarts.start_push(*(since_start.packed_state(*present, feels=feels) for feels in (False, True)))
        elif verdict is StartVerdict.ENDED:
            n = self.arm.n
            rows = self._before.rows(self._torque_of_block[1])
            unchanged = LoadChange(np.zeros(n), np.zeros((n, n)))
            step.restarts.start_free(*since_start.state(*present, acts=False), rows, since_start.left, unchanged)
            since_start.end()
            self._mismatch.end_push(*since_start.force())

    def _mode_probabilities(self) -> np.ndarray:
        """Return the probabilities of the modes, in the order of their names."""
        return self.chain.of_combinations(self.probabilities)

    # -- estimates --------------------------------------------------------------------------------------------

    def row(self) -> np.ndarray:
        """Return the numbers of the estimate after the last sample (a view), as ``RowObserver`` says.

        The force follows the position at the full rate between updates of the parameters. Where the arm seems free, a
        push since the start that torque bias may hide is an error of the force.
        """
        row = self._output.row()
        if self._since_start and self._named.mode == self.chain.free_mode and self._since_start.probability:
            row[self._output.arm["force_covariance"]] += self._since_start.hidden().ravel()
        return row

    @property
    def mismatch(self) -> str:
        """What shows that model and data disagree, and the likely cause; empty while they agree."""
        words = [self._mismatch.contradiction, self._mismatch.words]
        if self._since_start is not None and not self._mismatch.names_load:
            words.insert(0, self._since_start.words)
        if self.chain.names[self._named.mode] == UNKNOWN:
            words.insert(0, self._mismatch.words_of_push)
        elif self._named.mode == self.chain.free_mode:
            words.insert(0, self._mismatch.words_of_free_space)
        if self._free_is_doubtful:
            words.insert(0, "a contact is likelier than free space, but its whole force may be friction or torque bias")
        return "; ".join(filter(None, words))

    def words(self) -> Hashable:
        """Return the words of the last :meth:`row`."""
        return self._named.mode, *self._output.words()

    def estimate(self) -> Estimate:
        """Return the estimate after the last sample."""
        row, names = self.row().copy(), self.chain.names
        arm = self._output.arm.split(row)
        return Estimate(
            t=self._t,
            q=arm.q,
            dq=arm.dq,
            tau_ext=arm.tau_ext,
            force_base=arm.force_base,
            force_tcp=arm.force_tcp,
            torque_tcp=arm.torque_tcp,
            force_covariance=arm.force_covariance.reshape(3, 3),
            contacts=self._output.contacts(row),
            nis=float(arm.nis[0]),
            nis_dof=len(self.channels),
            mode=names[self._named.mode],
            modes=dict(zip(names, arm.modes.tolist())),
            unexplained=arm.unexplained,
            mismatch=self.mismatch,
        )

    def innovation(self) -> Innovation:
        """Return the innovation of the last update: normalised of the most probable filter, likelihood of all."""
        return Innovation(self.filters.normalised[self._probable].copy(), self.filters.log_evidence())

    def facts(self) -> dict[str, str]:
        """Return lines for diagnostics: per channel how many blocks were outliers, how well the noise fits, and why."""
        return self._mismatch.innovations.facts()


def build_filter(arm: Arm, layout: StateLayout, chain: ModeChain) -> list[ca.Function]:
    """Return every function of the filter."""
    samples = [build_sample(arm, layout), build_block(arm, layout)]
    return samples + output_functions(arm, layout, chain) + step_functions(arm, layout, chain)
