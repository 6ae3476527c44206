"""A law that pushes but never pulls: another law whose contact opens smoothly."""

from __future__ import annotations

import casadi as ca

from contact_estimation.contact.law import ContactLaw, Expression
from contact_estimation.contact.sliding import Sliding
from contact_estimation.contact.spring import Spring
from contact_estimation.contact.sticking import Mindlin, Sticking

#: [m] Over this depth a contact closes. At 20 kN/m it then pushes 0.7 N too much at the corner, well below the noise of
#: a motor torque; at 2 mm the difference to the corner is below 1e-17 of the depth.
WIDTH = 5e-5


class Unilateral:
    """N(w log(1 + e^(d/w))) and g(d) T of another law, with the logistic gate g(d) = 1 / (1 + e^(-d/w)).

    Args:
        law: law of the closed contact.
    """

    opens = True

    def __init__(self, law: ContactLaw) -> None:
        self.law = law
        self.parameters, self.feels_slip = law.parameters, law.feels_slip

    def force(
        self, stiffness: Expression, depth: Expression, slip: Expression, parameters: Expression
    ) -> tuple[Expression, Expression]:
        """Return normal and tangential force [N]; see :class:`~contact_estimation.contact.law.ContactLaw`."""
        scaled = depth / WIDTH
        # Neither the softplus nor its derivative may overflow.
        closed = WIDTH * (ca.fmax(scaled, 0) + ca.log1p(ca.exp(-ca.fabs(scaled))))
        normal, tangential = self.law.force(stiffness, closed, slip, parameters)
        return normal, 0.5 * (1 + ca.tanh(0.5 * scaled)) * tangential


def unilateral_spring() -> Unilateral:
    """Make a spring that opens."""
    return Unilateral(Spring())


def unilateral_sliding() -> Unilateral:
    """Make a sliding contact that opens."""
    return Unilateral(Sliding())


def unilateral_sticking() -> Unilateral:
    """Make a sticking contact that opens."""
    return Unilateral(Sticking())


def unilateral_mindlin() -> Unilateral:
    """Make a contact with Mindlin's tangential stiffness that opens."""
    return Unilateral(Mindlin())
