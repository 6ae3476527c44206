"""Model parameters with bounds and priors: kinematic, intrinsic and contact (paper 3, section III-B).

A parameter is a `mujoco.sysid.Parameter` (name, nominal value, bounds, sampling, a modifier that writes it into an
MjSpec) with what a joint estimate needs on top: a Gaussian prior and the choice to be optimised as a logarithm, which
keeps stiffnesses and masses positive and makes a step of 0.1 mean 10 % for a friction coefficient and a stiffness
alike.
"""

from __future__ import annotations

import mujoco
import numpy as np

from contact_estimation.exceptions import IdentificationError

try:
    from mujoco.sysid import Parameter as SysidParameter
    from mujoco.sysid import ParameterDict
except ImportError:  # without its extra, mujoco.sysid imports but is empty
    SysidParameter, ParameterDict = object, None

KINDS = ("contact_stiffness", "contact_damping", "contact_friction", "spring_stiffness", "spring_damping", "anchor",
         "body_offset", "geom_offset", "mass", "joint_friction", "joint_damping")


class PhysicalParameter(SysidParameter):
    """One parameter of the model, scalar or vector.

    Args:
        name, nominal, lower, upper, modifier: as in `mujoco.sysid.Parameter`, SI units.
        log: optimise ln(value); needs lower > 0.
        prior_std: standard deviation of a Gaussian prior around the nominal value, in the parameter's unit (of the
            logarithm when ``log``); None for no prior.
        unit: for tables.

    Raises:
        IdentificationError: bounds that do not enclose the nominal value, or a log parameter that may be 0.
    """

    def __init__(self, name, nominal, lower, upper, modifier, *, log=False, prior_std=None, unit=""):
        if ParameterDict is None:
            raise IdentificationError("batch identification uses mujoco.sysid, whose extra packages are missing: "
                                      "pip install 'mujoco[sysid]' (Python 3.11 or newer)")
        nominal = np.atleast_1d(np.asarray(nominal, float))
        lower, upper = np.broadcast_to(lower, nominal.shape), np.broadcast_to(upper, nominal.shape)
        if not np.all((lower <= nominal) & (nominal <= upper) & (lower < upper)):
            raise IdentificationError(f"parameter '{name}': nominal {nominal} must lie inside [{lower}, {upper}]")
        if log and np.any(lower <= 0):
            raise IdentificationError(
                f"parameter '{name}' is optimised as a logarithm; its lower bound {lower} must be > 0"
            )
        super().__init__(name, nominal, lower, upper, modifier=modifier)
        self.log, self.prior_std, self.unit = log, prior_std, unit

    def inner(self, value) -> np.ndarray:
        """Optimiser's number(s) of a value."""
        value = np.asarray(value, float)
        return np.log(value) if self.log else value / self.scale

    def outer(self, number) -> np.ndarray:
        """Value of the optimiser's number(s)."""
        number = np.asarray(number, float)
        return np.exp(number) if self.log else number * self.scale

    @property
    def scale(self) -> np.ndarray:
        """Length of one optimiser's unit for a parameter that is not a logarithm: half its range."""
        return 0.5 * (self.max_value - self.min_value)

    @property
    def inner_prior_std(self) -> float | np.ndarray:
        """Prior standard deviation in the optimiser's unit, inf without a prior."""
        if self.prior_std is None:
            return np.inf
        return self.prior_std if self.log else self.prior_std / self.scale


