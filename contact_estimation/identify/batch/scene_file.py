"""Scenes as YAML: a robot description, its contacts, the sensors, and the parameters to identify.

The settings engine checks the file; an unknown key is an error that names the nearest known one. Example:
`config/robots/ur16e/scenes/ur16e_press.yaml`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from contact_estimation.exceptions import ConfigError, ModelError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch import names
from contact_estimation.identify.batch.channels import MODELS, Channel
from contact_estimation.identify.batch.modifiers import KINDS, modifier
from contact_estimation.identify.batch.parameters import CHANNEL_KINDS, ChannelParameter, PhysicalParameter
from contact_estimation.identify.batch.scene import Scene, add_springy_tip
from contact_estimation.settings import from_yaml, key, non_negative, positive, share_file

_GEOMS = {
    name: getattr(mujoco.mjtGeom, f"mjGEOM_{name.upper()}")
    for name in ("sphere", "box", "plane", "cylinder", "capsule")
}
_DESCRIPTIONS = (".xml", ".mjcf", ".urdf")
_JOINT_SENSORS = ("jointpos", "jointvel")
_SITE_SENSORS = ("force", "torque", "framepos", "framequat", "gyro", "accelerometer")
_SENSORS = _JOINT_SENSORS + _SITE_SENSORS


@dataclasses.dataclass(frozen=True, kw_only=True)
class BodySettings:
    """A body added to the scene (a pad, an end effector)."""

    name: str = key(doc="name of the body")
    parent: str = key("world", doc="body it is attached to")
    pos: list[float] = key([0.0, 0.0, 0.0], doc="position in the parent", unit="m", length=3)
    mass: float = key(doc="mass", unit="kg", check=positive)
    inertia: list[float] = key(doc="principal moments of inertia", unit="kg m^2", length=3, check=positive)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpringySettings:
    """The springy end effector: a body on spring-damper slides (paper 3, section V-B)."""

    body: str = key(doc="body that moves on the springs")
    axes: str = key("xyz", doc="axes of the springs, letters of x, y, z in the body's frame")
    stiffness: float = key(doc="stiffness of every axis", unit="N/m", check=positive)
    damping: float = key(doc="damping of every axis", unit="N s/m", check=non_negative)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeomSettings:
    """A shape that can touch."""

    name: str = key(doc="name of the geom")
    body: str = key("world", doc="body that carries it")
    type: str = key(doc="shape", choices=tuple(_GEOMS))
    size: list[float] = key(doc="MuJoCo's sizes of the shape", unit="m", length=3, check=non_negative)
    pos: list[float] = key([0.0, 0.0, 0.0], doc="position in the body", unit="m", length=3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContactSettings:
    """A pair of shapes that touch, in physical units."""

    name: str = key(doc="name of the pair, for parameters")
    geoms: list[str] = key(doc="names of the two geoms", length=2)
    stiffness: float = key(doc="normal stiffness", unit="N/m", check=positive)
    damping: float = key(doc="normal damping", unit="N s/m", check=positive)
    friction: float = key(0.5, doc="friction coefficient", check=positive)
    slip_damping: float = key(
        20.0, doc="slope of friction force over slip velocity at rest", unit="N s/m", check=positive
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """A frame on a body, for sensors and anchors."""

    name: str = key(doc="name of the site")
    body: str = key("world", doc="body that carries it")
    pos: list[float] = key([0.0, 0.0, 0.0], doc="position in the body", unit="m", length=3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SensorSettings:
    """A sensor of the model; what it reads is compared with a channel."""

    name: str = key(doc="name of the sensor")
    type: str = key(doc="kind of sensor", choices=_SENSORS)
    object: str = key(doc="joint or site it belongs to")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChannelSettings:
    """A measured channel: where it is in the recording, what predicts it, how it is weighted."""

    name: str = key(doc="name of the channel in reports")
    source: str = key(doc="key of the recording (q, tau, f_tcp, ...)")
    model: str = key("sensor", doc="how it is predicted", choices=MODELS)
    targets: list[str] = key(doc="sensors in order, or actuated joints for a torque")
    std: list[float] = key(doc="noise standard deviation, one number for all or one each", check=positive)
    barrier: float | None = key(
        None, doc="scale of the exponential barrier; empty for the quadratic norm", check=positive
    )
    weight: float = key(1.0, doc="factor on the cost; 0 predicts the channel without using it", check=non_negative)
    scale: float = key(1.0, doc="factor from the recording's number to the model's (-1 for an opposite sign)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParameterSettings:
    """A parameter to identify."""

    name: str = key(doc="name of the parameter")
    kind: str = key(doc="what it is", choices=KINDS + CHANNEL_KINDS)
    targets: list[str] = key(doc="pairs, joints, sites, bodies or channels that share it")
    nominal: list[float] = key(doc="start value and centre of the prior")
    lower: float = key(doc="lower bound")
    upper: float = key(doc="upper bound")
    log: bool = key(False, doc="optimise the logarithm (stiffness, damping, mass, friction)")
    prior_std: float | None = key(None, doc="standard deviation of the prior (of the logarithm if log)", check=positive)
    unit: str = key("", doc="unit, for tables")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GridSettings:
    """The time grid."""

    coarse: float = key(0.005, doc="spacing in free motion", unit="s", check=positive)
    fine: float = key(0.005, doc="spacing around contact", unit="s", check=positive)
    events: str = key("", doc="channel in which contact shows; empty for a uniform grid of the coarse spacing")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SceneSettings:
    """A whole scene."""

    model: str = key(doc="URDF or MJCF file, relative to this file or to the package's share folder")
    bodies: list[BodySettings] = key([], doc="bodies added to the model")
    springy: SpringySettings | None = key(None, doc="springy end effector; empty for a rigid one")
    geoms: list[GeomSettings] = key([], doc="shapes that touch")
    contacts: list[ContactSettings] = key([], doc="pairs of shapes that touch")
    sites: list[SiteSettings] = key([], doc="frames for sensors")
    sensors: list[SensorSettings] = key([], doc="sensors of the model")
    channels: list[ChannelSettings] = key(doc="what was measured")
    joint_friction_slope: float = key(
        3000.0,
        doc="slope of joint friction over velocity at rest, where a joint has friction",
        unit="N m s/rad",
        check=positive,
    )
    parameters: list[ParameterSettings] = key([], doc="what is identified")
    start: dict[str, str] = key(doc="joint -> channel that gives its start trajectory")
    dynamics_std: dict[str, float] = key(
        doc="joint (or 'default') -> unexplained force allowed", unit="N, Nm", check=positive
    )
    grid: GridSettings = key(GridSettings(), doc="the time grid")
    formulation: str = key("inverse", doc="unexplained forces or acceleration errors", choices=("inverse", "forward"))
    velocity: str = key("central", doc="velocity differences; backward is the paper's", choices=("central", "backward"))
    remote_distance: float = key(
        1e-3, doc="distance from which contacts act in the first stage", unit="m", check=non_negative
    )
    softening: float = key(30.0, doc="factor on dynamics_std in the first stage", check=positive)
    contact: list[str] = key(
        [],
        doc="two bodies (on, by) whose contact force is reported; empty for the sum of all contacts, each on the body "
        "that stands later in the model",
    )

    def __post_init__(self) -> None:
        if len(self.contact) not in (0, 2):
            raise ConfigError(
                f"key 'contact' has {len(self.contact)} names, {self.contact}; expected two bodies (on, by), or none "
                "for the sum of all contacts"
            )


def load(path: Path | str) -> tuple[SceneSettings, Scene]:
    """Read a scene file and build its scene.

    Raises:
        ConfigError: the file breaks the schema, or there is no such description.
        ModelError: a body, joint or site that the model does not have, or a model that does not compile.
    """
    settings = from_yaml(SceneSettings, path)
    return settings, build(settings, _model_file(Path(path), settings.model))


def _model_file(scene: Path, name: str) -> Path:
    """Find the description, from the scene file on or among those that the package ships.

    Raises:
        ConfigError: there is none; what stands there is listed, the nearest first.
    """
    share, beside = share_file("config").parent, scene.resolve().parent / name
    found = next((place for place in (beside, share / name) if place.is_file()), None)
    if found is None:
        known = [str(Path(name).parent / file.name) for file in sorted(beside.parent.glob("*"))]
        known += [str(file.relative_to(share)) for file in sorted(share.glob("config/robots/*/*"))]
        known = [each for each in known if each.endswith(_DESCRIPTIONS)]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
        raise ConfigError(
            f"{scene}: 'model' is '{name}', but there is no such file, neither from the scene's folder on "
            f"({scene.resolve().parent}) nor in the package's share folder (nearest: "
            f"{', '.join(map(repr, near)) or 'none'}); give the path of a URDF or MJCF from the scene's folder on"
        )
    return found


def build(settings: SceneSettings, model_file: Path) -> Scene:
    """Build the scene of ``settings`` on the description in ``model_file``."""
    try:
        spec = mujoco.MjSpec.from_file(str(model_file))
    except ValueError as error:
        raise ModelError(f"MuJoCo cannot read {model_file}: {error}") from error
    spec.option.tolerance = 1e-12
    _add_bodies(spec, settings)
    _add_contacts(spec, settings)
    for name in settings.contact:
        _body(spec, name)
    return Scene(spec, [_parameter(item) for item in settings.parameters])


def _add_bodies(spec: mujoco.MjSpec, settings: SceneSettings) -> None:
    """Bodies, the springy end effector, shapes and sites."""
    for item in settings.bodies:
        body = _body(spec, item.parent).add_body(name=item.name, pos=item.pos)
        body.mass, body.inertia, body.explicitinertial = item.mass, item.inertia, True
    if settings.springy is not None:
        add_springy_tip(
            spec, settings.springy.body, settings.springy.stiffness, settings.springy.damping, settings.springy.axes
        )
    for shape in settings.geoms:
        _body(spec, shape.body).add_geom(
            name=shape.name, type=_GEOMS[shape.type], size=shape.size, pos=shape.pos, mass=0.0, contype=0, conaffinity=0
        )
    for site in settings.sites:
        _body(spec, site.body).add_site(name=site.name, pos=site.pos)


def _add_contacts(spec: mujoco.MjSpec, settings: SceneSettings) -> None:
    """Contact pairs, joint friction and sensors.

    Raises:
        ModelError: a geom, joint or site that the scene does not have.
    """
    for contact in settings.contacts:
        for geom in contact.geoms:
            _check_name(f"contact '{contact.name}', key 'geoms'", "geom", geom, spec.geoms)
        pair = spec.add_pair(name=contact.name, geomname1=contact.geoms[0], geomname2=contact.geoms[1], condim=3)
        pair.friction = [contact.friction, contact.friction, 0.0, 0.0, 0.0]
        pair.solref = [-contact.stiffness, -contact.damping]
        pair.solreffriction = [-1.0, -contact.slip_damping]
    for joint in spec.joints:
        joint.solref_friction = [-1.0, -settings.joint_friction_slope]
    for sensor in settings.sensors:
        kind = getattr(mujoco.mjtSensor, f"mjSENS_{sensor.type.upper()}")
        what, owner, known = "site", mujoco.mjtObj.mjOBJ_SITE, spec.sites
        if sensor.type in _JOINT_SENSORS:
            what, owner, known = "joint", mujoco.mjtObj.mjOBJ_JOINT, spec.joints
        _check_name(f"sensor '{sensor.name}', key 'object'", what, sensor.object, known)
        spec.add_sensor(name=sensor.name, type=kind, objtype=owner, objname=sensor.object)


def channels(settings: SceneSettings) -> list[Channel]:
    """Return the scene's channels."""
    return [
        Channel(c.name, c.model, tuple(c.targets), tuple(c.std) if len(c.std) > 1 else c.std[0], c.barrier, c.weight)
        for c in settings.channels
    ]


