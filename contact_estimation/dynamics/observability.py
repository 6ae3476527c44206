"""Which contact parameters a motion determines (paper 2, eq. 23-25).

Parameters act on the arm through its acceleration alone. They are observable where d delta / d phi, the exact
derivative of the coupled step, has full column rank. Over a motion this becomes the information

    I = integral of (d delta / d p)^T Q^-1 (d delta / d p) dt,    Q = Q_v 1 + S Q_tau S^T,    S = (M + h B)^-1

with the intensities Q_v and Q_tau of a filter's white noise on acceleration and torque. With good encoders, unmodelled
torque is the limit. The prior makes parameters of different units comparable: with S = diag(prior std), the
eigenvectors of S I S are directions of the parameter space. An eigenvalue l shrinks the standard deviation of its
direction by 1 / sqrt(1 + l).
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.contact import ParallelContacts
from contact_estimation.contact.closed import contact_basis
from contact_estimation.contact.parallel import Entry
from contact_estimation.dynamics.coupled import CoupledStep
from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.robot import Arm

#: A direction counts as seen when its standard deviation fell below this share of what it was before.
SEEN = 0.5
#: [s] Time step of a posture: as short as a recording's, for S depends on it.
_STEP = 2e-3


@dataclass(frozen=True)
class Direction:
    """One direction of the estimated parameters.

    Attributes:
        singular_value: square root of the eigenvalue of S I S: how much more the motion says than the prior.
        vector: (n_p,) in SI, scaled to one prior standard deviation.
        shrinkage: posterior over prior standard deviation along it.
        names: its largest parts, largest first, with their share (sign and size, root sum of squares 1).
    """

    singular_value: float
    vector: np.ndarray
    shrinkage: float
    names: tuple[tuple[str, float], ...]

    @property
    def seen(self) -> bool:
        """Whether the motion determines this direction: its shrinkage is below ``SEEN``."""
        return self.shrinkage < SEEN

    def __str__(self) -> str:
        return " ".join(f"{share:+.2f} {name}" for name, share in self.names)


@dataclass(frozen=True)
class Observability:
    """What a motion shows of the parameters.

    Attributes:
        directions: best seen first.
        information: (n_p, n_p) [SI].
        std: (n_p,) of each parameter after the motion [SI].
        parameters: their names with units.
        seconds: length of the motion [s].
    """

    directions: tuple[Direction, ...]
    information: np.ndarray
    std: np.ndarray
    parameters: tuple[str, ...]
    seconds: float

    @property
    def unseen(self) -> tuple[Direction, ...]:
        """Directions that the motion does not show."""
        return tuple(d for d in self.directions if not d.seen)


class ParameterInformation:
    """Accumulates the information of a motion; cheap enough to run beside a filter (one compiled call a sample).

    Args:
        arm: the robot.
        contacts: contacts with their estimated parameters.
        velocity_noise: intensity Q_v of the acceleration's white noise [(rad/s)^2/s], as in an EKF's
            ``process_noise.velocity``.
        torque_noise: intensities (n,) of the torque's white noise [Nm^2 s], None for none.
        memory: [s] information fades with this time constant; None keeps all of it.

    Raises:
        ConfigError: nothing is estimated, or the noise is not positive.
    """

    def __init__(
        self,
        arm: Arm,
        contacts: ParallelContacts,
        velocity_noise: float,
        torque_noise: np.ndarray | None = None,
        memory: float | None = None,
    ) -> None:
        if not contacts.n_estimated:
            raise ConfigError("observability of what? No contact estimates a parameter (key contacts[].estimate)")
        if not velocity_noise > 0 and (torque_noise is None or not (np.asarray(torque_noise) > 0).all()):
            raise ConfigError(
                "without noise every motion shows everything: give process_noise.velocity or "
                "process_noise.unknown_torque a value greater than 0"
            )
        self.arm, self.contacts, self._memory = arm, contacts, memory
        self._run = compile_function(_sensitivity(arm, contacts))
        self._run.inputs["noise"][:] = velocity_noise
        self._run.inputs["torque_noise"][:] = 0.0 if torque_noise is None else torque_noise
        self.reset()

    def reset(self) -> None:
        """Forget the motion."""
        size = self.contacts.n_estimated
        self.seconds, self._information = 0.0, np.zeros((size, size))
        self._rotation = np.eye(3)
        self._phi = np.zeros(self.contacts.size)

    @property
    def _entries(self) -> list[Entry]:
        """What every estimated parameter is."""
        return [self.contacts.entries[int(k)] for k in self.contacts.estimated]

    def update(
        self, dt: float, xi: np.ndarray, phi: np.ndarray, tau: np.ndarray, step: float | None = None
    ) -> np.ndarray:
        """Add an interval of the motion.

        Args:
            dt: length [s].
            xi: state [q; dq; p] in internal units, as an EKF has it.
            phi: all contact parameters in internal units.
            tau: (n,) [Nm].
            step: h of the coupled step [s], where the arm stands for longer; default ``dt``.

        Returns:
            slope: d delta / d p (n, n_p) [rad/s^2 per internal unit].
        """
        inputs, outputs = self._run.inputs, self._run.outputs
        inputs["xi"][:], inputs["phi"][:], inputs["tau"][:], inputs["h"][0] = xi, phi, tau, step or dt
        self._run()
        slope = outputs["slope"].reshape(self.arm.n, -1, order="F")
        if self._memory is not None:
            self._information *= np.exp(-dt / self._memory)
        self._information += dt * (slope.T @ np.linalg.solve(outputs["Q"].reshape(self.arm.n, -1), slope))
        self._rotation = outputs["rotation"].reshape(3, 3, order="F").copy()
        self._phi[:] = outputs["phi_now"]
        self.seconds += dt
        return slope

    def report(self, prior_std: np.ndarray) -> Observability:
        """Return what was seen, against what was known before.

        Args:
            prior_std: (n_p,) in internal units, as ``ParallelContacts.initial`` gives it.

        Raises:
            ConfigError: a prior standard deviation is not positive (a parameter that is known needs no estimate).
            IdentificationError: no interval was added.
        """
        if not self.seconds > 0:
            raise IdentificationError("no motion was added, so nothing is known of what it shows; call update() first")
        prior_std = np.asarray(prior_std, float)
        if not (prior_std > 0).all():
            names = [name for name, value in zip(self.parameter_names(), prior_std) if not value > 0]
            raise ConfigError(
                f"these estimated parameters have an initial uncertainty of zero: {', '.join(names)}; "
                "give a standard deviation greater than 0, or do not estimate them"
            )
        scale = self.contacts.scale[self.contacts.estimated]
        values, vectors = np.linalg.eigh(prior_std[:, None] * self._information * prior_std)
        axes, labels = self._axes()
        directions = []
        for value, vector in sorted(zip(np.maximum(values, 0.0), vectors.T), key=lambda pair: -pair[0]):
            parts = axes @ vector  # in normals and tangents, in prior standard deviations
            order = np.argsort(-np.abs(parts))
            sign = np.sign(parts[order[0]])
            largest = tuple((labels[k], float(sign * parts[k])) for k in order if abs(parts[k]) > 0.25)
            directions.append(
                Direction(
                    float(np.sqrt(value)), sign * vector * prior_std * scale, float(1 / np.sqrt(1 + value)), largest
                )
            )
        posterior = np.linalg.inv(np.diag(prior_std**-2.0) + self._information)
        return Observability(
            tuple(directions),
            self._information / np.outer(scale, scale),
            np.sqrt(np.diag(posterior)) * scale,
            tuple(self.parameter_names()),
            self.seconds,
        )

    def parameter_names(self) -> list[str]:
        """Names of the estimated parameters, with units."""
        names = []
        for entry in self._entries:
            axis = "" if entry.axis is None else f" {'xyz'[entry.axis]}"
            names.append(f"{self.contacts.contacts[entry.contact].name} {entry.kind}{axis} [{entry.unit or '-'}]")
        return names

    def _axes(self) -> tuple[np.ndarray, list[str]]:
        """Orthogonal map (n_p, n_p) from the parameters to parts along normals and tangents, and the parts' names."""
        axes, labels = np.eye(self.contacts.n_estimated), []
        for k, entry in enumerate(self._entries):
            word = ""
            if entry.axis is not None:
                word = (" along the normal", " along tangent 1", " along tangent 2")[entry.axis]
                reference = np.asarray(self.contacts.contacts[entry.contact].stiffness)
                frame = contact_basis(self._phi[self.contacts.places[entry.contact]][:3], reference).T
                if entry.kind == "point":
                    frame = frame @ self._rotation  # the point is in TCP axes
                axes[k, k - entry.axis : k - entry.axis + 3] = frame[entry.axis]
            labels.append(f"{self.contacts.contacts[entry.contact].name} {entry.kind}{word}")
        return axes, labels


