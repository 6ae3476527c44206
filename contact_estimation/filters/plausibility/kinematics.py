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

import casadi as ca

from contact_estimation.codegen import named_function, symbols
from contact_estimation.filters.plausibility.settings import KinematicsSettings

#: Parts of the state, each (n,): last sample; leaky sums (short, long) of position, velocity and way, and of the
#: products that give their slope; per signal how far the other one went and how long it has not changed; time of
#: samples that were repeated; sums over the block, and the velocity at its start; running mean of the effort before
#: the last sample; mean square of its changes, and of the velocity's second differences in units of their limit; last
#: change of the velocity; whether the last packet was lost.
STATE = (
    "last_q",
    "last_dq",
    "last_effort",
    "short_q",
    "short_v",
    "short_a",
    "long_q",
    "long_v",
    "long_a",
    "slope_qv",
    "slope_vv",
    "q_held",
    "q_time",
    "dq_held",
    "dq_time",
    "effort_held",
    "effort_time",
    "waiting",
    "sum_q",
    "sum_dq",
    "sum_effort",
    "first_dq",
    "mean_effort",
    "rough",
    "dq_rough",
    "faster",
    "lost",
)
#: Tests, each (n,): how many times its tolerance a joint's signal is off.
TESTS = ("step", "short", "long", "scale", "q_frozen", "dq_frozen", "effort_frozen", "rough", "dq_rough", "repeated")
#: Tolerances of the tests, in the order of the function's input.
TOLERANCES = (
    "short_time",
    "long_time",
    "short_way",
    "long_way",
    "velocity_share",
    "hidden_way",
    "position_held",
    "velocity_held",
    "effort_held",
    "sample_held",
    "step_speed",
    "step_share",
    "roughness",
    "velocity_roughness",
    "rise_time",
    "lost_speed",
    "scale_share",
    "scale_motion",
    "velocity_delay",
)


def tolerances(settings: KinematicsSettings) -> list[float]:
    """Return the settings in the order of the generated function's input."""
    return [getattr(settings, name) for name in TOLERANCES]


