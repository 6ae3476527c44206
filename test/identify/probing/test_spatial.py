"""The spatial model: geometry, derivatives, and agreement with the plane."""

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.planar import PlanarModel
from contact_estimation.identify.probing.spatial import SpatialModel, homogeneous
from contact_estimation.identify.probing.update import wrenches
from contact_estimation.studies.probing import simulated_probe

STIFFNESS, FRICTION = Bounds(0.0, 20000.0), Bounds(0.0, 1.5)
REFERENCE = pin.exp3(np.array([0.3, -0.2, 0.5]))
POSE = homogeneous(pin.exp3(np.array([3.0, 0.2, 0.1])), [0.4, -0.2, 0.3])
TWIST = np.array([0.02, -0.01, 0.005, 0.1, -0.3, 0.2])


def parameters(tips):
    return np.array([*np.ravel(tips), 0.05, -0.08, 0.1, STIFFNESS.to_free(4000.0), FRICTION.to_free(0.6)])


def wrenches_at(model, mean):
    """Wrenches (modes, w) at the mean, without noise."""
    rows, axes = model.prepare(mean)
    return wrenches(model, model.conditions_at(mean, axes), np.append(mean.s, np.zeros(len(rows)))[:, None])[:, :, 0]


@pytest.fixture(params=[1, 2])
def case(request):
    tips = np.array([[0.01, -0.02, 0.18], [0.03, -0.02, 0.181]])[: request.param]
    model = SpatialModel(STIFFNESS, FRICTION, [REFERENCE], (0,) * request.param)
    s = parameters(tips)
    heights = [model.normal(s) @ (POSE[:3, 3] + POSE[:3, :3] @ tip) for tip in tips]
    s[3 * len(tips) + 2] = max(heights) + 0.004  # every tip is pressed
    return model, s, tips


def true_wrench(model, s, tips, bristles):
    first = 3 * len(tips)
    truth = simulated_probe.Truth(
        tips[None], model.normal(s)[None], s[first + 2 : first + 3], np.array([4000.0]), np.array([0.6])
    )
    motion = simulated_probe.Motion(POSE[None, :3, 3], POSE[None, :3, :3], TWIST[None], np.zeros((1, 6)))
    return simulated_probe.contact_wrench(truth, motion, bristles, 1e3)[0][0]


def test_sliding_wrench_equals_that_of_the_simulated_probe(case):
    model, s, tips = case
    wrench = wrenches_at(model, Mean(POSE, TWIST, s))[0]
    assert np.allclose(wrench, true_wrench(model, s, tips, np.zeros((1, len(tips), 3))), atol=1e-6)


def test_modes_mirror_friction_alone(case):
    model, s, tips = case
    ahead, *_, behind = wrenches_at(model, Mean(POSE, TWIST, s))
    load = sum(4000.0 * (s[-3] - model.normal(s) @ (POSE[:3, 3] + POSE[:3, :3] @ tip)) for tip in tips)
    assert np.allclose(POSE[:3, :3] @ (0.5 * (ahead + behind))[:3], load * model.normal(s), atol=1e-9)


def test_slip_gradient_against_finite_differences(case):
    model, s, _ = case
    _, gradient, velocities = model.slip(Mean(POSE, TWIST, s))
    step, n = 1e-6, 12 + len(s)
    along = velocities / np.linalg.norm(velocities, axis=1, keepdims=True)

    def slip(d):
        moved = Mean(model.advance(POSE, d[:6]), TWIST + d[6:12], s + d[12:])
        return np.sum(along * model.slip(moved)[2], axis=1)

    numeric = np.array([(slip(d) - slip(-d)) / (2 * step) for d in step * np.eye(n)]).T
    seen = np.ones(n, dtype=bool)
    seen[12 + 3 * len(velocities) : 14 + 3 * len(velocities)] = False  # by the surface's angles: left out
    assert np.allclose(gradient[:, seen], numeric[:, seen], atol=1e-8)
    assert np.allclose(velocities @ model.normal(s), 0.0, atol=1e-12)


