"""The problem: its gradient is the cost's, in both formulations; missing channels; the prior; continuation."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from batch_scenes import BALL

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import Channel, Measurement
from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.left_out import left_out
from contact_estimation.identify.batch.parameters import ChannelParameter
from contact_estimation.identify.batch.problem import Problem, Setup, acceleration_std
from contact_estimation.identify.batch.report import channel_figure
from contact_estimation.identify.batch.result import read_out
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.solver import Options, solve
from contact_estimation.identify.batch.start import initial_trajectory

CHANNELS = [
    Channel("turn", "sensor", ("turn",), 1e-3, barrier=0.02),
    Channel("position", "sensor", ("position",), 1e-3, barrier=0.01),
    Channel("orientation", "orientation", ("orientation",), 2e-3),
    Channel("gyro", "sensor", ("gyro",), 0.05),
    Channel("accelerometer", "sensor", ("accelerometer",), 0.5),
    Channel("wrist_force", "sensor", ("wrist_force",), 0.1),
    Channel("torque", "torque", ("turn",), 0.01),
]


@pytest.fixture
def make(ball_scene, rolling):
    """Builds the problem of the rolling ball with noisy measurements, for a formulation and a set of channels."""
    t, q, _ = rolling
    rng = np.random.default_rng(4)
    turned = rotations.multiply(q[:, 4:8], rotations.exp(0.01 * rng.standard_normal((len(t), 3))))
    raw = {
        "turn": q[:, :1] + 1e-3 * rng.standard_normal((len(t), 1)),
        "position": q[:, 1:4] + 1e-3 * rng.standard_normal((len(t), 3)),
        "orientation": turned,
        "gyro": rng.standard_normal((len(t), 3)),
        "accelerometer": rng.standard_normal((len(t), 3)),
        "wrist_force": rng.standard_normal((len(t), 3)),
        "torque": rng.standard_normal((len(t), 1)),
    }
    measurements = {name: Measurement(t, values) for name, values in raw.items()}

    def build(formulation="inverse", names=tuple(raw), scheme="central"):
        return Problem(
            ball_scene,
            t,
            CHANNELS,
            {n: measurements[n] for n in names},
            0.1 if formulation == "inverse" else 5.0,
            Setup(formulation, scheme, threads=1),
        )

    return build


@pytest.mark.parametrize(
    "formulation, scheme", [("inverse", "central"), ("inverse", "backward"), ("forward", "central")]
)
def test_gradient_is_the_costs(make, rolling, ball_scene, formulation, scheme):
    problem, (_, q, _) = make(formulation, scheme=scheme), rolling
    p = ball_scene.parameters.nominal + 0.05
    found = problem.linearise(q, p)
    system = found.system
    assert found.cost == pytest.approx(problem.cost(q, p), rel=1e-12)
    rng, n, nv = np.random.default_rng(0), len(q), problem.coordinates.nv
    for _ in range(4):
        dq, dp = rng.standard_normal((n, nv)), rng.standard_normal(len(p))
        h = 1e-7
        numeric = (
            problem.cost(problem.coordinates.add(q, h * dq), p + h * dp)
            - problem.cost(problem.coordinates.add(q, -h * dq), p - h * dp)
        ) / (2 * h)
        assert system.gradient_q @ dq.ravel() + system.gradient_p @ dp == pytest.approx(numeric, rel=2e-3)


def test_missing_channels_are_left_out_and_none_is_an_error(make, rolling, ball_scene):
    problem = make(names=("position", "orientation", "turn"))
    assert list(problem.parts()) == ["dynamics", "turn", "position", "orientation"]
    assert np.isfinite(problem.cost(rolling[1], ball_scene.parameters.nominal))
    assert np.all(problem.weights[:, 0] == 0.0) and np.all(problem.weights[1:-1, 1:7] > 0.0)  # the hinge has no torque
    with pytest.raises(IdentificationError, match="inverse formulation"):
        make("forward", names=("position", "orientation", "turn"))
    with pytest.raises(IdentificationError, match="measured: nothing"):
        make(names=())


def test_prior_pulls_only_its_parameter(make, rolling, ball_scene):
    problem, nominal = make(), ball_scene.parameters.nominal
    residuals = problem.residuals(rolling[1], nominal)
    assert problem.cost_of(residuals, nominal + [0.3, 0.3, 0.0]) == pytest.approx(problem.cost_of(residuals, nominal))
    assert problem.cost_of(residuals, nominal + [0.0, 0.0, 0.2]) - problem.cost_of(residuals, nominal) == pytest.approx(
        4.0
    )


def test_easing_softens_the_dynamics_and_is_undone(make, rolling, ball_scene):
    problem, p = make(), ball_scene.parameters.nominal
    before = problem.costs(problem.residuals(rolling[1], p))
    problem.ease(0.0, 10.0)
    eased = problem.costs(problem.residuals(rolling[1], p))
    assert eased["dynamics"] == pytest.approx(before["dynamics"] / 100.0) and eased["gyro"] == before["gyro"]
    problem.ease()
    assert problem.costs(problem.residuals(rolling[1], p)) == pytest.approx(before)


def test_start_follows_encoders_and_motion_capture(make, rolling, ball_scene):
    problem, (_, q, _) = make(), rolling
    start = initial_trajectory(
        problem, ball_scene.parameters.nominal, {"turn": "turn", "ball": "position,orientation"}, 0.0
    )
    assert start[:, 0] == pytest.approx(q[:, 0], abs=5e-3) and start[:, 1:4] == pytest.approx(q[:, 1:4], abs=5e-3)
    assert np.linalg.norm(start[:, 4:], axis=1) == pytest.approx(1.0)
    for sources, text in (
        ({"turm": "turn"}, r"key 'start': the scene has no joint 'turm' \(nearest: 'turn'\); it has turn, ball"),
        ({"turn": "encoder"}, "joint 'turn': channel 'encoder' does not exist or has no measurement; measured: turn, "),
    ):
        with pytest.raises(IdentificationError, match=text):
            initial_trajectory(problem, ball_scene.parameters.nominal, sources)
    with pytest.raises(IdentificationError, match="no joint-position sensor"):
        initial_trajectory(problem, ball_scene.parameters.nominal, {"turn": "gyro"})


def test_wrong_width_is_refused(ball_scene, rolling):
    with pytest.raises(IdentificationError, match="2 measured numbers"):
        Problem(ball_scene, rolling[0], CHANNELS, {"gyro": Measurement(rolling[0], np.zeros((12, 2)))}, 1.0)


@pytest.mark.parametrize("std", [(1.0, 2.0), (1.0, 2.0, 3.0, 4.0)])
def test_a_std_of_wrong_length_is_refused_with_the_length_it_needs(ball_scene, rolling, std):
    gyro, raw = Channel("gyro", "sensor", ("gyro",), std), {"gyro": Measurement(rolling[0], np.zeros((12, 3)))}
    with pytest.raises(IdentificationError, match=f"{len(std)} numbers in std, expected one, or one each for its 3"):
        Problem(ball_scene, rolling[0], [gyro], raw, 1.0)
    with pytest.raises(IdentificationError, match=f"dynamics_std has {len(std)} numbers"):
        Problem(ball_scene, rolling[0], CHANNELS, raw, np.array(std))


def test_an_infinite_force_leaves_the_accelerations_of_other_bodies_as_they_were(ball_scene):
    allowed = np.full(ball_scene.nominal.nv, 0.1)
    before = acceleration_std(ball_scene.nominal, allowed)
    allowed[0] = np.inf  # of the hinge, whose arm does not carry the ball
    std = acceleration_std(ball_scene.nominal, allowed)
    assert std[0] == np.inf and std[1:] == pytest.approx(before[1:])


def _evaluated(problem, rolling):
    """Result of the rolling ball's motion, with one step in the parameters alone."""
    found = solve(problem, rolling[1], problem.scene.parameters.nominal, Options("parameters", 1))
    return read_out(problem, Estimate(found, [], "parameters"))