def build_kinematics(n: int) -> ca.Function:
    """Build the consistency tests of one sample.

    Inputs: w (27 n) state; q [rad], dq [rad/s], effort (n,) as it comes; h [s]; tolerance (19,) of
    :data:`TOLERANCES`; per_friction, per_limit (n,) one unit of effort in units of friction, and of a change that no
    sensor makes within a sample; mean_time [s] of the running mean; velocity_noise [rad/s].
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
        per_friction=n,
        per_limit=n,
        mean_time=1,
        velocity_noise=1,
    )
    q, dq, effort, h = s.q, s.dq, s.effort, s.h
    limit = dict(zip(TOLERANCES, ca.vertsplit(s.tolerance)))
    now = dict(zip(STATE, ca.vertsplit(s.w, n)))
    same = [ca.eq(new, now[f"last_{name}"]) for name, new in (("q", q), ("dq", dq), ("effort", effort))]
    repeated = ca.mmin(ca.vertcat(*same))
    time = h + now["waiting"]
    moved, turned = q - now["last_q"], 0.5 * time * (dq + now["last_dq"])
    # Not after packets that were lost: nobody knows what the velocity was meanwhile.
    lost = ca.fmax(ca.mmin(same[0]), ca.mmin(same[1])) * (ca.mmax(ca.fabs(dq)) > limit["lost_speed"])
    follows = (1 - lost) * (now["lost"] <= 0) * (now["waiting"] <= 0)
    allowed = limit["step_speed"] * time + limit["step_share"] * ca.fabs(moved)
    ratios = [follows * ca.fabs(moved - turned) / allowed]
    for name in ("short", "long"):
        keep = ca.fmax(1 - time / limit[f"{name}_time"], 0)
        way, integral = keep * now[f"{name}_q"] + moved, keep * now[f"{name}_v"] + turned
        travel = keep * now[f"{name}_a"] + ca.fabs(turned)
        now[f"{name}_q"], now[f"{name}_v"], now[f"{name}_a"] = way, integral, travel
        allowed = limit[f"{name}_way"] + limit["velocity_share"] * ca.fmax(ca.fabs(way), travel)
        ratios.append(ca.fabs(way - integral) / allowed)
    keep, speed = ca.fmax(1 - time / limit["long_time"], 0), turned / ca.fmax(time, 1e-9)
    now["slope_qv"] = keep * now["slope_qv"] + moved * speed
    now["slope_vv"] = keep * now["slope_vv"] + turned * speed
    # A velocity that is late by T differs by the sum of h T v dv = T v^2 / 2.
    late = 0.5 * limit["velocity_delay"] * dq**2
    allowed = limit["scale_motion"] + limit["scale_share"] * now["slope_vv"] + late
    ratios.append(ca.fabs(now["slope_qv"] - now["slope_vv"]) / allowed)
    hidden = limit["hidden_way"]
    now["q_held"] = same[0] * (now["q_held"] + turned)
    now["q_time"] = same[0] * (now["q_time"] + h)
    now["dq_held"] = same[1] * (now["dq_held"] + moved - turned)
    now["dq_time"] = same[1] * (now["dq_time"] + h)
    now["effort_held"] = same[2] * (now["effort_held"] + ca.mmax(ca.fabs(moved)))
    now["effort_time"] = same[2] * (now["effort_time"] + h)
    ratios.append(ca.fmin(ca.fabs(now["q_held"]) / hidden, now["q_time"] / limit["position_held"]))
    # A velocity of zero repeats while an arm stands still, and a coarse one in steady motion, where joints may bend.
    moves = ca.fabs(dq) > 0
    still = ca.fmin(ca.fabs(now["dq_held"]) / limit["short_way"], now["dq_time"] / limit["velocity_held"])
    ratios.append(moves * still)
    ratios.append(ca.fmin(now["effort_held"] / (4 * hidden), now["effort_time"] / limit["effort_held"]))
    change = (now["waiting"] <= 0) * (effort - now["last_effort"]) * ca.fmin(limit["rise_time"] / time, 1)
    jump = ca.sqrt(ca.sumsqr(s.per_friction * change))
    gain = ca.fmin(time / limit["short_time"], 1)
    # A single jump, of any size, is no noise.
    most = (3 * limit["roughness"]) ** 2
    now["rough"] += gain * (ca.fmin((s.per_friction * change) ** 2, most) - now["rough"])
    ratios.append(ca.sqrt(now["rough"]) / limit["roughness"])
    # Second differences, where the motion itself is smooth; white noise makes sqrt(6) of its standard deviation.
    faster = dq - now["last_dq"]
    jitter = (faster - now["faster"]) * ca.fmin(limit["rise_time"] / time, 1) ** 2
    allowed = ca.sqrt(6) * limit["velocity_roughness"] * s.velocity_noise
    now["dq_rough"] += gain * (ca.fmin((jitter / allowed) ** 2, 9) - now["dq_rough"])
    now["faster"] = faster
    ratios.append(ca.sqrt(now["dq_rough"]))
    spike = ca.fmax(ca.mmax(ratios[0]), ca.mmax(ca.fabs(s.per_limit * change)))
    now["mean_effort"] += ca.fmin(h / s.mean_time, 1) * (now["last_effort"] - now["mean_effort"])
    now["last_q"], now["last_dq"], now["last_effort"] = q, dq, effort
    now["sum_q"] += q
    now["sum_dq"] += dq
    now["sum_effort"] += effort
    now["lost"] = ca.repmat(lost, n, 1)
    waiting = repeated * time
    now["waiting"] = ca.SX.zeros(n)
    following = ca.if_else(repeated, s.w, ca.vertcat(*(now[name] for name in STATE)))
    at = STATE.index("waiting") * n
    following[at : at + n] = waiting
    # Not for ever: a driver that repeats its last sample while the joints turn is frozen as a whole.
    joined = ca.vertcat(ca.vertcat(*ratios) * (1 - repeated), moves * waiting / limit["sample_held"])
    alarm = ca.vertcat(ca.mmax(joined), jump * (1 - repeated), repeated, spike * (1 - repeated))
    return named_function("signal_kinematics", s, {"w_next": following, "ratios": joined, "alarm": alarm})
