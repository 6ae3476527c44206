"""A warm start of coordinates that no sensor gives."""

import mujoco
import numpy as np
import pytest

from benchmark.adversary import batch as world
from contact_estimation.identify.batch import runner
from contact_estimation.identify.batch.channels import Channel, Measurement
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.shooting import shoot

CART = """<mujoco><option gravity="0 0 0"/><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/>
  <geom size="0.1" mass="1"/><body name="load"><joint name="spring" type="slide" axis="1 0 0" stiffness="50"/>
  <geom size="0.1" mass="2"/></body></body></worldbody><sensor><jointpos name="rail" joint="rail"/></sensor></mujoco>"""
OMEGA, SWAY = 5.0, 0.03  # natural rate of load and spring [rad/s]; amplitude of the cart [m]


def test_an_unmeasured_load_swings_as_its_cart_drives_it():
    """Cart SWAY cos(3 t): the load's spring has u'' = -OMEGA^2 u + 9 SWAY cos(3 t)."""
    t = np.concatenate([np.arange(0.0, 1.0, 0.004), 2.0 + np.arange(0.0, 1.0, 0.004)])
    local = t % 2.0
    amplitude = 9.0 * SWAY / (OMEGA**2 - 9.0)
    swing = amplitude * (np.cos(3.0 * local) - np.cos(OMEGA * local))
    q = np.column_stack([SWAY * np.cos(3.0 * local), np.zeros(len(t))])
    measured = {"encoder": Measurement(t, q[:, :1])}
    scene = Scene(mujoco.MjSpec.from_string(CART), [])
    problem = Problem(scene, [t[:250], t[250:]], [Channel("encoder", "sensor", ("rail",), 1e-4)], measured, 0.1)
    found = shoot(problem, {"rail"}, q, np.zeros(0))
    assert np.array_equal(found[:, 0], q[:, 0])
    assert found[:, 1] == pytest.approx(swing, abs=0.02 * amplitude)


def test_a_press_with_a_springy_tip_takes_at_most_ten_iterations_from_afar(tmp_path):
    """The tip's spring has no sensor; from the trajectory of the softened stage this start takes 12 or more."""
    truth = world.write(tmp_path, "clean", np.random.default_rng(1), "finger").truth
    problem, plan = runner.prepare(tmp_path / "press.npz", tmp_path / "scene.yaml")
    parameters = problem.scene.parameters
    far = np.random.default_rng(1).uniform(parameters.lower, parameters.upper, (2, len(parameters)))[1]
    solved = runner.run(problem, plan, p=far)
    assert solved.estimate.iterations <= 10
    assert solved.result.values()["stiffness"] == pytest.approx(truth["stiffness"], rel=0.01)
