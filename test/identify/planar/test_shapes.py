"""Distances and contact rows agree with finite differences and with the outline itself."""

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.planar.shapes import (
    Ellipse,
    Polygon,
    contact_rows,
    ratio_bounds,
    rimless_wheel,
    square,
)

SHAPES = [square(0.7), Ellipse(0.3, 0.1), Ellipse(0.1, 0.3), rimless_wheel(6, 0.4)]


@pytest.mark.parametrize("shape", SHAPES)
def test_normal_row_is_the_gradient_of_the_distance(shape):
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = rng.uniform(-3, 3, 3)
        _, normal, _ = contact_rows(shape, q)
        numeric = np.array(
            [(contact_rows(shape, q + d)[0] - contact_rows(shape, q - d)[0]) / 2e-6 for d in 1e-6 * np.eye(3)]
        ).T
        np.testing.assert_allclose(normal, numeric, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_lever_rates_against_finite_differences(shape):
    for theta in np.linspace(-3, 3, 13):
        numeric = (shape.levers(theta + 1e-6) - shape.levers(theta - 1e-6)) / 2e-6
        rates = [shape.lever(theta, contact)[2:] for contact in range(shape.n_contacts)]
        np.testing.assert_allclose(rates, numeric, atol=1e-8)
        values = [shape.lever(theta, contact)[:2] for contact in range(shape.n_contacts)]
        np.testing.assert_allclose(values, shape.levers(theta))


def test_tangent_row_is_the_velocity_of_the_material_point():
    shape, v = Ellipse(0.3, 0.1), np.array([0.4, -0.2, 3.0])
    q = np.array([0.0, 0.0, 0.7])
    r = shape.levers(q[2])[0]
    velocity = v[:2] + v[2] * np.array([-r[1], r[0]])
    _, normal, tangent = contact_rows(shape, q)
    np.testing.assert_allclose([tangent[0] @ v, normal[0] @ v], velocity)


def test_lowest_point_of_an_ellipse_is_the_lowest_of_its_outline():
    shape, angle = Ellipse(0.3, 0.1), np.linspace(0, 2 * np.pi, 20001)
    for theta in (0.3, 1.2, -2.0):
        outline = np.sin(theta) * 0.3 * np.cos(angle) + np.cos(theta) * 0.1 * np.sin(angle)
        assert shape.levers(theta)[0, 1] == pytest.approx(outline.min(), abs=1e-8)


def test_no_mass_distribution_lies_outside_the_bound():
    assert ratio_bounds(square(1.0)) == pytest.approx((2.0, 32.0))
    assert ratio_bounds(Ellipse(2.0, 1.0)) == pytest.approx((0.25, 4.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: square(0.0),
        lambda: Ellipse(1.0, -1.0),
        lambda: rimless_wheel(2, 1.0),
        lambda: rimless_wheel(6, np.nan),
        lambda: Polygon(np.zeros((3, 3))),
    ],
)
def test_impossible_shapes_are_refused(make):
    with pytest.raises(ConfigError):
        make()
