"""Finite differences on a non-uniform grid, in the tangent space, and their chain rule."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch.trajectory import Coordinates, Stencil, chain, motion


def test_coordinates_agree_with_the_engine(ball_scene, rolling):
    model, (_, q, _) = ball_scene.nominal, rolling
    coordinates = Coordinates(model)
    expected, step = np.empty(model.nv), np.random.default_rng(0).standard_normal(model.nv) * 0.3
    mujoco.mj_differentiatePos(model, expected, 1.0, q[0], q[5])
    assert coordinates.difference(q[:1], q[5:6])[0] == pytest.approx(expected)
    moved = q[2].copy()
    mujoco.mj_integratePos(model, moved, step, 1.0)
    assert coordinates.add(q[2:3], step[None])[0] == pytest.approx(moved)


def test_central_differences_are_exact_for_a_parabola_on_a_non_uniform_grid(ball_scene):
    t = np.array([0.0, 0.01, 0.013, 0.02, 0.04])
    q = np.tile(ball_scene.nominal.qpos0, (5, 1))
    q[:, 0] = 1.0 + 2.0 * t - 3.0 * t**2
    _, v, a = motion(Coordinates(ball_scene.nominal), Stencil.of(t), q)
    assert v[1:-1, 0] == pytest.approx(2.0 - 6.0 * t[1:-1])
    assert a[1:-1, 0] == pytest.approx(-6.0)


def test_backward_scheme_is_the_papers():
    h, q = 0.01, np.array([1.0, 1.5, 1.8, 2.4])
    stencil = Stencil.of(np.arange(4) * h, "backward")
    d = np.diff(q)
    assert stencil.vm[1] * d[0] + stencil.vp[1] * d[1] == pytest.approx((q[1] - q[0]) / h)
    assert stencil.am[1] * d[0] + stencil.ap[1] * d[1] == pytest.approx((q[2] + q[0] - 2 * q[1]) / h**2)


@pytest.mark.parametrize("scheme", ["central", "backward"])
def test_chain_rule_against_finite_differences(ball_scene, rolling, scheme):
    t, q, _ = rolling
    coordinates, stencil, rng = Coordinates(ball_scene.nominal), Stencil.of(t, scheme), np.random.default_rng(1)
    nv = coordinates.nv
    by_v, by_a = rng.standard_normal((2, len(t), 4, nv))
    differences, _, _ = motion(coordinates, stencil, q)
    blocks = chain(coordinates, stencil, (differences[:-1], differences[1:]), np.zeros_like(by_v), by_v, by_a)
    blocks = blocks.reshape(len(t), 4, 3, nv)

    def value(i, positions):
        _, v, a = motion(coordinates, stencil, positions)
        return by_v[i] @ v[i] + by_a[i] @ a[i]

    i = 5
    for k, neighbour in enumerate((i - 1, i, i + 1)):
        for c in range(nv):
            step = np.zeros((len(t), nv))
            step[neighbour, c] = 1e-6
            numeric = (value(i, coordinates.add(q, step)) - value(i, coordinates.add(q, -step))) / 2e-6
            assert blocks[i, :, k, c] == pytest.approx(numeric, rel=1e-5, abs=1e-4 * np.abs(blocks[i]).max() / 10)


@pytest.mark.parametrize("times", [[0.0, 0.1], [0.0, 0.1, 0.1], [0.0, 0.2, 0.1]])
def test_bad_times_are_refused(times):
    with pytest.raises(IdentificationError, match="strictly increasing"):
        Stencil.of(np.array(times))


def test_unknown_scheme_is_refused():
    with pytest.raises(IdentificationError, match="central"):
        Stencil.of(np.arange(4.0), "forward")
