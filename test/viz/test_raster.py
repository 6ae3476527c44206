"""Pictures drawn in numpy: a thing is where projection puts it, and what is nearer hides what is behind."""

import numpy as np

from contact_estimation.viz.meshes import Mesh, box
from contact_estimation.viz.raster import Camera, picture

RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
CAMERA = Camera(np.array([0.0, 0.0, 0.5]), 1.0, 0.0, 0.0, 0.7)  # looks along -x, y to the right, z up


def cube(at, half: float, colour) -> Mesh:
    return box(np.full(3, half)).moved(0, np.eye(3), np.array(at), colour)


def coloured(image, colour):
    """Rows and columns in which one colour channel dominates."""
    k = int(np.argmax(colour))
    others = [c for c in range(3) if c != k]
    return np.nonzero(image[..., k] > 40 + image[..., others].max(axis=-1).astype(int))


def test_a_cube_covers_the_pixels_that_projection_tells():
    image = picture([cube([0, 0.1, 0.5], 0.05, RED)], [], CAMERA, 160, 120)
    rows, columns = coloured(image, RED)
    scale = 60.0 / np.tan(0.35)  # pixels per tangent
    left, right = (
        80 + scale * 0.05 / 1.05,
        80 + scale * 0.15 / 0.95,
    )  # its nearer face at 0.95 m, its far edge at 1.05 m
    assert abs(columns.min() - left) < 2 and abs(columns.max() - right) < 2
    assert abs(0.5 * (rows.min() + rows.max()) - 60) < 1.5


def test_the_nearer_cube_hides_the_other_whatever_the_order():
    near, far = cube([0.2, 0, 0.5], 0.08, RED), cube([-0.2, 0, 0.5], 0.08, BLUE)
    for order in ([near, far], [far, near]):
        image = picture(order, [], CAMERA, 160, 120)
        assert len(coloured(image, RED)[0]) and not len(coloured(image, BLUE)[0])


def test_a_shape_shines_through_what_hides_it():
    image = picture([cube([0.2, 0, 0.5], 0.08, BLUE)], [cube([-0.2, 0, 0.5], 0.05, RED)], CAMERA, 160, 120)
    hidden, beside = image[60, 80].astype(int), image[60, 80 - 15].astype(int)
    assert hidden[0] > beside[0] + 60 and hidden[2] > 40
