"""Features of a step without contact parameters: together with a contact torque they are the coupled step's error."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.contact import ContactSettings, ParallelContacts
from contact_estimation.dynamics import CoupledStep
from contact_estimation.fit.features import step_features
from contact_estimation.robot import load_arm

H = 0.002


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_errors_are_those_of_the_coupled_step(robot):
    arm = load_arm(robot)
    contacts = ParallelContacts(arm, [ContactSettings(stiffness=[1e3, -2e3, 2e4], point=[0.01, 0.02, 0.05])])
    step = CoupledStep(arm, contacts)
    advance = ca.Function("advance", [step.xi, step.phi, step.tau, step.h], [step.next, step.tau_e])
    rng = np.random.default_rng(0)
    rows = 7
    q = rng.uniform(0.6 * arm.lower + 0.4 * arm.upper, 0.4 * arm.lower + 0.6 * arm.upper, (rows, arm.n))
    dq, tau, q1, dq1 = (rng.normal(size=(rows, arm.n)) for _ in range(4))
    phi = contacts.initial(q[0])[0] + np.concatenate([np.zeros(3), [0.001, -0.002, 0.003], np.zeros(3)])
    f = step_features(arm, H, q, dq, tau, q1, dq1)
    for k in range(rows):
        after, tau_e = (v.full().ravel() for v in advance(np.concatenate([q[k], dq[k]]), phi, tau[k], H))
        np.testing.assert_allclose(f.error_q[k] - H**2 * f.inverse[k] @ tau_e, q1[k] - after[: arm.n], atol=1e-9)
        np.testing.assert_allclose(f.error_dq[k] - H * f.inverse[k] @ tau_e, dq1[k] - after[arm.n :], atol=1e-9)
        np.testing.assert_allclose(f.position[k], arm.tcp_pose(q[k])[0], atol=1e-12)
        np.testing.assert_allclose(f.rotation[k], arm.tcp_pose(q[k])[1], atol=1e-12)
        np.testing.assert_allclose(f.jacobian[k], arm.tcp_jacobian(q[k]), atol=1e-12)
