"""How the tips of a spatial probe move: arms, normals, sliding and its gradients, in generated code.

With p' = v + w x r, r = R tip and the unit normal n, a tip slides with u = p' - n (n.p'), along e = u / |u| and across
f = n x e.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function, symbols
from contact_estimation.identify.probing.model import Mean

#: Parameters of a surface and their units.
SURFACE = {"a": "rad", "b": "rad", "d": "m", "stiffness": "N/m", "friction": "1"}
#: Speed [m/s] below which a tip is at rest: rounding of its velocity has no direction.
_REST = 1e-9


def surface_normal(angles: Sequence[ca.SX], reference: ca.SX) -> ca.SX:
    """Return n = R_ref R_x(a) R_y(b) e_z (3,) of the angles (a, b) [rad] and R_ref (9,), row-major."""
    a, b = angles
    local = ca.vertcat(ca.sin(b), -ca.sin(a) * ca.cos(b), ca.cos(a) * ca.cos(b))
    return ca.reshape(reference, 3, 3).T @ local


def tip_motion_function(surface_of: tuple[int, ...], surfaces: int) -> ca.Function:
    """Build the function that :class:`TipMotions` evaluates.

    Args:
        surface_of: index of the surface that each tip touches.
        surfaces: number of surfaces.
    """
    tips = 3 * len(surface_of)
    s = symbols(rotation=9, twist=6, s=tips + len(SURFACE) * surfaces, references=9 * surfaces)
    rotation, speed, turn = ca.reshape(s.rotation, 3, 3).T, s.twist[:3], s.twist[3:]
    names = "arm", "normal", "tangential", "along", "across", "slip", "gradient"
    columns: dict[str, list[ca.SX]] = {name: [] for name in names}
    rows = {name: [ca.SX(12, 1) for _ in range(surfaces)] for name in ("depth", "aside")}
    for i, j in enumerate(surface_of):
        angles, reference = s.s[tips + len(SURFACE) * j :][:2], s.references[9 * j : 9 * j + 9]
        arm, normal = rotation @ s.s[3 * i : 3 * i + 3], surface_normal(ca.vertsplit(angles), reference)
        velocity = speed + ca.cross(turn, arm)
        tangential = velocity - normal * ca.dot(normal, velocity)
        slip = ca.norm_2(tangential)
        # A tip at rest slides along its surface's first axis.
        along = ca.if_else(slip > _REST, tangential / ca.fmax(slip, _REST), reference[::3])
        across, pull = ca.cross(normal, along), ca.cross(along, turn)
        by_motion = ca.vertcat(ca.SX(3, 1), ca.cross(arm, pull), along, ca.cross(arm, along))
        by_parameters = ca.SX(s.s.numel(), 1)
        by_parameters[3 * i : 3 * i + 3] = rotation.T @ pull
        gradient = ca.vertcat(by_motion, by_parameters)
        for name, value in zip(names, (arm, normal, tangential, along, across, slip, gradient)):
            columns[name].append(value)
        share = 1.0 / surface_of.count(j)
        rows["depth"][j] -= share * ca.vertcat(normal, ca.cross(arm, normal), ca.SX(6, 1))
        rows["aside"][j] += share * ca.vertcat(ca.SX(6, 1), across, ca.cross(arm, across))
    outputs = {name: ca.horzcat(*values) for name, values in (columns | rows).items()}
    return named_function("ce_tip_motion", s, outputs)


class TipMotions:
    """How every tip moves at a mean.

    All attributes are buffers that the next :meth:`at` overwrites.

    Args:
        surface_of: index of the surface that each tip touches.
        references: (surfaces, 3, 3), R_ref of every surface.

    Attributes:
        arm: (contacts, 3) [m] from the tool's origin, world axes, as all the next ones.
        normal: (contacts, 3) outward unit normals.
        tangential: (contacts, 3) [m/s] sliding velocities.
        along: (contacts, 3) unit vectors along sliding.
        across: (contacts, 3) unit vectors across it, in the surface.
        slip: (contacts,) [m/s] speeds of sliding.
        gradient: (contacts, 12 + n_s) of the slip over [pose; twist; s], without the turn of the tangent plane with
            the surface's angles, which is of second order.
        depth: (surfaces, 12) gradient of the deformation over [pose; twist], at the middle of the surface's tips.
        aside: (surfaces, 12) gradient of the transverse velocity there.
    """

    def __init__(self, surface_of: tuple[int, ...], references: np.ndarray) -> None:
        contacts, surfaces = len(surface_of), len(references)
        self._run = compile_built(tip_motion_function, surface_of, surfaces)
        inputs, out = self._run.inputs, self._run.outputs
        inputs["references"][:] = references.ravel()
        self._rotation = inputs["rotation"].reshape(3, 3)
        self._twist, self._s = inputs["twist"], inputs["s"]
        vectors = "arm", "normal", "tangential", "along", "across"
        self.arm, self.normal, self.tangential, self.along, self.across = (out[n].reshape(contacts, 3) for n in vectors)
        self.slip, self.gradient = out["slip"], out["gradient"].reshape(contacts, -1)
        self.depth, self.aside = (out[name].reshape(surfaces, 12) for name in ("depth", "aside"))
        self._mean: Mean | None = None

    def at(self, mean: Mean) -> TipMotions:
        """Return itself, evaluated at ``mean``; once for the same object."""
        if mean is not self._mean:
            self._rotation[:], self._twist[:], self._s[:] = mean.pose[:3, :3], mean.twist, mean.s
            self._run()
            self._mean = mean
        return self
