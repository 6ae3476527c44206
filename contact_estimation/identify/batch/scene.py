"""The scene: a MuJoCo model whose contacts are given in physical units, and the parameters to identify in it.

MuJoCo scales contact stiffness by the apparent mass of the contact. To make a contact an exact spring-damper of k
[N/m] and b [N s/m], a scene writes solref = (-k, -b) and :meth:`Scene.build` multiplies both by A (1 - d) after
compilation, with A the sum of the bodies' `body_invweight0` and a small impedance d (the apparent mass the contact
adds is d/A, negligible). The same holds for strings (tendon length limits) with A = `tendon_invweight0`, and for
joint friction with A = `dof_invweight0`, where b [N m s/rad] is the slope of the friction torque over velocity at rest.
"""

from __future__ import annotations

import mujoco
import numpy as np

from contact_estimation.exceptions import ModelError
from contact_estimation.identify.batch.parameters import ParameterVector, PhysicalParameter

#: Impedance of physical contacts: static stiffness is right to 1e-5 and the contact adds next to no mass.
IMPEDANCE = 1e-3
_SOLIMP = (IMPEDANCE, IMPEDANCE, 1e-3, 0.5, 2.0)


class Scene:
    """A model with parameters.

    Args:
        spec: contact pairs named by parameters or carrying a negative ``solref`` are physical (see the module's
            text), as are tendons with a negative ``solref_limit``.
        parameters: what may be identified.

    Raises:
        ModelError: the spec does not compile.
    """

    def __init__(self, spec: mujoco.MjSpec, parameters: list[PhysicalParameter]):
        self._spec = spec
        # v_i+1 = v_i + h a(q_i, v_i) is what differences of positions mean: no implicit damping, and no result that
        # depends on the time evaluated before.
        self._spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
        self._spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
        self._spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.parameters = ParameterVector(parameters)
        self.nominal = self.build(self.parameters.nominal)

    def build(self, p: np.ndarray, remote_distance: float = 0.0) -> mujoco.MjModel:
        """Compiled model for the optimiser's parameter vector ``p``.

        Args:
            remote_distance: distance [m] at which physical contacts begin to act before the surfaces touch (paper 3,
                V-A).
        """
        spec = self._spec.copy()
        self.parameters.apply(spec, p)
        try:
            model = spec.compile()
        except ValueError as error:
            raise ModelError(f"the scene does not compile: {error}") from error
        for i in range(model.npair):
            if model.pair_solref[i, 0] < 0:
                _make_pair_physical(model, i, remote_distance)
        for i in np.flatnonzero(model.dof_solref[:, 1] < 0):
            model.dof_solref[i] *= model.dof_invweight0[i] * (1.0 - IMPEDANCE)
            model.dof_solimp[i] = _SOLIMP
        for i in range(model.ntendon):
            if model.tendon_solref_lim[i, 0] < 0:
                _make_string_physical(model, i, taut=remote_distance > 0)
        return model


def _make_pair_physical(model, i, remote_distance):
    bodies = [model.geom_bodyid[model.pair_geom1[i]], model.geom_bodyid[model.pair_geom2[i]]]
    factor = model.body_invweight0[bodies, 0].sum() * (1.0 - IMPEDANCE)
    model.pair_solref[i] *= factor
    if model.pair_solreffriction[i, 1] < 0:
        model.pair_solreffriction[i] *= factor
    model.pair_solimp[i] = _SOLIMP
    model.pair_margin[i] = remote_distance


def _make_string_physical(model, i, taut):
    """A limit that pulls only beyond its length; ``taut`` makes it a two-way spring of the same law (it may push).

    An anchor that starts a millimetre too near leaves the string slack along the whole trajectory, where its force
    has no gradient: the counterpart of a contact that never touches.
    """
    stiffness, damping = -model.tendon_solref_lim[i]
    if taut:
        model.tendon_limited[i] = 0
        model.tendon_stiffness[i], model.tendon_damping[i] = stiffness, damping
        model.tendon_lengthspring[i] = model.tendon_range[i, 1]
        return
    model.tendon_solref_lim[i] *= model.tendon_invweight0[i] * (1.0 - IMPEDANCE)
    model.tendon_solimp_lim[i] = _SOLIMP


def add_springy_tip(spec: mujoco.MjSpec, body: str, stiffness: float, damping: float, axes: str = "xyz") -> list[str]:
    """Attach ``body`` to its parent by spring-damper slides along ``axes`` (paper 3, section V-B); returns the
    joints' names.

    Args:
        stiffness: [N/m], damping: [N s/m], of every axis.

    Raises:
        ModelError: no such body, or an axis that is not x, y or z.
    """
    tip = spec.body(body)
    if tip is None or not set(axes) <= set("xyz") or not axes:
        raise ModelError(f"springy end effector: no body '{body}' in the scene, or axes '{axes}' are not among x, y, z")
    names = []
    for axis in axes:
        joint = tip.add_joint(name=f"{body}_spring_{axis}", type=mujoco.mjtJoint.mjJNT_SLIDE,
                              axis=np.eye(3)["xyz".index(axis)])
        joint.stiffness[0], joint.damping[0] = stiffness, damping
        names.append(joint.name)
    return names