def test_prepared_rows_are_the_gradients_of_the_noises(case):
    model, s, tips = case
    rows, axes = model.prepare(Mean(POSE, TWIST, s))
    step, normal, first = 1e-6, model.normal(s), 3 * len(tips)

    def noises(error):
        pose, twist = model.advance(POSE, error[:6]), TWIST + error[6:]
        out = []
        for i, tip in enumerate(tips):
            arm = pose[:3, :3] @ tip
            moved = POSE[:3, :3] @ tip  # turning the arm of the velocity is of second order
            out += [s[first + 2] - normal @ (pose[:3, 3] + arm), axes[i, 1] @ (twist[:3] + np.cross(twist[3:], moved))]
        return np.array(out)

    numeric = np.column_stack([(noises(d) - noises(-d)) / (2 * step) for d in step * np.eye(12)])
    assert np.allclose(rows, numeric.reshape(len(tips), 2, 12).mean(axis=0), atol=1e-8)


def test_offset_moves_with_the_origin_and_its_covariance_follows(case):
    model, s, tips = case
    origin, step, first = np.array([0.4, -0.7, 0.2]), 1e-6, 3 * len(tips)
    identity = np.eye(len(s))
    world, covariance = model.offset_to_world(s, identity, origin)
    assert world[first + 2] == pytest.approx(s[first + 2] + model.normal(s) @ origin)
    jacobian = np.column_stack(
        [
            (model.offset_to_world(s + d, identity, origin)[0] - model.offset_to_world(s - d, identity, origin)[0])
            / (2 * step)
            for d in step * identity
        ]
    )
    assert np.allclose(covariance, jacobian @ jacobian.T, atol=1e-7)


def test_a_plane_in_space_equals_the_plane():
    """The planar model embedded: x to the right, y up, rotation about z; the wrench's in-plane part must be equal."""
    planar = PlanarModel(STIFFNESS, FRICTION)
    phi, tip, pose, twist = 0.3, np.array([0.02, -0.18]), np.array([0.3, 0.5, 0.4]), np.array([0.02, -0.01, 0.5])
    reference = np.column_stack([[np.cos(phi), np.sin(phi), 0.0], [0.0, 0.0, -1.0], [-np.sin(phi), np.cos(phi), 0.0]])
    spatial = SpatialModel(STIFFNESS, FRICTION, [reference], (0,))
    dynamics = [STIFFNESS.to_free(4000.0), FRICTION.to_free(0.6)]
    flat = np.array([*tip, phi, 0.25, *dynamics])
    full = np.array([*tip, 0.0, 0.0, 0.0, 0.25, *dynamics])
    posed = homogeneous(pin.exp3(np.array([0.0, 0.0, pose[2]])), [pose[0], pose[1], 0.0])
    moving = np.array([twist[0], twist[1], 0.0, 0.0, 0.0, twist[2]])
    wrench = wrenches_at(spatial, Mean(posed, moving, full))[0]
    sign = 0 if planar.slip(Mean(pose, twist, flat))[0][0] > 0.0 else 1
    expected = wrenches_at(planar, Mean(pose, twist, flat))[sign]
    assert np.allclose(wrench[[0, 1, 5]], expected, atol=1e-9) and np.allclose(wrench[[2, 3, 4]], 0.0, atol=1e-9)


def test_poses_add_and_subtract(case):
    model = case[0]
    error = np.array([0.01, -0.02, 0.03, 0.1, -0.2, 0.05])
    assert np.allclose(model.difference(model.advance(POSE, error), POSE), error)


def test_an_unknown_surface_is_refused():
    with pytest.raises(IdentificationError, match="surface_of_tip"):
        SpatialModel(STIFFNESS, FRICTION, [REFERENCE], (0, 1))


def test_two_surfaces_have_parameters_of_their_own():
    model = SpatialModel(STIFFNESS, FRICTION, [REFERENCE, np.eye(3)], (0, 1))
    assert len(model.parameters) == 16 and model.surface_of(1) == 1 and len(model.bounds) == 4
