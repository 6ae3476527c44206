"""The wrench from joint torque."""

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.identify.probing.joint_torque import tool_jacobian, torque_to_wrench
from contact_estimation.robot import load_arm
from contact_estimation.studies.probing.experiment import Experiment, run
from contact_estimation.studies.probing.score import score
from contact_estimation.studies.probing.sensorless import sensorless_experiment


@pytest.mark.parametrize(
    "name, posture", [("ur16e", [0.1, -1.4, 1.9, -2.0, -1.5, 0.2]), ("fr3", [0.1, -0.5, 0.2, -2.2, 0.1, 1.7, 0.8])]
)
def test_torque_of_a_wrench_gives_it_back_with_its_covariance(name, posture):
    arm, rng = load_arm(name), np.random.default_rng(0)
    jacobian = tool_jacobian(arm, np.array(posture))
    wrench, variance = np.array([5.0, -3.0, 20.0, 0.5, -0.2, 0.1]), np.linspace(0.1, 0.5, arm.n) ** 2
    to_wrench, covariance = torque_to_wrench(jacobian, variance)
    assert np.allclose(to_wrench @ jacobian.T @ wrench, wrench)
    draws = to_wrench @ (np.sqrt(variance)[:, None] * rng.standard_normal((arm.n, 50000)))
    assert np.allclose(np.cov(draws), covariance, rtol=0.1, atol=0.02 * np.abs(covariance).max())


def test_a_singular_posture_is_refused():
    with pytest.raises(ConfigError, match="singular"):
        torque_to_wrench(tool_jacobian(load_arm("ur16e"), np.zeros(6)), np.ones(6))
    with pytest.raises(ConfigError, match="known: ur16e, fr3"):
        sensorless_experiment(Experiment("spatial", 1), "kuka")


def test_joint_torque_sensors_suffice_and_the_intervals_stay_honest():
    job, data, sensor = sensorless_experiment(Experiment("spatial", 4, seed=1, seconds=6.0), "fr3")
    result = score(run(job, data, sensor=sensor), job.evaluated_at)
    assert result["tip_error_mm"] < 2.0 and result["orientation_error_rad"] < 0.03
    assert result["nees_mean"] < 2.0 * result["nees_dof"] and result["non_physical_runs"] == 0
