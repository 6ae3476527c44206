"""Model parameters with bounds and priors: kinematic, intrinsic and contact (paper 3, section III-B).

A parameter is a `mujoco.sysid.Parameter` (name, nominal value, bounds, sampling, a modifier that writes it into an
MjSpec) with two additions: a Gaussian prior, and an optional logarithm. The logarithm keeps stiffnesses and masses
positive. A step of 0.1 then means 10 % both for a friction coefficient and for a stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array

if TYPE_CHECKING:
    from contact_estimation.identify.batch.modifiers import Modifier

try:
    from mujoco.sysid import Parameter as SysidParameter, ParameterDict
except ImportError:  # without its extra, mujoco.sysid imports but is empty
    SysidParameter, ParameterDict = object, None

#: Properties of sensors that may be identified, see :class:`ChannelParameter`.
CHANNEL_KINDS = ("delay", "gain", "bias")


class PhysicalParameter(SysidParameter):  # type: ignore[misc]  # mujoco ships no types
    """One parameter of the model, scalar or vector.

    Args:
        name: of the parameter.
        nominal: start value and centre of the prior, SI.
        lower: bound, SI.
        upper: bound, SI.
        modifier: writes the value into an MjSpec, see :func:`.modifiers.modifier`.
        log: optimise ln(value); needs lower > 0.
        prior_std: standard deviation of a Gaussian prior around the nominal value, in the parameter's unit (of the
            logarithm when ``log``); None for no prior.
        unit: for tables.

    Raises:
        IdentificationError: bounds that do not enclose the nominal value, or a log parameter that may be 0.
    """

    def __init__(
        self,
        name: str,
        nominal: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        modifier: Modifier | None,
        *,
        log: bool = False,
        prior_std: float | None = None,
        unit: str = "",
    ) -> None:
        if ParameterDict is None:
            raise IdentificationError(
                "batch identification uses mujoco.sysid, whose extra packages are missing: "
                "pip install 'mujoco[sysid]' (Python 3.11 or newer)"
            )
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

    def inner(self, value: ArrayLike) -> Array:
        """Return the optimiser's number(s) (k,) of a value.

        Args:
            value: (k,) in SI units.
        """
        value = np.asarray(value, float)
        return np.log(value) if self.log else value / self.scale

    def outer(self, number: ArrayLike) -> Array:
        """Return the value (k,) in SI units of the optimiser's number(s).

        Args:
            number: (k,).
        """
        number = np.asarray(number, float)
        return np.exp(number) if self.log else number * self.scale

    @property
    def scale(self) -> Array:
        """Length (k,) of one optimiser's unit for a parameter that is not a logarithm: half its range."""
        return np.asarray(0.5 * (self.max_value - self.min_value))

    @property
    def inner_prior_std(self) -> float | Array:
        """Prior standard deviation, a number or (k,), in the optimiser's unit; inf without a prior."""
        if self.prior_std is None:
            return np.inf
        return self.prior_std if self.log else self.prior_std / self.scale


class ChannelParameter(PhysicalParameter):
    """A property of sensors, measured(t) = gain true(t - delay) + bias, shared by all their numbers (bias: one each).

    Args:
        name: of the parameter.
        kind: one of :data:`CHANNEL_KINDS`; delay [s], bias in the channel's unit.
        channels: names of the channels that have it.
        nominal: start value and centre of the prior.
        lower: bound.
        upper: bound.
        options: ``prior_std`` and ``unit`` of :class:`PhysicalParameter`.

    Raises:
        IdentificationError: an unknown kind, or a gain that may be 0.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        channels: Sequence[str],
        nominal: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        **options: Any,
    ) -> None:
        if kind not in CHANNEL_KINDS:
            raise IdentificationError(f"channel parameter '{kind}' is not known; use one of {', '.join(CHANNEL_KINDS)}")
        if kind == "gain" and np.any(np.asarray(lower) <= 0):
            raise IdentificationError(f"parameter '{name}': the lower bound {lower!r} of a gain must be > 0")
        super().__init__(name, nominal, lower, upper, None, **options)
        self.kind, self.channels = kind, tuple(channels)


class ParameterVector:
    """All free parameters of a scene as the optimiser's vector p (c,), with bounds, prior and names."""

    def __init__(self, parameters: list[PhysicalParameter]) -> None:
        names = [parameter.name for parameter in parameters]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise IdentificationError(f"parameter names must differ, given twice: {', '.join(twice)}")
        self.parameters = list(parameters)
        self.names = [f"{p.name}[{k}]" if p.size > 1 else p.name for p in parameters for k in range(p.size)]
        self.units = [p.unit for p in parameters for _ in range(p.size)]
        self.lower = self._stack([p.inner(p.min_value) for p in parameters])
        self.upper = self._stack([p.inner(p.max_value) for p in parameters])
        self.nominal = self._stack([p.inner(p.nominal) for p in parameters])
        self.logarithmic = np.array([p.log for p in parameters for _ in range(p.size)], bool)
        self.prior_std = self._stack([np.broadcast_to(p.inner_prior_std, p.shape) for p in parameters])

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def _stack(parts: list[Array]) -> Array:
        return np.concatenate([np.atleast_1d(part) for part in parts]) if parts else np.zeros(0)

    def values(self, p: Array) -> Array:
        """SI values (c,) of the optimiser's vector."""
        return self._stack([parameter.outer(part) for parameter, part in self._split(p)])

    def std(self, p: Array, inner_std: Array) -> Array:
        """Return standard deviations in SI from those of the optimiser's vector (first order for logarithms)."""
        factors = [q.outer(part) if q.log else q.scale for q, part in self._split(p)]
        return self._stack([factor * part for factor, (_, part) in zip(factors, self._split(inner_std))])

    def vector(self, values: Mapping[str, ArrayLike]) -> Array:
        """Optimiser's vector of SI values by parameter name; missing names take the nominal value.

        Raises:
            IdentificationError: a name that is not a parameter of this scene, or a value outside its bounds.
        """
        known = [parameter.name for parameter in self.parameters]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise IdentificationError(f"unknown parameters {unknown}; known: {', '.join(known)}")
        parts = []
        for parameter in self.parameters:
            value = np.broadcast_to(values.get(parameter.name, parameter.nominal), parameter.shape)
            if np.any(value < parameter.min_value) or np.any(value > parameter.max_value):
                raise IdentificationError(
                    f"parameter '{parameter.name}' = {value} is outside its bounds "
                    f"[{parameter.min_value}, {parameter.max_value}]"
                )
            parts.append(parameter.inner(value))
        return self._stack(parts)

    def sample(self, rng: np.random.Generator) -> Array:
        """Draw a vector uniform inside the bounds (log-uniform for logarithms)."""
        return rng.uniform(self.lower, self.upper)

    def of_channels(self, p: Array) -> Iterator[tuple[ChannelParameter, Array, int]]:
        """Return the channels' parameters with their values and the index of their first number in ``p``."""
        first = 0
        for parameter, part in self._split(p):
            if isinstance(parameter, ChannelParameter):
                yield parameter, parameter.outer(part), first
            first += parameter.size

    def apply(self, spec: mujoco.MjSpec, p: Array) -> None:
        """Write the values of ``p`` into ``spec`` through each parameter's modifier."""
        for parameter, part in self._split(p):
            parameter.update_from_vector(parameter.outer(part))
            parameter.apply_modifier(spec)

    def _split(self, p: Array) -> list[tuple[PhysicalParameter, Array]]:
        ends = np.cumsum([parameter.size for parameter in self.parameters])
        return [(parameter, p[end - parameter.size : end]) for parameter, end in zip(self.parameters, ends)]
