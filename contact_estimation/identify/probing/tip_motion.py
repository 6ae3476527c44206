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
    rows = [ca.SX(12, 2) for _ in range(surfaces)]
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
        depth = -ca.vertcat(normal, ca.cross(arm, normal), ca.SX(6, 1))
        aside = ca.vertcat(ca.SX(6, 1), across, ca.cross(arm, across))
        rows[j] += share * ca.horzcat(depth, aside)
    outputs = {name: ca.horzcat(*values) for name, values in (columns | {"rows": rows}).items()}
    return named_function("ce_tip_motion", s, outputs)


def slide_axes_function(contacts: int) -> ca.Function:
    """Build the function of the slide axes (12, contacts): friction is turned as far as the bristles' deflection is."""
    s = symbols(along=3 * contacts, across=3 * contacts, deflection=3 * contacts)
    axes = []
    for along, across, deflection in zip(*(ca.vertsplit(part, 3) for part in (s.along, s.across, s.deflection))):
        ahead, aside = ca.dot(along, deflection), ca.dot(across, deflection)
        length = ca.sqrt(ahead**2 + aside**2)
        cos, sin = (ca.if_else(length > 0.0, x / length, rest) for x, rest in ((ahead, 1.0), (aside, 0.0)))
        axes.append(ca.vertcat(along, across, cos * along + sin * across, cos * across - sin * along))
    return named_function("ce_slide_axes", s, {"axes": ca.horzcat(*axes)})


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
        rows: (2 surfaces, 12) gradients of deformation and of transverse velocity, in turn, over [pose; twist], at the
            middle of the surface's tips.
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
        self.rows = out["rows"].reshape(2 * surfaces, 12)
        self._turn = compile_built(slide_axes_function, contacts)
        self._deflection = self._turn.inputs["deflection"].reshape(contacts, 3)
        self._axes = self._turn.outputs["axes"].reshape(contacts, 4, 3)
        self._mean: Mean | None = None

    def at(self, mean: Mean) -> TipMotions:
        """Return itself, evaluated at ``mean``; once for the same object."""
        if mean is not self._mean:
            self._rotation[:], self._twist[:], self._s[:] = mean.pose[:3, :3], mean.twist, mean.s
            self._run()
            self._mean = mean
        return self

    def slide_axes(self, deflection: np.ndarray | None) -> np.ndarray:
        """Return the slide axes (contacts, 4, 3) at the last mean; see :meth:`ContactModel.prepare`."""
        inputs = self._turn.inputs
        inputs["along"][:], inputs["across"][:] = self.along.ravel(), self.across.ravel()
        self._deflection[:] = 0.0 if deflection is None else deflection
        self._turn()
        return self._axes
