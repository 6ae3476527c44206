"""The state of one filter: its named parts and their priors.

    x = [per contact: ln K, d, a1, a2, p (3), r (2), l, mu, as far as estimated;  b (n); c (n); v (n);  o (m); ln k (m);
         e (n), s (2)]

ln K: stiffness; d: depth along the normal, where the arm is [m]; a: tilt of the normal; p: contact point in the TCP
frame [m]; r: slip along the tangents [m], where the contact law feels it; l: parameters of the law; mu: friction
opposite to the slip, where the law has friction coefficients; b: torque bias, c: Coulomb amplitude, v: friction
disturbance [Nm]; o: offset [rad] and k: stiffness [Nm/rad] of m elastic joints; e: external torque [Nm] of an unknown
contact and s: its stiffness along the push and across it, as shares of `unknown.stiffness`, where there is such a mode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.codegen import Parts
from contact_estimation.contact.closed import contact_basis
from contact_estimation.contact.law import ContactLaw
from contact_estimation.contact.registry import find_law
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.actuators import ActuatorSettings
from contact_estimation.robot.rigid_body import Kinematics

#: [rad] Keeps the share and the direction of a deflection defined where there is none.
LEAST_DEFLECTION = 1e-9


class Entry(NamedTuple):
    """Prior of one entry of the state.

    Attributes:
        name: in messages.
        mean: prior mean.
        std: prior standard deviation; zero for what is never estimated.
        first_std: the same at the very first sample.
        random_walk: growth of the standard deviation in one second.
        time_constant: [s] after which a deviation from the mean is forgotten; infinite for random walks.
        bound: standard deviations it may be away from its mean.
        group: word of ``estimate`` that asks for it.
    """

    name: str
    mean: float
    std: float
    first_std: float
    random_walk: float = 0.0
    time_constant: float = np.inf
    bound: float = np.inf
    group: str = ""


class ContactPart:
    """One contact's parameters theta, and those of them that are in the state.

    Args:
        settings: of the contact.
        start: first entry of the contact in the state.
        theta_start: first entry of the contact in the parameters of all contacts.

    Attributes:
        law: its contact law.
        entries: all parameters.
        theta: parts of these: ``stiffness``, ``rest``, ``tilt`` (2), ``point`` (3), ``rest_tangential``, ``law``,
            ``slip_friction``.
        friction: which entries of ``law`` are friction coefficients.
        theta_where: their slice of the parameters of all contacts.
        estimated: index of every estimated parameter in theta.
        names: of the estimated ones.
        where: their slice of the state.
    """

    def __init__(self, settings: ImmContact, start: int, theta_start: int) -> None:
        self.law: ContactLaw = find_law(settings.law)
        own = len(self.law.parameters)
        self.friction = settings.friction
        sizes = {"rest_tangential": 2 * self.law.feels_slip, "law": own, "slip_friction": int(bool(self.friction))}
        self.theta = Parts(stiffness=1, rest=1, tilt=2, point=3, **sizes)
        self.entries = _contact_entries(settings, self.law.feels_slip)
        self.theta_where = slice(theta_start, theta_start + len(self.entries))
        self.estimated = [k for k, e in enumerate(self.entries) if e.group in settings.estimate and e.std > 0]
        self.names = tuple(self.entries[k].name for k in self.estimated)
        self.where = slice(start, start + len(self.estimated))

    def indices(self, part: str) -> list[int | None]:
        """Return per entry of a part of theta its index in the state, None where it is not estimated."""
        wanted = range(self.theta.size)[self.theta[part]]
        return [self.where.start + self.estimated.index(k) if k in self.estimated else None for k in wanted]


class Drift(NamedTuple):
    """What becomes of entries of the state over a time: x' = D x + (I - D) m, P' = D P D + Q.

    Attributes:
        decay: (k,) diagonal of D.
        noise: (k,) diagonal of Q.
        mean: (k,) prior mean m.
    """

    decay: np.ndarray
    noise: np.ndarray
    mean: np.ndarray

    def of(self, where: np.ndarray | slice) -> Drift:
        """Return the drift of some of the entries."""
        return Drift(self.decay[where], self.noise[where], self.mean[where])

    def state(self, x: np.ndarray) -> np.ndarray:
        """Return x' (k,) of ``x`` (k,)."""
        return np.asarray(self.decay * x + (1.0 - self.decay) * self.mean)

    def covariance(self, covariance: np.ndarray) -> np.ndarray:
        """Return P' (k, k) of ``covariance`` (k, k)."""
        return covariance * np.outer(self.decay, self.decay) + np.diag(self.noise)


