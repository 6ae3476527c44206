"""Whole estimates: planted truth recovered on the finger, modes, stop reasons, intervals, leave-one-out, the anchor
problem.
"""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch.estimate import Stage, estimate
from contact_estimation.identify.batch.left_out import left_out
from contact_estimation.identify.batch.result import read_out
from contact_estimation.identify.batch.runner import run
from contact_estimation.identify.batch.solver import Options, solve
from contact_estimation.identify.batch.start import initial_trajectory
from contact_estimation.studies.batch import anchor, finger

#: [s] Times of a path that is only compared with itself: as dense in contact as elsewhere.
EVEN = np.arange(0.0, 2.39, 0.005)


@pytest.fixture(scope="module")
def solved(finger_recording):
    task = finger.problem(finger_recording)
    p = task.scene.parameters.vector({"friction": 0.9, "contact_stiffness": 1500.0, "spring_stiffness": 120.0})
    return task, estimate(task, finger.start(task, p), p)


@pytest.fixture(scope="module")
def result(solved):
    return read_out(*solved, (finger.TIP, finger.OBJECT))


def test_planted_parameters_are_recovered(result):
    values = result.values()
    assert values["friction"] == pytest.approx(finger.TRUTH["friction"], rel=0.03)
    assert values["contact_stiffness"] == pytest.approx(finger.TRUTH["contact_stiffness"], rel=0.15)
    assert values["spring_stiffness"] == pytest.approx(finger.TRUTH["spring_stiffness"], rel=0.05)
    for k in range(3):
        assert values[f"anchor[{k}]"] == pytest.approx(finger.TRUTH["anchor"][k], abs=3e-4)


def test_estimate_converges_and_says_why(solved):
    _, found = solved
    assert found.converged and "promises" in found.reason
    assert found.iterations <= 20 and found.solution.cost < found.solution.start_cost


def test_contact_force_matches_the_simulation(result, finger_recording):
    truth = np.column_stack([np.interp(result.t, finger_recording.t, c) for c in finger_recording.contact_force.T])
    assert np.sqrt(np.mean((result.contact_force - truth) ** 2)) < 0.1 * np.sqrt(np.mean(truth**2))


def test_intervals_are_sensible(result):
    for parameter in result.parameters:
        assert parameter.lower < parameter.value < parameter.upper and parameter.note == ""
    friction = result.parameters[0]
    assert 0 < friction.std < 0.01
    assert np.diag(result.correlation) == pytest.approx(1.0)


def test_residuals_have_the_size_of_the_noise(result):
    for fit in result.channels:
        assert 0.3 < fit.normalised < 1.5, fit


def test_result_is_written_without_pickles(result, tmp_path):
    result.save(tmp_path / "result.npz")
    with np.load(tmp_path / "result.npz", allow_pickle=False) as saved:
        assert saved["q"].shape == result.q.shape and saved["parameter_names"][0] == "friction"


def test_modes_leave_the_other_half_alone(solved):
    task, found = solved
    q, p = found.solution.q, task.scene.parameters.nominal
    parameters = solve(task, q, p, Options("parameters", 3))
    assert (
        np.array_equal(parameters.q, q)
        and not np.array_equal(parameters.p, p)
        and parameters.cost < parameters.start_cost
    )
    trajectory = solve(task, q, p, Options("trajectory", 1))
    assert (
        np.array_equal(trajectory.p, p)
        and not np.array_equal(trajectory.q, q)
        and trajectory.cost < trajectory.start_cost
    )


@pytest.mark.parametrize("channel", ["force", "torque"])
def test_a_channel_is_predicted_without_being_used(finger_recording, channel):
    task = finger.problem(finger_recording, without=[channel], grid=EVEN)
    found = left_out(task, run(task, finger.PLAN).estimate.solution, channel)
    assert found.measured.shape == found.predicted.shape == (len(found.t), 3)
    assert found.rms_pct < 10.0


def test_forward_dynamics_reach_the_same_parameters(finger_recording):
    task = finger.problem(finger_recording, "forward", grid=EVEN)
    p = task.scene.parameters.nominal
    found = estimate(task, finger.start(task, p), p)
    values = dict(zip(task.scene.parameters.names, task.scene.parameters.values(found.solution.p)))
    assert values["friction"] == pytest.approx(finger.TRUTH["friction"], rel=0.03)
    assert values["contact_stiffness"] == pytest.approx(finger.TRUTH["contact_stiffness"], rel=0.15)


def test_joint_optimisation_beats_alternating_on_the_anchor():
    found = anchor.compare(anchor.problem(1, 1.0), rounds=12)
    joint, em = found.rounds_to(5e-4)
    assert joint is not None and joint <= 8 and em is None
    assert found.joint_cost[-1] < 0.1 * found.em_cost[-1]


def test_the_iteration_limit_is_said():
    task = anchor.problem(0, 0.3)
    p = task.scene.parameters.nominal
    q = initial_trajectory(task, p, {"object": "mocap_position,mocap_orientation"})
    found = estimate(task, q, p, stages=(Stage(max_iterations=1, tolerance=1e-12),))
    assert not found.converged and "limit of 1" in found.reason


def test_bad_starts_are_refused():
    task = anchor.problem(0, 0.3)
    q = np.tile(task.scene.nominal.qpos0, (len(task.grid), 1))
    with pytest.raises(IdentificationError, match="inside their bounds"):
        solve(task, q, task.scene.parameters.upper + 1.0)
    with pytest.raises(IdentificationError, match="not finite"):
        solve(task, q * np.nan, task.scene.parameters.nominal)
    with pytest.raises(IdentificationError, match="both, trajectory, parameters"):
        Options("all")
