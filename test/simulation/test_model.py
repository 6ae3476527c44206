"""The MuJoCo model has the dynamics of the arm: M, gravity, Coriolis, TCP."""

import mujoco
import numpy as np
import pytest

from contact_estimation.robot import load_arm
from contact_estimation.robot.arm import Arm
from contact_estimation.robot.settings import load_robot_settings
from contact_estimation.settings import replace
from contact_estimation.simulation.model import TCP_SITE, build_spec


def compare(arm, seed=0, tolerance=1e-10):
    model = build_spec(arm, 1e-3).compile()
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    full = np.zeros((arm.n, arm.n))
    for _ in range(5):
        data.qpos[:], data.qvel[:] = rng.uniform(-2, 2, arm.n), rng.uniform(-1, 1, arm.n)
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, full)
        assert np.abs(full - arm.mass(data.qpos)).max() < tolerance
        bias = arm.gravity(data.qpos) + arm.coriolis(data.qpos, data.qvel)
        assert np.abs(data.qfrc_bias - bias).max() < 10 * tolerance
        position, rotation = arm.tcp_pose(data.qpos)
        site = data.site(TCP_SITE)
        assert np.abs(site.xpos - position).max() < tolerance
        assert np.abs(site.xmat.reshape(3, 3) - rotation).max() < tolerance


@pytest.mark.parametrize("name", ["ur16e", "fr3"])
def test_equal_to_the_arm(name):
    compare(load_arm(name))


def test_tool_and_tilted_gravity_come_along():
    settings = replace(
        load_robot_settings("ur16e"), tool_mass=1.5, tool_com=[0.01, -0.02, 0.08], gravity=[3.0, -4.0, -8.0]
    )
    compare(Arm(settings), seed=1)


def test_without_rotor_inertia_the_links_are_bare():
    arm = load_arm("ur16e")
    model = build_spec(arm, 1e-3, rotor_inertia=False).compile()
    assert not model.dof_armature.any()
