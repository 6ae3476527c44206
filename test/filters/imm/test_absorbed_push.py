"""A push that friction absorbs as it grows: friction does not change so along a force."""

import sys
from pathlib import Path

import numpy as np
import pytest
from drawn_worlds import estimates_of

from contact_estimation.filters.imm.absorbed_push import AbsorbedPush
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import actuators_of

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from contact_worlds import make_case
from rigid_body_recording import RATE

#: [N] a force that the large joints feel.
PUSH = np.array([30.0, -40.0, 10.0])
#: [s] since the kept states, the latest last.
PASSED = np.array([4.0, 3.0, 2.0, 0.5])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def state(arm):
    return StateLayout(ImmSettings(contacts=[ImmContact(normal=[0.0, 0.0, 1.0])]), actuators_of(arm), arm.n)


@pytest.fixture
def jacobian(arm):
    return arm.tcp_jacobian(np.array([0.2, -1.3, 1.7, -1.9, -1.5, 0.3]))[:3]


@pytest.fixture
def test(state, jacobian):
    return AbsorbedPush(state, {"tcp_jacobian": jacobian.ravel(order="F"), "friction_error": np.array([0.25])})


def absorbed(state, torque):
    """State whose bias and disturbance have absorbed a push (n,) [Nm], each one half."""
    x = state.mean.copy()
    x[state.parts["bias"]] -= 0.5 * torque
    x[state.parts["disturbance"]] -= 0.5 * torque
    return x


def told(test, now, before, passed=PASSED, times=5, moves=1.0, stay=4):
    stay = min(stay, len(before))
    return [test.since(now, np.array(before), passed, moves * passed, stay) for _ in range(times)][-1]


def test_the_state_of_before_the_push_is_told(state, jacobian, test):
    before = [absorbed(state, share * jacobian.T @ PUSH) for share in (0.0, 0.1, 0.5, 0.9)]
    assert told(test, absorbed(state, jacobian.T @ PUSH), before) == 0
    assert told(test, absorbed(state, 0.2 * jacobian.T @ PUSH), before[:2], PASSED[:2]) is None  # 10 N


def test_friction_that_changes_by_itself_is_no_push(state, arm, test):
    rng = np.random.default_rng(1)
    where = state.parts["disturbance"]
    stds = [np.sqrt(-2 * state.variance[where] * np.expm1(-t / state.time_constant[where])) for t in PASSED]
    for _ in range(200):
        changed = [absorbed(state, std * rng.standard_normal(arm.n)) for std in stds]
        assert told(test, state.mean, changed) is None


def test_friction_that_changes_at_rest_is_a_push(state, jacobian, test):
    now, before = absorbed(state, 0.3 * jacobian.T @ PUSH), [state.mean] * 4  # 15 N
    assert told(test, now, before) is None
    assert told(test, now, before, moves=0.0) == 2, "the last that is old enough"


def test_the_end_of_a_push_that_nobody_noticed_is_none(state, jacobian, test):
    hidden = absorbed(state, jacobian.T @ PUSH)
    assert told(test, state.mean, [hidden] * 4) is not None
    for stay in (4, 3):  # what was before this stay in free space counts, too
        assert told(test, state.mean, [state.mean, hidden, hidden, hidden], stay=stay) is None
    assert told(test, state.mean, [state.mean, *[hidden] * 3], np.array([9.0, 3.0, 2.0, 0.5]), stay=2) is None


def test_a_change_that_no_force_at_the_tool_makes_is_no_push(state, jacobian, test):
    across = np.linalg.svd(jacobian)[2][3:]  # (n - 3, n) torques
    spread = np.sqrt(2 * state.variance[state.parts["disturbance"]])
    for torque in across:
        bent = torque * spread**2  # across in the metric of the test
        assert told(test, absorbed(state, 20.0 * bent / np.abs(bent).max()), [state.mean] * 4, times=5) is None


def test_what_passes_or_is_sudden_is_left_to_the_modes(state, jacobian, test):
    now, before = absorbed(state, jacobian.T @ PUSH), [state.mean] * 4
    assert told(test, now, before, times=4) is None
    assert test.since(state.mean, np.array(before), PASSED, PASSED, stay=4) is None
    assert told(test, now, before, times=4) is None, "friction was itself again in between"
    assert told(test, now, before, passed=0.2 * PASSED) is None


def test_a_force_that_no_joint_feels_is_none(state):
    blind = AbsorbedPush(state, {"tcp_jacobian": np.zeros(3 * state.n), "friction_error": np.zeros(1)})
    assert told(blind, absorbed(state, np.full(state.n, 50.0)), [state.mean] * 4) is None


@pytest.mark.parametrize("seed", [502, 503])
def test_a_slow_push_at_a_moving_arm_is_told_and_leaves_nothing(seed):
    """Without it 31 N of seed 503 were free space, and 28 N stayed after the push."""
    recording = make_case("ur16e", "slow push, moving", seed).recording
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    held = slice(9 * RATE, 10 * RATE)
    error = [np.linalg.norm(e.force_tcp - force) for e, force in zip(found[held], recording.force[held])]
    assert np.mean(error) < 0.15 * np.linalg.norm(recording.force[held], axis=1).mean()
    end = int(np.flatnonzero(recording.touched)[-1])
    assert {e.mode for e in found[end + RATE // 2 :]} == {"free"}


@pytest.mark.parametrize(
    ("seed", "begins", "ends"), [(1640, 9.0, 11.0), (4113, 3.5, 5.0)], ids=["in free space", "by a wall"]
)
def test_a_push_that_friction_took_at_rest_is_told(seed, begins, ends):
    """Free space had taken one of 10 Nm that grew within a second, the configured floor a third of a press of 62 N."""
    made, found = estimates_of(seed, ends)
    held = [(made.torque[k], e) for k, e in found if k >= begins * RATE]
    assert all(e.mode == "unknown" for _, e in held)
    assert all(np.linalg.norm(e.tau_ext - torque) < 0.25 * np.linalg.norm(torque) for torque, e in held)
