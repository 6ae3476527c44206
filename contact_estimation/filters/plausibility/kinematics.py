"""Position against velocity and torque against itself, sample by sample, in generated C.

Over a window of time constant T (a leaky sum) the way of the position, D_q = sum of dq_k, and the integral of the
velocity, D_v = sum of h (dq_k + dq_k-1) / 2, must agree:

    |D_q - D_v| <= a + s max(|D_q|, A_v)

with the way back and forth, A_v = sum of h |dq|. The slope of one over the other, sum of dq_k v_k over sum of h v_k^2,
must be 1 within a smaller share: reversals do not blur it. From one sample to the next they must agree more closely: an
encoder that slips and a velocity that spikes show there.

Encoders, current sensors and torque sensors have noise, so a value that repeats to the last bit while its counterpart
tells of motion does not come from a sensor. A sample that repeats as a whole is a packet that was lost and filled up:
it is skipped, and its time counted to the next one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import casadi as ca

from contact_estimation.codegen import named_function, symbols
from contact_estimation.filters.plausibility.settings import KinematicsSettings

#: [s] Time constants of the two comparisons of position and velocity; the long one detects small errors of scale.
SHORT_TIME, LONG_TIME = 0.1, 2.0
#: [s] Changes of the effort over longer intervals count by their share in this: stops and impacts rise as fast.
RISE_TIME = 2e-3
#: [rad/s] Position and velocity differ by more from one sample to the next: an encoder jumped, or a velocity spiked.
_STEP_SPEED = 0.8
#: Share of the way of one sample by which they may differ, too, because stamps jitter.
_STEP_SHARE = 0.5
#: Share by which the slope of position over velocity may differ from 1 over the long time: stamps, units.
_SCALE_SHARE = 0.15
#: [rad^2/s] Least error of that slope that counts: a tenth of 0.07 rad/s for 2 s.
_SCALE_MOTION = 1e-3
#: RMS of the velocity's second differences, in units of its sensor's noise, above which it is not that sensor's:
#: degrees for radians are 57. Over longer intervals than the rise time it counts by the square of their share.
_VELOCITY_ROUGHNESS = 30.0
#: [rad/s] Where a joint is faster, positions or velocities that all repeat are a lost packet.
_LOST_SPEED = 0.02
#: [s] Memory of the running mean of the effort before a step.
_MEAN_TIME = 0.01

#: Parts of the state, each (n,).
STATE = (
    "last_q",  # [rad] of the last sample
    "last_dq",  # [rad/s]
    "last_effort",
    "short_q",  # [rad] leaky sums over the short time: of the position
    "short_v",  # [rad] of the velocity
    "short_a",  # [rad] of its amount
    "long_q",  # [rad] the same over the long time
    "long_v",
    "long_a",
    "slope_qv",  # [rad^2/s] leaky sums over the long time of the products that give the slope of position over velocity
    "slope_vv",
    "q_held",  # [rad] how far the other signals went while q repeats
    "q_time",  # [s] how long it repeats
    "dq_held",
    "dq_time",
    "effort_held",
    "effort_time",
    "waiting",  # [s] time of samples that were repeated as a whole
    "sum_q",  # sums over the block
    "sum_dq",
    "sum_effort",
    "first_dq",  # [rad/s] at the start of the block
    "mean_effort",  # running mean before the last sample
    "rough",  # mean square change of the effort, in units of friction
    "bent",  # mean square second difference of the effort over the square root of 3: of noise it is as large
    "rising",  # last change of the effort
    "dq_rough",  # mean square second difference of dq, in units of its limit
    "faster",  # [rad/s] last change of dq
    "lost",  # whether the last packet was lost
)
#: Tests, each (n,): how many times its tolerance a joint's signal is off.
TESTS = ("step", "short", "long", "scale", "q_frozen", "dq_frozen", "effort_frozen", "rough", "dq_rough", "repeated")
#: Tolerances of the tests, in the order of the function's input.
TOLERANCES = tuple(field.name for field in dataclasses.fields(KinematicsSettings))


class _Sample:
    """A sample beside the last one: each test gives its ratios and carries its own part of the state on.

    Args:
        s: the function's inputs.
        n: number of joints.

    Attributes:
        state: parts (n,) by the names of :data:`STATE`.
        limit: tolerances by name.
        same: whether q, dq and effort repeat to the last bit (n,).
        repeated: whether all of them do.
        time: [s] since the last sample that did not repeat.
        moved: change of q (n,) [rad] since.
        turned: integral of dq (n,) [rad] since.
        jitter: second difference of dq (n,) [rad/s].
        change: of the effort (n,) since, less where it had more time than a sensor takes to rise.
        bend: change (n,) of that change.
    """

    def __init__(self, s: Any, n: int) -> None:
        self.s, self.n = s, n
        self.limit: dict[str, ca.SX] = dict(zip(TOLERANCES, ca.vertsplit(s.tolerance)))
        self.state: dict[str, ca.SX] = dict(zip(STATE, ca.vertsplit(s.w, n)))
        state = self.state
        self.same = [ca.eq(getattr(s, name), state[f"last_{name}"]) for name in ("q", "dq", "effort")]
        self.repeated: ca.SX = ca.mmin(ca.vertcat(*self.same))
        self.time: ca.SX = s.h + state["waiting"]
        self.moved: ca.SX = s.q - state["last_q"]
        self.turned: ca.SX = 0.5 * self.time * (s.dq + state["last_dq"])
        rise: ca.SX = ca.fmin(s.rise_time / self.time, 1)
        self.change: ca.SX = (state["waiting"] <= 0) * (s.effort - state["last_effort"]) * rise
        self.bend: ca.SX = self.change - (state["waiting"] <= 0) * state["rising"] * rise
        self.jitter: ca.SX = (s.dq - state["last_dq"] - state["faster"]) * rise**2

    def step(self) -> ca.SX:
        """Compare the way of one sample; not after lost packets, where the velocity meanwhile is unknown."""
        state, still = self.state, ca.fmax(ca.mmin(self.same[0]), ca.mmin(self.same[1]))
        lost = still * (ca.mmax(ca.fabs(self.s.dq)) > _LOST_SPEED)
        follows = (1 - lost) * (state["lost"] <= 0) * (state["waiting"] <= 0)
        state["lost"] = ca.repmat(lost, self.n, 1)
        time = ca.fmax(self.time, self.s.period)  # stamps of samples that queued are too close
        allowed = _STEP_SPEED * time + _STEP_SHARE * ca.fabs(self.moved)
        found: ca.SX = follows * ca.fabs(self.moved - self.turned) / allowed
        return found

    def way(self, window: str, duration: float) -> ca.SX:
        """Compare the ways over the ``window`` short or long, of a ``duration`` [s]."""
        state, limit = self.state, self.limit
        keep = ca.fmax(1 - self.time / duration, 0)
        way, integral = keep * state[f"{window}_q"] + self.moved, keep * state[f"{window}_v"] + self.turned
        travel = keep * state[f"{window}_a"] + ca.fabs(self.turned)
        state[f"{window}_q"], state[f"{window}_v"], state[f"{window}_a"] = way, integral, travel
        allowed = limit[f"{window}_way"] + limit["velocity_share"] * ca.fmax(ca.fabs(way), travel)
        return ca.fabs(way - integral) / allowed

    def scale(self) -> ca.SX:
        """Compare the slope of one way over the other with one."""
        state = self.state
        keep, speed = ca.fmax(1 - self.time / LONG_TIME, 0), self.turned / ca.fmax(self.time, 1e-9)
        state["slope_qv"] = keep * state["slope_qv"] + self.moved * speed
        state["slope_vv"] = keep * state["slope_vv"] + self.turned * speed
        # A velocity that is late by T differs by the sum of h T v dv = T v^2 / 2.
        late = 0.5 * self.limit["velocity_delay"] * self.s.dq**2
        allowed = _SCALE_MOTION + _SCALE_SHARE * state["slope_vv"] + late
        found: ca.SX = ca.fabs(state["slope_qv"] - state["slope_vv"]) / allowed
        return found

    def frozen(self) -> list[ca.SX]:
        """Tell how long, and over how much motion, position, velocity and effort have repeated."""
        state, limit, h = self.state, self.limit, self.s.h
        unseen = (self.turned, self.moved - self.turned, ca.mmax(ca.fabs(self.moved)))
        for name, same, motion in zip(("q", "dq", "effort"), self.same, unseen):
            state[f"{name}_held"] = same * (state[f"{name}_held"] + motion)
            state[f"{name}_time"] = same * (state[f"{name}_time"] + h)
        hidden = limit["hidden_way"]
        position = ca.fmin(ca.fabs(state["q_held"]) / hidden, state["q_time"] / limit["position_held"])
        velocity = ca.fmin(ca.fabs(state["dq_held"]) / limit["short_way"], state["dq_time"] / limit["velocity_held"])
        effort = ca.fmin(state["effort_held"] / (4 * hidden), state["effort_time"] / limit["effort_held"])
        # A velocity of zero repeats while an arm stands still, a coarse one in steady motion, where joints may bend.
        return [position, self.moves * velocity, effort]

    @property
    def moves(self) -> ca.SX:
        """Whether the velocity is not zero (n,)."""
        found: ca.SX = ca.fabs(self.s.dq) > 0
        return found

    def roughness(self) -> list[ca.SX]:
        """Compare the noise of effort and velocity with their limits; a single jump, of any size, is no noise.

        Nor is an effort that swings smoothly, as that of an arm that is shaken or of a tool that chatters.
        """
        state, limit, s = self.state, self.limit, self.s
        gain, most = ca.fmin(self.time / SHORT_TIME, 1), (3 * limit["roughness"]) ** 2
        for name, difference in (("rough", self.change), ("bent", self.bend / ca.sqrt(3))):
            state[name] += gain * (ca.fmin((s.per_friction * difference) ** 2, most) - state[name])
        effort = ca.fmin(state["rough"], state["bent"])
        # Second differences, where the motion itself is smooth; white noise makes sqrt(6) of its standard deviation.
        allowed = ca.sqrt(6) * _VELOCITY_ROUGHNESS * s.velocity_noise
        state["dq_rough"] += gain * (ca.fmin((self.jitter / allowed) ** 2, 9) - state["dq_rough"])
        return [ca.sqrt(effort) / limit["roughness"], ca.sqrt(state["dq_rough"])]

    def following(self) -> ca.SX:
        """Return the next state; one that repeats changes nothing but the time that it is waited for."""
        state, s = self.state, self.s
        state["mean_effort"] += ca.fmin(s.h / _MEAN_TIME, 1) * (state["last_effort"] - state["mean_effort"])
        state["faster"], state["rising"] = s.dq - state["last_dq"], s.effort - state["last_effort"]
        for name in ("q", "dq", "effort"):
            state[f"last_{name}"] = getattr(s, name)
            state[f"sum_{name}"] += getattr(s, name)
        state["waiting"] = ca.SX.zeros(self.n)
        following = ca.if_else(self.repeated, s.w, ca.vertcat(*(state[name] for name in STATE)))
        at = STATE.index("waiting") * self.n
        following[at : at + self.n] = self.repeated * self.time
        return following


def build_kinematics(n: int) -> ca.Function:
    """Build the consistency tests of one sample.

    Inputs: w (29 n) state; q [rad], dq [rad/s], effort (n,) as it comes; h [s]; tolerance (10,) of
    :data:`TOLERANCES`; rise_time [s] of a change of the effort; per_friction, per_limit (n,) one unit of effort in
    units of friction, and of a change that no sensor makes within a sample; velocity_noise [rad/s]; period [s] between
    samples.
    Outputs: w_next; ratios (10 n): above one where a test of :data:`TESTS` fails; alarm (4,): the largest of them, the
    step of the effort in units of friction, whether the sample was a repeated one, and above one where it looks like a
    spike.
    """
    s = symbols(
        w=len(STATE) * n,
        q=n,
        dq=n,
        effort=n,
        h=1,
        tolerance=len(TOLERANCES),
        rise_time=1,
        per_friction=n,
        per_limit=n,
        velocity_noise=1,
        period=1,
    )
    sample = _Sample(s, n)
    step, ways = sample.step(), [sample.way("short", SHORT_TIME), sample.way("long", LONG_TIME)]
    ratios = [step, *ways, sample.scale(), *sample.frozen(), *sample.roughness()]
    jump = ca.sqrt(ca.sumsqr(s.per_friction * sample.change))
    spike = ca.fmax(ca.mmax(step), ca.mmax(ca.fabs(s.per_limit * sample.change)))
    repeated, fresh = sample.repeated, 1 - sample.repeated
    # Not for ever: a driver that repeats its last sample while the joints turn is frozen as a whole.
    held = sample.moves * (repeated * sample.time) / sample.limit["sample_held"]
    joined = ca.vertcat(ca.vertcat(*ratios) * fresh, held)
    alarm = ca.vertcat(ca.mmax(joined), jump * fresh, repeated, spike * fresh)
    return named_function("signal_kinematics", s, {"w_next": sample.following(), "ratios": joined, "alarm": alarm})
