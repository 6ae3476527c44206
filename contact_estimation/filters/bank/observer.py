"""The contact bank as an observer: blocks of samples into an IMM of friction-aware filters."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.bank.cycle import Cycle
from contact_estimation.filters.bank.kinks import Kinks
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.mix import Modes
from contact_estimation.filters.bank.output import NEGLIGIBLE, OutputLayout, build_output
from contact_estimation.filters.bank.settings import BankSettings, ElasticSettings, load_drive_settings
from contact_estimation.filters.bank.statistics import InnovationStatistics
from contact_estimation.filters.bank.track import (
    PLAY_STD,
    SLIDING,
    START,
    STATES,
    build_block,
    build_track,
    initial,
)
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm

#: [s] An arm that moves at its first sample is taken to have moved like that for this long: its presliding states are
#: turned that way.
_MOVING_BEFORE = 0.1
#: A parameter with more than this share of its prior standard deviation left has not been seen: half of the variance.
_UNSEEN = np.sqrt(0.5)


class ContactBank:
    """Bank of filters over contact modes, with joint friction, torque bias and joint elasticity in the state.

    Attributes:
        modes: the combinations of closed contacts and their filters. beliefs: (M,) probabilities of the filters.
        channels: names of the measurement channels, elastic joints first.
    """

    #: The registry passes the sensor settings: they say whether the elastic deflection can be seen.
    uses_sensors = True

    def __init__(
        self, arm: Arm, settings: BankSettings, name: str = "contact_bank", sensors: SensorSettings = SensorSettings()
    ):
        self.name, self.arm, self.settings = name, arm, settings
        drives = load_drive_settings(arm.name if settings.drives == "robot" else settings.drives)
        drives.check_joints(arm.n, arm.name)
        if not sensors.motor_side_velocity:
            drives = dataclasses.replace(drives, elastic=ElasticSettings())
        hypotheses = settings.hypotheses or (1 if drives.elastic.joints else 3)
        self.drives, self.layout = drives, BankLayout(settings, drives, arm.n, sensors.motor_side_velocity)
        self.modes = Modes(settings, hypotheses)
        layout, count, n = self.layout, len(self.modes.owner), arm.n
        self._cycle = cycle = Cycle(arm, settings, layout, self.modes)
        self.beliefs, self.backend = cycle.beliefs, cycle.backend
        # Samples: two bindings take turns, so that a sample's result is the next one's state without a copy.
        self._track = track = compile_function(build_track(arm, layout.motor_side))
        shared = list(track.inputs.values())[1:]
        self._w = [track.inputs["w"], track.outputs["w_next"]]
        momentum = track.outputs["momentum"]
        known = track.outputs["known"]
        self._samples = [track.bind([self._w[k], *shared], [self._w[1 - k], momentum, known]) for k in (0, 1)]
        self._turn = 0
        track.inputs["play"][:] = drives.play
        track.inputs["length"][:] = np.maximum(drives.friction.presliding, 1e-6)
        # Blocks take the same turns.
        block = compile_function(build_block(arm, layout))
        self._block = block.inputs
        self._block["nominal"][:], self._block["velocity_noise"][:] = settings.block, drives.velocity_noise
        self._block["torque_variance"][:], self._block["elastic_variance"][:] = (
            np.square(drives.torque_noise),
            drives.elastic.noise**2,
        )
        self._block["coulomb"][:], self._block["length"][:] = drives.friction.coulomb, track.inputs["length"]
        self._block["model_error"][:], self._block["travel"][:] = drives.model_error, drives.elastic.travel
        self._block["lag"][:], self._block["play"][:] = drives.elastic.lag, drives.play
        # The configured noise of the elastic channel has the usual encoder noise in it, for which the play was chosen.
        self._block["usual_noise"][:] = (drives.play / PLAY_STD) ** 2
        shared = list(block.inputs.values())[2:]
        self._blocks = [
            block.bind([self._w[k], momentum, *shared], [*cycle.block.values(), self._w[1 - k]]) for k in (0, 1)
        ]
        self._kinks = None
        if settings.decide < 1.0 and len(self.modes.names) > 1:
            self._kinks = Kinks(arm, settings, drives, layout, cycle, self.modes, track, self._w, sensors.rate)
        # Outputs: each filter's row of one table.
        output = compile_function(build_output(arm, layout))
        output.inputs["theta"][:], output.inputs["basis"][:] = layout.constants
        self._rows = OutputLayout(layout)
        self._table, self._output_q = np.zeros((count, self._rows.size)), output.inputs["q"]
        shared = [output.inputs[k] for k in ("theta", "basis")]
        self._outputs = [
            output.bind(
                [cycle.x[j], cycle.p[j], self._output_q, self.modes.closed[j].copy(), *shared], [self._table[j]]
            )
            for j in range(count)
        ]
        self._elastic = np.array(layout.elastic_joints, dtype=int)
        elastic = [f"elastic deflection of {arm.joint_names[j]}" for j in layout.elastic_joints]
        self.channels = elastic + [f"torque of {name}" for name in arm.joint_names]
        self._statistics = InnovationStatistics(self.channels, settings.gate)
        self._ratios = None
        self._t, self._q, self._mode = 0.0, np.zeros(n), 0

    # -- samples ----------------------------------------------------------------------------------------------

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q``; whether a contact is closed is not known."""
        self._turn = 0
        self._w[0][:] = initial(self.arm, q, self.layout.motor_side).ravel()
        self._t = t
        self._q[:] = q
        # The elastic offset starts where the deflection under gravity alone puts it.
        layout = self.layout
        deflection = self.arm.gravity(q)[self._elastic] / np.exp(layout.mean[layout.elastic]) + q[self._elastic]
        self._cycle.start(q, deflection, self.modes.start(self.settings.closed_at_start))
        self._rotated = t
        self._mode = int(self.modes.of_combinations(self.beliefs).argmax())
        if self._kinks is not None:
            self._kinks.start(q)
        self._statistics.clear()
        self._ratios = None
        self._first = True
        self._duration, self._elapsed, self._count = -1.0, 0.0, 0

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take a sample; every ``block`` seconds the bank is updated."""
        inputs = self._track.inputs
        inputs["q"][:], inputs["dq"][:], inputs["tau"][:] = q, dq, tau
        if dt != self._dt:
            self._set_interval(dt)
        if self._first:
            self._first = False
            self._start_moving(dq)
        self._samples[self._turn]()
        self._turn = 1 - self._turn
        self._t += dt
        self._elapsed += dt
        self._count += 1
        self._q[:] = q
        if self._kinks is not None:
            self._kinks.gather(self._turn)
        if self._elapsed > self._block_end:
            self._end_block()
        elif self._kinks is not None and self._kinks.decide(self._turn, self._q):
            self._settle(int(self.beliefs.argmax()))

    def _start_moving(self, dq: np.ndarray) -> None:
        """Take over the motion at the first sample: its momentum was there before, and so was the friction it has
        turned over."""
        if np.any(dq):
            w = self._w[self._turn].reshape(STATES, self.arm.n)
            length = self._track.inputs["length"]
            w[SLIDING] = np.sign(dq) * -np.expm1(-np.abs(dq) * _MOVING_BEFORE / length)
            w[START] = self.arm.mass(self._q) @ dq

    def _set_interval(self, dt: float) -> None:
        self._dt = dt
        self._track.inputs["dt"][0] = dt
        self._track.inputs["gain"][0] = 1.0 - np.exp(-2 * np.pi * self.drives.position_filter * dt)
        self._block_end = self.settings.block - 0.5 * dt

    _dt = -1.0

    def _end_block(self) -> None:
        duration = self._elapsed
        self._block["duration"][0], self._block["count"][0] = duration, self._count
        self._blocks[self._turn]()
        self._turn = 1 - self._turn
        self._elapsed, self._count = 0.0, 0
        if abs(duration - self._duration) > 0.02 * duration:  # the jitter of stamps is no reason to predict anew
            self._duration = duration
            self._cycle.set_interval(duration)
        self._cycle.run()
        believed = int(self.beliefs.argmax())
        self._settle(believed)
        if self._kinks is not None:
            self._kinks.follow(believed, self._q)
        self._ratios = self._cycle.ratios[believed]
        self._statistics.add(self._ratios)
        if self._t - self._rotated > self.settings.hypothesis_interval:
            self._rotated = self._t
            if self.modes.rotate(self.beliefs):
                self._cycle.set_interval(self._duration)

    def _settle(self, believed: int) -> None:
        """Name the mode of filter ``believed``, if it is surely another one than the one that is named."""
        mode = int(self.modes.owner[believed])
        if mode != self._mode:
            beliefs = self.modes.of_combinations(self.beliefs)
            opens = (self.modes.closed[believed] <= self.modes.combinations[self._mode]).all()
            # A belief that wavers about a half is no touch.
            sure = 0.0 if self._kinks is None else self.settings.decide
            if opens or beliefs[mode] >= sure or beliefs[self._mode] <= 1.0 - sure:
                self._mode = mode

    # -- estimates --------------------------------------------------------------------------------------------

    def estimate(self) -> Estimate:
        """The estimate after the last sample: the force follows the position at the full rate between updates of the
        parameters."""
        layout, where = self.layout, self._rows
        self._output_q[:] = self._q
        asked = [j for j, belief in enumerate(self.beliefs.tolist()) if belief >= NEGLIGIBLE]
        for j in asked:
            self._outputs[j]()
        if len(asked) == 1:
            row = self._table[asked[0]].copy()
        else:
            row = where.mix(self._table[asked], self.beliefs[asked], self.modes.closed[asked])
        probabilities = (self.beliefs @ self.modes.closed).tolist()
        contacts = []
        for c, at, names, probability in zip(self.settings.contacts, where.contacts, layout.names, probabilities):
            values, left = row[at.values], row[at.remaining]
            unseen = tuple([name for name, share in zip(names, left.tolist()) if share > _UNSEEN])
            contacts.append(
                ContactState(
                    c.name,
                    probability,
                    values[:3],
                    values[3:6],
                    values[6:],
                    row[at.point],
                    row[at.spread].reshape(9, 9),
                    names,
                    left,
                    unseen,
                )
            )
        combinations = self.modes.of_combinations(self.beliefs).tolist()
        tcp, names = row[where.tcp], self.modes.names
        return Estimate(
            t=self._t,
            q=self._q.copy(),
            dq=self._track.inputs["dq"].copy(),
            tau_ext=row[where.torque],
            force_base=row[where.base],
            force_tcp=tcp[:3],
            torque_tcp=tcp[3:],
            force_covariance=row[where.covariance].reshape(3, 3),
            contacts=tuple(contacts),
            nis=float("nan") if self._ratios is None else float(self._ratios.sum()),
            nis_dof=len(self.channels),
            mode=names[self._mode],
            modes=dict(zip(names, combinations)),
        )

    @property
    def outliers(self) -> np.ndarray:
        """Counts of gated innovations per channel, elastic joints first."""
        return self._statistics.outliers

    def facts(self) -> dict[str, str]:
        """Lines for diagnostics: per channel how many blocks were outliers and how well the noise settings fit, and
        what that means."""
        return self._statistics.facts()