def dynamics_std(settings: SceneSettings, model: mujoco.MjModel) -> Array:
    """Unexplained force allowed per dof, (nv,).

    Raises:
        ConfigError: an unknown joint, or a joint without a value and no ``default``.
    """
    joints = {model.joint(k).name: model.joint(k) for k in range(model.njnt)}
    unknown = sorted(set(settings.dynamics_std) - set(joints) - {"default"})
    if unknown:
        raise ConfigError(
            f"dynamics_std names joints the scene does not have: {', '.join(unknown)}; it has {', '.join(joints)}"
        )
    std = np.empty(model.nv)
    for name, joint in joints.items():
        value = settings.dynamics_std.get(name, settings.dynamics_std.get("default"))
        if value is None:
            raise ConfigError(f"dynamics_std has no value for joint '{name}' and no 'default'")
        first = joint.dofadr[0]
        following = [j.dofadr[0] for j in joints.values() if j.dofadr[0] > first]
        std[first : min(following, default=model.nv)] = value
    return std


def _parameter(item: ParameterSettings) -> PhysicalParameter:
    bounds = item.lower, item.upper
    if item.kind in CHANNEL_KINDS:
        return ChannelParameter(
            item.name, item.kind, item.targets, item.nominal, *bounds, prior_std=item.prior_std, unit=item.unit
        )
    write = modifier(item.kind, item.targets)
    return PhysicalParameter(
        item.name, item.nominal, *bounds, write, log=item.log, prior_std=item.prior_std, unit=item.unit
    )


def _check_name(where: str, what: str, name: str, elements: Iterable[Any]) -> None:
    known = [element.name for element in elements]
    if name not in known:
        raise ModelError(f"{where}: {names.unknown(what, name, known)}")


def _body(spec: mujoco.MjSpec, name: str) -> Any:
    body = spec.worldbody if name == "world" else spec.body(name)
    if body is None:
        raise ModelError(
            f"a body that the scene file refers to: {names.unknown('body', name, (each.name for each in spec.bodies))}"
        )
    return body
