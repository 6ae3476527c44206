"""Recordings made from rigid-body dynamics: no code is shared with the observers or with the simulated arms.

The motors follow a prescribed motion theta(t). Joint torque comes from Pinocchio's recursive Newton-Euler algorithm,
friction from a LuGre model (Canudas de Wit et al. 1995) with Stribeck effect. The torque that joints carry bends them
(q = theta - tau / k where the velocity is the motors'), with the hysteresis of strain wave gears if a world has it;
noise is white plus coloured. Forces are laid over by J^T F at the point where they act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from contact_estimation import load_arm

RATE = 500
START = {"ur16e": [0.2, -1.6, 1.9, -1.8, -1.5, 0.3], "fr3": [0.1, -0.6, 0.2, -2.2, 0.1, 1.7, 0.8]}
#: Joint stiffness [Nm/rad]; infinite where the measured velocity is the link's.
STIFFNESS = {"ur16e": [5e4, 4.0e4, 4.1e4, 2e4, 2e4, 2e4], "fr3": [np.inf] * 7}
#: [Nm] Largest torque of the joints by their data sheets, and the shares of it at which elements of the gears slip.
STRENGTH = {"ur16e": [330.0, 330.0, 150.0, 54.0, 54.0, 54.0], "fr3": [87.0] * 4 + [12.0] * 3}
SLIPS = (0.03, 0.06, 0.12)
COULOMB = {"ur16e": [2.0, 7.0, 4.5, 2.5, 0.6, 0.5], "fr3": [0.2, 0.2, 0.2, 0.2, 0.12, 0.12, 0.12]}
PRESLIDING = {"ur16e": 1.5e-4, "fr3": 4e-4}
#: White noise of the torque, and standard deviation of its coloured part (20 ms) [Nm].
WHITE = {"ur16e": [1.0, 1.5, 0.8, 0.4, 0.25, 0.2], "fr3": [0.05, 0.05, 0.05, 0.05, 0.03, 0.03, 0.03]}
COLOURED = {"ur16e": [0.3, 0.4, 0.2, 0.1, 0.06, 0.05], "fr3": [0.08, 0.08, 0.08, 0.08, 0.04, 0.04, 0.04]}
#: The deflection of the joints is found to this [rad], in at most so many iterations a sample.
CLOSE, MAX_ITERATIONS = 1e-7, 30
BIAS = {"ur16e": [0.5, 1.5, 0.8, 0.4, 0.15, 0.1], "fr3": [0.1, 0.3, 0.2, 0.2, 0.1, 0.1, 0.05]}


@dataclass(frozen=True)
class World:
    """What differs from run to run.

    Attributes:
        coulomb: factor on the Coulomb friction.
        presliding: factor on the breakaway length.
        stiffness: factor on the joints' stiffness.
        seed: of noise, bias and motion.
        hysteresis: [rad] half the width of the loop of an elastic joint's deflection over its torque.
        noise: factor on the noise of the torque.
    """

    coulomb: float = 1.0
    presliding: float = 1.0
    stiffness: float = 1.0
    seed: int = 0
    hysteresis: float = 0.0
    noise: float = 1.0


@dataclass
class Recording:
    """Signals and truth.

    Attributes:
        stamps: (N,) [ns].
        q, dq, tau: (N, n) [rad, rad/s, Nm] as measured.
        force: (N, 3) [N] total external force at the TCP in TCP axes; zero while a link is pushed.
        torque: (N, n) [Nm] external joint torque.
        gravity: (N, n) [Nm]. gain: (n,) [Nm/A] drive gains.
        touched: (N,) whether anything pushes.
    """

    stamps: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    gravity: np.ndarray
    gain: np.ndarray
    touched: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def samples(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Return stamp [ns], q, dq and tau (n,) of each sample, as a stream takes them."""
        return zip(self.stamps.tolist(), self.q, self.dq, self.tau)


