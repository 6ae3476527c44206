"""The contact law: force of a contact from its depth and slip.

A law is written once, in contact axes (normal, tangent 1, tangent 2). The EKF, the UKF, the contact IMM filter, the fit
and the MPC take force and derivatives from it. Each method computes depth and slip from its own coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

#: A symbolic or numeric CasADi matrix (``SX``, ``MX`` or ``DM``).
Expression: TypeAlias = Any
#: Words by which ``estimate`` asks for a law's parameters.
LAW_GROUPS = ("tangential", "law")
#: Names of the friction coefficients along tangent 1 and tangent 2; a law has both or neither.
FRICTION = ("friction_1", "friction_2")


@dataclass(frozen=True, kw_only=True)
class LawParameter:
    """A parameter of a contact law, and what is known about it before anything was measured.

    Attributes:
        name: word in settings, messages and reports, unique within the law. To the contact IMM filter those of
            :data:`FRICTION` are friction coefficients.
        unit: SI unit, empty where there is none.
        scale: SI value of one internal unit; the filters' states should be of order one.
        mean: prior mean [unit].
        std: prior standard deviation [unit]; zero for a parameter that is never estimated.
        random_walk: growth of the standard deviation in one second [unit/s^0.5].
        time_constant: [s] after which the parameter has forgotten its deviation from the mean; infinite for a random
            walk.
        bound: standard deviations it may be away from the mean in the contact IMM filter.
        lower: least value in a fit [unit].
        group: word of ``estimate`` that asks for it, ``tangential`` where it acts sideways.
    """

    name: str
    unit: str = ""
    scale: float = 1.0
    mean: float
    std: float
    random_walk: float = 0.0
    time_constant: float = math.inf
    bound: float = math.inf
    lower: float = -math.inf
    group: str = "law"

    @property
    def intensity(self) -> float:
        """Intensity [internal unit^2/s] of the white noise that drives the parameter."""
        forgetting = 2.0 * self.std**2 / self.time_constant
        return (self.random_walk**2 + forgetting) / self.scale**2


class ContactLaw(Protocol):
    """Force of a closed contact. A law of one's own has these attributes and this method, no base class.

    Attributes:
        parameters: parameters of the law beside its stiffness.
        feels_slip: the force depends on the slip, so that the rest position has tangential coordinates.
        opens: the force vanishes in free space by itself, so that no method has to open the contact.
    """

    parameters: tuple[LawParameter, ...]
    feels_slip: bool
    opens: bool

    def force(
        self, stiffness: Expression, depth: Expression, slip: Expression, parameters: Expression
    ) -> tuple[Expression, Expression]:
        """Return the force of the environment on the robot in contact axes.

        Args:
            stiffness: k [N/m], positive.
            depth: d = n^T (x_rest - x) [m], positive where the contact is pressed.
            slip: (2,) tangential part of x_rest - x [m].
            parameters: (P,) the law's parameters [SI], in the order of :attr:`parameters`.

        Returns:
            normal: force along n [N]; positive pushes the robot away.
            tangential: (2,) force along the two tangents [N].
        """
