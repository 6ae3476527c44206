"""Localiser: external joint torque over time into a posterior over candidates on the links' surfaces.

Each candidate gets its best force in the friction cone and the evidence for it; ``localization.c`` has the equations.
Before any torque is seen, every link is as likely as another, and every place on a link: the short links near the tool
come closest to things and people, and by area a push at one of them would be looked for at its large neighbours.
Candidates with a constrained fit each are the idea of the contact particle filter (Manuelli and Tedrake, Localizing
external contact using proprioceptive sensors, 2016). Two things differ: evidence replaces the least residual, and a
constant torque bias is integrated out over a window with motion.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built
from contact_estimation.codegen.native import load_native
from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.localization.settings import LocalizationSettings
from contact_estimation.filters.observer import ContactPlace
from contact_estimation.robot import Arm
from contact_estimation.robot.surface import link_surface

#: Unknowns of a contact: three of the force, two of the surface.
_UNKNOWNS = 5
#: Probability of the candidates that mean and covariance are of; the others are left out.
_KEPT_MASS = 0.9999
#: Links with less probability than this are not named.
_LEAST = 1e-3


def _library(n: int) -> ctypes.CDLL:
    source = (Path(__file__).parent / "localization.c").read_text()
    library = load_native("localization", f"#define CE_N {n}\n{source}")
    pointer, real, whole = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
    library.ce_sums_size.restype = whole
    library.ce_forget.restype, library.ce_forget.argtypes = None, [pointer, real]
    library.ce_add.restype, library.ce_add.argtypes = whole, [*[pointer] * 6, real]
    library.ce_prepare.restype, library.ce_prepare.argtypes = whole, [*[pointer] * 3, real]
    library.ce_scan.restype = None
    library.ce_scan.argtypes = [pointer, whole, whole, *[pointer] * 4, real, real, real, pointer, pointer]
    return library


class ContactLocalizer:
    """Posterior of the place of a single contact.

    :meth:`add` takes a frame, :meth:`scan` a share of the candidates, :meth:`place` returns the posterior when all are
    done. Places are kept in the frames of the joints: they follow the arm between two frames.

    Args:
        arm: the robot.
        settings: of the localisation.

    Attributes:
        surface: the candidates.
        count: number of candidates.
        q: joint positions (n,) [rad] of the last frame.

    Raises:
        ConfigError: there are more links than candidates.
        ModelError: the description has no collision geometry.
        CodegenError: there is no C compiler.
    """

    def __init__(self, arm: Arm, settings: LocalizationSettings | None = None) -> None:
        self.arm, self.settings = arm, settings or LocalizationSettings()
        self.surface = surface = link_surface(arm, self.settings.candidates)
        self.count = len(surface.joint)
        self._library = _library(arm.n)
        self._placements = compile_built(_placements, arm)
        place, axes = (self._placements.outputs[name] for name in ("place", "axes"))
        self._place, self.q = place.reshape(arm.n, 12), self._placements.inputs["q"]
        self._scanned = place.copy()  # placements of the frame that is scanned
        self._sums = np.zeros(self._library.ce_sums_size() // 8 + 1)
        links = np.bincount(surface.link, surface.area, len(surface.names))
        self._prior = surface.area / links[surface.link]
        self._joint = surface.joint.astype(np.int32)
        self._points, self._normals = np.ascontiguousarray(surface.points), np.ascontiguousarray(surface.normals)
        self._evidence, self._force = np.zeros(self.count), np.zeros((self.count, 3))
        self._prismatic = np.array(arm.body.prismatic, np.int32)
        cells = [np.append(surface.radius[surface.joint == j], 1e-3) for j in range(arm.n)]
        self._spread = np.array([np.mean(radius**2) / 6.0 for radius in cells])
        self._floor = (self.settings.torque_floor * np.where(arm.effort_limit > 0, arm.effort_limit, 1.0)) ** 2
        self._limit = chi_square_quantile(max(arm.n - _UNKNOWNS, 1), self.settings.significance)
        self._axes, self._usable = axes, False
        arrays = (self._joint, self._points, self._normals, self._scanned)
        results = (self._evidence.ctypes.data, self._force.ctypes.data)
        s = self.settings
        numbers = (s.friction, s.force_std, s.friction_std * s.force_std)
        self._scan_arguments = (*(array.ctypes.data for array in arrays), *numbers, *results)
        self.reset()

    def reset(self) -> None:
        """Forget the contact."""
        self._sums[:] = 0.0
        self._last: np.ndarray | None = None
        self._scale = 0.0

    def add(self, dt: float, q: np.ndarray, torque: np.ndarray, covariance: np.ndarray) -> None:
        """Take a frame and prepare the scan of the candidates with it; one that is not usable forgets all before it.

        Args:
            dt: time since the last frame [s].
            q: joint positions (n,) [rad].
            torque: external joint torque (n,) [Nm].
            covariance: (n, n) [Nm^2] of it.
        """
        s, n = self.settings, self.arm.n
        self.q[:] = q
        self._placements()
        spread = np.array(covariance, float)
        spread.flat[:: n + 1] += self._floor + (s.torque_error * torque) ** 2
        change = 0.0 if self._last is None else np.linalg.norm(torque - self._last) / (np.linalg.norm(torque) + 1e-9)
        self._last = torque.copy()
        library, sums = self._library, self._sums.ctypes.data
        library.ce_forget(sums, float(np.exp(-dt / s.memory) * 0.5 ** ((change / s.change) ** 2)))
        place, axes, prismatic = self._place.ctypes.data, self._axes.ctypes.data, self._prismatic.ctypes.data
        data = np.ascontiguousarray(torque, float)
        added = library.ce_add(
            sums, place, axes, prismatic, data.ctypes.data, spread.ctypes.data, dt / s.correlation_time
        )
        self._usable = bool(
            added and library.ce_prepare(sums, spread.ctypes.data, self._spread.ctypes.data, self._scale)
        )
        if not self._usable:
            self.reset()
        self._scanned[:] = self._place.ravel()
        self._now = (data, spread)

    def scan(self, begin: int, end: int) -> None:
        """Compute the evidence of the candidates ``begin`` to ``end``."""
        self._library.ce_scan(self._sums.ctypes.data, begin, min(end, self.count), *self._scan_arguments)

    def place(self) -> ContactPlace:
        """Return the posterior after a scan of all candidates, at the last frame's configuration."""
        if not self._usable:
            return ContactPlace(reason="the external torque or its covariance is not finite, or not positive definite")
        s, surface = self.settings, self.surface
        weight = self._prior * np.exp(self._evidence - self._evidence.max())
        weight /= weight.sum()
        best = int(np.argmax(weight))
        self._scale = float(np.linalg.norm(self._force[best]))
        misfit = self._misfit(best)
        if misfit > self._limit:
            return ContactPlace(
                reason=f"no single pushing contact on the links explains the joint torque: misfit {misfit:.0f}, at "
                f"most {self._limit:.0f} is expected"
            )
        likely = np.flatnonzero(weight > (1.0 - _KEPT_MASS) / self.count)  # all others together are less than the rest
        order = likely[np.argsort(-weight[likely])]
        mass = np.cumsum(weight[order])
        kept = order[: int(np.searchsorted(mass, _KEPT_MASS)) + 1]
        share = weight[kept] / weight[kept].sum()
        rotations = self._place[:, :9].reshape(-1, 3, 3)  # transposed
        joints = surface.joint[kept]
        points = np.einsum("mj,mjk->mk", surface.points[kept], rotations[joints]) + self._place[joints, 9:]
        point = share @ points
        offset = points - point
        covariance = (offset.T * share) @ offset + (share @ surface.radius[kept] ** 2) / 3.0 * np.eye(3)
        links = np.bincount(surface.link, weight, len(surface.names))
        names = [int(k) for k in np.argsort(-links) if links[k] > _LEAST]
        region = points[: int(np.searchsorted(mass, s.region_probability)) + 1]
        return ContactPlace(
            {surface.names[k]: float(links[k]) for k in names}, point, covariance, share @ self._force[kept], region
        )

    def _misfit(self, candidate: int) -> float:
        """Return the chi-square of the last frame at a candidate with its best force."""
        joint = int(self.surface.joint[candidate])
        placement = self._place[joint]
        arm = placement[:9].reshape(3, 3).T @ self.surface.points[candidate] + placement[9:]
        torque, spread = self._now
        axes, force = self._axes.reshape(-1, 3), self._force[candidate]
        x, y, z = (arm - self._place[:, 9:]).T  # levers from the joints' origins
        moments = np.array([y * force[2] - z * force[1], z * force[0] - x * force[2], x * force[1] - y * force[0]]).T
        loads = np.einsum("ij,ij->i", axes, np.where(self._prismatic[:, None], force, moments))
        error = torque - np.where(np.arange(self.arm.n) <= joint, loads, 0.0)
        turning = np.where(self._prismatic[:, None] | (np.arange(self.arm.n) > joint)[:, None], 0.0, axes)
        spread = spread + 2.0 * self._scale**2 * self._spread[joint] * (turning @ turning.T)
        return float(error @ np.linalg.solve(spread, error))


def _placements(arm: Arm) -> ca.Function:
    """Return q (n,) -> ``place``: rotation and origin of every joint; ``axes``: its axis; all in base axes."""
    q = ca.SX.sym("q", arm.n)
    kinematics = arm.kinematics(q)
    place = [ca.vertcat(ca.vec(rotation), origin) for rotation, origin in kinematics.world]
    axes = [kinematics.axis(i) for i in range(arm.n)]
    outputs = [ca.densify(ca.SX(ca.vertcat(*part))) for part in (place, axes)]
    return ca.Function(f"placements_{arm.name}", [q], outputs, ["q"], ["place", "axes"])
