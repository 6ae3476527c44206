"""Shapes of an estimate: what is drawn where, and when nothing is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from contact_estimation.filters.observer import ContactPlace, ContactState, Estimate
from contact_estimation.viz.markers import SIGMAS, ellipsoid, estimate_shapes

POINT = np.array([0.01, 0.02, 0.10])


def estimate(force=(0.0, 0.0, -50.0), contacts=1, valid=True) -> Estimate:
    covariance = np.zeros((9, 9))
    covariance[6:, 6:] = np.diag([1e-4, 4e-4, 9e-4])
    state = ContactState("tip", 0.9, np.array([0, 0, 2e4]), np.zeros(3), POINT, np.ones(3), covariance)
    return Estimate(
        0.0,
        *np.zeros((3, 6)),
        np.zeros(3),
        np.array(force),
        np.zeros(3),
        4.0 * np.eye(3),
        (state,) * contacts,
        valid=valid,
    )


def by_name(*args, **kwargs):
    return {shape.name: shape for shape in estimate_shapes(*args, **kwargs)}


def test_arrow_starts_at_the_contact_and_scales():
    arrow = by_name(estimate(), "tool0", "base", arrow_scale=0.002)["force"]
    assert arrow.visible and arrow.frame == "tool0"
    np.testing.assert_allclose(arrow.position, POINT)
    np.testing.assert_allclose(np.subtract(arrow.tip, arrow.position), [0, 0, -0.1])


def test_without_contact_the_arrow_starts_at_the_tcp():
    shapes = by_name(estimate(contacts=0), "tool0", "base")
    np.testing.assert_array_equal(shapes["force"].position, np.zeros(3))
    assert set(shapes) == {"force", "force/covariance"}


def test_small_forces_show_no_arrow():
    shapes = by_name(estimate(force=(0, 0, 1.9)), "tool0", "base", hide_below=2.0)
    assert not shapes["force"].visible and not shapes["force/covariance"].visible and shapes["contact/tip"].visible
    assert by_name(estimate(force=(0, 0, 2.1)), "tool0", "base", hide_below=2.0)["force"].visible


def test_invalid_estimate_shows_nothing_under_the_same_names():
    shown, hidden = by_name(estimate(), "tool0", "base"), by_name(estimate(valid=False), "tool0", "base")
    assert set(shown) == set(hidden) and not any(shape.visible for shape in hidden.values())


def test_not_a_number_is_never_drawn():
    nan = np.full(3, np.nan)
    broken = replace(
        estimate(),
        force_tcp=nan,
        force_covariance=np.full((3, 3), np.nan),
        contacts=(replace(estimate().contacts[0], point_tcp=nan, point_base=nan),),
    )
    assert not any(shape.visible for shape in by_name(broken, "tool0", "base").values())


def test_a_closed_contact_shows_its_surface_and_an_open_one_does_not():
    tilted = np.array([0.6, 0.0, 0.8])
    state = replace(
        estimate().contacts[0], stiffness=2e4 * tilted, law_parameters={"friction_1": 0.3, "friction_2": 0.4}
    )
    shapes = by_name(replace(estimate(), contacts=(state,)), "tool0", "base")
    disc, axis, cone = (shapes[f"contact/tip/{part}"] for part in ("surface", "stiffness", "friction_cone"))
    assert {disc.frame, axis.frame, cone.frame} == {"base"} and disc.visible and axis.visible
    np.testing.assert_allclose(Rotation.from_quat(disc.orientation).apply([0, 0, 1]), tilted, atol=1e-12)
    into = np.subtract(axis.tip, axis.position)
    np.testing.assert_allclose(into / np.linalg.norm(into), -tilted, atol=1e-12)
    height = np.linalg.norm(np.subtract(cone.tip, cone.position))
    assert cone.size[2] == pytest.approx(height) and cone.size[1] / 2 / height == pytest.approx(0.5)
    free = by_name(replace(estimate(), contacts=(replace(state, probability=0.1),)), "tool0", "base")
    assert not any(free[f"contact/tip/{part}"].visible for part in ("surface", "stiffness", "friction_cone"))


@pytest.mark.parametrize("seed", range(4))
def test_ellipsoid_has_the_covariances_axes(seed):
    rng = np.random.default_rng(seed)
    root = 0.05 * rng.normal(size=(3, 3))
    covariance = root @ root.T
    shape = ellipsoid("e", "tool0", POINT, covariance, (1.0, 0.0, 0.0, 1.0))
    rotation = Rotation.from_quat(shape.orientation).as_matrix()
    semi = np.array(shape.size) / 2
    np.testing.assert_allclose(rotation @ np.diag((semi / SIGMAS) ** 2) @ rotation.T, covariance, rtol=1e-6, atol=1e-8)


def test_what_is_not_estimated_has_no_ellipsoid():
    assert not ellipsoid("e", "tool0", POINT, np.zeros((3, 3)), (1.0, 0.0, 0.0, 1.0)).visible


def unknown(told: bool):
    place = ContactPlace({"link_5": 0.8}, POINT + 1, 1e-4 * np.eye(3), np.array([0.0, 20.0, 0.0]), POINT + np.eye(3))
    point = place.point if told else np.full(3, np.nan)
    nan = np.full(3, np.nan)
    return ContactState("unknown", 0.95, nan, nan, point, point, np.zeros((9, 9)), link="link_5", place=place)


def test_a_push_at_a_link_has_its_arrow_and_region_there():
    one = estimate(force=(0.0, 0.0, 30.0))
    shapes = by_name(one.with_contacts((*one.contacts, unknown(True))), "tool0", "base", arrow_scale=0.01)
    there = shapes["unknown/force"]
    assert there.visible and there.frame == "base" and not shapes["force"].visible
    assert not shapes["unknown/wrench"].visible
    np.testing.assert_allclose(there.position, POINT + 1)
    np.testing.assert_allclose(np.subtract(there.tip, there.position), [0.0, 0.2, 0.0])
    np.testing.assert_allclose(shapes["unknown/region"].points, POINT + np.eye(3))


def test_without_a_point_the_unknown_wrench_is_at_the_tcp():
    one = estimate(force=(0.0, 0.0, 30.0))
    shapes = by_name(one.with_contacts((*one.contacts, unknown(False))), "tool0", "base", arrow_scale=0.01)
    assert not shapes["unknown/force"].visible and not shapes["unknown/point"].visible and not shapes["force"].visible
    assert shapes["unknown/wrench"].visible and shapes["unknown/wrench"].frame == "tool0"
    np.testing.assert_allclose(shapes["unknown/wrench"].tip, [0.0, 0.0, 0.3])
    assert shapes["unknown/region"].visible
