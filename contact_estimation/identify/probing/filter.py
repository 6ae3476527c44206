"""The probing estimator: motion, parameters and sign of sliding together (paper 4, Algorithm 1).

One class serves the plane and space; what differs is the model (:class:`PlanarModel`, :class:`SpatialModel`).
Measured pose and twist are linear in the state and are used first, exactly; the wrench then updates what is left.
That order is the joint update (13), since the noises are independent, with a mode probability that already knows the
measured twist.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import IdentificationError, shape_error
from contact_estimation.identify.probing import gpb1
from contact_estimation.identify.probing.estimate import Ingredients, ProbingEstimate
from contact_estimation.identify.probing.events import SlideEvents
from contact_estimation.identify.probing.motion import transition
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.trailing import Trail
from contact_estimation.identify.probing.update import cholesky, correct, differentiate, regress, separate

#: A sign mode less probable than this is not computed.
_MODE_MIN = 1e-6


class ProbingFilter:
    """Estimator of contact geometry and dynamics from pose, twist and wrench.

    Args:
        model: measurement model.
        settings: priors, noise, events, rule.
        ingredients: ablation switches.
        rng: generator of the samples of the mode probability, where it is sampled; default seeded with 0.
    """

    def __init__(self, model, settings: ProbingSettings, ingredients: Ingredients = Ingredients(),
                 rng: np.random.Generator | None = None):
        self.model, self.settings, self._use = model, settings, ingredients
        m, n_s = model.axes, len(model.parameters)
        linear, angular = slice(0, model.force_size), slice(model.force_size, m)
        self._kinematic = slice(0, 2 * m)
        self._param = slice(3 * m, 3 * m + n_s)
        self._n_bias = len(settings.torque_bias_std)
        self._bias_variance = np.square(np.array(settings.torque_bias_std))
        self._bias = slice(3 * m + n_s, 3 * m + n_s + self._n_bias)
        self._aside = slice(self._bias.stop, self._bias.stop + len(model.trailing))  # error across the bristles
        self._size = self._aside.stop
        axis = np.empty(m)
        axis[linear], axis[angular] = settings.jerk, settings.angular_jerk
        self._jerk = tuple(axis)
        noise = np.empty(2 * m)
        noise[:m][linear], noise[:m][angular] = settings.position_noise, settings.angle_noise
        noise[m:][linear], noise[m:][angular] = settings.velocity_noise, settings.rate_noise
        self.kinematic_noise = np.diag(noise**2)
        self.wrench_noise = np.diag(np.square(model.wrench_deviations(settings)))
        self._walk = np.square(model.walk(settings))
        rng = rng if rng is not None else np.random.default_rng(0)
        width = 2 * m + n_s if settings.mode_probability == "sampled" else model.contacts
        self._draws = rng.standard_normal((width, settings.samples))
        self._started = False

    def start(self, t: float, pose, s, covariance, origin) -> None:
        """Begin at contact.

        Args:
            t: stamp [s].
            pose: measured end-effector pose.
            s: parameter vector (n_s,) in free coordinates, offsets relative to ``origin``.
            covariance: its covariance (n_s, n_s).
            origin: point in the world [m] to which positions refer inside the filter; take the touching tip, so that
                surface angle and offset are nearly uncorrelated.
        """
        s, covariance = np.array(s, dtype=float), np.array(covariance, dtype=float)
        n_s, m = len(self.model.parameters), self.model.axes
        for name, given, expected in (("s", s, (n_s,)), ("covariance", covariance, (n_s, n_s))):
            if given.shape != expected:
                raise shape_error("ProbingFilter.start", name, given.shape, expected)
        self._origin = np.array(origin, dtype=float)
        self._pose = self.model.shift(pose, self._origin)
        self._x = np.zeros(self._size)
        self._x[self._param] = s
        self._P = np.zeros((self._size, self._size))
        self._P[:m, :m] = self.kinematic_noise[:m, :m]
        self._P[m:3 * m, m:3 * m] = np.diag(np.concatenate([np.full(m, 0.1**2), np.full(m, 1.0)]))
        self._P[self._param, self._param] = covariance
        self._P[self._bias, self._bias] = np.diag(self._bias_variance)
        cfg = self.settings
        if self.model.trailing:
            self._trail = Trail(self.model, cfg.presliding_stiffness, self._aside, self._kinematic)
        self._events = [SlideEvents(cfg.slide_step, cfg.slide_speed_min, cfg.slide_distance_min)
                        for _ in range(self.model.contacts)]
        self._t, self._used, self._nis, self._evidence = float(t), False, float("nan"), 0.0
        self._slip = np.zeros(self.model.contacts)
        self._modes = np.full(len(self.model.modes), 1.0 / len(self.model.modes))
        self._started = True

    def step(self, dt: float, pose, twist, wrench, wrench_noise=None, bias_map=None) -> None:
        """Take one sample.

        Args:
            dt: time since the last sample [s].
            pose: measured pose of the end-effector in the world.
            twist: its measured velocity (axes,), world axes at the end-effector origin [m/s, rad/s].
            wrench: measured wrench (w,) of the environment ON the probe, end-effector axes and origin [N, Nm].
            wrench_noise: covariance (w, w) where it differs from the settings'.
            bias_map: matrix (w, joints) from the slow joint-torque error to the wrench; needed with
                ``torque_bias_std``.

        Raises:
            IdentificationError: before :meth:`start`, ``dt`` is not positive, a measurement is not finite, or the
                bias map is missing.
        """
        if not self._started:
            raise IdentificationError("the probing filter was not started; call start() with the first pose in contact")
        if not dt > 0.0:
            raise IdentificationError(f"the time step is {dt} s, expected a positive one; drop repeated samples")
        wrench = np.asarray(wrench, dtype=float)
        if wrench.shape != (self.model.wrench_size,):
            raise shape_error("ProbingFilter.step", "wrench", wrench.shape, (self.model.wrench_size,))
        if not np.isfinite(np.sum(pose) + np.sum(twist) + np.sum(wrench)):
            raise IdentificationError("pose, twist or wrench is not finite; drop the sample")
        if self._n_bias and bias_map is None:
            raise IdentificationError("torque_bias_std is set but no bias_map was given; pass the map from joint "
                                      "torque to wrench, or leave torque_bias_std empty for a measured wrench")
        self._t += dt
        if self.model.trailing:
            shifted = self.model.shift(pose, self._origin)
            self._P = self._trail.forget(self._P, dt, shifted, twist, self._x[self._param])
        self._predict(dt)
        self._correct_motion(pose, twist)
        force = float(np.linalg.norm(wrench[:self.model.force_size]))
        slides = self._note_sliding(dt, force)
        self._used, self._nis, self._evidence = False, float("nan"), 0.0
        touching = force > self.settings.contact_force_min
        if touching and (slides or not self._use.event_triggered):
            noise = self.wrench_noise if wrench_noise is None else wrench_noise
            self._correct_wrench(wrench, noise, bias_map)

    def _predict(self, dt):
        """Process update, full or reduced (Algorithm 1)."""
        m = self.model.axes
        f, q = transition(round(dt, 6), self._jerk)
        increment = f[:m, m:] @ self._x[m:3 * m]
        self._pose = self.model.advance(self._pose, increment)
        self._x[m:3 * m] = f[m:, m:] @ self._x[m:3 * m]
        motion = slice(0, 3 * m)
        self._P[motion] = f @ self._P[motion]
        self._P[:, motion] = self._P[:, motion] @ f.T
        self._P[motion, motion] += q
        if self._use.event_triggered:
            grow = float(any([event.parameters_may_change() for event in self._events]))
        else:  # the same growth for a probe at the slowest speed that counts, spread over time
            grow = self.settings.slide_speed_min * dt / self.settings.slide_step
        index = np.arange(self._param.start, self._param.stop)
        self._P[index, index] += grow * self._walk
        if self._n_bias:
            decay = np.exp(-dt / self.settings.torque_bias_time)
            self._x[self._bias] *= decay
            self._P[self._bias] *= decay
            self._P[:, self._bias] *= decay
            index = np.arange(self._bias.start, self._bias.stop)
            self._P[index, index] += (1.0 - decay**2) * self._bias_variance

    def _correct_motion(self, pose, twist):
        """Linear update with the measured pose and twist."""
        m, k = self.model.axes, self._kinematic
        innovation = np.concatenate([self.model.difference(self.model.shift(pose, self._origin), self._pose),
                                     np.asarray(twist) - self._x[m:2 * m]])
        cross = self._P[:, k]
        gain = np.linalg.solve(self._P[k, k] + self.kinematic_noise, cross.T).T
        self._P = self._P - gain @ cross.T
        self._P = 0.5 * (self._P + self._P.T)
        self._move(gain @ innovation)

    def _move(self, increment):
        """Add a state increment: on the pose's manifold, plainly elsewhere."""
        m = self.model.axes
        self._pose = self.model.advance(self._pose, increment[:m])
        self._x[m:] += increment[m:]

    def _note_sliding(self, dt, force):
        """Slip estimate and predicted mode probabilities; True when every contact slides."""
        m = self.model.axes
        s, twist = self._x[self._param], self._x[m:2 * m]
        index = np.r_[0:2 * m, self._param.start:self._param.stop]
        covariance = self._P[np.ix_(index, index)]
        self._slip, gradient, velocities = self.model.slip(self._pose, twist, s)
        if self.settings.mode_probability == "sampled":
            draws = np.linalg.cholesky(covariance) @ self._draws
            drawn = self.model.slip_samples(self._pose, twist, s, draws)
            self._modes = gpb1.sampled_probabilities(drawn, self.model.modes)
        elif self.model.contacts == 1:
            positive = gpb1.closed_probability(
                self._slip[0], float(np.sqrt(max(gradient[0] @ covariance @ gradient[0], 0.0)))
            )
            self._modes = np.array([positive, 1.0 - positive])
        else:
            root = cholesky(gradient @ covariance @ gradient.T)
            self._modes = gpb1.sampled_probabilities(self._slip[:, None] + root @ self._draws, self.model.modes)
        if self.model.trailing:
            self._P = self._trail.follow(self._x, self._P, dt, self._pose, twist, s, velocities, force)
        return all([event.record(velocity, dt) for event, velocity in zip(self._events, velocities)])

    def _correct_wrench(self, wrench, noise, bias_map):
        """One measurement update per mode and their merge, eq. 16-24."""
        m = self.model.axes
        s, twist = self._x[self._param], self._x[m : 2 * m]
        deflection = self._trail.deflection if self.model.trailing else None
        functionals, prepared = self.model.prepare(self._pose, twist, s, deflection)
        n_s, n_f = len(s), len(functionals)
        selector = np.zeros((n_s + n_f, self._size))
        selector[:n_s, self._param] = np.eye(n_s)
        selector[n_s:, self._kinematic] = functionals
        if self.model.trailing:  # what noise of the twist does to friction reaches it through the bristles
            selector[n_s + 1::2] = 0.0
            selector[n_s + 1::2, self._aside] = np.diag(self._trail.turn_by_error())
        mean_c = np.concatenate([s, np.zeros(n_f)])
        kept = np.flatnonzero(self._modes > _MODE_MIN) if self._use.merge else np.zeros(1, dtype=int)
        function = self._wrench_function(twist, s, prepared, kept)
        known = bias_map @ self._x[self._bias] if self._n_bias else 0.0
        corrections = []
        for line in self._linearise(function, mean_c, selector @ self._P @ selector.T):
            jacobian = line.slope @ selector
            if self._n_bias:
                jacobian[:, self._bias] = bias_map
            corrections.append(
                correct(
                    line,
                    wrench - known,
                    noise,
                    mean_c,
                    jacobian,
                    self._P,
                    self.settings.residual_colour if self._use.coloured else 1.0,
                )
            )
        prior = self._modes[kept] if self._use.merge else np.ones(1)
        scores = np.array([c.log_likelihood for c in corrections])
        posterior = gpb1.posterior(prior, scores)
        best = scores.max()
        self._evidence = float(best + np.log(prior @ np.exp(scores - best)))
        increment, self._P = gpb1.merge(
            posterior, np.array([c.increment for c in corrections]), np.array([c.covariance for c in corrections])
        )
        self._P = 0.5 * (self._P + self._P.T)
        self._move(increment)
        if self.model.trailing:
            self._trail.hand_over(self._x)
        if self._use.merge:
            self._modes = np.zeros(len(self._modes))
            self._modes[kept] = posterior
        self._used, self._nis = True, float(posterior @ np.array([c.nis for c in corrections]))

    def _linearise(self, function, mean_c, covariance_c):
        if self._use.cubature:
            degree = self.settings.degree if self.model.contacts == 1 else self.settings.degree_several
            lines = regress(function, mean_c, covariance_c, degree)
            if self._use.coloured:
                n_s = len(self.model.parameters)
                lines = separate(lines, function, mean_c, covariance_c, n_s, degree)
            return lines
        return differentiate(function, mean_c, covariance_c)

    def _wrench_function(self, twist, s, prepared, kept):
        """Wrench at points of c, one array for each mode in ``kept``.

        Without the merge there is one mode, whose sign of sliding is that of each point.
        """
        if self._use.merge:
            modes = [self.model.modes[i] for i in kept]
            return lambda c: self.model.wrenches(self._pose, twist, c, prepared, modes)
        n_s = len(s)

        def one(c):
            deviations = np.zeros((2 * self.model.axes + n_s, c.shape[1]))
            deviations[-n_s:] = c[:n_s] - s[:, None]
            velocity = self.model.slip_samples(self._pose, twist, s, deviations)
            return [
                np.where(velocity[0] > 0.0, *self.model.wrenches(self._pose, twist, c, prepared, self.model.modes[:2]))
            ]

        return one

    @property
    def origin(self) -> np.ndarray:
        """Point in the world [m] to which :meth:`local` refers."""
        return self._origin.copy()

    @property
    def used(self) -> bool:
        """Whether the last sample's wrench was used."""
        return self._used

    @property
    def log_evidence(self) -> float:
        """Log-likelihood of the last sample's wrench, 0 where it was not used."""
        return self._evidence

    @property
    def torque_bias(self) -> np.ndarray:
        """Estimated slow error of the joint torques (joints,) [Nm]; empty for a measured wrench."""
        return self._x[self._bias].copy()

    def local(self) -> tuple[np.ndarray, np.ndarray]:
        """Free parameters (n_s,) and their covariance (n_s, n_s), with offsets relative to the origin given to
        :meth:`start`."""
        return self._x[self._param].copy(), self._P[self._param, self._param].copy()

    def estimate(self) -> ProbingEstimate:
        """The estimate after the last sample."""
        free, covariance = self.model.offset_to_world(
            self._x[self._param], self._P[self._param, self._param], self._origin
        )
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
