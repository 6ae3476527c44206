"""The contacts of the unbiased fit in generated C: joint torque and its derivatives by the contact's parameters.

A recording holds free motion, so the fit needs a contact that opens by itself: a law that does not is fitted as its
unilateral version (:mod:`contact_estimation.contact.unilateral`).
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from contact_estimation.codegen import compile_function
from contact_estimation.codegen.compile import CompiledFunction
from contact_estimation.contact import ContactSettings, find_law
from contact_estimation.contact.closed import from_stiffness_vector
from contact_estimation.contact.law import ContactLaw
from contact_estimation.contact.sticking import Mindlin
from contact_estimation.contact.unilateral import Unilateral
from contact_estimation.robot import Arm


class FitContact:
    """One contact of a fit, with the parameters phi = [K; x_rest; x_tcp; law parameters] in SI.

    Args:
        arm: the robot.
        settings: the contact as configured.
        estimate: what the fit estimates. With ``tangential`` a spring holds its point as an elastic body does (Mindlin
            1949): three of the papers' primitives with a common rest and point (a hinge, paper 2, section 3), with two
            stiffnesses instead of three.

    Attributes:
        law: the law that is fitted; it opens by itself.
        prior: per parameter of the law its declaration, mean and standard deviation [SI].
        size: number of parameters.
    """

    def __init__(self, arm: Arm, settings: ContactSettings, estimate: tuple[str, ...]) -> None:
        self.settings, self._arm = settings, arm
        law: ContactLaw = find_law(settings.law)
        self.prior = settings.law_prior
        if settings.law == "spring" and "tangential" in estimate:
            law = Mindlin()
            self.prior = [(p, p.mean, p.std) for p in law.parameters]
        self.law = law if law.opens else Unilateral(law)
        self.size = 9 + len(self.prior)

    @cached_property
    def function(self) -> ca.Function:
        """Torque (n,) and derivative (n, size) from phi and data: TCP position, rotation and Jacobian, column-major."""
        n = self._arm.n
        phi, data = ca.SX.sym("phi", self.size), ca.SX.sym("data", 12 + 6 * n)
        position, rotation, jacobian = data[:3], ca.reshape(data[3:12], 3, 3), ca.reshape(data[12:], 6, n)
        lever = rotation @ phi[6:9]
        stretch = phi[3:6] - position - lever
        contact = from_stiffness_vector(self.law, phi[:3], stretch, phi[9:], np.asarray(self.settings.stiffness))
        torque = jacobian[:3, :].T @ contact.force_base + jacobian[3:, :].T @ ca.cross(lever, contact.force_base)
        outputs = [torque, ca.densify(ca.jacobian(torque, phi))]
        return ca.Function("contact_torque", [phi, data], outputs, ["phi", "data"], ["tau", "slope"])

    @cached_property
    def _run(self) -> CompiledFunction:
        return compile_function(self.function)

    def evaluate(
        self, phi: NDArray[np.float64], inputs: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the torque of the contact at every sample.

        Args:
            phi: (size,) [SI].
            inputs: (T, 12 + 6 n) of :class:`~contact_estimation.fit.blocks.Blocks`.

        Returns:
            torque: (T, n) [Nm].
            slope: (T, n, size) derivative by phi.
        """
        run, n = self._run, self._arm.n
        torque, slope = np.empty((len(inputs), n)), np.empty((len(inputs), self.size * n))
        run.inputs["phi"][:] = phi
        data, out_torque, out_slope = run.inputs["data"], run.outputs["tau"], run.outputs["slope"]
        for k, row in enumerate(inputs):
            data[:] = row
            run()
            torque[k], slope[k] = out_torque, out_slope
        return torque, slope.reshape(-1, self.size, n).transpose(0, 2, 1)
