"""The contact bank as an observer: blocks of samples into an IMM of friction-aware filters."""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.mix import FLOOR, Modes, build_mix
from contact_estimation.filters.bank.output import build_output
from contact_estimation.filters.bank.settings import BankSettings, ElasticSettings, load_drive_settings
from contact_estimation.filters.bank.track import build_track
from contact_estimation.filters.bank.update import build_update
from contact_estimation.filters.kalman import pack_array, packed_size
from contact_estimation.filters.observer import ContactState, Estimate
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm

#: Names of the tracked vectors in the track function's state, in its order.
_SMOOTH, _BEHIND, _SLIDING, _DRIFT, _TRAVELLED, _DEFLECTED = range(6)


class ContactBank:
    """Bank of filters over contact modes, with joint friction, torque bias and joint elasticity in the state.

    Attributes:
        modes: the combinations of closed contacts and their filters. beliefs: (M,) probabilities of the filters. outliers: counts of gated innovations per channel, elastic joints first.
        channels: names of these channels.
    """

    #: The registry passes the sensor settings: they say whether the elastic deflection can be seen.
    uses_sensors = True

    def __init__(self, arm: Arm, settings: BankSettings, name: str = "contact_bank", sensors: SensorSettings = SensorSettings()):
        self.name, self.arm, self.settings = name, arm, settings
        drives = load_drive_settings(arm.name if settings.drives == "robot" else settings.drives)
        drives.check_joints(arm.n, arm.name)
        if not sensors.motor_side_velocity:
            drives = dataclasses.replace(drives, elastic=ElasticSettings())
        self.drives, self.layout, self.modes = drives, BankLayout(settings, drives, arm.n), Modes(settings)
        layout, count = self.layout, len(self.modes.owner)
        size, half, n = layout.size, packed_size(layout.size), arm.n
        self._track = compile_function(build_track(arm))
        self._update = compile_function(build_update(arm, layout))
        self._mix = compile_function(build_mix(size, count))
        self._output = compile_function(build_output(arm, layout))
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
        for function in (self._update, self._output):
            function.inputs["theta"][:], function.inputs["basis"][:] = theta, basis
        inputs["touch"][:] = [float(isinstance(c.rest, str)) for c in settings.contacts]
        inputs["gate"][:] = settings.gate
        inputs["prior"][:], inputs["spread"][:] = layout.mean, layout.variance
        self._elastic = np.array(layout.elastic_joints, dtype=int)
        track.inputs["length"][:] = np.maximum(drives.friction.presliding, 1e-6)
        self._output_modes = [(layout.size * j, half * j) for j in range(count)]
        elastic = [f"elastic deflection of {arm.joint_names[j]}" for j in layout.elastic_joints]
        self.channels = elastic + [f"torque of {name}" for name in arm.joint_names]
        self.outliers = np.zeros(len(self.channels), dtype=int)
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
        w[:n] = w[n:2 * n] = q
        self._t = t
        self._q[:] = q
        mean = layout.mean.copy()
        self._output.inputs["x"][:], self._output.inputs["q"][:] = mean, q
        self._output()
        points = self._output.outputs["points"].reshape(-1, 3)
        for i, (slots, where) in enumerate(zip(layout.estimated, layout.contact)):
            if 1 in slots and isinstance(self.settings.contacts[i].rest, str):
                mean[where.start + slots.index(1)] = layout.basis[i][:, 0] @ points[i]
        # The elastic offset starts where the deflection under gravity alone puts it.
        mean[layout.offset] = self.arm.gravity(q)[self._elastic] / np.exp(mean[layout.elastic]) + q[self._elastic]
        self._x[:] = np.tile(mean, count)
        self._p[:] = np.tile(pack_array(np.diag(layout.first_variance)), count)
        self.beliefs = self.modes.start(self.settings.closed_at_start)
        self._rotated = t
        self.outliers[:] = 0
        self._ratios[:] = 0.0
        self._best = 0
        self._start_block(np.zeros(n))

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take a sample; every ``block`` seconds the bank is updated."""
        inputs = self._track.inputs
        inputs["q"][:], inputs["dq"][:], inputs["tau"][:] = q, dq, tau
        if dt != self._dt:
            self._set_interval(dt)
        self._samples[self._turn]()
        self._turn = 1 - self._turn
        self._t += dt
        self._elapsed += dt
        self._q_sum += q
        self._count += 1
        self._q[:] = q
        if self._elapsed > self._block_end:
            self._end_block()

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
        w[_DRIFT * n:(_DRIFT + 1) * n] = 0.0
        w[_DEFLECTED * n:] = 0.0
        self._elapsed, self._count, self._q_sum = 0.0, 0, np.zeros(n)

    def _end_block(self) -> None:
        n, drives = self.arm.n, self.drives
        w, duration = self._w[self._turn].reshape(6, n), self._elapsed
        inputs = self._update.inputs
        m = self.layout.m
        inputs["y"][:m] = w[_DEFLECTED][self._elastic] / duration
        inputs["y"][m:] = (self._momentum - self._start_momentum - w[_DRIFT]) / duration
        inputs["q"][:] = self._q_sum / self._count
        inputs["s"][:] = w[_SLIDING]
        self._set_noise(duration)
        self._follow_noise()
        inputs["decay"][:], inputs["noise"][:] = self._decay, self._process
        beliefs = self._mix_modes(duration)
        for update in self._updates:
            update()
        likelihood = self._likelihood[:, 0]
        weighted = beliefs * np.exp(np.maximum(likelihood - likelihood.max(), -60.0))
        self.beliefs = np.maximum(weighted / weighted.sum(), FLOOR)
        self.beliefs /= self.beliefs.sum()
        self._best = int(np.argmax(self.beliefs))
        if self._t - self._rotated > self.settings.hypothesis_interval:
            self._rotated = self._t
            self.modes.rotate(self.beliefs)
            self._transition = self.modes.transition(duration)
        self.outliers += self._ratios[self._best] > self.settings.gate**2
        self._start_block(self._momentum)

    def _set_noise(self, duration: float) -> None:
        """Noise of the block's measurements and of its prediction; recomputed when the block's length changes."""
        if abs(duration - self._duration) < 1e-6:
            return
        self._duration = duration
        drives = self.drives
        self._decay, self._process = self.layout.decay_and_noise(duration)
        self._transition = self.modes.transition(duration)
        inertia = np.diag(self.arm.mass(self._q)) + 0.0
        momentum = 2 * (inertia * drives.velocity_noise / duration) ** 2
        scale = max(self.settings.block / duration, 1e-3)  # a shorter block averages fewer samples
        self._update.inputs["R"][:self.layout.m] = drives.elastic.noise**2 * scale
        self._update.inputs["R"][self.layout.m:] = np.square(drives.torque_noise) * scale + momentum

    _duration = -1.0

    def _follow_noise(self) -> None:
        self._track.inputs["play"][:] = self.drives.play

    def _mix_modes(self, duration: float) -> np.ndarray:
        """Mix the filters' states; returns the predicted beliefs."""
        joint = self.beliefs[:, None] * self._transition
        predicted = joint.sum(axis=0)
        self._mix.inputs["weights"][:] = (joint / predicted).ravel(order="F")
        self._mix()
        return predicted

    # -- estimates --------------------------------------------------------------------------------------------------------

    def estimate(self) -> Estimate:
        """The estimate after the last sample: the force follows the position at the full rate between updates of the parameters."""
        n, count = self.arm.n, len(self.settings.contacts)
        out, half = self._output, packed_size(self.layout.size)
        out.inputs["q"][:] = self._q
        tcp, base, tau = np.zeros(6), np.zeros(3), np.zeros(n)
        second, parameters, spread = np.zeros((3, 3)), np.zeros((count, 9)), np.zeros((count, 9, 9))
        weight = np.zeros(count)
        parts = []
        for j, belief in enumerate(self.beliefs):
            if belief < 1e-4:
                continue
            out.inputs["x"][:] = self._x[self.layout.size * j:self.layout.size * (j + 1)]
            out.inputs["P"][:] = self._p[half * j:half * (j + 1)]
            out.inputs["closed"][:] = self.modes.closed[j]
            out()
            o = out.outputs
            tcp += belief * o["tcp"]
            base += belief * o["force_base"]
            tau += belief * o["tau_e"]
            force = o["tcp"][:3]
            second += belief * (o["force_covariance"].reshape(3, 3) + np.outer(force, force))
            parts.append((belief * self.modes.closed[j] + 1e-9 * belief, o["parameters"].reshape(count, 9).copy(),
                          o["spreads"].reshape(count, 9, 9).copy()))
        for share, values, _ in parts:
            parameters += share[:, None] * values
            weight += share
        parameters /= weight[:, None]
        for share, values, spreads in parts:
            d = values - parameters
            spread += (share / weight)[:, None, None] * (spreads + d[:, :, None] * d[:, None, :])
        probability = self.beliefs @ self.modes.closed
        points = self._output.outputs["points"].reshape(count, 3)
        contacts = tuple(ContactState(c.name, float(probability[i]), parameters[i, :3], parameters[i, 3:6], parameters[i, 6:],
                                      points[i].copy(), spread[i]) for i, c in enumerate(self.settings.contacts))
        combinations = self.modes.of_combinations(self.beliefs)
        return Estimate(
            t=self._t, q=np.array(out.inputs["q"]), dq=self._track.inputs["dq"].copy(), tau_ext=tau, force_base=base,
            force_tcp=tcp[:3], torque_tcp=tcp[3:], force_covariance=second - np.outer(tcp[:3], tcp[:3]), contacts=contacts,
            nis=float(self._ratios[self._best].sum()), nis_dof=self._ratios.shape[1], mode=self.modes.names[int(np.argmax(combinations))],
            modes=dict(zip(self.modes.names, combinations.tolist())))
