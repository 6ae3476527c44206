"""Admittance: a position-controlled arm presses with the force or the stiffness it is asked for."""

import numpy as np
import pytest

from contact_estimation.control.admittance import AdmittanceController, AdmittanceSettings
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import load_arm
from contact_estimation.simulation.session import open_simulation

Q = np.array([-0.9949, -1.0251, 2.2963, -2.8673, -1.5511, 0.5630])


def test_no_reference_motion_no_motion():
    arm = load_arm("ur16e")
    controller = AdmittanceController(arm, AdmittanceSettings(), 1e-3)
    pose = controller.reset(Q)
    for _ in range(100):
        controller.update(*pose, np.zeros(6))
    assert controller.q_ref == pytest.approx(Q, abs=1e-12)
    assert controller.torque(Q, np.zeros(6)) == pytest.approx(arm.gravity(Q), abs=1e-9)


def test_speed_is_limited():
    arm = load_arm("ur16e")
    controller = AdmittanceController(arm, AdmittanceSettings(), 1e-3)
    position, rotation = controller.reset(Q)
    controller.update(position + 1.0, rotation, np.zeros(6))
    assert np.linalg.norm(arm.tcp_jacobian(Q)[:3] @ controller.dq_ref) == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_the_commanded_spring_acts_on_every_arm(robot):
    """K (x0 - x) = f at rest in contact, whether the arm's controller is an impedance or an admittance."""
    sim = open_simulation("plane", robot, "ideal")
    position, rotation = sim.equilibrium
    sim.command(position + [0.0, 0.0, -0.045], rotation)
    for sample in sim.run(12.0):  # noqa: B007 - the last one is looked at
        pass
    x, r = sim.arm.tcp_pose(sample.q)
    force = (r @ sample.truth["wrench_tcp"][:3])[2]
    assert force > 4.0
    assert 700 * (x[2] - (position[2] - 0.045)) == pytest.approx(force, rel=0.03)


def test_a_wanted_force_is_reached():
    sim = open_simulation("single_point_rotation", "ur16e", "ideal")
    for sample in sim.run(2.0):  # noqa: B007 - the last one is looked at
        pass
    force = sim.plant.rotation @ sample.truth["wrench_tcp"][:3]
    assert force[2] == pytest.approx(30.0, rel=0.03)


def test_an_impedance_presses_with_what_its_spring_keeps():
    """A wanted force stretches the spring; what the contact and the tool's lever give way is lost again."""
    sim = open_simulation("single_point_rotation", "fr3", "ideal")
    for sample in sim.run(2.0):  # noqa: B007 - the last one is looked at
        pass
    force = (sim.plant.rotation @ sample.truth["wrench_tcp"][:3])[2]
    spring = -2000.0 * (sim.equilibrium[0] - sim.plant.position)[2]
    assert 20.0 < force < 30.0 and spring == pytest.approx(force, rel=0.03)


@pytest.mark.parametrize("wanted", [{"force_wanted": np.array([0.0, 0.0, -5.0])}, {"free_rotation": True}], ids=str)
def test_a_wish_that_needs_a_measured_force_says_so(wanted):
    controller = AdmittanceController(load_arm("ur16e"), AdmittanceSettings(), 1e-3)
    pose = controller.reset(Q)
    with pytest.raises(ConfigError, match="force_measured is None; give the measured wrench"):
        controller.update(*pose, np.zeros(6), **wanted)
