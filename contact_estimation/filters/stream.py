"""Check raw samples and feed them to an observer; nodes and offline replay both use this module."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from contact_estimation.exceptions import ConfigError, refuse_names
from contact_estimation.filters.clock_steps import STEPPED, ClockSteps
from contact_estimation.filters.consistency import consistency_of
from contact_estimation.filters.estimate_row import EstimateRow, RowObserver, arm_parts, row_of
from contact_estimation.filters.localization import link_contact_of
from contact_estimation.filters.observer import FREE, Estimate, Observer, ResumingObserver, check_estimate
from contact_estimation.filters.plausibility.monitor import SignalMonitor
from contact_estimation.filters.sample_limits import SampleLimits
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.zero import TorqueZero
from contact_estimation.robot import Arm

#: Numbers per joint, as drivers and notebooks have them.
Vector = Sequence[float] | np.ndarray
#: [s] A driver that was started anew, perhaps with other settings, has been silent for longer.
_STARTED_ANEW = 1.0


class SampleStream:
    """Feeds an observer with checked samples and marks what must not be used.

    - not finite, wrong size, a torque or velocity beyond all limits, a position that jumped: refused; the interval is
      integrated at the next good sample.
    - the same stamp again: refused and counted, the estimate is invalid until the next sample.
    - a stamp before the last one: the observer restarts, unless one sample came out of order; from the first stamp on
      again (a bag that loops) the observer keeps nothing; the torque offset stays.
    - stamps that step where the arm moved as in one period: one period is integrated (:mod:`.clock_steps`).
    - a gap up to ``max_gap``: integrated in steps of the nominal period; a longer one restarts the observer, unless the
      arm is where it was (``max_pause``).
    - signals that contradict each other or gravity (:mod:`.plausibility`): estimates are invalid until they agree,
      and then the observer restarts. After a suspicion that proved wrong it may keep what it has seen.
    - a force that an observer of given contacts does not see, or hardly knows (:mod:`.consistency`): estimates are
      invalid meanwhile.

    Args:
        observer: takes the samples.
        arm: the robot as the observer describes it.
        sensors: what is measured.
        measured_arm: the robot that is measured, where the observer has another description of it (``models``): the
            signals are judged by its dynamics.
        sensor_set: name of ``sensors``, for warnings.

    Attributes:
        counters: how often each of these happened (``samples``, ``not_finite``, ``duplicate``, ...).
        valid, reason: state after the last sample.
        zero: the torque offset, measured over half a second after :meth:`start_zero`.
        link_contact: the contact on a link, None where the observer has no ``external_torque``.
        consistency: of an observer of given contacts, None of any other.
    """

    def __init__(
        self,
        observer: Observer,
        arm: Arm,
        sensors: SensorSettings,
        measured_arm: Arm | None = None,
        sensor_set: str = "",
    ) -> None:
        loaders = {"observer": (observer, "open_stream"), "sensors": (sensors, "load_sensor_settings")}
        refuse_names("SampleStream", arm=(arm, "load_arm"), **loaders)
        n = arm.n
        if sensors.torque_scale is not None and len(sensors.torque_scale) != n:
            raise ConfigError(
                f"torque_scale has {len(sensors.torque_scale)} entries, robot '{arm.name}' has {n} joints"
            )
        if sensors.torque_unit == "A" and arm.motor.drive_gain is None:
            raise ConfigError(f"torque_unit is A, but robot '{arm.name}' has no torque_constant in its YAML")
        self.observer, self.arm, self.sensors, self.sensor_set = observer, arm, sensors, sensor_set
        self._checked = False  # the first estimate, whether it is one
        self._returns_row = isinstance(observer, RowObserver)
        self.counters: Counter[str] = Counter()
        self.valid, self.reason = False, "no sample yet"
        self._scale = np.ones(n) if sensors.torque_scale is None else np.array(sensors.torque_scale)
        if sensors.torque_unit == "A":
            self._scale = self._scale * arm.motor.drive_gain
        measured = (measured_arm or arm).measured_at(sensors.torque_side)
        self.monitor = SignalMonitor(measured, sensors, self._scale)
        if self.monitor.readings is not None:  # an observer may find a payload, which explains the torque
            self.monitor.readings.load = getattr(observer, "known_load", self.monitor.readings.load)
        self._problem, self._contradicted = "", False  # contradicted: by more than a suspicion
        self._limits = limits = SampleLimits(arm, sensors, self._scale)
        self._q, self._dq, self._last_q = limits.q, limits.dq, limits.last_q
        self._period = 1.0 / sensors.rate
        self.link_contact = link_contact_of(observer, arm, self._period)
        self.consistency = consistency_of(observer, measured)
        self.zero = TorqueZero(arm, max(1, round(0.5 * sensors.rate)))
        parts = arm_parts(n)
        self._finite = slice(parts["q"].start, parts["force_tcp"].stop)  # what must be finite in a row
        self._force_base = parts["force_base"]
        self._zero_in_contact = False
        self._torque, self._last_dq, self._last_torque = np.zeros(n), np.zeros(n), np.zeros(n)
        self._last_ns: int | None = None
        self._begin_ns = 0
        self._settle = self._out_of_order = False
        apart = sensors.plausibility.hold
        self._clock_steps = ClockSteps(self._period, sensors.longest_period, apart, sensors.pause_way)
        self._settling_ns = round(1e9 * getattr(observer, "settling", sensors.plausibility.settling))
        self._settled_ns, self._settles = 0, ""

    def __reduce__(self) -> NoReturn:
        """Refuse copies: the observer works in buffers of compiled code."""
        raise TypeError("a stream cannot be copied or pickled; open another one there with open_stream")

    @property
    def needs_wrench(self) -> bool:
        """Whether the observer wants a measured wrench beside the samples: see :meth:`push_wrench`."""
        return bool(getattr(self.observer, "needs_wrench", False))

    def push_wrench(self, wrench: Vector) -> None:
        """Hand a measured wrench (6,) [N, Nm] ON the robot, TCP axes, to an observer that wants one.

        Before the sample of the same time. One that is not finite is counted and dropped; the observer misses it.
        """
        values = np.asarray(wrench, dtype=float)
        if not self.needs_wrench or values.shape != (6,) or not np.isfinite(values).all():
            self.counters["wrench_refused"] += 1
        elif self._last_ns is not None:
            self.observer.take_wrench(values)  # type: ignore[attr-defined]

    @property
    def torque(self) -> np.ndarray:
        """Total joint torque (n,) [Nm] of the last sample, as the observer got it (a view)."""
        return self._torque

    def start_zero(self, in_contact: bool = False) -> bool:
        """Measure the torque offset over the next half second; ``zero.status`` has the result.

        What a contact does to the torque is no offset: the request is refused where one is probable, and ends where one
        becomes so. Only an observer with a mode ``free`` shows that. Nor is it one where signals contradict each other:
        then every observer refuses. With the new offset the observer restarts, for an arm that is still and free.

        Args:
            in_contact: measure although a contact is probable, for an arm that is known to be free.

        Returns:
            Whether it is measured.
        """
        self._zero_in_contact = in_contact
        self.zero.start()
        self._refuse_zero()
        return self.zero.measuring

    def _refuse_zero(self) -> None:
        """End a request for a new torque offset while signals are doubted, or a contact is probable."""
        if self.monitor.problem:
            self.zero.refuse(f"{self.monitor.problem}; the offset is unchanged. Correct that and zero again.")
            return
        modes = self.estimate().modes
        if self._zero_in_contact or not modes.get("free", 1.0) <= FREE:
            return
        touched = max((name for name in modes if name != "free"), key=lambda name: modes[name])
        self.zero.refuse(
            f"a contact is probable ('{touched}' {modes[touched]:.2f}), whose torque would count as offset; the offset "
            "is unchanged. Free the arm and zero again."
        )

    def restart(self, settle: bool = False) -> None:
        """Forget the past: the next good sample starts anew.

        Args:
            settle: the arm may be in contact, which a new start takes for free: estimates are invalid until the
                observer has settled, as after a gap.
        """
        self._settle = settle
        self._last_ns = None

    def forget(self) -> None:
        """Become as new: without the past, the doubts, the torque offset and the payload that a restart keeps."""
        self.restart()
        self.observer.reset(0.0, np.zeros(self.arm.n))
        self.monitor.reset()
        self._clock_steps.reset()
        self._last_q[:] = 0.0
        self.zero.clear()
        self.counters.clear()
        self.valid, self.reason, self._problem, self._contradicted = False, "no sample yet", "", False

    def warm_up(self) -> None:
        """Pay now what only the first samples cost (generated code is loaded when first called), and forget them."""
        still = np.zeros(self.arm.n)
        for stamp in (1, 1 + int(1e9 * self._period)):
            self.push(stamp, np.clip(still, self.arm.lower, self.arm.upper), still, still)
        self.forget()

    def push(self, stamp_ns: int, q: Vector, dq: Vector, tau: Vector) -> Estimate:
        """Take a sample and return the estimate, valid or not.

        Args:
            stamp_ns: stamp [ns].
            q: (n,) positions [rad].
            dq: (n,) velocities [rad/s].
            tau: (n,) efforts as configured.
        """
        self.push_fast(stamp_ns, q, dq, tau)
        return self.estimate(stamp_ns)

    def estimate(self, stamp_ns: int | None = None) -> Estimate:
        """Return the present estimate, marked with the stream's validity.

        Before the first good sample every number is NaN.

        Args:
            stamp_ns: its stamp [ns]; None: that of the last sample.
        """
        stamp_ns = stamp_ns if _is_stamp(stamp_ns) else self._last_ns
        t = 0.0 if stamp_ns is None else stamp_ns * 1e-9
        if self._last_ns is None:
            none = np.full(self.arm.n, np.nan)
            return Estimate(
                t=t,
                q=none,
                dq=none,
                tau_ext=none,
                force_base=none[:3],
                force_tcp=none[:3],
                torque_tcp=none[:3],
                force_covariance=np.full((3, 3), np.nan),
                valid=False,
                reason=self.reason,
            )
        estimate = self._observed()
        finite = math.isfinite(float(estimate.force_tcp.sum()) + float(estimate.q.sum()))
        valid, reason = self._judge(finite, estimate.valid, estimate.reason)
        if self.link_contact is not None:
            estimate = self.link_contact.add_to(estimate)
        return estimate.marked(t, valid, reason, self._mismatch(estimate.mismatch))

    def _observed(self) -> Estimate:
        """Return the observer's estimate; the first one is checked."""
        estimate = self.observer.estimate()
        if not self._checked:
            check_estimate(estimate, self.observer.name, self.arm.n)
            self._checked = True
        return estimate

    def row(self) -> EstimateRow:
        """Return the present estimate without building it: see :mod:`~contact_estimation.filters.estimate_row`."""
        if self._last_ns is None:
            return row_of(self.estimate())
        observer: Any = self.observer
        if self._returns_row:
            row = EstimateRow(observer.row(), observer.words(), True, "", observer.mismatch)
        else:
            row = row_of(self._observed())
        finite = math.isfinite(np.add.reduce(row.numbers[self._finite]))
        row.valid, row.reason = self._judge(finite, row.valid, row.reason)
        row.mismatch = self._mismatch(row.mismatch)
        if self.link_contact is not None:
            force = row.numbers[self._force_base]
            row.numbers = np.concatenate((row.numbers, self.link_contact.numbers(force)))
            row.words = row.words, self.link_contact.words
        return row

    def _judge(self, finite: bool, valid: bool, reason: str) -> tuple[bool, str]:
        """Return whether an estimate may be used, and why not, from what its observer says."""
        if not finite:
            self.counters["diverged"] += 1
            self.restart(settle=True)
            self.valid = False
            self.reason = self.reason or reason or "the observer diverged and restarts: its estimate is not finite"
            return False, self.reason
        inconsistent = "" if self.consistency is None else self.consistency.reason
        valid = valid and self.valid and not inconsistent
        return valid, "" if valid else self.reason or reason or inconsistent

    def _mismatch(self, of_observer: str) -> str:
        """Return what shows that model and data disagree, by the signals and by the observer."""
        return "; ".join(filter(None, (self.monitor.problem, of_observer)))

    def push_fast(self, stamp_ns: int, q: Vector, dq: Vector, tau: Vector) -> bool:
        """Take a sample like :meth:`push`, without building the estimate; return whether it was used.

        Args:
            stamp_ns: [ns].
            q: (n,) [rad].
            dq: (n,) [rad/s].
            tau: (n,) in the unit of the sensor settings.
        """
        self.counters["samples"] += 1
        limits = self._limits
        if not _is_stamp(stamp_ns):
            return self._refuse("not_finite", f"a sample has the stamp {stamp_ns!r}; expected whole nanoseconds")
        try:
            fits = len(q) == len(dq) == len(tau) == self.arm.n  # one number would be spread over all joints
            if fits:
                self._q[:], self._dq[:], limits.effort[:] = q, dq, tau
                limits.unwrap()
        except (ValueError, TypeError):
            fits = False
        if not fits:
            found, n = ", ".join(f"{name} {_shape(v)}" for name, v in zip(("q", "dq", "tau"), (q, dq, tau))), self.arm.n
            return self._refuse(
                "wrong_size", f"a sample has {found}; robot '{self.arm.name}' has {n} joints: expected numbers ({n},)"
            )
        if limits.beyond():
            return self._refuse(*limits.describe())
        self._torque[:] = limits.torque
        if self._last_ns is None:
            self._begin_ns = stamp_ns
            return self._start(stamp_ns, "")
        dt_ns = stamp_ns - self._last_ns
        if dt_ns <= 0:
            if dt_ns == 0:
                return self._refuse("duplicate", "the stamp of the last sample came again")
            if not self._out_of_order and -dt_ns * 1e-9 <= self.sensors.max_gap:
                self._out_of_order = True  # where the next one is of the past, too, the clock was set back
                return self._refuse("out_of_order", "a sample is older than the last one: it came out of order")
            self.counters["backward"] += 1
            reason = f"time went back by {-dt_ns * 1e-9:.3f} s: the observer restarted"
            loops, self._begin_ns = stamp_ns <= self._begin_ns, min(stamp_ns, self._begin_ns)
            return self._start(stamp_ns, reason, unseen=None if loops else self._unseen(-dt_ns * 1e-9))
        dt = dt_ns * 1e-9
        stepped = self._clock_steps.stepped(dt, self._q, self._last_q, self._dq)
        if dt > self.sensors.max_gap:
            return self._bridge(stamp_ns, dt)
        if stepped:
            self.counters["clock_step"] += 1
            return self._start(stamp_ns, self._clock_steps.problem or STEPPED, paused=True)
        if limits.jumped(max(dt, self._period)):
            self.monitor.forget_exchanges()
            return self._refuse(*limits.describe_jump(dt))
        if not self.monitor.add(stamp_ns * 1e-9, dt, self._q, self._dq, limits.effort, self._clock_steps.queued):
            return self._refuse("spike", "a spike: velocity or torque jumped for a sample")
        zeroed = self._to_total_torque()
        if self._problem and not self.monitor.problem:
            self.counters["recovered"] += 1
            # What the observer made of signals that contradicted each other is worth nothing.
            self._reset(stamp_ns, doubted=True, unseen=None if self._contradicted else 0.0)
        elif zeroed:  # the torque jumps by the offset, which the observer would take for a contact of the free arm
            self._reset(stamp_ns, zeroed=True)
        else:
            self._integrate(dt)
        self._last_ns = stamp_ns
        self._remember()
        return self._accept(stamp_ns, "")

    def _integrate(self, dt: float) -> None:
        """Step by ``dt`` [s]; a longer interval in several steps, with interpolated positions and velocities.

        Where samples are missing, the torque is interpolated too. Where they come seldom, each holds for its interval.
        """
        steps = max(1, round(dt / self._period))
        if steps > 1:
            self.counters["interpolated"] += steps - 1
            last = np.array((self._last_q, self._last_dq, self._last_torque))
            now = np.array((self._q, self._dq, self._torque))
            if dt <= self.sensors.longest_period:
                last[2] = now[2]
            for k in range(1, steps):
                self._step(dt / steps, *(last + (k / steps) * (now - last)))
        self._step(dt / steps, self._q, self._dq, self._torque)
        if self.link_contact is not None:
            self.link_contact.step(dt, self._q)

    def _remember(self) -> None:
        """Keep the sample that was used, for the interval that follows."""
        self._last_q[:], self._last_dq[:], self._last_torque[:] = self._q, self._dq, self._torque

    def _step(self, dt: float, q: np.ndarray, dq: np.ndarray, torque: np.ndarray) -> None:
        self.observer.step(dt, q, dq, torque)
        if self.consistency is not None:
            self.consistency.step(dt, q, dq)

    def _bridge(self, stamp_ns: int, dt: float) -> bool:
        """Take the first sample after a gap of ``dt`` [s]: restart the observer, or let it go on after a pause.

        It goes on where each joint is where one period would have brought it: the arm stood still, or the clock jumped.
        """
        self.counters["gap"] += 1
        self._clock_steps.skip()
        sensors, way = self.sensors, self._period * self._dq
        allowed = sensors.pause_way + 0.5 * np.abs(way)  # stamps jitter by half a period
        stays = bool((np.abs(self._q - self._last_q - way) < allowed).all())
        paused = stays and self.valid and dt <= sensors.max_pause
        end = "the observer goes on, the arm is where it was" if paused else "the observer restarted"
        reason = f"a gap of {dt:.3f} s, longer than max_gap {sensors.max_gap:g} s: {end}"
        # Positions that no arm reaches in that time may be of other joints.
        return self._start(stamp_ns, reason, paused, None if self._limits.jumped(dt) else self._unseen(dt))

    def _unseen(self, time: float) -> float | None:
        """Return the time [s] without samples, None where nothing of before is known to hold behind it."""
        doubted = self._problem or self.monitor.problem or time > self.sensors.max_pause
        return None if doubted else time

    def _start(self, stamp_ns: int, reason: str, paused: bool = False, unseen: float | None = None) -> bool:
        self.monitor.restart(doubted=not paused and (unseen is None or unseen > _STARTED_ANEW))
        self.monitor.add(stamp_ns * 1e-9, 0.0, self._q, self._dq, self._limits.effort)
        zeroed = self._to_total_torque()
        if paused and not zeroed:
            self._integrate(self._period)
            if unseen is not None:  # a push may have changed, which the next blocks show
                self._settled_ns, self._settles = stamp_ns + self._settling_ns, "the observer settles after a gap"
        else:
            doubted = self._last_ns is not None or self._settle
            self._reset(stamp_ns, doubted=doubted, unseen=None if zeroed else unseen, zeroed=zeroed)
        self._settle = False
        self._last_ns = stamp_ns
        self._remember()
        return self._accept(stamp_ns, reason)

    def _reset(self, stamp_ns: int, doubted: bool = False, unseen: float | None = None, zeroed: bool = False) -> None:
        """Restart the observer, which takes the arm for still and free.

        It has to settle where the arm moves, and after a doubt or a gap, during which a contact may have closed. After
        a time ``unseen`` [s] without samples it may know some of what it knew before. Where the torque is ``zeroed`` it
        keeps nothing: the new offset has the weight of a payload that it knew.
        """
        if zeroed:
            self.observer.reset(0.0, self._q)
        if unseen is not None and isinstance(self.observer, ResumingObserver):
            self.observer.resume(stamp_ns * 1e-9, self._q, self._dq, unseen)
        else:
            self.observer.reset(stamp_ns * 1e-9, self._q)
        if self.link_contact is not None:
            self.link_contact.reset()
        if self.consistency is not None:
            self.consistency.reset()
        moving = float(np.abs(self._dq).max()) > self.sensors.plausibility.torque.rest_speed
        self._settled_ns = stamp_ns + self._settling_ns * (moving or doubted)
        self._settles = "the observer restarted: it settles"

    def _accept(self, stamp_ns: int, reason: str) -> bool:
        self._problem, self._out_of_order = self.monitor.problem, False
        self._contradicted = bool(self._problem) and (self._contradicted or not self.monitor.suspects)
        if self._problem:
            self.counters["implausible"] += 1
        if not reason and stamp_ns < self._settled_ns:
            reason = self._settles
        self.reason = self._problem or reason or self._clock_steps.problem
        self.valid = not self.reason
        self.counters["used"] += 1
        if self.zero.measuring:
            self._refuse_zero()
        return True

    def _refuse(self, counter: str, reason: str) -> bool:
        self.counters[counter] += 1
        self.valid, self.reason = False, reason
        return False

    def _to_total_torque(self) -> bool:
        """Observers expect the total joint torque, gravity inside; return whether a new offset is taken off."""
        meaning = self.sensors.torque_meaning
        if meaning == "gravity_compensated":
            self._torque += self.arm.gravity(self._q)
        elif meaning == "external":
            self._torque[:] = self.arm.gravity(self._q) - self._torque
        return self.zero.apply(self._q, self._dq, self._torque)


def _is_stamp(stamp_ns: Any) -> bool:
    """Tell whether a stamp is a finite number."""
    if type(stamp_ns) is int:
        return True
    return isinstance(stamp_ns, (int, float, np.integer, np.floating)) and math.isfinite(stamp_ns)


def _shape(values: Any) -> str:
    """Return the shape of a vector's numbers, for a reason."""
    try:
        return str(np.shape(np.asarray(values, dtype=float)))
    except (ValueError, TypeError):
        return "that is no numbers"
