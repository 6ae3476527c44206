"""Both formulations: consistent with each other, derivatives against finite differences, contact force of known
stiffness.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch.engine import Engine, contact_forces
from contact_estimation.identify.batch.trajectory import Coordinates, Stencil, motion


def _inputs(scene, rolling):
    t, q, tau = rolling
    _, v, a = motion(Coordinates(scene.nominal), Stencil.of(t), q)
    return q, v, a, tau


def test_forward_dynamics_of_the_inverse_forces_gives_the_acceleration_back(ball_scene, rolling):
    q, v, a, tau = _inputs(ball_scene, rolling)
    forces, sensed = Engine("inverse").evaluate(ball_scene.nominal, q, v, a, tau)
    error, sensed_too = Engine("forward").evaluate(ball_scene.nominal, q, v, a, forces)
    assert error == pytest.approx(np.zeros_like(error), abs=1e-5)
    assert sensed_too == pytest.approx(sensed, abs=1e-4)


@pytest.mark.parametrize("formulation", ["inverse", "forward"])
@pytest.mark.parametrize("threads", [1, 2])
def test_derivatives_against_finite_differences(ball_scene, rolling, formulation, threads):
    q, v, a, tau = _inputs(ball_scene, rolling)
    engine, model = Engine(formulation, threads), ball_scene.nominal
    coordinates = Coordinates(model)
    d = engine.differentiate(model, q, v, a, tau)

    def both(q, v, a):
        return np.concatenate(engine.evaluate(model, q, v, a, tau), axis=1)

    analytic = {
        "q": np.concatenate([d.dynamics_q, d.sensors_q], axis=1),
        "v": np.concatenate([d.dynamics_v, d.sensors_v], axis=1),
        "a": np.concatenate([d.dynamics_a, d.sensors_a], axis=1),
    }
    h = 1e-6
    for c in range(model.nv):
        step = np.zeros((len(q), model.nv))
        step[:, c] = h
        numeric = {
            "q": (both(coordinates.add(q, step), v, a) - both(coordinates.add(q, -step), v, a)) / (2 * h),
            "v": (both(q, v + step, a) - both(q, v - step, a)) / (2 * h),
            "a": (both(q, v, a + step) - both(q, v, a - step)) / (2 * h),
        }
        for name, value in numeric.items():
            scale = np.abs(analytic[name]).max(axis=(0, 2)) + 1e-3
            assert np.abs(analytic[name][:, :, c] - value).max(axis=0) / scale == pytest.approx(0.0, abs=2e-3), (
                name,
                c,
            )


def test_contact_force_is_stiffness_times_penetration(ball_scene):
    q = np.tile(ball_scene.nominal.qpos0, (3, 1))
    q[:, 3] -= [0.0, 0.001, 0.002]  # z of the ball, which touches at its reference position
    still = np.zeros((3, ball_scene.nominal.nv))
    force = contact_forces(ball_scene.nominal, q, still, still, ("ball", "world"))
    assert force[1:, 2] == pytest.approx([2.0, 4.0], rel=2e-3)
    assert contact_forces(ball_scene.nominal, q, still, still, ("world", "ball"))[2, 2] == pytest.approx(-force[2, 2])


@pytest.mark.parametrize("tip", ["sphere", "box"])
def test_the_sum_of_all_contacts_pushes_the_tip_off_the_wall_whatever_its_shape(tip):
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco>
          <worldbody>
            <geom name="wall" type="box" size="1 1 0.1" pos="0 0 -0.1"/>
            <body pos="0 0 0.049">
              <joint type="slide" axis="0 0 1"/>
              <geom name="tip" type="{tip}" size="0.05 0.05 0.05"/>
            </body>
          </worldbody>
          <contact><pair geom1="tip" geom2="wall" solref="-2000 -10"/></contact>
        </mujoco>
    """)
    assert contact_forces(model, np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)))[0, 2] > 1.0


def test_unknown_formulation_is_refused():
    with pytest.raises(IdentificationError, match="inverse, forward"):
        Engine("backward")