class ParameterVector:
    """All free parameters of a scene as the optimiser's vector p (c,), with bounds, prior and names."""

    def __init__(self, parameters: list[PhysicalParameter]):
        names = [parameter.name for parameter in parameters]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise IdentificationError(f"parameter names must differ, given twice: {', '.join(twice)}")
        self.parameters = list(parameters)
        self.names = [f"{p.name}[{k}]" if p.size > 1 else p.name for p in parameters for k in range(p.size)]
        self.units = [p.unit for p in parameters for _ in range(p.size)]
        self.log = np.array([p.log for p in parameters for _ in range(p.size)], bool)
        self.lower = self._stack([p.inner(p.min_value) for p in parameters])
        self.upper = self._stack([p.inner(p.max_value) for p in parameters])
        self.nominal = self._stack([p.inner(p.nominal) for p in parameters])
        self.prior_std = self._stack([np.broadcast_to(p.inner_prior_std, p.shape) for p in parameters])

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def _stack(parts):
        return np.concatenate([np.atleast_1d(part) for part in parts]) if parts else np.zeros(0)

    def values(self, p: np.ndarray) -> np.ndarray:
        """SI values (c,) of the optimiser's vector."""
        return self._stack([parameter.outer(part) for parameter, part in self._split(p)])

    def std(self, p: np.ndarray, inner_std: np.ndarray) -> np.ndarray:
        """Standard deviations in SI from those of the optimiser's vector (first order for logarithms)."""
        parts = self._split(inner_std)
        factors = [q.outer(part) if q.log else q.scale for q, part in self._split(p)]
        return self._stack([factor * part for factor, (_, part) in zip(factors, parts)])

    def vector(self, values: dict) -> np.ndarray:
        """Optimiser's vector of SI values by parameter name; missing names take the nominal value.

        Raises:
            IdentificationError: a name that is not a parameter of this scene, or a value outside its bounds.
        """
        unknown = set(values) - {parameter.name for parameter in self.parameters}
        if unknown:
            raise IdentificationError(f"unknown parameters {sorted(unknown)}; known: "
                                      f"{', '.join(parameter.name for parameter in self.parameters)}")
        parts = []
        for parameter in self.parameters:
            value = np.broadcast_to(values.get(parameter.name, parameter.nominal), parameter.shape)
            if np.any(value < parameter.min_value) or np.any(value > parameter.max_value):
                raise IdentificationError(f"parameter '{parameter.name}' = {value} is outside its bounds "
                                          f"[{parameter.min_value}, {parameter.max_value}]")
            parts.append(parameter.inner(value))
        return self._stack(parts)

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """A vector uniform inside the bounds (log-uniform for logarithms)."""
        return rng.uniform(self.lower, self.upper)

    def apply(self, spec: mujoco.MjSpec, p: np.ndarray) -> None:
        """Write the values of ``p`` into ``spec`` through each parameter's modifier."""
        for parameter, part in self._split(p):
            parameter.update_from_vector(parameter.outer(part))
            parameter.apply_modifier(spec)

    def _split(self, p):
        out, start = [], 0
        for parameter in self.parameters:
            out.append((parameter, p[start:start + parameter.size]))
            start += parameter.size
        return out


def modifier(kind: str, targets: list[str]):
    """Modifier that writes a parameter of ``kind`` into the named elements of an MjSpec.

    Targets are names of contact pairs (``contact_*``), joints (``spring_*``, ``joint_*``), sites (``anchor``), geoms
    (``geom_offset``) or bodies (``body_offset``, ``mass``). Anchors and offsets move the element by the value, in its
    parent's frame.

    Raises:
        IdentificationError: unknown kind; a target that is not in the spec (when called).
    """
    if kind not in KINDS:
        raise IdentificationError(f"parameter kind '{kind}' is not known; use one of {', '.join(KINDS)}")

    def write(spec, parameter):
        for target in targets:
            _WRITERS[kind](_find(spec, kind, target), parameter.value)

    return write


def _find(spec, kind, target):
    if kind.startswith("contact_"):
        found = next((pair for pair in spec.pairs if pair.name == target), None)
    elif kind == "anchor":
        found = spec.site(target)
    elif kind == "geom_offset":
        found = spec.geom(target)
    elif kind in ("body_offset", "mass"):
        found = spec.body(target)
    else:
        found = spec.joint(target)
    if found is None:
        raise IdentificationError(f"parameter kind '{kind}': the scene has no element named '{target}'")
    return found


def _set_entry(field, index, sign=1.0):
    def write(element, value):
        getattr(element, field)[index] = sign * value[0]
    return write


def _set_friction(pair, value):
    pair.friction[0] = pair.friction[1] = value[0]


def _move(element, value):
    element.pos = element.pos + value


def _set_mass(body, value):
    if body.mass <= 0:
        raise IdentificationError(f"body '{body.name}' needs an explicit inertial element to have its mass identified")
    ratio = value[0] / body.mass
    body.inertia, body.fullinertia = body.inertia * ratio, body.fullinertia * ratio
    body.mass = value[0]


def _set_joint_friction(joint, value):
    joint.frictionloss = value[0]


_WRITERS = {
    "contact_stiffness": _set_entry("solref", 0, -1.0), "contact_damping": _set_entry("solref", 1, -1.0),
    "contact_friction": _set_friction, "spring_stiffness": _set_entry("stiffness", 0),
    "spring_damping": _set_entry("damping", 0), "anchor": _move, "body_offset": _move, "geom_offset": _move,
    "mass": _set_mass,
    "joint_friction": _set_joint_friction, "joint_damping": _set_entry("damping", 0),
}
