"""The estimate as a compliant contact."""

import numpy as np
import pytest

from contact_estimation.identify.probing.export import compliant_contact, contact_settings
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.spatial import SpatialModel, homogeneous
from contact_estimation.studies.probing.experiment import Experiment, simulate


@pytest.fixture(scope="module")
def explored():
    experiment = Experiment("spatial", 1, seed=2, seconds=5.0)
    data = simulate(experiment)
    cfg, guess, rec = experiment.settings, data.guess, data.recording
    model = SpatialModel(*cfg.bounds(), [guess.surface[0]], (0,))
    estimator = ProbingFilter(model, cfg)
    estimator.start(0.0, guess.pose(0), *model.start(cfg, guess.pose(0), guess.tips[0]))
    for k in range(len(rec.t)):
        pose = homogeneous(rec.rotation[k, 0], rec.position[k, 0])
        estimator.step(0.04, pose, rec.twist[k, 0], rec.wrench[k, 0])
    return data.truth, model, estimator.estimate(), pose


def test_the_compliant_contact_has_the_planted_force(explored):
    truth, model, estimate, pose = explored
    state = compliant_contact(estimate, model, pose)
    point = pose[:3, 3] + pose[:3, :3] @ truth.tips[0, 0]
    deformation = truth.d[0] - truth.normal[0] @ point
    assert np.linalg.norm(state.stiffness) == pytest.approx(truth.stiffness[0], abs=250.0)
    assert state.stiffness @ (state.rest - state.point_base) == pytest.approx(truth.stiffness[0] * deformation, abs=1.5)
    assert np.allclose(np.cross(state.stiffness, state.rest - state.point_base), 0.0, atol=1e-6)
    assert np.allclose(state.point_base, pose[:3, 3] + pose[:3, :3] @ state.point_tcp)


def test_its_covariance_is_that_of_drawn_parameters(explored):
    _, model, estimate, pose = explored
    rng = np.random.default_rng(0)
    state = compliant_contact(estimate, model, pose)
    draws = []
    for _ in range(3000):
        free = rng.multivariate_normal(estimate.free, estimate.free_covariance)
        drawn = compliant_contact(type(estimate)(**{**vars(estimate), "free": free}), model, pose)
        draws.append(np.concatenate([drawn.stiffness, drawn.rest, drawn.point_tcp]))
    assert np.allclose(np.sqrt(np.diag(state.covariance)), np.std(draws, axis=0), rtol=0.1)


def test_settings_for_the_controller_keep_every_number(explored):
    _, model, estimate, pose = explored
    state = compliant_contact(estimate, model, pose)
    settings = contact_settings(state)
    assert (
        settings.estimate == []
        and np.allclose(settings.stiffness, state.stiffness)
        and np.allclose(settings.rest, state.rest)
    )
