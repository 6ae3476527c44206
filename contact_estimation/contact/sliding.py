"""A point that slides: Coulomb friction with an unknown coefficient along each tangent."""

from __future__ import annotations

from contact_estimation.contact.law import FRICTION, Expression, LawParameter


class Sliding:
    """N = k d, T = mu N (Coulomb).

    The coefficients are signed: they hold the direction of sliding, which changes, and are forgotten accordingly. A
    third of the largest coefficient that occurs is a good standard deviation; what needs three of them is no friction.
    """

    parameters: tuple[LawParameter, ...] = tuple(
        LawParameter(name=name, mean=0.0, std=0.1, time_constant=0.4, bound=3.0, group="tangential")
        for name in FRICTION
    )
    feels_slip = False
    opens = False

    def force(
        self, stiffness: Expression, depth: Expression, slip: Expression, parameters: Expression
    ) -> tuple[Expression, Expression]:
        """Return normal and tangential force [N]; see :class:`~contact_estimation.contact.law.ContactLaw`."""
        normal = stiffness * depth
        return normal, normal * parameters
