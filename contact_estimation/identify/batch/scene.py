"""The scene: a MuJoCo model whose contacts are given in physical units, and the parameters to identify in it.

A contact of stiffness k [N/m], damping b [N s/m], friction mu and slip damping c [N s/m] is the law

    N = max(0, k d + b d'),        f = -min(mu N, c |v|) v / |v|

for a depth d and a slip velocity v. A scene writes solref = (-k, -b) and solreffriction = (-1, -c). MuJoCo's own law
has an impedance z and the sum A of the two `body_invweight0` in it: the contact adds an apparent mass z / A to the
bodies, its friction adds r z / A (r: `impratio`), and friction changes the normal force by mu (c |v| - mu N) / r.
:meth:`Scene.build` therefore makes A and r large and multiplies stiffness and damping by A (1 - z), and c by
A (1 - z) / r: the law holds to 1e-4.

Strings (tendon length limits) have A = `tendon_invweight0`. Joint friction has A = `dof_invweight0`, where b
[N m s/rad] is the slope of the friction torque over velocity at rest.
"""

from __future__ import annotations

import mujoco
import numpy as np

from contact_estimation.exceptions import ModelError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.inertia import make_explicit
from contact_estimation.identify.batch.names import unknown
from contact_estimation.identify.batch.parameters import ParameterVector, PhysicalParameter

#: Impedance z: the share of a constraint's force that is its own inertia.
IMPEDANCE = 1e-3
#: Factor on A, and r: leaves 5e-5 of the normal force and 1e-4 / A of mass in the friction.
_INVERSE_MASS_FACTOR, _FRICTION_RATIO = 1e6, 1e5
#: The same where loops are closed by equality constraints, whose own A must stay: 5 % of N, and 0.1 / A of mass.
_CLOSED_LOOPS = 1.0, 100.0
_LOOPS = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
_SOLIMP = (IMPEDANCE, IMPEDANCE, 1e-3, 0.5, 2.0)


class Scene:
    """A model with parameters.

    Args:
        spec: its contact pairs are physical (see the module's text) and nothing else touches. Tendons with a negative
            ``solref_limit`` are physical too. The integrator does not matter: the law is that of continuous time.
        parameters: what may be identified.

    Raises:
        ModelError: the spec does not compile, or a contact pair is not given in physical units.
    """

    def __init__(self, spec: mujoco.MjSpec, parameters: list[PhysicalParameter]) -> None:
        self._spec = spec
        for pair in spec.pairs:
            if pair.solref[0] >= 0 or pair.solreffriction[1] >= 0:
                raise ModelError(
                    f"contact pair '{pair.name}' has solref {pair.solref} and solreffriction {pair.solreffriction}; "
                    "give -stiffness -damping and -1 -slip_damping, or remove the pair and list it under 'contacts'"
                )
        for geom in spec.geoms:  # only pairs touch
            geom.contype = geom.conaffinity = 0
        make_explicit(spec)
        # v_i+1 = v_i + h a(q_i, v_i) is what differences of positions mean: no implicit damping, and no result that
        # depends on the time evaluated before.
        self._spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
        self._spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
        self._spec.option.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_INVDISCRETE)
        self._spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER  # MuJoCo differentiates no inverse with RK4
        self._spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.parameters = ParameterVector(parameters)
        self.nominal = self.build(self.parameters.nominal)

    def build(self, p: Array, remote_distance: float = 0.0) -> mujoco.MjModel:
        """Return the compiled model of an optimiser's parameter vector.

        Args:
            p: optimiser's parameters (c,).
            remote_distance: distance [m] at which physical contacts begin to act before the surfaces touch (paper 3,
                V-A).

        Raises:
            ModelError: the scene does not compile.
        """
        spec = self._spec.copy()
        self.parameters.apply(spec, p)
        try:
            model = spec.compile()
        except ValueError as error:
            raise ModelError(f"the scene does not compile: {error}") from error
        # MuJoCo puts a geom, site or centre of mass that is nearer than 1e-6 m to its body's frame onto it: a
        # derivative by an offset would be exactly 0 there.
        for snapped in (model.geom_sameframe, model.site_sameframe, model.body_sameframe):
            snapped[:] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        _make_pairs_physical(model, remote_distance)
        for i in np.flatnonzero(model.dof_solref[:, 1] < 0).tolist():
            model.dof_solref[i] *= model.dof_invweight0[i] * (1.0 - IMPEDANCE)
            model.dof_solimp[i] = _SOLIMP
        for i in range(model.ntendon):
            if model.tendon_solref_lim[i, 0] < 0:
                _make_string_physical(model, i, taut=remote_distance > 0)
        return model


def _make_pairs_physical(model: mujoco.MjModel, remote_distance: float) -> None:
    closed = np.isin(model.eq_type, _LOOPS).any()
    factor, model.opt.impratio = _CLOSED_LOOPS if closed else (_INVERSE_MASS_FACTOR, _FRICTION_RATIO)
    bodies = model.geom_bodyid[np.stack([model.pair_geom1, model.pair_geom2])]  # (2, npair)
    model.body_invweight0[np.unique(bodies), 0] *= factor
    scale = model.body_invweight0[bodies, 0].sum(axis=0)[:, None] * (1.0 - IMPEDANCE)
    model.pair_solref[:] *= scale
    model.pair_solreffriction[:] *= scale / model.opt.impratio
    model.pair_solimp[:] = _SOLIMP
    model.pair_margin[:] = remote_distance


def _make_string_physical(model: mujoco.MjModel, i: int, taut: bool) -> None:
    """Make a limit that pulls only beyond its length; ``taut`` makes it a two-way spring of the same law (it may push).

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
    """Attach a body to its parent by spring-damper slides (paper 3, section V-B).

    Args:
        spec: the scene.
        body: what is attached.
        stiffness: of every axis [N/m].
        damping: of every axis [N s/m].
        axes: letters of x, y, z.

    Returns:
        The joints' names.

    Raises:
        ModelError: no such body, or an axis that is not x, y or z.
    """
    tip = spec.body(body)
    if tip is None:
        raise ModelError(f"springy end effector: {unknown('body', body, (each.name for each in spec.bodies))}")
    if not set(axes) <= set("xyz") or not axes:
        raise ModelError(f"springy end effector: axes are '{axes}'; expected letters of x, y and z, such as 'xz'")
    names = []
    for axis in axes:
        joint = tip.add_joint(
            name=f"{body}_spring_{axis}", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=np.eye(3)["xyz".index(axis)]
        )
        joint.stiffness[0], joint.damping[0] = stiffness, damping
        names.append(joint.name)
    return names