def test_dynamics_without_their_torque_do_not_count_as_numbers(make, rolling):
    counts = [
        _evaluated(make(names=names), rolling).channels[0].samples for names in (("position",), ("position", "torque"))
    ]
    assert counts == [6 * 10, 7 * 10]


def test_an_unmeasured_torque_leaves_the_test_of_the_other_dynamics(make, rolling):
    found = _evaluated(make(names=("turn", "position", "orientation")), rolling)
    tests = {finding.test: finding for finding in found.verdict.findings}
    assert tests["dynamics"].flagged and not found.verdict.unchecked


def test_a_part_without_enough_times_is_told_as_not_tested(make, rolling):
    problem = make(names=("turn", "position", "orientation"))
    problem.weights[2:, problem.parts()["turn"]] = 0.0
    (sentence,) = _evaluated(problem, rolling).verdict.unchecked
    assert "the residuals of 'turn' were not tested" in sentence


def test_a_prediction_is_compared_where_the_channel_has_samples_in_every_recording(ball_scene, rolling):
    (t, q, _), p = rolling, ball_scene.parameters.nominal
    still = Channel("accelerometer", "sensor", ("accelerometer",), 0.5, weight=0.0)
    grid, q, values = [t, t + t[-1] + 1.0], np.tile(q, (2, 1)), np.zeros((24, 3))
    raw = {"accelerometer": Measurement(np.concatenate(grid), values)}
    found = solve(Problem(ball_scene, grid, [still], raw, 1.0), q, p, Options("parameters", 1))
    values[:] = Problem(ball_scene, grid, [still], raw, 1.0).predicted(q, found.p, "accelerometer")
    values[3:9], values[[0, 11, 12, 23]] = np.nan, 20.0  # a gap, and ends where an acceleration is not defined
    assert left_out(Problem(ball_scene, grid, [still], raw, 1.0), found, "accelerometer").rms_pct < 1e-6


def test_the_figure_of_a_channel_compares_with_what_its_bias_leaves(rolling, ball_scene):
    t, q, _ = rolling
    bias = ChannelParameter("zero", "bias", ["position"], np.full(3, 0.5), -1.0, 1.0)
    scene = Scene(mujoco.MjSpec.from_string(BALL), [bias])
    values = q[:, 1:4] + 0.5
    values[3:9] = np.nan
    problem = Problem(scene, t, CHANNELS, {"position": Measurement(t, values)}, 1.0)
    figure = channel_figure(problem, solve(problem, q, scene.parameters.nominal, Options("parameters", 1)), "position")
    measured, explained = (line.get_ydata() for line in figure.axes[0].lines[:2])
    assert np.flatnonzero(np.isnan(measured)).tolist() == [3, 4, 5, 6, 7, 8]
    inside = [1, 2, 9, 10]
    assert measured[inside] == pytest.approx(explained[inside])