class StateLayout:
    """Parts and prior of a filter's state.

    Args:
        settings: contacts and what is estimated of them.
        actuators: joint friction and elasticity.
        n: number of joints.
        motor_side: the measured velocity is the motors'.
        link_side: torque is measured behind the gears.

    Attributes:
        contacts: per contact its parameters and its part of the state.
        motor_side: as given.
        link_side: as given.
        n: number of joints.
        m: number of elastic joints.
        elastic_joints: which joints these are (0 is the base's).
        size: N, entries of the state.
        parts: slices of the state: ``contacts``, ``bias``, ``coulomb``, ``disturbance``, ``offset``,
            ``joint_stiffness``, ``external`` (n, or none), ``push_stiffness`` (2, or none).
        theta_size: entries of all contacts' parameters.
        basis: per contact (3, 3), columns normal, tangent 1, tangent 2 in base axes.
        mean: (N,) prior mean.
        variance: (N,) prior variance.
        first_variance: (N,) prior variance at the very first sample.
        random_walk: (N,) growth of the variance per second.
        time_constant: (N,) [s], infinite for random walks.
        bounded: indices of the entries that are kept within bounds.
        friction_rows: (2 n,) which entries are bias and friction disturbance; none where they have no bounds.
        friction_shown: deflections, or torque behind the gears, show a push beside the joint friction.
        disturbance_moves: the friction disturbance changes with motion only.
        frozen_share: share of their random walks that friction and offset keep while an unknown contact acts.
        largest_drift: (n,) [Nm^2] variance that a change of the friction has at most.
        deflection_loop: [rad] width of the hysteresis loop of the deflections, or twice their noise.
        end_significance: of the test whether a push has ended.
        commit_significance: of the test whether a contact differs from free space.
        sliding_way: [rad] of a joint beyond which its friction has changed; less may be its bending by a push.
    """

    def __init__(
        self,
        settings: ImmSettings,
        actuators: ActuatorSettings,
        n: int,
        motor_side: bool = False,
        link_side: bool = False,
    ) -> None:
        elastic = actuators.elastic
        self.motor_side, self.link_side, self.n = motor_side, link_side, n
        self.m, self.elastic_joints = len(elastic.joints), list(elastic.joints)
        self.deflection_loop = 2 * max(elastic.hysteresis, elastic.noise)
        self.friction_shown = self.m > 0 or link_side
        self.contacts: list[ContactPart] = []
        start = self.theta_size = 0
        for contact in settings.contacts:
            part = ContactPart(contact, start, self.theta_size)
            self.contacts.append(part)
            start, self.theta_size = part.where.stop, part.theta_where.stop
        per_joint = dict.fromkeys(("bias", "coulomb", "disturbance"), n)
        external, stiffness = (n, 2) if settings.has_unknown else (0, 0)
        elastic_parts = {"offset": self.m, "joint_stiffness": self.m}
        self.parts = Parts(contacts=start, **per_joint, **elastic_parts, external=external, push_stiffness=stiffness)
        bound = actuators.friction_bound if settings.has_unknown else np.inf
        entries = [c.entries[k] for c in self.contacts for k in c.estimated] + _joint_entries(actuators, bound)
        # Its covariance depends on the configuration: :func:`~contact_estimation.filters.imm.unknown.push_covariance`.
        entries += [Entry("external", 0.0, 0.0, 0.0)] * external
        walk = settings.unknown.stiffness_random_walk
        entries += [Entry("push_stiffness", 0.0, 1.0, 1.0, walk)] * stiffness
        self.frozen_share, self.disturbance_moves = settings.unknown.frozen_friction, actuators.disturbance_speed > 0
        self.end_significance, self.sliding_way = settings.unknown.end_significance, settings.unknown.sliding_way
        self.commit_significance = settings.commit_significance
        self.size = len(entries)
        self.mean = np.array([e.mean for e in entries])
        self.variance = np.square([e.std for e in entries])
        self.first_variance = np.square([e.first_std for e in entries])
        self.random_walk = np.square([e.random_walk for e in entries])
        self.time_constant = np.array([e.time_constant for e in entries])
        bounds = np.array([e.bound for e in entries])
        self.bounded = np.flatnonzero(np.isfinite(bounds)).tolist()
        self._reach = np.where(np.isfinite(bounds), bounds, 0.0) * np.sqrt(self.variance)
        friction = [*range(self.size)[self.parts["bias"]], *range(self.size)[self.parts["disturbance"]]]
        self._friction = np.flatnonzero(np.isin(self.bounded, friction))  # rows of ``bounded``
        self.friction_rows = np.array(self.bounded, int)[self._friction]
        reach = bound * np.asarray(actuators.disturbance_std) if np.isfinite(bound) else np.zeros(n)
        self.largest_drift = np.maximum(actuators.friction.coulomb, reach) ** 2
        self._change = actuators.contact_friction_bound * np.sqrt(self.variance[self.friction_rows])
        self._point_from_torque = [float(link_side or c.geometry_from_torque) for c in settings.contacts]
        self.basis = [contact_basis(np.asarray(c.normal, float)) for c in settings.contacts]

    @property
    def has_external(self) -> bool:
        """Whether the external torque of an unknown contact is in the state."""
        return bool(self.parts["external"].stop > self.parts["external"].start)

    @property
    def stiffness_and_rest(self) -> list[tuple[int, int, int]]:
        """Contacts whose stiffness and rest position are both estimated, and where these are in the state."""
        found = []
        for i, contact in enumerate(self.contacts):
            (k,), (rest,) = contact.indices("stiffness"), contact.indices("rest")
            if k is not None and rest is not None:
                found.append((i, k, rest))
        return found

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """Inputs of generated code.

        theta (theta_size,), basis (9 I,) column by column, prior and prior_variance (N,), point_from_torque (I,).
        """
        return {
            "theta": np.array([e.mean for c in self.contacts for e in c.entries]),
            "basis": np.concatenate([b.ravel(order="F") for b in self.basis]),
            "prior": self.mean.copy(),
            "prior_variance": self.variance.copy(),
            "point_from_torque": np.array(self._point_from_torque),
        }

    def channels(self, x: ca.SX, torque: ca.SX, gravity: ca.SX, presliding: ca.SX) -> ca.SX:
        """Return what the channels (m + n,) measure at a state: deflections [rad], then torques [Nm].

        Args:
            x: (N,) state.
            torque: (n,) [Nm] of everything that acts on the arm from outside.
            gravity: (n,) [Nm].
            presliding: (n,) friction states.
        """
        where = self.parts.where
        elastic = ca.exp(-x[where["joint_stiffness"]])  # compliance
        bending = x[where["offset"]] + elastic * (torque - gravity)[self.elastic_joints]
        friction = x[where["bias"]] + x[where["coulomb"]] * presliding + x[where["disturbance"]]
        return ca.vertcat(bending, torque - friction)

    def bounds(self, free: bool) -> dict[str, np.ndarray]:
        """Return ``lower`` and ``upper`` of the bounded entries; friction has bounds only where the arm is ``free``."""
        middle, reach = self.mean[self.bounded], self._reach[self.bounded].copy()
        if not free:
            reach[self._friction] = np.inf
        return {"lower": middle - reach, "upper": middle + reach}

    def friction_beyond(self, x: np.ndarray) -> np.ndarray:
        """Return by how much (2 n,) [Nm] the friction of the state ``x`` (N,) is beyond its bounds of free space."""
        return np.asarray(
            np.abs(x[self.friction_rows] - self.mean[self.friction_rows]) - self._reach[self.friction_rows]
        )

    def friction_about(self, x: np.ndarray, bounds: dict[str, np.ndarray]) -> None:
        """Change ``bounds`` so that the friction stays within ``contact_friction_bound`` of the state ``x`` (N,)."""
        middle = x[self.friction_rows]
        bounds["lower"][self._friction], bounds["upper"][self._friction] = middle - self._change, middle + self._change

    def normals(self, basis: Any) -> list[Any]:
        """Return the contacts' prior normals (3,), base axes.

        Args:
            basis: (9 I,) normals and tangents, column by column.
        """
        return [basis[9 * i : 9 * i + 3] for i in range(len(self.contacts))]

    def heights(self, position: Any, rotation: Any, theta: Any, basis: Any) -> Any:
        """Return how far (I,) [m] the contacts' prior points are along their prior normals.

        Args:
            position: of the TCP (3,) [m], base frame.
            rotation: of the TCP (3, 3).
            theta: (theta_size,) parameters of all contacts.
            basis: (9 I,) normals and tangents, column by column.
        """
        points = self._points(position, rotation, theta)
        return ca.vertcat(*[ca.dot(normal, point) for normal, point in zip(self.normals(basis), points)])

    def height_slopes(self, arm: Arm, kinematics: Kinematics, theta: ca.SX, basis: ca.SX) -> ca.SX:
        """Return the slopes (I, n) [m/rad] of :meth:`heights` by the positions of the joints."""
        rotation, position = arm.tcp(kinematics)
        slopes = ca.SX(0, self.n)
        for normal, point in zip(self.normals(basis), self._points(position, rotation, theta)):
            slopes = ca.vertcat(slopes, normal.T @ kinematics.point_jacobian(arm.tcp_frame, point))
        return slopes

    def _points(self, position: Any, rotation: Any, theta: Any) -> list[Any]:
        """Return the contacts' prior points (3,) [m], base frame, for a pose of the TCP."""
        found = [contact.theta.split(theta[contact.theta_where]).point for contact in self.contacts]
        return [position + ca.mtimes(rotation, point) for point in found]

    def drift(self, dt: float) -> Drift:
        """Return how the state changes over ``dt`` [s].

        Random walks keep their value; entries with a time constant forget it, and keep their prior variance.
        """
        decay = np.exp(-dt / self.time_constant)
        return Drift(decay, self.random_walk * dt + self.variance * (1 - decay**2), self.mean)

    def frozen(self, decay: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``decay`` and ``noise`` (N,) of the mode ``unknown``: friction and offset are nearly constant.

        Otherwise they would absorb the push, or oppose it.
        """
        decay, noise = decay.copy(), noise.copy()
        decay[self.parts["disturbance"]] = 1.0
        for name in ("bias", "disturbance", "offset"):
            noise[self.parts[name]] *= self.frozen_share
        return decay, noise


def _contact_entries(c: ImmContact, feels_slip: bool) -> list[Entry]:
    """Parameters of a contact in the order of theta; tangents are columns 2 and 3 of the contact's basis."""
    factor, height = float(np.log(c.stiffness_factor)), 0.0 if isinstance(c.rest, str) else c.rest
    entries = [
        Entry("stiffness", float(np.log(c.stiffness)), factor, factor, c.stiffness_random_walk, group="stiffness"),
        Entry("rest", height, c.rest_std, c.rest_std_first, c.rest_random_walk, group="rest"),
    ]
    entries += [Entry(f"tilt_{k}", 0.0, c.normal_std, c.normal_std, group="normal") for k in (1, 2)]
    spreads = np.hypot(c.point_std, [0.0, 0.0, c.tool_length_std]).tolist()
    entries += [
        Entry(f"point_{axis}", at, std, std, c.point_random_walk, group="point")
        for axis, at, std in zip("xyz", c.point, spreads)
    ]
    if feels_slip:  # the tangential rest is as uncertain as the height
        rest = (0.0, c.rest_std, c.rest_std_first, c.rest_random_walk)
        entries += [Entry(f"rest_{k}", *rest, group="tangential") for k in (1, 2)]
    for p in c.law_prior:
        mean, std, walk = p.mean / p.scale, p.std / p.scale, p.random_walk / p.scale
        entries.append(Entry(p.name, mean, std, std, walk, p.time_constant, p.bound, p.group))
    if c.friction:
        spread = c.slip_friction_std
        entries.append(Entry("slip_friction", c.slip_friction, spread, spread, bound=2.0, group="tangential"))
    return entries


def _joint_entries(actuators: ActuatorSettings, friction_bound: float) -> list[Entry]:
    """Bias, Coulomb friction and friction disturbance of all joints, offset and stiffness of the elastic ones."""
    friction, elastic = actuators.friction, actuators.elastic
    entries = [
        Entry("bias", mean, std, std, walk, bound=friction_bound)
        for mean, std, walk in zip(friction.bias, friction.bias_std, actuators.bias_random_walk)
    ]
    entries += [Entry("coulomb", mean, std, std) for mean, std in zip(friction.coulomb, friction.coulomb_std)]
    time = actuators.disturbance_time
    entries += [
        Entry("disturbance", 0.0, std, std, time_constant=time, bound=friction_bound)
        for std in actuators.disturbance_std
    ]
    entries += [Entry("offset", 0.0, elastic.offset_std, elastic.offset_std, elastic.offset_random_walk)] * len(
        elastic.joints
    )
    spread, bound = elastic.stiffness_spread, elastic.stiffness_bound
    entries += [Entry("joint_stiffness", float(np.log(k)), spread, spread, bound=bound) for k in elastic.stiffness]
    return entries