def observe_posture(
    arm: Arm,
    contacts: ParallelContacts,
    q: np.ndarray,
    velocity_noise: float,
    torque_noise: np.ndarray | None = None,
    depth: float = 1e-3,
) -> Observability:
    """Return what standing at a posture for a second shows, every contact pressed in along its normal.

    Args:
        arm: the robot.
        contacts: contacts with their estimated parameters.
        q: (n,) [rad].
        velocity_noise: as in :class:`ParameterInformation`.
        torque_noise: as in :class:`ParameterInformation`.
        depth: how far every contact is pressed in [m].
    """
    phi, std = contacts.initial(np.asarray(q, float))
    for place in contacts.places:
        parts = phi[place]  # a view: [K; rest; ...]
        parts[3:6] += depth * parts[:3] / np.linalg.norm(parts[:3])
    information = ParameterInformation(arm, contacts, velocity_noise, torque_noise)
    xi = np.concatenate([q, np.zeros(arm.n), phi[contacts.estimated]])
    information.update(1.0, xi, phi, arm.gravity(q), _STEP)
    return information.report(std)


def _sensitivity(arm: Arm, contacts: ParallelContacts) -> ca.Function:
    step = CoupledStep(arm, contacts)
    noise, torque_noise = ca.SX.sym("noise"), ca.SX.sym("torque_noise", arm.n)
    intensity = noise * ca.SX.eye(arm.n) + step.velocity_noise(torque_noise) / step.h
    outputs = [step.delta_jacobian[:, 2 * arm.n :], intensity, arm.tcp(step.kinematics)[0], step.phi_now]
    return ca.Function(
        f"observability_{arm.name}",
        [step.xi, step.phi, step.tau, step.h, noise, torque_noise],
        [ca.densify(o) for o in outputs],
        ["xi", "phi", "tau", "h", "noise", "torque_noise"],
        ["slope", "Q", "rotation", "phi_now"],
    )
