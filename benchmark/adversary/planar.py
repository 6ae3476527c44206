"""Bodies dropped on flat ground, for ``identify planar --drop``: a compliant contact, integrated at microseconds.

Nothing here is rigid. A corner that is d deep and deepens at d' is pushed out by k d^1.5 (1 + c d') per unit mass (Hunt
and Crossley 1975), so impacts last about a millisecond and restitution falls with speed. Friction is Coulomb's,
rounded below 1 cm/s. Free flight is exact. States are sampled at their instant: q(t) and v(t), not differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter1d

from benchmark.adversary.case import CLEAN, Case, Interval, between

FAULTS = {
    "friction": "friction told is 0.2 to 0.3 off",
    "side": "size told is 7 to 10 % off",
    "slow_samples": "30 to 40 ms between samples",
    "clock": "velocities 8 ms late",
    "offset": "ground is 15 to 30 mm from y = 0",
    "gain": "lengths measured 3 to 5 % long",
    "frozen": "tracker repeats its last sample for 60 ms, three times",
    "outliers": "3 % of the samples are far off",
    "rounded": "corners rounded by 10 to 15 % of the side; ellipse with another axis ratio",
    "wall": "body also hits a wall",
    "moving_ground": "ground shakes by 10 mm at 5 to 8 Hz",
    "saturated": "measured rates end at half of their maximum",
    "slope": "ground is tilted by 4 to 7 degrees",
    "off_centre": "centre of mass 8 to 12 % of the radius off the middle",
    "mirrored": "recorded angle turns the other way",
    "smoothed": "states low-pass filtered before they were stored",
    "inexact": "friction told up to 0.3 off, size up to 10 %, 2 to 40 ms between samples",
    "unsure": "the same, with --size-std and --friction-std as they are",
}
#: Conditions that the method accepts: its answers must be right, not flagged.
CONDITIONS = ("slow_samples", "unsure")
#: Time between samples [s]: of most, and of the faults that are about it.
INTERVAL = (2e-3, 1e-2)
INTERVALS = {"slow_samples": (3e-2, 4e-2), "inexact": (2e-3, 4e-2), "unsure": (2e-3, 4e-2)}
#: Largest error of what is told in ``inexact`` and ``unsure``: of the friction, and of the size as a share of it.
FRICTION_OFF, SIZE_OFF = 0.3, 0.1
MAIN = "m_over_i"
TELLING, SILENT = "friction shows", "friction does not show"
#: Friction that is told is trusted to three standard deviations of the default --friction-std.
TOLERANCE = 0.15
#: What an owner states of the centre of mass, which is exactly in the middle without ``off_centre``.
CENTRE_STD = "0.01"
USED_IMPACTS = 4
GRAVITY = 9.81
CONTACT_STEP = 2e-6  # [s]
SLIP = 1e-2  # [m/s]: slip speed at which friction has 76 % of Coulomb's value


@dataclass(frozen=True)
class Body:
    """A body and its surroundings; forces are per unit mass.

    Attributes:
        corners: (n, 2) [m] about the centre of mass; for an ellipse one row, its semi-axes.
        ellipse: whether ``corners`` are semi-axes.
        rounding: radius [m] of the corners.
        ratio: m/I [1/m^2].
        friction: Coulomb coefficient.
        stiffness: k [1/(s^2 m^0.5)].
        dissipation: c [s/m].
        slope: tilt of the ground, downhill towards +x [rad].
        shake: amplitude [m] and frequency [Hz] of the ground.
        wall: side (+1 or -1), place [m] and time [s] from which a wall stands; side 0 for none.
    """

    corners: np.ndarray
    ellipse: bool
    ratio: float
    friction: float
    rounding: float = 0.0
    stiffness: float = 1.2e8
    dissipation: float = 0.3
    slope: float = 0.0
    shake: tuple[float, float] = (0.0, 0.0)
    wall: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def points(self, theta: float, x: float = 0.0, y: float = -1.0) -> list[tuple[float, float]]:
        """Candidates of contact against ground whose outward normal is (-x, -y), from the centre of mass."""
        c, s = math.cos(theta), math.sin(theta)
        if not self.ellipse:
            shift_x, shift_y = self.rounding * x, self.rounding * y
            return [(c * u - s * v + shift_x, s * u + c * v + shift_y) for u, v in self.corners.tolist()]
        a, b = self.corners[0].tolist()
        u, v = c * x + s * y, -s * x + c * y  # direction in body axes
        length = math.hypot(a * u, b * v)
        u, v = a * a * u / length, b * b * v / length
        return [(c * u - s * v, s * u + c * v)]

    @property
    def radius(self) -> float:
        """Largest distance from the centre of mass [m]."""
        if self.ellipse:
            return float(self.corners.max())
        return float(np.hypot(*self.corners.T).max()) + self.rounding

    def potential(self, depth: float) -> float:
        """Elastic energy of one contact per unit mass [m^2/s^2]."""
        return 0.4 * self.stiffness * max(depth, 0.0) ** 2.5


def contact_forces(body: Body, t: float, q, v) -> list[tuple[float, float, float, float, float]]:
    """Find active contacts: (depth [m], negative at the wall; normal force, friction, moment per mass; slip [m/s])."""
    out = []
    omega = 2.0 * math.pi * body.shake[1]
    ground, rising = body.shake[0] * math.sin(omega * t), body.shake[0] * omega * math.cos(omega * t)
    for rx, ry in body.points(q[2]):
        depth = ground - q[1] - ry
        if depth > 0.0:
            closing, slip = rising - v[1] - rx * v[2], v[0] - ry * v[2]
            normal, tangent = _law(body, depth, closing, slip)
            out.append((depth, normal, tangent, rx * normal - ry * tangent, slip))
    side, place, since = body.wall
    if side and t >= since:
        for rx, ry in body.points(q[2], side, 0.0):
            depth = side * (q[0] + rx - place)
            if depth > 0.0:
                closing, slip = side * (v[0] - ry * v[2]), v[1] + rx * v[2]
                normal, tangent = _law(body, depth, closing, slip)
                out.append((-depth, normal, tangent, rx * tangent + ry * side * normal, slip))
    return out


def _law(body, depth, closing, slip):
    normal = max(body.stiffness * depth * math.sqrt(depth) * (1.0 + body.dissipation * closing), 0.0)
    return normal, -body.friction * normal * math.tanh(slip / SLIP)


def drop(body: Body, q, v, seconds: float, resting: float = 0.1):
    """Integrate until ``seconds`` or ``resting`` of contact in all [s]; returns t, q, v (n, 3) of every step."""
    q, v = [float(x) for x in q], [float(x) for x in v]
    gx, gy = GRAVITY * math.sin(body.slope), -GRAVITY * math.cos(body.slope)
    rows, t, touched = [(0.0, *q, *v)], 0.0, 0.0
    while t < seconds and touched < resting:
        active = contact_forces(body, t, q, v)
        ax, ay, turn, h = gx, gy, 0.0, CONTACT_STEP
        for depth, normal, tangent, moment, _ in active:
            if depth > 0.0:
                ax, ay = ax + tangent, ay + normal
            else:
                ax, ay = ax - body.wall[0] * normal, ay + tangent
            turn += body.ratio * moment
        if active:
            touched += h
        else:
            h = _flight(body, t, q, v)
        v = [v[0] + h * ax, v[1] + h * ay, v[2] + h * turn]
        flight = 0.0 if active else 0.5 * h
        q = [q[0] + h * (v[0] - flight * ax), q[1] + h * (v[1] - flight * ay), q[2] + h * v[2]]
        t += h
        rows.append((t, *q, *v))
    rows = np.array(rows)
    return rows[:, 0], rows[:, 1:4], rows[:, 4:]


def _flight(body, t, q, v):
    """Choose a step of free flight that cannot pass through ground or wall [s]."""
    gap = q[1] - abs(body.shake[0]) + min(ry for _, ry in body.points(q[2]))
    if body.wall[0]:
        beyond = max(body.wall[0] * (q[0] + rx - body.wall[1]) for rx, _ in body.points(q[2], body.wall[0], 0.0))
        gap = min(gap, max(-beyond, 0.0))
    fastest = math.hypot(v[0], v[1]) + body.radius * abs(v[2]) + 0.2
    return min(max(0.5 * gap / fastest, 2.0 * CONTACT_STEP), 2e-3)


def write(folder: Path, fault: str, rng: np.random.Generator) -> Case:
    """See :class:`~benchmark.adversary.case.World`."""
    body, told = _draw(rng)
    q0 = [0.0, body.radius * between(rng, 1.3, 1.8), between(rng, -math.pi, math.pi)]
    v0 = [between(rng, -1.0, 1.0), between(rng, -1.5, 0.0), between(rng, 1.0, 5.0, signed=True)]
    h = between(rng, *INTERVALS.get(fault, INTERVAL))
    body, told, centre = _plant(body, told, fault, rng)
    if fault == "wall":
        body = _with_wall(body, q0, v0)
    fine = drop(body, q0, v0, 1.2)
    t, q, v = sample(*fine, h)
    if fault == "off_centre":
        q[:, :2] += np.stack([rotate(centre, angle) for angle in q[:, 2]])
        v[:, :2] += v[:, 2:] * np.stack([rotate(centre, angle + 0.5 * math.pi) for angle in q[:, 2]])
    q, v, note = _measure(t, q, v, h, fault, rng)
    if fault == "friction":
        note += f", {TELLING if friction_shows(body, told[2], *fine) else SILENT}"
    arrays = {"t": t, "q": q}
    if rng.random() < 0.5 or fault in ("clock", "saturated"):
        arrays["v"] = v
    np.savez(folder / "drop.npz", **arrays)
    shape = f"ellipse:{told[0]:.6g},{told[1]:.6g}" if body.ellipse else f"square:{told[0]:.6g}"
    command = [
        "identify",
        "planar",
        "--drop",
        str(folder / "drop.npz"),
        "--shape",
        shape,
        "--friction",
        f"{told[2]:.4g}",
        "--centre-std",
        CENTRE_STD,
    ]
    if fault == "unsure":  # standard deviations of what is drawn uniformly
        stds = (off / math.sqrt(3.0) for off in (SIZE_OFF, FRICTION_OFF))
        command += [part for name, std in zip(("--size-std", "--friction-std"), stds) for part in (name, f"{std:.3g}")]
    about = (
        f"m/I {body.ratio:.3g}, {1e3 * h:.1f} ms, {len(t)} samples, {shape}, {'q, v' if 'v' in arrays else 'q'}{note}"
    )
    return Case(command, {"m_over_i": body.ratio}, about)


def _draw(rng):
    """Draw a body, and what its owner knows: (side, -, friction) or (a, b, friction)."""
    friction = between(rng, 0.15, 0.8)
    if rng.random() < 0.5:
        ratio = float(np.exp(rng.uniform(np.log(2.6), np.log(20.0))))
        corners = 0.5 * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
        body, told = Body(corners, False, ratio, friction), (1.0, 0.0, friction)
    else:
        ratio = float(np.exp(rng.uniform(np.log(0.4), np.log(4.0))))
        body, told = Body(np.array([[2.0, 1.0]]), True, ratio, friction), (2.0, 1.0, friction)
    return replace(body, dissipation=between(rng, 0.1, 0.4)), told


def _plant(body, told, fault, rng):
    """Body, what is told, and the middle as seen from the centre of mass (2,) [m], after the faults of the world."""
    a, b, mu = told
    centre = np.zeros(2)
    if fault == "friction":
        mu = float(np.clip(mu + between(rng, 0.2, 0.3, signed=mu > 0.35), 0.02, None))
    elif fault == "side":
        scale = 1.0 + between(rng, 0.07, 0.1, signed=True)
        a, b = a * scale, b * scale
    elif fault in ("inexact", "unsure"):
        mu = max(mu + between(rng, -FRICTION_OFF, FRICTION_OFF), 0.02)
        scale = 1.0 + between(rng, -SIZE_OFF, SIZE_OFF)
        a, b = a * scale, b * scale
    elif fault == "rounded" and body.ellipse:
        b *= 1.0 + between(rng, 0.12, 0.2, signed=True)
    elif fault == "rounded":
        body = replace(body, rounding=between(rng, 0.1, 0.15))
        body = replace(body, corners=body.corners * (1.0 - 2.0 * body.rounding))
    elif fault == "slope":
        body = replace(body, slope=math.radians(between(rng, 4.0, 7.0, signed=True)))
    elif fault == "moving_ground":
        body = replace(body, shake=(0.01, between(rng, 5.0, 8.0)))
    elif fault == "off_centre":
        centre = rotate(body.radius * between(rng, 0.08, 0.12), between(rng, -math.pi, math.pi))
        if body.ellipse:  # an ellipse about its middle is all that this world draws: the tracker's origin is off
            return body, (a, b, mu), centre
        body = replace(body, corners=body.corners + centre)
    return body, (a, b, mu), centre


def _with_wall(body, q0, v0):
    """Put up a wall that the body meets 40 ms after it first left the ground."""
    t, q, v = drop(body, q0, v0, 1.2)
    first = int(np.argmax(np.diff(t) <= CONTACT_STEP * 1.01))
    k = min(int(np.searchsorted(t, t[first] + 0.04)), len(t) - 1)
    side = float(np.sign(v[k, 0]) or 1.0)
    edge = max(side * (q[k, 0] + rx) for rx, _ in body.points(q[k, 2], side, 0.0))
    return replace(body, wall=(side, side * edge, float(t[k])))


def friction_shows(body: Body, told: float, t, q, v) -> bool:
    """Whether an impact contradicts the friction ``told``: it needs more, or slides to its end with less.

    An impact that ends sticking has the same impulse with any friction that holds it.
    """
    touching = np.diff(t) < 1.01 * CONTACT_STEP
    ends = np.flatnonzero(np.diff(np.concatenate([[0], touching.astype(int), [0]]))).reshape(-1, 2)
    for first, last in ends[:USED_IMPACTS]:
        tangential, normal, _ = v[last] - v[first]
        _, ry = min(body.points(q[last, 2]), key=lambda point: point[1])
        slip = v[last, 0] - ry * v[last, 2]
        if abs(tangential) > (told + TOLERANCE) * normal or (abs(slip) > 5.0 * SLIP and told > body.friction):
            return True
    return False


def _named_where_friction_shows(rows: list[dict]) -> str:
    """Count the rows that are named among those whose impacts contradict what was told."""
    shown = [row for row in rows if TELLING in row["note"]]
    return f"{sum(row['verdict'] != 'good' for row in shown)} of {len(shown)}" if shown else "-"


#: Further columns of the table.
COLUMNS = {"named where friction shows": _named_where_friction_shows}


def rotate(vector, angle: float) -> np.ndarray:
    """Turn a vector (2,), or a length along x, by ``angle`` [rad]."""
    x, y = (vector, 0.0) if np.ndim(vector) == 0 else vector
    return np.array([math.cos(angle) * x - math.sin(angle) * y, math.sin(angle) * x + math.cos(angle) * y])


def sample(t, q, v, h: float):
    """Sample states every ``h`` [s]."""
    at = np.arange(0.0, t[-1], h)
    return at, *(np.column_stack([np.interp(at, t, column) for column in rows.T]) for rows in (q, v))


def _measure(t, q, v, h, fault, rng):
    """Measured q and v with noise of 40 to 55 dB, and a note."""
    snr = between(rng, 40.0, 55.0)
    noise = 10.0 ** (-snr / 20.0)
    q_std, v_std = (noise * np.sqrt(np.mean(rows**2, axis=0)) for rows in (q, v))
    if fault == "clock":
        v = np.column_stack([np.interp(t - 8e-3, t, column) for column in v.T])
    elif fault == "saturated":
        v = np.clip(v, *np.array([-0.5, 0.5])[:, None] * np.abs(v).max(axis=0))
    elif fault == "offset":
        q[:, 1] += between(rng, 0.015, 0.03, signed=True)
    elif fault == "gain":
        scale = 1.0 + between(rng, 0.03, 0.05, signed=True)
        q, v = q * [scale, scale, 1.0], v * [scale, scale, 1.0]
    elif fault == "mirrored":
        q, v = q * [1.0, 1.0, -1.0], v * [1.0, 1.0, -1.0]
    q, v = q + q_std * rng.standard_normal(q.shape), v + v_std * rng.standard_normal(v.shape)
    if fault == "smoothed":
        q, v = (gaussian_filter1d(rows, max(0.012 / h, 1.0), axis=0, mode="nearest") for rows in (q, v))
    elif fault == "frozen":
        for first in rng.integers(len(t) // 8, max(7 * len(t) // 8, len(t) // 8 + 1), 3):
            span = slice(first, first + max(round(0.06 / h), 3))
            q[span], v[span] = q[first], v[first]
    elif fault == "outliers":
        hit = rng.random(len(t)) < max(0.03, 2.0 / len(t))
        hit[rng.integers(len(t))] = True
        q[hit] += rng.choice([-1.0, 1.0], (hit.sum(), 3)) * rng.uniform(10.0, 40.0, (hit.sum(), 3)) * q_std
    return q, v, f", {snr:.0f} dB"


def read(output: dict) -> dict[str, Interval]:
    """See :class:`~benchmark.adversary.case.World`."""
    return {"m_over_i": Interval(output["m_over_i"], *(output.get("interval_total") or output["interval"]))}


__all__ = ["CLEAN", "FAULTS", "MAIN", "read", "write"]
