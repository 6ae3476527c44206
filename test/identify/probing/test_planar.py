"""The planar model against the paper's printed equations 3-7, and its derivatives."""

import numpy as np
import pytest

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.planar import NO_AXES, PlanarModel
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.update import wrenches

POSE, TWIST = np.array([0.3, 0.5, 0.4]), np.array([0.02, -0.01, 0.5])
EYE = np.eye(12)
TIP, PHI, D = np.array([0.02, -0.18]), 0.3, 0.25


@pytest.fixture
def model():
    return PlanarModel(Bounds(0.0, 20000.0), Bounds(0.0, 1.5))


def deformation(pose, tip, phi, d):
    """Eq. 6, as printed."""
    theta = pose[2] - phi
    return np.sin(phi) * pose[0] - np.cos(phi) * pose[1] - np.sin(theta) * tip[0] - np.cos(theta) * tip[1] + d


def slip_velocity(pose, twist, tip, phi):
    """Eq. 7, as printed."""
    theta = pose[2] - phi
    arm = np.sin(theta) * tip[0] + np.cos(theta) * tip[1]
    return np.cos(phi) * twist[0] + np.sin(phi) * twist[1] - arm * twist[2]


def contact_wrench(theta, tip, load, friction):
    """Eq. 3-5, as printed, for load kappa delta and friction sgn(v_t) mu."""
    c, s = np.cos(theta), np.sin(theta)
    moment = load * (friction * (c * tip[1] + s * tip[0]) + (c * tip[0] - s * tip[1]))
    return load * (s - friction * c), load * (c + friction * s), moment


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def parameters(model, stiffness=4000.0, friction=0.6):
    return np.array([*TIP, PHI, D, model.bounds[4].to_free(stiffness), model.bounds[5].to_free(friction)])


def test_deformation_and_slip_are_geometry():
    normal, tangent = np.array([-np.sin(PHI), np.cos(PHI)]), np.array([np.cos(PHI), np.sin(PHI)])
    arm = rotation(POSE[2]) @ TIP
    tip_velocity = TWIST[:2] + TWIST[2] * np.array([-arm[1], arm[0]])
    assert deformation(POSE, TIP, PHI, D) == pytest.approx(D - normal @ (POSE[:2] + arm))
    assert slip_velocity(POSE, TWIST, TIP, PHI) == pytest.approx(tangent @ tip_velocity)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_wrench_is_spring_and_friction_seen_from_the_probe(sign):
    load, friction = 20.0, 0.6
    normal, tangent = np.array([-np.sin(PHI), np.cos(PHI)]), np.array([np.cos(PHI), np.sin(PHI)])
    force = rotation(POSE[2]).T @ (load * (normal - sign * friction * tangent))
    moment = TIP[0] * force[1] - TIP[1] * force[0]
    assert contact_wrench(POSE[2] - PHI, TIP, load, sign * friction) == pytest.approx([*force, moment])


def test_model_wrenches_are_equations_3_to_5_per_mode(model):
    s = parameters(model)
    c, mean = np.append(s, 1e-3)[:, None], Mean(POSE, TWIST, s)
    load = 4000.0 * (deformation(POSE, TIP, PHI, D) + 1e-3)
    for (sign,), wrench in zip(model.modes, wrenches(model, model.conditions_at(mean, NO_AXES), c)):
        assert wrench[:, 0] == pytest.approx(contact_wrench(POSE[2] - PHI, TIP, load, sign * 0.6))


def test_slip_gradient_against_finite_differences(model):
    s = parameters(model)
    value, gradient, velocity = model.slip(Mean(POSE, TWIST, s))
    assert value[0] == velocity[0, 0] == pytest.approx(slip_velocity(POSE, TWIST, TIP, PHI))
    step = 1e-6
    moved = [model.slip(Mean(POSE + d[:3], TWIST + d[3:6], s + d[6:]))[0] for d in step * np.vstack([EYE, -EYE])]
    assert np.allclose(gradient[0], np.subtract(*np.reshape(moved, (2, 12))) / (2 * step), atol=1e-9)


def test_prepared_row_is_the_gradient_of_the_deformation(model):
    s, step = parameters(model), 1e-6
    row, _ = model.prepare(Mean(POSE, TWIST, s))
    numeric = [
        (deformation(POSE + d, TIP, PHI, D) - deformation(POSE - d, TIP, PHI, D)) / (2 * step) for d in step * np.eye(3)
    ]
    assert np.allclose(row[0, :3], numeric, atol=1e-9) and np.all(row[0, 3:] == 0.0)


def test_offset_moves_with_the_origin_and_its_covariance_follows(model):
    s, origin, step = parameters(model), np.array([0.4, -0.7]), 1e-6
    world, covariance = model.offset_to_world(s, np.eye(6), origin)
    assert deformation(POSE, TIP, PHI, world[3]) == pytest.approx(deformation(model.shift(POSE, origin), TIP, PHI, D))
    jacobian = np.column_stack(
        [
            (model.offset_to_world(s + d, np.eye(6), origin)[0] - model.offset_to_world(s - d, np.eye(6), origin)[0])
            / (2 * step)
            for d in step * np.eye(6)
        ]
    )
    assert np.allclose(covariance, jacobian @ jacobian.T, atol=1e-8)


def test_rough_start_knows_that_the_tip_touches(model):
    cfg = ProbingSettings()
    s, covariance, origin = model.start(cfg, POSE, TIP, PHI)
    local = model.shift(POSE, origin)
    assert deformation(local, TIP, PHI, s[3]) == pytest.approx(0.0, abs=1e-12)
    step = 1e-7
    gradient = np.array(
        [
            (
                deformation(local, (s + d)[:2], (s + d)[2], (s + d)[3])
                - deformation(local, (s - d)[:2], (s - d)[2], (s - d)[3])
            )
            / (2 * step)
            for d in step * np.eye(6)
        ]
    )
    assert np.sqrt(gradient @ covariance @ gradient) == pytest.approx(cfg.offset_start_std, rel=1e-6)
    assert np.sqrt(covariance[3, 3]) == pytest.approx(np.hypot(cfg.offset_start_std, cfg.tip_start_std), rel=1e-6)
