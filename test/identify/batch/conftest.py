"""A small scene and one short finger recording, shared by the batch tests."""

from __future__ import annotations

import sys

import mujoco
import numpy as np
import pytest
from batch_scenes import BALL, finger_recording  # noqa: F401

if sys.version_info < (3, 11):
    collect_ignore_glob = ["test_*.py"]  # mujoco.sysid needs Python 3.11


@pytest.fixture
def ball_scene():
    """A hinged arm and a ball on a floor: a plain and a quaternion coordinate, contact, inertial sensors; friction is
    free.
    """
    from contact_estimation.identify.batch.modifiers import modifier
    from contact_estimation.identify.batch.parameters import PhysicalParameter
    from contact_estimation.identify.batch.scene import Scene

    return Scene(
        mujoco.MjSpec.from_string(BALL),
        [
            PhysicalParameter("friction", 0.4, 0.1, 1.0, modifier("contact_friction", ["ball_on_floor"]), log=True),
            PhysicalParameter(
                "stiffness", 2000.0, 200.0, 2e4, modifier("contact_stiffness", ["ball_on_floor"]), log=True
            ),
            PhysicalParameter("mass", 0.5, 0.1, 2.0, modifier("mass", ["ball"]), log=True, prior_std=0.1),
        ],
    )


@pytest.fixture
def rolling(ball_scene):
    """Times (n,), positions (n, nq) and torques (n, nv) of a smooth motion with the ball pressed 1-2 mm into the
    floor.
    """
    from contact_estimation.identify.batch import rotations

    t = np.cumsum(0.004 + 0.002 * np.sin(np.arange(12)))
    q = np.tile(ball_scene.nominal.qpos0, (len(t), 1))
    q[:, 0] = 0.3 * np.sin(5 * t)
    q[:, 1:4] += np.column_stack([0.2 * t, 0.1 * np.sin(8 * t), -0.0015 + 0.0004 * np.cos(20 * t)])
    q[:, 4:8] = rotations.exp(np.column_stack([2 * t, np.sin(6 * t), 3 * t**2]))
    return t, q, np.zeros((len(t), ball_scene.nominal.nv))