class RigidBodyArm:
    """Pinocchio's model of a shipped robot.

    Args:
        robot: ``ur16e`` or ``fr3``.
        start: (n,) [rad] where its motions begin, by default :data:`START`.
    """

    def __init__(self, robot: str, start: np.ndarray | None = None) -> None:
        arm = load_arm(robot)
        self.start = np.array(START[robot] if start is None else start)
        self.robot, self.model, self.n, self.tcp = robot, arm.model.copy(), arm.n, arm.tcp_frame
        self.data, self.frame = self.model.createData(), self.model.getFrameId(arm.tcp_frame)
        self.armature = np.array(arm.motor.armature) if np.isinf(STIFFNESS[robot]).sum() == 0 else np.zeros(arm.n)
        self.viscous = np.array(arm.motor.viscous) if np.isinf(STIFFNESS[robot]).sum() == 0 else np.zeros(arm.n)
        gain = arm.motor.drive_gain
        self.gain = np.full(arm.n, 12.0) if gain is None else np.array(gain)

    def pose(self, q: np.ndarray) -> pin.SE3:
        """Placement of the TCP in the base frame."""
        pin.forwardKinematics(self.model, self.data, q)
        return pin.updateFramePlacement(self.model, self.data, self.frame).copy()

    def jacobian(self, q: np.ndarray, link: int | None = None, offset: np.ndarray | None = None) -> np.ndarray:
        """Jacobian (3, n) of the TCP, or of a point at ``offset`` [m] in the frame of joint ``link``, in base axes."""
        if link is None:
            return pin.computeFrameJacobian(self.model, self.data, q, self.frame, pin.LOCAL_WORLD_ALIGNED)[:3].copy()
        jacobian = pin.computeJointJacobian(self.model, self.data, q, link + 1)  # axes of the joint
        rotation = self.data.oMi[link + 1].rotation
        linear = jacobian[:3] - pin.skew(np.zeros(3) if offset is None else offset) @ jacobian[3:]
        return rotation @ linear

    def reach(self, position: np.ndarray, rotation: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Joint positions (n,) at which the TCP has a pose, near ``start``."""
        q, goal = np.array(start, float), pin.SE3(rotation, position)
        for _ in range(50):
            error = pin.log6(self.pose(q).actInv(goal)).vector
            if np.linalg.norm(error) < 1e-10:
                break
            jacobian = pin.computeFrameJacobian(self.model, self.data, q, self.frame, pin.LOCAL)
            q += jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-8 * np.eye(6), error)
        return q

    def carry(self, mass: float, centre: Sequence[float]) -> None:
        """Add a point mass [kg] at ``centre`` [m] in TCP axes."""
        frame = self.model.frames[self.frame]
        at = frame.placement.act(np.asarray(centre, float))
        inertia = pin.Inertia(mass, at, np.zeros((3, 3)))
        self.model.inertias[frame.parentJoint] = self.model.inertias[frame.parentJoint] + inertia
        self.data = self.model.createData()


def window(t: np.ndarray, start: float, end: float, rise: float = 0.5) -> np.ndarray:
    """Return 0 before ``start`` and after ``end``, 1 between, with smooth edges of ``rise`` [s] inside."""
    edge = np.clip(np.minimum((t - start) / rise, (end - t) / rise), 0.0, 1.0)
    return np.asarray(edge**2 * (3 - 2 * edge))


def random_motion(
    robot: str | RigidBodyArm, t: np.ndarray, rng: np.random.Generator, amplitude: float, speed: float
) -> np.ndarray:
    """Return joint positions (N, n) of a smooth motion about the start; ``speed`` [rad/s] of its sinusoids."""
    start = robot.start if isinstance(robot, RigidBodyArm) else np.array(START[robot])
    start = start + rng.uniform(-0.3, 0.3, len(start))
    phase, rates = rng.uniform(0, 2 * np.pi, len(start)), rng.uniform(0.6, 1.0, len(start)) * speed
    return start + amplitude * window(t, 1.0, t[-1], 1.0)[:, None] * np.sin(np.outer(t, rates) + phase)


#: (sample, position of the links) -> external joint torque (n,) [Nm], force (3,) [N] at the TCP in base axes.
Force = Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass
class Course:
    """What an arm does, before its sensors.

    Attributes:
        theta, q: (N, n) [rad] of the motors and of the links.
        held: (N, n) [Nm] torque that the joints carry. Other arrays as in :class:`Recording`.
    """

    theta: np.ndarray
    q: np.ndarray
    held: np.ndarray
    torque: np.ndarray
    gravity: np.ndarray
    force: np.ndarray


def record(arm: RigidBodyArm, theta: np.ndarray, force: Force, world: World) -> Recording:
    """Return what the sensors of ``arm`` give while its motors follow ``theta`` (N, n) [rad] and ``force`` acts."""
    return sense(arm, follow(arm, theta, force, world), world)


class Gears:
    """Deflection of elastic joints: a spring, and elements that slip, each with a torque of its own (Iwan, 1966).

    The deflection is tau / k - h mean(s_i / r_i). The stop s_i follows the torque within -r_i and r_i: a load that
    grows is h behind the spring's line, one that falls h ahead. Where each element is at the start is random.

    Args:
        robot: name.
        world: stiffness and hysteresis h.
    """

    def __init__(self, robot: str, world: World) -> None:
        self.stiffness = world.stiffness * np.array(STIFFNESS[robot])
        self._slips = np.outer(SLIPS, STRENGTH[robot])  # (elements, n) [Nm]
        self._hysteresis = np.where(np.isinf(self.stiffness), 0.0, world.hysteresis)
        self._torque: np.ndarray | None = None
        self._stops = self._slips * np.random.default_rng([world.seed, 78]).uniform(-1, 1, self._slips.shape)

    def deflection(self, torque: np.ndarray) -> np.ndarray:
        """Return the deflection (n,) [rad] that the next ``torque`` (n,) [Nm] would cause."""
        mean = np.add.reduce(self._at(torque) / self._slips) / len(SLIPS)
        return np.asarray(torque / self.stiffness - self._hysteresis * mean)

    def load(self, torque: np.ndarray) -> None:
        """Take the next ``torque`` (n,) [Nm]."""
        self._stops, self._torque = self._at(torque), torque.copy()

    def _at(self, torque: np.ndarray) -> np.ndarray:
        last = torque if self._torque is None else self._torque
        return np.minimum(np.maximum(self._stops + torque - last, -self._slips), self._slips)


def follow(arm: RigidBodyArm, theta: np.ndarray, force: Force, world: World) -> Course:
    """Return what ``arm`` does in a ``world``; as :func:`record`."""
    n, count, gears = arm.n, len(theta), Gears(arm.robot, world)
    dtheta = np.gradient(theta, 1 / RATE, axis=0)
    ddtheta = np.gradient(dtheta, 1 / RATE, axis=0)
    q, torque, held = theta.copy(), np.zeros_like(theta), np.zeros_like(theta)
    gravity, at_tcp = np.zeros_like(theta), np.zeros((count, 3))
    bent, stiff = np.zeros(n), bool(np.isinf(gears.stiffness).all())
    for k in range(count):
        relax, last = 0.5, None
        for _ in range(1 if stiff else MAX_ITERATIONS):
            q[k] = theta[k] - bent
            torque[k], at_base = force(k, q[k])
            held[k] = pin.rnea(arm.model, arm.data, q[k], dtheta[k], ddtheta[k]) - torque[k]
            if stiff:
                break
            # The force bends the joints, which changes the force: a fixed point, by Aitken's relaxation.
            missing = gears.deflection(held[k]) - bent
            if last is not None and (square := (step := missing - last) @ step) > 1e-24:
                relax = min(max(-relax * (last @ step) / square, 0.02), 1.0)
            bent, last = bent + relax * missing, missing
            if np.abs(missing).max() < CLOSE:
                break
        if not stiff:
            gears.load(held[k])
        gravity[k] = pin.computeGeneralizedGravity(arm.model, arm.data, q[k])
        at_tcp[k] = arm.pose(q[k]).rotation.T @ at_base
    return Course(theta, q, held, torque, gravity, at_tcp)


def sense(arm: RigidBodyArm, course: Course, world: World) -> Recording:
    """Return what the sensors of ``arm`` give, with friction and noise of a ``world``."""
    rng, robot, n, theta = np.random.default_rng([world.seed, 77]), arm.robot, arm.n, course.theta
    dtheta = np.gradient(theta, 1 / RATE, axis=0)
    ddtheta = np.gradient(dtheta, 1 / RATE, axis=0)
    tau = course.held + arm.armature * ddtheta + arm.viscous * dtheta + friction(robot, theta, world)
    tau += rng.normal(0, np.array(BIAS[robot]), n) + rng.normal(0, world.noise * np.array(WHITE[robot]), tau.shape)
    tau += _coloured(rng, tau.shape, 0.02) * world.noise * np.array(COLOURED[robot])
    quantum = 1.2e-5 if robot == "ur16e" else 1e-6
    q = np.round((course.q + rng.normal(0, quantum, theta.shape)) / quantum) * quantum
    stamps = (np.arange(len(theta)) * 1e9 / RATE).astype(np.int64) + 1_000_000_000
    dq = dtheta + rng.normal(0, 2e-4, theta.shape)
    touched = np.abs(course.torque).max(axis=1) > 1e-9
    return Recording(stamps, q, dq, tau, course.force, course.torque, course.gravity, arm.gain, touched)


def friction(robot: str, theta: np.ndarray, world: World) -> np.ndarray:
    """LuGre friction (N, n) [Nm]: dz = v - |v| z / (g l), F = Fc z / l, g = 1 + 0.3 exp(-(v / vs)^2)."""
    coulomb, length = world.coulomb * np.array(COULOMB[robot]), world.presliding * PRESLIDING[robot]
    bristle, found = np.zeros(theta.shape[1]), np.zeros_like(theta)
    ways = np.diff(theta, axis=0)
    limits = length * (1 + 0.3 * np.exp(-((ways * RATE / 0.02) ** 2)))
    # Exact over a step of constant velocity.
    for k, (target, keep) in enumerate(zip(np.sign(ways) * limits, np.exp(-np.abs(ways) / limits)), start=1):
        bristle = target + (bristle - target) * keep
        found[k] = coulomb * bristle / length
    return found


def _coloured(rng: np.random.Generator, shape: tuple[int, ...], time: float) -> np.ndarray:
    """First-order Gauss-Markov noise of unit variance."""
    keep = np.exp(-1 / (RATE * time))
    noise = rng.normal(0, np.sqrt(1 - keep**2), shape)
    for k in range(1, len(noise)):
        noise[k] += keep * noise[k - 1]
    return noise


@dataclass(frozen=True)
class Push:
    """A push in a direction that keeps its base axes.

    Attributes:
        start, end: [s]; it rises and falls within ``rise`` [s].
        force: (3,) [N] in base axes.
        link: joint whose link is pushed, None: the TCP.
        offset: (3,) [m] of the point in the joint's frame.
    """

    start: float
    end: float
    force: np.ndarray
    rise: float = 0.3
    link: int | None = None
    offset: np.ndarray = field(default_factory=lambda: np.zeros(3))


def pushes(arm: RigidBodyArm, plan: Sequence[Push], t: np.ndarray) -> Force:
    """Return the force of a plan of pushes."""
    share = [np.clip(np.minimum((t - p.start) / p.rise, (p.end - t) / p.rise), 0, 1) for p in plan]

    def act(k: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        torque, force = np.zeros(arm.n), np.zeros(3)
        for p, s in zip(plan, share):
            if s[k] > 0:
                torque = torque + arm.jacobian(q, p.link, p.offset).T @ (s[k] * p.force)
                force = force + s[k] * p.force * (p.link is None)
        return torque, force

    return act


def surface(arm: RigidBodyArm, point: np.ndarray, normal: np.ndarray, stiffness: float, friction: float = 0.0) -> Force:
    """Return the force of an elastic plane: Hunt and Crossley's exponent 1.2 about 1 mm, Coulomb friction.

    A bristle as stiff as the plane holds the point sideways until it slips.

    Args:
        arm: the robot.
        point: (3,) [m] of the plane.
        normal: (3,) outwards, base axes.
        stiffness: [N/m] at a depth of 1 mm.
        friction: coefficient.
    """
    states: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by sample: position, bristle

    def act(k: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        position = arm.pose(q).translation
        last, bristle = states.get(k - 1, (position, np.zeros(3)))
        depth = max(float(normal @ (point - position)), 0.0)
        pressure = stiffness * depth * (depth / 1e-3) ** 0.2
        moved = position - last
        bristle = bristle + moved - normal * (normal @ moved)
        stretch, limit = float(np.linalg.norm(bristle)), friction * pressure / stiffness
        if stretch > limit:
            bristle = bristle * (limit / stretch)
        states[k] = (position, bristle)  # that of a sample is found more than once
        states.pop(k - 2, None)
        force = pressure * normal - stiffness * bristle
        return arm.jacobian(q).T @ force, force

    return act


def spring(arm: RigidBodyArm, rest: np.ndarray, stiffness: float, on: np.ndarray) -> Force:
    """Return the force of a spring at the TCP that pulls to ``rest`` (3,) [m]; ``on`` (N,) scales its stiffness."""

    def act(k: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        force = stiffness * on[k] * (rest - arm.pose(q).translation)
        return arm.jacobian(q).T @ force, force

    return act
