"""Position against velocity, sample by sample, in generated C.

Over a window of time constant T (a leaky sum) the way of the position, D_q = sum of dq_k, and the integral of the
velocity, D_v = sum of h (dq_k + dq_k-1) / 2, must agree:

    |D_q - D_v| <= a + s max(|D_q|, A_v)

with the way back and forth, A_v = sum of h |dq|; a for encoder noise and elastic joints (a UR16e's shoulder bends by 2
mrad under 100 N at the tool) and s for the velocity's scale and delay. Beside that: exact repetition. Encoders, current
sensors and torque sensors have noise, so a value that repeats to the last bit while its counterpart tells of motion
does not come from a sensor. A sample that repeats as a whole is a packet that was lost and filled up: it is skipped,
and its time counted to the next one.
"""

from __future__ import annotations

import casadi as ca

#: Parts of the state, each (n,): last sample, leaky sums (short, long) of position and velocity, per signal how far
#: the other one went and how long it has not changed, and the time of samples that were repeated.
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
    "q_held",
    "q_time",
    "dq_held",
    "dq_time",
    "effort_held",
    "effort_time",
    "waiting",
)
#: Tests, each (n,): how many times its tolerance a joint's signal is off.
TESTS = ("short", "long", "q_frozen", "dq_frozen", "effort_frozen", "repeated")


def build_kinematics(n: int) -> ca.Function:
    """Build the consistency tests of one sample.

    Inputs: w (16 n), q [rad], dq [rad/s], effort (n,) as it comes, h [s], tolerance (10,): time constants [s] short and
    long, tolerances a [rad] short and long, share s, way [rad] that a frozen signal may hide, times [s] for which a
    position, a velocity, an effort and a whole sample may repeat.
    Outputs: w_next (16 n), ratios (6 n): above one where a test of :data:`TESTS` fails, worst (1,).
    """
    w, q, dq = ca.SX.sym("w", len(STATE) * n), ca.SX.sym("q", n), ca.SX.sym("dq", n)
    effort, h, tolerance = ca.SX.sym("effort", n), ca.SX.sym("h"), ca.SX.sym("tolerance", 10)
    now = dict(zip(STATE, ca.vertsplit(w, n)))
    times, widths, share, hidden = tolerance[:2], tolerance[2:4], tolerance[4], tolerance[5]
    held = tolerance[6:]
    same = [ca.eq(new, now[f"last_{name}"]) for name, new in (("q", q), ("dq", dq), ("effort", effort))]
    repeated = ca.mmin(ca.vertcat(*same))
    moved, turned = q - now["last_q"], 0.5 * (h + now["waiting"]) * (dq + now["last_dq"])
    ratios = []
    for k, name in enumerate(("short", "long")):
        keep = ca.fmax(1 - (h + now["waiting"]) / times[k], 0)
        way, integral = keep * now[f"{name}_q"] + moved, keep * now[f"{name}_v"] + turned
        travel = keep * now[f"{name}_a"] + ca.fabs(turned)
        now[f"{name}_q"], now[f"{name}_v"], now[f"{name}_a"] = way, integral, travel
        ratios.append(ca.fabs(way - integral) / (widths[k] + share * ca.fmax(ca.fabs(way), travel)))
    now["q_held"] = same[0] * (now["q_held"] + turned)
    now["q_time"] = same[0] * (now["q_time"] + h)
    now["dq_held"] = same[1] * (now["dq_held"] + moved - turned)
    now["dq_time"] = same[1] * (now["dq_time"] + h)
    now["effort_held"] = same[2] * (now["effort_held"] + ca.mmax(ca.fabs(moved)))
    now["effort_time"] = same[2] * (now["effort_time"] + h)
    ratios.append(ca.fmin(ca.fabs(now["q_held"]) / hidden, now["q_time"] / held[0]))
    # A velocity of zero repeats while an arm stands still, and a coarse one in steady motion, where joints may bend.
    moves = ca.fabs(dq) > 0
    ratios.append(moves * ca.fmin(ca.fabs(now["dq_held"]) / widths[0], now["dq_time"] / held[1]))
    ratios.append(ca.fmin(now["effort_held"] / (4 * hidden), now["effort_time"] / held[2]))
    now["last_q"], now["last_dq"], now["last_effort"] = q, dq, effort
    waiting = repeated * (now["waiting"] + h)
    now["waiting"] = ca.SX.zeros(n)
    following = ca.if_else(repeated, w, ca.vertcat(*(now[name] for name in STATE)))
    following[-n:] = waiting
    # Not for ever: a driver that repeats its last sample while the joints turn is frozen as a whole.
    joined = ca.vertcat(ca.vertcat(*ratios) * (1 - repeated), moves * waiting / held[3])
    return ca.Function(
        "signal_kinematics",
        [w, q, dq, effort, h, tolerance],
        [ca.densify(following), ca.densify(joined), ca.mmax(joined)],
        ["w", "q", "dq", "effort", "h", "tolerance"],
        ["w_next", "ratios", "worst"],
    )
