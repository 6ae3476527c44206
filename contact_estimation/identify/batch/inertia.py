"""Inertia of bodies: explicit in the spec, physically consistent as a parameter, in SI units in the result.

The inertia I about the centre of mass, body axes, has the second moments S = tr(I)/2 1 - I [kg m^2]. A body of positive
density is one whose S is positive definite. With S_0 = A A^T of the description, the parameter is the log-Cholesky
vector (Rucker and Wensing 2022) of U in

    S = A U U^T A^T,    U = [[e^d1, s12, s13], [0, e^d2, s23], [0, 0, e^d3]],

so that every value is a body that can exist and 0 is the description's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco
import numpy as np

from contact_estimation.exceptions import IdentificationError, ModelError
from contact_estimation.identify.arrays import Array

if TYPE_CHECKING:
    from contact_estimation.identify.batch.scene import Scene

_FULL = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)  # MuJoCo's order: xx, yy, zz, xy, xz, yz
_STEP = 1e-5  # difference of an optimiser's parameter


class BodyInertia(NamedTuple):
    """Inertia of one body, its frame's axes."""

    body: str
    mass: float  # [kg]
    com: Array  # centre of mass in the body's frame (3,) [m]
    inertia: Array  # about it: xx, yy, zz, xy, xz, yz (6,) [kg m^2]
    std: Array  # of the mass, centre of mass and inertia (10,)


def make_explicit(spec: mujoco.MjSpec) -> None:
    """Give every body the inertia that it has compiled, so that writers find numbers instead of geoms.

    Static bodies stay bodies: frames such as tool0 are what one refers to.

    Raises:
        ModelError: the spec does not compile.
    """
    spec.compiler.fusestatic = False
    try:
        model = spec.copy().compile()
    except ValueError as error:
        raise ModelError(f"the scene does not compile: {error}") from error
    for body, index in zip(spec.bodies, range(model.nbody)):
        if model.body_mass[index] <= 0.0:
            continue
        body.explicitinertial, body.fullinertia = True, np.full(6, np.nan)
        body.mass, body.inertia = model.body_mass[index], model.body_inertia[index]
        body.ipos, body.iquat = model.body_ipos[index], model.body_iquat[index]
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    spec.compiler.settotalmass = -1.0  # is in the masses by now; it would undo a change of one


def scale_second_moments(body: Any, vector: Array) -> None:
    """Write S = A U U^T A^T into a body of a spec.

    Args:
        body: its inertia is explicit and diagonal (see :func:`make_explicit`), or was written here.
        vector: d1, d2, d3, s12, s13, s23 (6,), 0 for the description's inertia.

    Raises:
        IdentificationError: the description's inertia is that of no body (a moment larger than the sum of the others).
    """
    inertia = _inertia_matrix(body)
    try:
        root = np.linalg.cholesky(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    except np.linalg.LinAlgError as error:
        raise IdentificationError(
            f"body '{body.name}': its principal moments of inertia {np.linalg.eigvalsh(inertia)} kg m^2 are those of "
            "no body; each must be smaller than the sum of the others"
        ) from error
    upper = np.diag(np.exp(vector[:3]))
    upper[(0, 0, 1), (1, 2, 2)] = vector[3:]
    half = root @ upper
    moments = half @ half.T
    turned = np.trace(moments) * np.eye(3) - moments
    body.inertia, body.iquat, body.fullinertia = np.zeros(3), [1.0, 0.0, 0.0, 0.0], turned[_FULL]


def _inertia_matrix(body: Any) -> Array:
    """Inertia (3, 3) about the centre of mass, body axes."""
    if np.isfinite(body.fullinertia[0]):
        matrix = np.zeros((3, 3))
        matrix[_FULL] = matrix[_FULL[::-1]] = body.fullinertia
        return matrix
    return _turned(body.inertia, body.iquat)


def _turned(moments: Array, quaternion: Array) -> Array:
    """R diag(moments) R^T (3, 3) for a rotation R given as a quaternion."""
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, quaternion)
    axes = rotation.reshape(3, 3)
    return np.asarray((axes * moments) @ axes.T)


def identified_inertia(scene: Scene, p: Array, covariance: Array) -> list[BodyInertia]:
    """Return mass, centre of mass and inertia of each body that the parameters change, with standard deviations.

    Args:
        scene: whose bodies they are.
        p: optimiser's parameters (c,).
        covariance: of them (c, c).
    """
    here = scene.build(p)
    at = _numbers(here)
    by_p = np.zeros((*at.shape, len(p)))  # (nbody, 10, c)
    for k, step in enumerate(_STEP * np.eye(len(p))):
        by_p[..., k] = (_numbers(scene.build(p + step)) - at) / _STEP
    found = []
    for index in np.flatnonzero(np.any(np.abs(by_p) > 0.0, axis=(1, 2))).tolist():
        variance = np.einsum("ij,jk,ik->i", by_p[index], covariance, by_p[index])
        mass, com, inertia = at[index, 0], at[index, 1:4], at[index, 4:]
        found.append(BodyInertia(here.body(index).name, float(mass), com, inertia, np.sqrt(variance)))
    return found


def _numbers(model: mujoco.MjModel) -> Array:
    """Mass, centre of mass, and inertia of every body (nbody, 10)."""
    full = [_turned(model.body_inertia[k], model.body_iquat[k])[_FULL] for k in range(model.nbody)]
    return np.concatenate([model.body_mass[:, None], model.body_ipos, np.array(full)], axis=1)
