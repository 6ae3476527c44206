"""The papers' compliant contact: a spring along the normal that pushes and pulls."""

from __future__ import annotations

from contact_estimation.contact.law import Expression, LawParameter


class Spring:
    """N = k d, T = 0 (paper 2, eq. 4)."""

    parameters: tuple[LawParameter, ...] = ()
    feels_slip = False
    opens = False

    def force(
        self, stiffness: Expression, depth: Expression, slip: Expression, parameters: Expression
    ) -> tuple[Expression, Expression]:
        """Return normal and tangential force [N]; see :class:`~contact_estimation.contact.law.ContactLaw`."""
        return stiffness * depth, 0 * slip
