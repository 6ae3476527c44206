"""One cycle of the interacting multiple model: who starts from whom, mixing, an update per filter, Bayes' rule.

Everything runs in generated code over shared buffers; what a call writes is what the next one reads.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.mix import Modes, build_believe, build_mix, build_predict
from contact_estimation.filters.bank.settings import BankSettings
from contact_estimation.filters.bank.update import UNDECIDED, build_prior, build_update
from contact_estimation.filters.kalman import packed_size
from contact_estimation.robot import Arm


class Cycle:
    """States of M filters of N states, and what a block of samples makes of them.

    Attributes:
        x: (M, N) means. p: (M, N (N + 1) / 2) packed covariances. beliefs: (M,). ratios: (M, m + n) squared innovations
        over their variances, before gating. block: buffers ``y``, ``R`` (m + n,), ``q``, ``s`` (n,), ``unsteady``
        (m + n,) of the measurement to come. backend: ``c`` or ``vm``.
    """

    def __init__(self, arm: Arm, settings: BankSettings, layout: BankLayout, modes: Modes):
        count, size, half, contacts = len(modes.owner), layout.size, packed_size(layout.size), len(settings.contacts)
        self._layout, self._modes = layout, modes
        update = compile_function(build_update(arm, layout))
        self._prior = compile_function(build_prior(arm, layout))
        mix, predict = compile_function(build_mix(size, count)), compile_function(build_predict(count, contacts))
        self._predict, believe = predict, compile_function(build_believe(count))
        self.backend = update.backend
        self.x, self.p = (mix.inputs[k].reshape(count, -1) for k in ("X", "P"))
        self.beliefs, self._transition = predict.inputs["beliefs"], predict.inputs["transition"]
        self.ratios = np.zeros((count, layout.m + arm.n))
        self._pressed = predict.inputs["pressed"].reshape(count, contacts)
        before = predict.outputs["pressed_before"].reshape(count, contacts)
        weights = predict.outputs["weights"].reshape(count, count)
        likelihood = believe.inputs["log_likelihood"]
        self._posterior = believe.bind([predict.outputs["predicted"], likelihood], [self.beliefs])
        self._inputs = inputs = update.inputs
        self.block = {k: inputs[k] for k in ("y", "R", "q", "s", "unsteady")}
        shared = [inputs[k] for k in ("decay", "noise", *self.block)]
        constants = [inputs[k] for k in ("theta", "basis", "prior", "spread", "touch", "gate")]
        # No filter is updated before all are mixed: the mixed states have buffers of their own.
        mixed_x, mixed_p = np.zeros((count, size)), np.zeros((count, half))
        self._mixes = [
            mix.bind([mix.inputs["X"], mix.inputs["P"], weights[j]], [mixed_x[j], mixed_p[j]]) for j in range(count)
        ]
        self.updates = [
            update.bind(
                [mixed_x[j], mixed_p[j], *shared, modes.closed[j].copy(), *constants, before[j]],
                [self.x[j], self.p[j], likelihood[j : j + 1], self.ratios[j], self._pressed[j]],
            )
            for j in range(count)
        ]
        for function in (inputs, self._prior.inputs):
            function["theta"][:], function["basis"][:] = layout.constants
            function["touch"][:] = [float(isinstance(c.rest, str)) for c in settings.contacts]
        inputs["gate"][:] = settings.gate
        inputs["prior"][:], inputs["spread"][:] = layout.mean, layout.variance

    def start(self, q: np.ndarray, deflection: np.ndarray, beliefs: np.ndarray) -> None:
        """Everything at its prior at ``q`` (n,); ``deflection`` (m,) [rad] what the elastic channels' offsets are taken
        to be; ``beliefs`` (M,)."""
        prior = self._prior.inputs
        prior["q"][:], prior["prior"][:], prior["spread"][:] = q, self._layout.mean, self._layout.first_variance
        self._prior()
        self.x[:], self.p[:] = self._prior.outputs["x"], self._prior.outputs["P"]
        self.x[:, self._layout.offset] = deflection
        self.beliefs[:] = beliefs
        self._pressed[:] = UNDECIDED

    def set_interval(self, duration: float) -> None:
        """Prediction over ``duration`` [s], for the modes' present entrances."""
        self._inputs["decay"][:], self._inputs["noise"][:] = self._layout.decay_and_noise(duration)
        self._transition[:] = self._modes.transition(duration).ravel(order="F")

    def run(self) -> None:
        """Take the measurement in :attr:`block`."""
        self._predict()
        for mix in self._mixes:
            mix()
        for update in self.updates:
            update()
        self._posterior()
