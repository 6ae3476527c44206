"""A point that cannot slide: a hinge, a hole, a rough edge. The contact also has a tangential stiffness."""

from __future__ import annotations

from contact_estimation.contact.law import Expression, LawParameter


class Sticking:
    """N = k d, T = k s: the spring of paper 1 in all three directions."""

    parameters: tuple[LawParameter, ...] = ()
    feels_slip = True
    opens = False

    def force(
        self, stiffness: Expression, depth: Expression, slip: Expression, parameters: Expression
    ) -> tuple[Expression, Expression]:
        """Return normal and tangential force [N]; see :class:`~contact_estimation.contact.law.ContactLaw`."""
        return stiffness * depth, stiffness * slip


class Mindlin(Sticking):
    """N = k d, T = r k s with the tangential share r, 2/3 to 1 for elastic bodies (Mindlin 1949)."""

    parameters: tuple[LawParameter, ...] = (
        LawParameter(name="share", mean=0.8, std=0.2, lower=0.0, group="tangential"),
    )

    def force(
        self, stiffness: Expression, depth: Expression, slip: Expression, parameters: Expression
    ) -> tuple[Expression, Expression]:
        """Return normal and tangential force [N]; see :class:`~contact_estimation.contact.law.ContactLaw`."""
        return stiffness * depth, parameters[0] * stiffness * slip
