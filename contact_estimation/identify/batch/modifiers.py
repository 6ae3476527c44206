"""Writers of a parameter's value into an MjSpec, one per kind (paper 3, section III-B)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import mujoco

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.inertia import scale_second_moments
from contact_estimation.identify.batch.names import unknown

if TYPE_CHECKING:
    from contact_estimation.identify.batch.parameters import PhysicalParameter

Modifier = Callable[[mujoco.MjSpec, "PhysicalParameter"], None]


def modifier(kind: str, targets: list[str]) -> Modifier:
    """Return a modifier that writes a parameter of a kind into the named elements of an MjSpec.

    Args:
        kind: one of :data:`KINDS`.
        targets: names of contact pairs (``contact_*``), joints (``spring_*``, ``joint_*``, ``armature``), sites
            (``anchor``), geoms (``geom_offset``) or bodies (``body_offset``, ``mass``, ``com_offset``, ``inertia``).
            Anchors and offsets move the element by the value, in its parent's frame; ``com_offset`` moves the centre
            of mass in the body's frame. ``inertia`` is the log-Cholesky vector of
            :func:`~.inertia.scale_second_moments`.

    Raises:
        IdentificationError: unknown kind; a target that is not in the spec, or a value of another size than the
            kind's (when called).
    """
    if kind not in KINDS:
        raise IdentificationError(f"parameter kind '{kind}' is not known; use one of {', '.join(KINDS)}")
    (what, elements), write, size = _WRITERS[kind]

    def write_all(spec: mujoco.MjSpec, parameter: PhysicalParameter) -> None:
        if parameter.size != size:
            raise IdentificationError(
                f"parameter '{parameter.name}' of kind '{kind}' needs {size} numbers in 'nominal', given "
                f"{parameter.size}"
            )
        known = {element.name: element for element in elements(spec)}
        for target in targets:
            if target not in known:
                raise IdentificationError(
                    f"parameter '{parameter.name}' of kind '{kind}', key 'targets': {unknown(what, target, known)}"
                )
            write(known[target], parameter.value)

    return write_all


def _entry(field: str, index: int, sign: float = 1.0) -> Callable[[Any, Array], None]:
    def write(element: Any, value: Array) -> None:
        getattr(element, field)[index] = sign * value[0]

    return write


def _scalar(field: str) -> Callable[[Any, Array], None]:
    def write(element: Any, value: Array) -> None:
        setattr(element, field, value[0])

    return write


def _set_friction(pair: Any, value: Array) -> None:
    pair.friction[0] = pair.friction[1] = value[0]


def _move(element: Any, value: Array) -> None:
    element.pos = element.pos + value


def _with_mass(body: Any) -> Any:
    if body.mass <= 0:
        raise IdentificationError(
            f"body '{body.name}' has no mass; give it an <inertial> or geoms with mass to have its inertia identified"
        )
    return body


def _set_mass(body: Any, value: Array) -> None:
    ratio = value[0] / _with_mass(body).mass
    body.inertia, body.fullinertia = body.inertia * ratio, body.fullinertia * ratio
    body.mass = value[0]


def _move_com(body: Any, value: Array) -> None:
    body.ipos = _with_mass(body).ipos + value


def _scale_inertia(body: Any, value: Array) -> None:
    scale_second_moments(_with_mass(body), value)


#: Noun of an element, and all of a spec.
_Elements = tuple[str, Callable[[mujoco.MjSpec], Iterable[Any]]]
_PAIR: _Elements = "contact pair", lambda spec: spec.pairs
_JOINT: _Elements = "joint", lambda spec: spec.joints
_SITE: _Elements = "site", lambda spec: spec.sites
_GEOM: _Elements = "geom", lambda spec: spec.geoms
_BODY: _Elements = "body", lambda spec: spec.bodies
#: Kind -> its elements, how a value is written into one, and how many numbers a value has.
_WRITERS: dict[str, tuple[_Elements, Callable[[Any, Array], None], int]] = {
    "contact_stiffness": (_PAIR, _entry("solref", 0, -1.0), 1),
    "contact_damping": (_PAIR, _entry("solref", 1, -1.0), 1),
    "contact_friction": (_PAIR, _set_friction, 1),
    "spring_stiffness": (_JOINT, _entry("stiffness", 0), 1),
    "spring_damping": (_JOINT, _entry("damping", 0), 1),
    "anchor": (_SITE, _move, 3),
    "body_offset": (_BODY, _move, 3),
    "geom_offset": (_GEOM, _move, 3),
    "mass": (_BODY, _set_mass, 1),
    "com_offset": (_BODY, _move_com, 3),
    "inertia": (_BODY, _scale_inertia, 6),
    "armature": (_JOINT, _scalar("armature"), 1),
    "joint_friction": (_JOINT, _scalar("frictionloss"), 1),
    "joint_damping": (_JOINT, _entry("damping", 0), 1),
}
KINDS = tuple(_WRITERS)
