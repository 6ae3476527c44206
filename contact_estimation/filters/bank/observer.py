"""The contact bank as an observer: blocks of samples into an IMM of friction-aware filters."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.mix import FLOOR, Modes, build_mix
from contact_estimation.filters.bank.output import NEGLIGIBLE, OutputLayout, build_output
from contact_estimation.filters.bank.settings import BankSettings, ElasticSettings, load_drive_settings
from contact_estimation.filters.bank.track import (BEFORE, BEHIND, DEFLECTED, DRIFT, LAST, NOISE, PLAY_STD, SLIDING, SMOOTH, STATES,
                                                  build_track)
from contact_estimation.filters.bank.update import build_update
from contact_estimation.filters.kalman import pack_array, packed_size
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm

#: [s] An arm that moves at its first sample is taken to have moved like that for this long: its presliding states are turned that way.
_MOVING_BEFORE = 0.1
#: A parameter with more than this share of its prior standard deviation left has not been seen: half of the variance.
_UNSEEN = np.sqrt(0.5)


class ContactBank:
    """Bank of filters over contact modes, with joint friction, torque bias and joint elasticity in the state.

    Attributes:
        modes: the combinations of closed contacts and their filters. beliefs: (M,) probabilities of the filters. outliers: counts of gated
        innovations per channel, elastic joints first. channels: names of these channels.
    """

    #: The registry passes the sensor settings: they say whether the elastic deflection can be seen.
    uses_sensors = True

    def __init__(self, arm: Arm, settings: BankSettings, name: str = "contact_bank", sensors: SensorSettings = SensorSettings()):
        self.name, self.arm, self.settings = name, arm, settings
        drives = load_drive_settings(arm.name if settings.drives == "robot" else settings.drives)
        drives.check_joints(arm.n, arm.name)
        if not sensors.motor_side_velocity:
            drives = dataclasses.replace(drives, elastic=ElasticSettings())
        hypotheses = settings.hypotheses or (1 if drives.elastic.joints else 3)
        self.drives, self.layout = drives, BankLayout(settings, drives, arm.n)
        self.modes = Modes(settings, hypotheses)
        layout, count = self.layout, len(self.modes.owner)
        size, half, n = layout.size, packed_size(layout.size), arm.n
        self._track = compile_function(build_track(arm))
        self._update = compile_function(build_update(arm, layout))
        self._mix = compile_function(build_mix(size, count))
        output = compile_function(build_output(arm, layout))
        self.backend = self._update.backend
        # Samples: two bindings take turns, so that a sample's result is the next one's state without a copy.
        track = self._track
        shared = list(track.inputs.values())[1:]
        self._w = [track.inputs["w"], track.outputs["w_next"]]
        self._momentum = track.outputs["momentum"]
        self._samples = [track.bind([self._w[k], *shared], [self._w[1 - k], self._momentum]) for k in (0, 1)]
        self._turn = 0
        # Updates: the mixed states of all modes are one buffer; each mode's update reads its part and writes back its part.
        inputs = self._update.inputs
        self._x, self._p = self._mix.inputs["X"], self._mix.inputs["P"]
        self._ratios = np.zeros((count, layout.m + n))
        self._likelihood = np.zeros((count, 1))
        constants = [inputs[k] for k in ("decay", "noise", "y", "R", "q", "s")]
        tail = [inputs[k] for k in ("theta", "basis", "prior", "spread", "touch", "gate")]
        mixed_x, mixed_p = self._mix.outputs["X_mixed"], self._mix.outputs["P_mixed"]
        self._updates = []
        for j in range(count):
            a, b = slice(size * j, size * (j + 1)), slice(half * j, half * (j + 1))
            self._updates.append(self._update.bind(
                [mixed_x[a], mixed_p[b], *constants, self.modes.closed[j].copy(), *tail],
                [self._x[a], self._p[b], self._likelihood[j], self._ratios[j]]))
        theta, basis = layout.theta.ravel(), np.concatenate([b.ravel(order="F") for b in layout.basis])
        for function in (self._update, output):
            function.inputs["theta"][:], function.inputs["basis"][:] = theta, basis
        inputs["touch"][:] = [float(isinstance(c.rest, str)) for c in settings.contacts]
        inputs["gate"][:] = settings.gate
        inputs["prior"][:], inputs["spread"][:] = layout.mean, layout.variance
        self._elastic = np.array(layout.elastic_joints, dtype=int)
        track.inputs["play"][:] = drives.play
        # The configured noise of the elastic channel has the usual encoder noise in it, for which the play was chosen.
        self._usual_noise = (drives.play / PLAY_STD) ** 2
        track.inputs["length"][:] = np.maximum(drives.friction.presliding, 1e-6)
        # Outputs: each filter's row of one table.
        self._rows = OutputLayout(layout)
        self._table, self._output_q = np.zeros((count, self._rows.size)), output.inputs["q"]
        self._outputs = [output.bind([self._x[size * j:size * (j + 1)], self._p[half * j:half * (j + 1)], output.inputs["q"],
                                      self.modes.closed[j].copy(), output.inputs["theta"], output.inputs["basis"]], [self._table[j]])
                         for j in range(count)]
        elastic = [f"elastic deflection of {arm.joint_names[j]}" for j in layout.elastic_joints]
        self.channels = elastic + [f"torque of {name}" for name in arm.joint_names]
        self.outliers = np.zeros(len(self.channels), dtype=int)
        self._ratio_sum = np.zeros(len(self.channels))
        self.beliefs = np.full(count, 1.0 / count)
        self._t, self._q = 0.0, np.zeros(n)

    # -- samples ----------------------------------------------------------------------------------------------------------

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q``; whether a contact is closed is not known."""
        layout, count = self.layout, len(self.modes.owner)
        n = self.arm.n
        self._turn = 0
        w = self._w[0]
        w[:] = 0.0
        rows = w.reshape(STATES, n)
        rows[[SMOOTH, BEHIND, LAST, BEFORE]] = q
        self._t = t
        self._q[:] = q
        mean = layout.mean.copy()
        position, rotation = self.arm.tcp_pose(q)
        for i, (slots, where) in enumerate(zip(layout.estimated, layout.contact)):
            if 1 in slots and isinstance(self.settings.contacts[i].rest, str):
                mean[where.start + slots.index(1)] = layout.basis[i][:, 0] @ (position + rotation @ layout.theta[i, 4:7])
        # The elastic offset starts where the deflection under gravity alone puts it.
        mean[layout.offset] = self.arm.gravity(q)[self._elastic] / np.exp(mean[layout.elastic]) + q[self._elastic]
        self._x[:] = np.tile(mean, count)
        self._p[:] = np.tile(pack_array(np.diag(layout.first_variance)), count)
        self.beliefs = self.modes.start(self.settings.closed_at_start)
        self._rotated = t
        self.outliers[:] = 0
        self._ratio_sum[:] = 0.0
        self._blocks, self._nis = 0, float("nan")
        self._moving = None
        self._duration = -1.0
        self._start_block(np.zeros(n))

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take a sample; every ``block`` seconds the bank is updated."""
        inputs = self._track.inputs
        inputs["q"][:], inputs["dq"][:], inputs["tau"][:] = q, dq, tau
        if dt != self._dt:
            self._set_interval(dt)
        if self._moving is None:
            self._start_moving(dq)
        self._samples[self._turn]()
        self._turn = 1 - self._turn
        self._t += dt
        self._elapsed += dt
        self._q_sum += q
        self._count += 1
        self._q[:] = q
        if self._elapsed > self._block_end:
            self._end_block()

    def _start_moving(self, dq: np.ndarray) -> None:
        """Take over the motion at the first sample: its momentum was there before, and so was the friction it has turned over."""
        self._moving = bool(np.any(dq))
        if self._moving:
            w = self._w[self._turn].reshape(STATES, self.arm.n)
            length = self._track.inputs["length"]
            w[SLIDING] = np.sign(dq) * -np.expm1(-np.abs(dq) * _MOVING_BEFORE / length)
            self._start_momentum = self.arm.mass(self._q) @ dq

    def _set_interval(self, dt: float) -> None:
        self._dt = dt
        self._track.inputs["dt"][0] = dt
        self._track.inputs["gain"][0] = 1.0 - np.exp(-2 * np.pi * self.drives.position_filter * dt)
        self._block_end = self.settings.block - 0.5 * dt

    _dt = -1.0

    def _start_block(self, momentum: np.ndarray) -> None:
        n = self.arm.n
        self._start_momentum = momentum.copy()
        w = self._w[self._turn]
        w[DRIFT * n:(DRIFT + 1) * n] = 0.0
        w[DEFLECTED * n:(DEFLECTED + 1) * n] = 0.0
        self._elapsed, self._count, self._q_sum = 0.0, 0, np.zeros(n)

    def _end_block(self) -> None:
        n = self.arm.n
        w, duration = self._w[self._turn].reshape(STATES, n), self._elapsed
        inputs = self._update.inputs
        m = self.layout.m
        if m:
            inputs["y"][:m] = w[DEFLECTED, self._elastic] / duration
        inputs["y"][m:] = (self._momentum - self._start_momentum - w[DRIFT]) / duration
        inputs["q"][:] = self._q_sum / self._count
        inputs["s"][:] = w[SLIDING]
        self._set_noise(duration)
        if m:
            inputs["R"][:m] = self._elastic_noise + np.maximum(w[NOISE, self._elastic] - self._usual_noise, 0.0) / self._count
        beliefs = self._mix_modes()
        for update in self._updates:
            update()
        likelihood = self._likelihood[:, 0]
        if len(likelihood) > 1:
            weighted = beliefs * np.exp(np.maximum(likelihood - likelihood.max(), -60.0))
            self.beliefs = np.maximum(weighted / weighted.sum(), FLOOR)
            self.beliefs /= self.beliefs.sum()
        ratios = self._ratios[int(self.beliefs.argmax())]
        if self._t - self._rotated > self.settings.hypothesis_interval:
            self._rotated = self._t
            self.modes.rotate(self.beliefs)
            self._transition = self.modes.transition(self._duration)
        limit = self.settings.gate**2
        self.outliers += ratios > limit
        self._ratio_sum += np.minimum(ratios, limit)
        self._blocks += 1
        self._nis = float(ratios.sum())
        self._start_block(self._momentum)

    def _set_noise(self, duration: float) -> None:
        """Noise of the block's measurements and of its prediction; what depends on the block's length alone is kept while the
        stamps' jitter leaves it within 2 %."""
        drives = self.drives
        if abs(duration - self._duration) > 0.02 * duration:
            self._duration = duration
            self._update.inputs["decay"][:], self._update.inputs["noise"][:] = self.layout.decay_and_noise(duration)
            self._transition = self.modes.transition(duration)
        momentum = 2 * (np.diag(self.arm.mass(self._q)) * drives.velocity_noise / duration) ** 2
        scale = max(self.settings.block / duration, 1e-3)  # a shorter block averages fewer samples
        self._elastic_noise = drives.elastic.noise**2 * scale
        self._update.inputs["R"][self.layout.m:] = np.square(drives.torque_noise) * scale + momentum

    def _mix_modes(self) -> np.ndarray:
        """Mix the filters' states; returns the predicted beliefs."""
        if len(self.beliefs) == 1:
            self._mix.outputs["X_mixed"][:], self._mix.outputs["P_mixed"][:] = self._x, self._p
            return self.beliefs
        joint = self.beliefs[:, None] * self._transition
        predicted = joint.sum(axis=0)
        self._mix.inputs["weights"][:] = (joint / predicted).ravel(order="F")
        self._mix()
        return predicted

    # -- estimates --------------------------------------------------------------------------------------------------------

    def estimate(self) -> Estimate:
        """The estimate after the last sample: the force follows the position at the full rate between updates of the parameters."""
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
            contacts.append(ContactState(c.name, probability, values[:3], values[3:6], values[6:], row[at.point],
                                         row[at.spread].reshape(9, 9), names, left, unseen))
        combinations = self.modes.of_combinations(self.beliefs).tolist()
        tcp, names = row[where.tcp], self.modes.names
        return Estimate(
            t=self._t, q=self._q.copy(), dq=self._track.inputs["dq"].copy(), tau_ext=row[where.torque], force_base=row[where.base],
            force_tcp=tcp[:3], torque_tcp=tcp[3:], force_covariance=row[where.covariance].reshape(3, 3), contacts=tuple(contacts),
            nis=self._nis, nis_dof=len(self.channels), mode=names[combinations.index(max(combinations))],
            modes=dict(zip(names, combinations)))

    def facts(self) -> dict[str, str]:
        """Lines for diagnostics: per channel how many blocks were outliers and how well the noise settings fit, and what that means."""
        blocks = max(self._blocks, 1)
        lines = {}
        for name, count, mean in zip(self.channels, self.outliers.tolist(), (self._ratio_sum / blocks).tolist()):
            text = f"{count} of {self._blocks} blocks beyond {self.settings.gate:g} standard deviations, mean square {mean:.2f}"
            lines[name] = text + _judge(count / blocks, mean)
        return lines


def _judge(share: float, mean: float) -> str:
    """What a channel's share of outliers and its mean square innovation (1 where the noise settings are right) say."""
    if share > 0.05:
        return ": too many for stops and shocks; friction or load is not as configured, or the noise is set too small"
    if mean > 2.0:
        return ": the noise is set too small, or its colour is not allowed for"
    if share > 0:
        return ": rejected, as at stops and shocks"
    return ""
