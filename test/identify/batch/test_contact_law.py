"""Contacts of a scene are the law that its parameters name, and derivatives by offsets do not vanish at 0."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from batch_scenes import BALL

from contact_estimation.exceptions import ModelError
from contact_estimation.identify.batch.engine import Engine, contact_forces
from contact_estimation.identify.batch.modifiers import modifier
from contact_estimation.identify.batch.parameters import PhysicalParameter
from contact_estimation.identify.batch.scene import Scene

K, B, C = 2000.0, 10.0, 20.0  # of BALL


def _scene(friction: float = 0.4, text: str = BALL) -> Scene:
    pair = PhysicalParameter("friction", friction, 0.1, 1.0, modifier("contact_friction", ["ball_on_floor"]))
    return Scene(mujoco.MjSpec.from_string(text), [pair])


@pytest.mark.parametrize("friction", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("slip", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("acceleration", [0.0, 5.0])
def test_a_sliding_contact_is_the_spring_damper_with_coulomb_friction(friction, slip, acceleration):
    model = _scene(friction).nominal
    depth, sinking = 0.004, 0.05
    q, v, a = model.qpos0[None].copy(), np.zeros((1, 7)), np.zeros((1, 7))
    q[0, 3] -= depth
    v[0, 1], v[0, 3], a[0, 1] = slip, -sinking, acceleration
    force = contact_forces(model, q, v, a, ("ball", "world"))[0]
    normal = K * depth + B * sinking
    assert force == pytest.approx([-min(friction * normal, C * slip), 0.0, normal], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("kind, target", [("geom_offset", "shell"), ("anchor", "imu")])
def test_the_derivative_by_an_offset_at_0_is_that_beside_0(kind, target):
    text = BALL.replace('name="imu" pos="0.01 0 0"', 'name="imu"')
    offset = PhysicalParameter("offset", np.zeros(3), -0.01, 0.01, modifier(kind, [target]))
    scene = Scene(mujoco.MjSpec.from_string(text), [offset])
    rng = np.random.default_rng(0)
    q, v, a = scene.nominal.qpos0[None].copy(), rng.standard_normal((1, 7)), rng.standard_normal((1, 7))
    q[0, 0], q[0, 3] = 0.4, q[0, 3] - 0.003
    v[0, 1:4] *= 0.05

    def outputs(value: float) -> np.ndarray:
        model = scene.build(scene.parameters.vector({"offset": np.full(3, value)}))
        return np.concatenate(Engine("inverse", 1).evaluate(model, q, v, a, 0.0 * v), axis=1)

    at_zero = (outputs(1e-7) - outputs(0.0)) / 1e-7
    beside = (outputs(1e-4 + 1e-7) - outputs(1e-4)) / 1e-7
    assert np.abs(beside).max() > 0.1
    assert at_zero == pytest.approx(beside, rel=0.02, abs=0.02 * np.abs(beside).max())


@pytest.mark.parametrize("integrator", ["RK4", "implicit", "implicitfast"])
def test_the_integrator_of_a_description_does_not_matter(rolling, integrator):
    _, q, tau = rolling
    text = BALL.replace('integrator="Euler"', f'integrator="{integrator}"')
    text = text.replace("/>", '><flag invdiscrete="enable"/></option>', 1)
    still = np.zeros_like(tau)
    models = [_scene(text=t).nominal for t in (BALL, text)]
    found = [Engine("inverse", 1).evaluate(model, q, still, still, tau)[0] for model in models]
    by_q = [Engine("inverse", 1).differentiate(model, q, still, still, tau).dynamics_q for model in models]
    assert np.array_equal(*found) and np.array_equal(*by_q)


def test_a_pair_in_solver_units_is_refused():
    with pytest.raises(ModelError, match=r"'ball_on_floor'.*-stiffness -damping"):
        _scene(text=BALL.replace('solref="-2000 -10"', 'solref="0.02 1"'))
