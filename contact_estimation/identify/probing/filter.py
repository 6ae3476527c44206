"""The probing estimator: motion, parameters and sign of sliding together (paper 4, Algorithm 1).

One class serves plane and space; only the model differs. Measured pose and twist are linear in the state and enter
first, exactly. The wrench then updates the rest. The noises are independent, so this order equals the joint update
(13). The mode probability then uses the measured twist.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri

from contact_estimation.exceptions import IdentificationError, shape_error
from contact_estimation.identify.probing import gpb1
from contact_estimation.identify.probing.bristles import BristleState
from contact_estimation.identify.probing.disturbances import Disturbance
from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.events import SlideEvents
from contact_estimation.identify.probing.model import ContactModel, Mean
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.identify.probing.update import Density, Lines, Motion, Regression, Steps, bind, wrench_library

#: Predicted probability below which a sign mode is not computed: one sample in a million would need it.
_MODE_MIN = 1e-6
#: Standard deviations at the start of velocity [m/s, rad/s] and acceleration [m/s^2, rad/s^2]: wider than any probing
#: motion, since the first measured twist follows at once.
_START_VELOCITY, _START_ACCELERATION = 0.1, 1.0


class ProbingFilter:
    """Estimator of contact geometry and dynamics from pose, twist and wrench.

    The state is [pose error; velocity; acceleration; parameters; joint-torque errors; errors across the bristles].

    Args:
        model: measurement model.
        settings: priors, noise, events, rule.
        disturbance: slow error of the wrench; default that of the joint torques in the settings, or else the offset of
            a measured wrench in the settings.
    """

    def __init__(self, model: ContactModel, settings: ProbingSettings, disturbance: Disturbance | None = None) -> None:
        self.model, self.settings = model, settings
        m, n_s = model.axes, len(model.parameters)
        turns = m - model.force_size
        self._kinematic = slice(0, 2 * m)
        self._param = slice(3 * m, 3 * m + n_s)
        told, self._offset_map = _told(model, settings)
        self._disturbance = told if disturbance is None else disturbance
        self._gate = float(chdtri(model.wrench_size, settings.gate_probability))
        self._n_bias = len(self._disturbance.std)
        self._bias = slice(self._param.stop, self._param.stop + self._n_bias)
        self._bristle_error = slice(self._bias.stop, self._bias.stop + len(model.bristle_contacts))
        self._bias_variance = np.square(np.array(self._disturbance.std))
        self._jerk = (settings.jerk,) * model.force_size + (settings.angular_jerk,) * turns
        noise = [settings.position_noise] * model.force_size + [settings.angle_noise] * turns
        noise += [settings.velocity_noise] * model.force_size + [settings.rate_noise] * turns
        self.kinematic_noise = np.square(noise)
        self.wrench_noise = np.diag(np.square(model.wrench_deviations(settings)))
        self._walk = np.square(model.walk(settings))
        self._started = False
        self._allocate()

    def _allocate(self) -> None:
        """Allocate state, covariance and the parts of the update, which work on them in place."""
        model, cfg, n_s, size = self.model, self.settings, len(self.model.parameters), self._bristle_error.stop
        library, entries, w = wrench_library(model), n_s + model.noises, model.wrench_size
        self._x, self._P = np.zeros(size), np.zeros((size, size))
        self._variances = self._P.reshape(-1)[:: size + 1]  # the diagonal of P, a view
        self._motion = Motion(library, self._P, np.square(self._jerk), self.kinematic_noise)
        self._selector = np.zeros((entries, size))
        self._selector[:n_s, self._param] = np.eye(n_s)
        self._slip_rows = np.zeros((model.contacts, size))  # gradients of the slip by the state
        self._c = Density(np.zeros(entries), np.zeros((entries, entries)), np.zeros(model.conditions.size))
        self._project = bind(library.ce_project, entries, size, self._selector, self._P, self._c.covariance)
        modes = len(model.modes)
        self._lines = lines = Lines(*(np.zeros((modes, *shape)) for shape in ((w,), (w, entries), (w, w), (w, w))))
        self._steps = Steps(
            library, self._P, self._selector, lines, (self._bias.start, self._n_bias), cfg.residual_colour
        )
        degree = cfg.degree if model.contacts == 1 else cfg.degree_several
        self._regressions = [Regression(library, self._c, lines[:3], degree)]
        if cfg.residual_colour != 1.0:  # the white share: parameters at their mean
            unused = np.zeros((modes, w)), np.zeros((modes, w, model.noises))
            self._regressions.append(Regression(library, self._c, (*unused, lines.white), degree))

    def start(self, t: float, pose: np.ndarray, s: ArrayLike, covariance: ArrayLike, origin: ArrayLike) -> None:
        """Begin at contact.

        Args:
            t: stamp [s].
            pose: measured end-effector pose.
            s: parameter vector (n_s,) in free coordinates, offsets relative to ``origin``.
            covariance: its covariance (n_s, n_s).
            origin: point in the world [m] to which positions refer inside the filter; take the touching tip, so that
                surface angle and offset are nearly uncorrelated.

        Raises:
            ConfigError: ``s`` or ``covariance`` has another shape.
        """
        s, covariance = np.array(s, dtype=float), np.array(covariance, dtype=float)
        n_s, m, cfg = len(self.model.parameters), self.model.axes, self.settings
        for name, given, expected in (("s", s, (n_s,)), ("covariance", covariance, (n_s, n_s))):
            if given.shape != expected:
                raise shape_error("ProbingFilter.start", name, given.shape, expected)
        self._origin = np.array(origin, dtype=float)
        self._pose = self.model.shift(pose, self._origin)
        self._x[:], self._P[:] = 0.0, 0.0
        self._x[self._param] = s
        self._P[:m, :m] = np.diag(self.kinematic_noise[:m])
        spread = np.repeat([_START_VELOCITY**2, _START_ACCELERATION**2], m)
        self._P[m : 3 * m, m : 3 * m] = np.diag(spread)
        self._P[self._param, self._param] = covariance
        self._P[self._bias, self._bias] = np.diag(self._bias_variance)
        self._forgotten = np.array(list(self.model.bounds))  # stiffness and friction
        self._offsets = [i for i, name in enumerate(self.model.parameters) if name == "d" or name.endswith("_d")]
        self._start_variance = np.diag(covariance).copy()
        self._gated, self._surprises, self._wrench = False, 0, np.zeros(self.model.wrench_size)
        self._steps.noise[:], self._map = self.wrench_noise, self._offset_map
        self._changes: list[float] = []
        self._bristles: BristleState | None = None
        if isinstance(self.model, SpatialModel):
            state = self._x, self._P, self._bristle_error, self._kinematic
            self._bristles = BristleState(self.model, cfg.presliding_stiffness, *state)
            self._bristle_turns = np.einsum("ii->i", self._selector[n_s + 1 :: 2, self._bristle_error])  # a view
        self._events = [
            SlideEvents(cfg.slide_step, cfg.slide_speed_min, cfg.slide_distance_min) for _ in range(self.model.contacts)
        ]
        self._t, self._used, self._nis, self._evidence = float(t), False, float("nan"), 0.0
        self._slip, self._innovation = np.zeros(self.model.contacts), np.full(self.model.wrench_size, np.nan)
        self._modes = np.full(len(self.model.modes), 1.0 / len(self.model.modes))
        self._started = True

    def step(
        self,
        dt: float,
        pose: np.ndarray,
        twist: np.ndarray,
        wrench: ArrayLike | None,
        wrench_noise: np.ndarray | None = None,
        bias_map: np.ndarray | None = None,
    ) -> None:
        """Take one sample.

        Args:
            dt: time since the last sample [s].
            pose: measured pose of the end-effector in the world.
            twist: its measured velocity (axes,), world axes at the end-effector's origin [m/s, rad/s].
            wrench: measured wrench (w,) of the environment ON the probe, end-effector axes and origin [N, Nm]; None
                where it was not measured: the contact then grips as with the last one.
            wrench_noise: covariance (w, w) where it differs from the settings'.
            bias_map: matrix (w, n) from the slow error to the wrench; needed with ``torque_bias_std`` (from the joint
                torques) or a ``disturbance``.

        Raises:
            IdentificationError: before :meth:`start`, ``dt`` is not positive, a measurement is not finite, or the bias
                map is missing.
            ConfigError: the wrench has another shape.
        """
        measured = wrench is not None
        wrench = np.array(wrench, dtype=float) if measured else self._wrench
        bias_map = self._offset_map if bias_map is None else bias_map
        self._check(dt, pose, twist, wrench, bias_map)
        self._wrench = wrench
        self._t += dt
        local = self.model.shift(pose, self._origin)
        if self._bristles:
            self._bristles.predict(dt, Mean(local, twist, self._x[self._param]))
        self._predict(dt)
        self._correct_motion(local, twist)
        force = float(np.linalg.norm(wrench[: self.model.force_size]))
        slides = self._note_sliding(dt, force)
        self._used, self._gated, self._nis, self._evidence = False, False, float("nan"), 0.0
        self._steps.noise[:], self._map = self.wrench_noise if wrench_noise is None else wrench_noise, bias_map
        if measured and force > self.settings.contact_force_min and self._forces_count(slides):
            self._correct_wrench(wrench)

    def _check(
        self, dt: float, pose: np.ndarray, twist: np.ndarray, wrench: np.ndarray, bias_map: np.ndarray | None
    ) -> None:
        if not self._started:
            raise IdentificationError("the probing filter was not started; call start() with the first pose in contact")
        if not dt > 0.0:
            raise IdentificationError(f"the time step is {dt} s, expected a positive one; drop repeated samples")
        if wrench.shape != (self.model.wrench_size,):
            raise shape_error("ProbingFilter.step", "wrench", wrench.shape, (self.model.wrench_size,))
        if not math.isfinite(sum(pose.ravel().tolist()) + sum(twist.tolist()) + sum(wrench.tolist())):
            raise IdentificationError("pose, twist or wrench is not finite; drop the sample")
        if self._n_bias and bias_map is None:
            raise IdentificationError(
                "a slow error is estimated but no bias_map was given; pass its map to the wrench, or leave "
                "torque_bias_std empty for a measured wrench"
            )

    def _mean(self) -> Mean:
        m = self.model.axes
        return Mean(self._pose, self._x[m : 2 * m], self._x[self._param])

    def _predict(self, dt: float) -> None:
        """Process update, full or reduced (Algorithm 1)."""
        m = self.model.axes
        dt = round(dt, 6)
        velocity, acceleration = self._x[m : 2 * m], self._x[2 * m : 3 * m]
        self._pose = self.model.advance(self._pose, dt * velocity + 0.5 * dt**2 * acceleration)
        velocity += dt * acceleration
        self._motion.predict(dt)
        if share := self._walk_share(dt):
            self._variances[self._param] += share * self._walk
        if self._n_bias:
            decay = np.exp(-dt / self._disturbance.time)
            self._x[self._bias] *= decay
            self._P[self._bias] *= decay
            self._P[:, self._bias] *= decay
            self._variances[self._bias] += (1.0 - decay**2) * self._bias_variance

    def _walk_share(self, dt: float) -> float:
        """Share of one slide step's random walk in this sample: one or zero."""
        due = [event.parameters_may_change() for event in self._events]  # reset every tip
        return float(any(due))

    def _forces_count(self, slides: bool) -> bool:
        """Whether a sample's wrench is used; ``slides`` says that every contact slides."""
        return slides

    def _correct_motion(self, pose: np.ndarray, twist: np.ndarray) -> None:
        """Linear update with the measured pose, relative to the origin, and twist."""
        m = self.model.axes
        moved = self.model.difference(pose, self._pose)
        self._motion.correct(moved, twist - self._x[m : 2 * m])
        self._move(self._motion.increment)

    def _move(self, increment: np.ndarray) -> None:
        """Add a state increment: on the pose's manifold, plainly elsewhere."""
        m = self.model.axes
        self._pose = self.model.advance(self._pose, increment[:m])
        self._x[m:] += increment[m:]

    def _note_sliding(self, dt: float, force: float) -> bool:
        """Slip estimate and predicted mode probabilities; True when every contact slides."""
        kinematic, rows = self._kinematic.stop, self._slip_rows
        self._now = mean = self._mean()
        self._slip, gradient, velocities = self.model.slip(mean)
        rows[:, :kinematic], rows[:, self._param] = gradient[:, :kinematic], gradient[:, kinematic:]
        variance = np.einsum("ci,ci->c", rows @ self._P, rows)
        self._modes = gpb1.mode_probabilities(self._slip, np.sqrt(np.maximum(variance, 0.0)), self.model.modes)
        if self._bristles:
            self._bristles.follow(dt, mean, velocities, force)
        slides = [event.record(velocity, dt) for event, velocity in zip(self._events, velocities)]  # note every tip
        return all(slides)

    def _correct_wrench(self, wrench: np.ndarray) -> None:
        """One measurement update per mode and their merge, eq. 16-24; a wrench beyond the gate is left out."""
        kept, prior = self._sign_modes()
        self._make_steps(wrench, kept)
        best = int(np.argmax(self._steps.log_likelihoods))
        likelihood, whitened = self._steps.log_likelihoods[best], self._steps.whitened[best].copy()
        nis = float(whitened @ whitened)
        excess = max(nis - self._gate, 0.0)
        self._gated, self._surprises = excess > 0.0, self._surprises + 1 if excess else 0
        if excess and self._surprises < self.settings.gated_in_a_row:
            self._innovation, self._nis = whitened, nis
            self._evidence = likelihood + 0.5 * excess
            return
        if excess:
            self._surprises = 0
            self._changes.append(self._t)
            self._forget()
            self._make_steps(wrench, kept)
        self._merge(kept, prior)
        if excess:
            self._evidence = likelihood + 0.5 * excess
            self._innovation = whitened

    def _forget(self) -> None:
        """Give stiffness and friction the variance of the start; tip and angles did not change at once.

        Before its detection the change may have affected the offsets. Their variance is therefore raised, too.
        """
        for i in self._offsets:
            self._P[self._param.start + i, self._param.start + i] += self.settings.change_offset_std**2
        for i in self._forgotten:
            k = self._param.start + i
            variance = max(self._P[k, k], self._start_variance[i])
            self._P[k], self._P[:, k] = 0.0, 0.0
            self._P[k, k] = variance

    def _make_steps(self, wrench: np.ndarray, kept: np.ndarray) -> None:
        """Kalman step of each of the modes ``kept``."""
        mean, bias_map = self._now, self._map
        deflection = self._bristles.deflection if self._bristles else None
        rows, axes = self.model.prepare(mean, deflection)
        self._select(rows)
        self._c.mean[: len(mean.s)] = mean.s
        self._c.conditions[:] = self.model.conditions_at(mean, axes)
        self._project()
        self._linearise(mean, kept)
        if self._n_bias:
            self._steps.bias_map[:] = bias_map
            wrench = wrench - self._steps.bias_map @ self._x[self._bias]
        self._steps.clear()
        for mode in kept:
            np.subtract(wrench, self._lines.mean[mode], out=self._steps.innovation)
            self._steps.add(mode)

    def _select(self, rows: np.ndarray) -> None:
        """Write the kinematic noises into the matrix C (k, n) from the state to what the wrench depends on."""
        noises = self._selector[len(self.model.parameters) :]
        if not self._bristles:
            noises[:, self._kinematic] = rows
            return
        noises[::2, self._kinematic] = rows[::2]
        # Noise of the twist acts on friction through the bristles.
        self._bristle_turns[:] = self._bristles.turns

    def _linearise(self, mean: Mean, kept: np.ndarray) -> None:
        """Regress the wrench of the modes ``kept`` on c."""
        for regression in self._regressions:
            self._spread(regression, mean)
            for mode in kept:
                regression.fit(mode)

    def _spread(self, regression: Regression, mean: Mean) -> None:
        """Compute the wrench of every mode at the points of a regression."""
        regression.spread()

    def _merge(self, kept: np.ndarray, prior: np.ndarray) -> None:
        """GPB1 merge of the steps of the modes ``kept``."""
        steps = self._steps
        posterior, self._evidence = gpb1.mixture(prior, steps.log_likelihoods)
        self._innovation = steps.whitened[int(np.argmax(posterior))].copy()
        steps.merge(posterior)
        self._move(steps.increment)
        if self._bristles:
            self._bristles.absorb_error()
        self._modes = np.zeros(len(self._modes))
        self._modes[kept] = posterior
        self._used, self._nis = True, sum(p * float(own @ own) for p, own in zip(posterior.tolist(), steps.whitened))

    def _sign_modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the modes that are computed, and their predicted probabilities."""
        kept = (self._modes > _MODE_MIN).nonzero()[0]
        return kept, self._modes[kept]

    @property
    def origin(self) -> np.ndarray:
        """Point (2,) or (3,) in the world [m] to which :meth:`local` refers."""
        return np.array(self._origin)

    @property
    def used(self) -> bool:
        """Whether the last sample's wrench was used."""
        return self._used

    @property
    def log_evidence(self) -> float:
        """Log-likelihood of the last sample's wrench, at the gate for one beyond it; 0 where it was not looked at."""
        return self._evidence

    @property
    def bias(self) -> np.ndarray:
        """Estimated slow error (n,) of the joint torques [Nm] or of the wrench; empty where none is estimated."""
        return np.array(self._x[self._bias])

    @property
    def bias_covariance(self) -> np.ndarray:
        """Covariance (n, n) of :attr:`bias`."""
        return np.array(self._P[self._bias, self._bias])

    @property
    def gated(self) -> bool:
        """Whether the last sample's wrench lay beyond the gate: left out, or the sign of a change."""
        return self._gated

    @property
    def changes(self) -> tuple[float, ...]:
        """Stamps [s] at which stiffness and friction were found to have changed at once."""
        return tuple(self._changes)

    def information(self, slope: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Information (n_s + n, n_s + n) about parameters and slow error that one wrench like the last one brings.

        Args:
            slope: derivative (w, n_s) of the wrench by the parameters.
            noise: covariance (w, w) of what pose and twist add to the last wrench's own.
        """
        unseen = np.zeros((len(slope), self._bias.stop - self._bias.start))
        rows = np.hstack([slope, unseen if self._map is None or not self._n_bias else self._map])
        return np.asarray(rows.T @ np.linalg.solve(self._steps.noise + noise, rows))

    def joint_covariance(self) -> np.ndarray:
        """Return the covariance (n_s + n, n_s + n) of parameters and slow error."""
        both = slice(self._param.start, self._bias.stop)
        return np.array(self._P[both, both])

    @property
    def innovation(self) -> np.ndarray:
        """Innovation (w,) of the last wrench that was used or gated, in standard deviations, of the likeliest mode."""
        return np.asarray(self._innovation)

    def unlearnt(self) -> list[str]:
        """Name stiffness and friction where more than half of the variance of their start is left."""
        left = np.diag(self._P)[self._param] / self._start_variance
        return [self.model.parameters[i] for i in self._forgotten if left[i] > 0.5]

    def local(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the free parameters (n_s,) and their covariance, with offsets relative to :attr:`origin`."""
        return self._x[self._param].copy(), self._P[self._param, self._param].copy()

    def estimate(self) -> ProbingEstimate:
        """Return the estimate after the last sample."""
        free, covariance = self.model.offset_to_world(*self.local(), self._origin)
        mean, std = free.copy(), np.sqrt(np.diag(covariance))
        for i, bounds in self.model.bounds.items():
            mean[i], std[i] = bounds.moments(free[i], std[i])
        return ProbingEstimate(
            self._t,
            self.model.parameters,
            mean,
            std,
            free,
            covariance,
            self._slip.copy(),
            self._modes.copy(),
            self._used,
            self._nis,
            self.model.wrench_size,
        )


def _told(model: ContactModel, settings: ProbingSettings) -> tuple[Disturbance, np.ndarray | None]:
    """Return the slow error that the settings tell, and its map where that is constant."""
    if settings.torque_bias_std or not (settings.force_bias_std or settings.moment_bias_std):
        return Disturbance(settings.torque_bias_std, settings.torque_bias_time), None
    moments = model.wrench_size - model.force_size
    std = (settings.force_bias_std,) * model.force_size + (settings.moment_bias_std,) * moments
    return Disturbance(std), np.eye(model.wrench_size)


#: Makes the filter of one hypothesis or run; :class:`ProbingFilter` itself, or what a study makes of it.
MakeFilter = Callable[[ContactModel, ProbingSettings], ProbingFilter]
