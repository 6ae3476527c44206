"""A push that grows slowly: what free space has absorbed is told once torque and deflection agree on it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from drawn_worlds import estimates_of

from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.free_space_history import FreeSpaceHistory
from contact_estimation.filters.imm.growing_push import GrowingPush
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import pack_array
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import actuators_of

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from contact_worlds import GROWTH, make_case
from rigid_body_recording import RATE


@pytest.fixture(scope="module")
def state():
    arm = load_arm("ur16e")
    return StateLayout(ImmSettings(contacts=[ImmContact(normal=[0.0, 0.0, 1.0])]), actuators_of(arm), arm.n)


def kept(state, *change, spread=0.0):
    """Return the traces of a state whose offsets have a standard deviation of ``spread`` loops more than the prior."""
    variance = state.variance.copy()
    variance[state.parts["offset"]] += (spread * state.deflection_loop) ** 2
    return GrowingPush(state).traces(changed(state, *change), pack_array(np.diag(variance)))


def stiffness(state):
    """Return the expected stiffness of the joints [Nm/rad]."""
    return np.exp(state.mean[state.parts["joint_stiffness"]])


def changed(state, bias=0.0, disturbance=0.0, deflection=0.0):
    """Return a state whose first elastic joint has these changes [Nm], the deflection in loops of hysteresis."""
    x, joint = state.mean.copy(), state.elastic_joints[0]
    x[state.parts["bias"]][joint] += bias
    x[state.parts["disturbance"]][joint] += disturbance
    x[state.parts["offset"]][0] += deflection * state.deflection_loop
    return x


def told(state, now, before):
    """What the test says of a state that stays for half a second."""
    test = GrowingPush(state)
    return [test.since(now, before, stiffness(state)) for _ in range(5)][-1]


def test_the_state_before_the_push_is_told_where_torque_and_deflection_agree(state):
    before = [kept(state), kept(state, -3.0, 0.0, 0.5), kept(state, -6.0, -1.0, 1.0)]
    assert told(state, kept(state, -5.0, -6.0, 2.0), before) == 0


@pytest.mark.parametrize(
    "now",
    [(-12.0, 0.0, 0.0), (0.0, 0.0, 3.0), (6.0, 6.0, 3.0), (-12.0, 0.0, 0.9), (-3.0, 0.0, 3.0)],
    ids=["friction", "hysteresis", "opposed", "within the loop", "more than the torque"],
)
def test_what_has_another_cause_is_no_push(state, now):
    assert told(state, kept(state, *now), [kept(state)]) is None


@pytest.mark.parametrize(("spread", "push"), [(0.0, 0), (0.5, 0), (1.0, None)])
def test_motion_makes_an_offset_uncertain(state, spread, push):
    between = kept(state, -12.0, 0.0, 2.0, spread=spread)
    assert told(state, kept(state, -12.0, 0.0, 2.0), [kept(state), between]) == push


def test_a_change_that_passes_is_no_push(state):
    test, before = GrowingPush(state), [kept(state)]
    pushed, calm = kept(state, -12.0, 0.0, 3.0), kept(state)
    course = [calm if k % 3 == 2 else pushed for k in range(12)]
    assert all(test.since(now, before, stiffness(state)) is None for now in course)


def test_nothing_is_told_before_anything_is_kept(state):
    assert told(state, kept(state, -12.0, 0.0, 3.0), []) is None


@pytest.mark.parametrize(
    ("earlier", "returns"),
    [
        ([], False),
        ([(0.0, 0.0, 0.0)], False),
        ([(0.0, 0.0, 0.0), (-10.0, 0.0, 1.8)], True),
        ([(-10.0, 0.0, 0.0)], False),
    ]
    + [([(-15.0, 0.0, 2.5)], True)],
    ids=["nothing before", "grown", "the end of one", "friction alone", "beyond"],
)
def test_what_returns_to_what_it_was_is_the_end_of_a_push(state, earlier, returns):
    before = [kept(state, *change) for change in earlier]
    assert GrowingPush(state).returns(kept(state, -12.0, 0.0, 2.0), kept(state), before, stiffness(state)) == returns


def test_the_end_of_a_push_that_nobody_noticed_is_no_growing_one(state, past):
    """It had grown within a second, so that free space took it; a touch in between had ended the stay."""
    covariance = pack_array(np.diag(state.variance))
    for _ in range(5):
        past.follow_push()
    pushed = changed(state, -4.0, -8.0, 2.0)
    assert not any(past.follow_free(pushed, covariance) for _ in range(5))
    assert not any(past.follow_free(state.mean, covariance) for _ in range(8))


def test_free_space_that_begins_before_a_push_has_faded_shows_no_growing_one(state, past):
    covariance = pack_array(np.diag(state.variance))
    past.keep_only(past.present(changed(state, 2.0), covariance))
    assert past.follow_free(changed(state, 12.0, 0.0, -2.0), covariance) is None
    assert not any(past.follow_free(state.mean, covariance) for _ in range(8))


@pytest.mark.parametrize(
    ("seed", "begins", "ends"),
    [(1093, 7.6, 11.0), (1395, 15.3, 15.9), (4027, 10.7, 12.5), (5087, 7.6, 7.8), (5072, 6.7, 10.2)],
)
def test_free_space_after_a_push_stays_free(seed, begins, ends):
    made, found = estimates_of(seed, ends)
    assert not made.touched[round(begins * RATE) : round(ends * RATE)].any()
    assert all(e.mode == "free" for k, e in found if k >= begins * RATE)


def signals():
    """Return signals of a TCP whose force no joint feels."""
    return {"tcp_jacobian": np.zeros(18), "friction_error": np.zeros(1)}


@pytest.fixture
def past(state):
    """A stay of three seconds in free space, with nothing absorbed."""
    made = FreeSpaceHistory(state, signals())
    for _ in range(30):
        made.append(state.mean, pack_array(np.diag(state.variance)))
    return made


@pytest.mark.parametrize(
    ("named", "follows", "shows"),
    [(1, "follow_free", True), (4, "follow_free", True), (5, "follow_free", False)]
    + [(10, "follow_touch", True), (60, "follow_touch", False)],
)
def test_what_follows_a_push_is_compared_with_the_free_space_before_it(state, past, named, follows, shows):
    """In free space only if it was named for a moment as it grew; a longer one ends the stay in free space, and what
    friction changes to is another one's. A known contact may take any push over."""
    for _ in range(named):
        past.follow_push()
    covariance = pack_array(np.diag(state.variance))
    absorbed = changed(state, -4.0, -8.0, 2.0)
    before = [getattr(past, follows)(absorbed, covariance) for _ in range(5)][-1]
    assert (before is not None) == shows
    assert not shows or (before[0] == state.mean).all()


@pytest.mark.parametrize("undecided", [False, True])
def test_no_push_grows_from_free_space_that_may_have_been_one_since_the_start(state, undecided):
    """The end of that push, which nobody noticed, would be one of the other sign."""
    made, covariance = FreeSpaceHistory(state, signals()), pack_array(np.diag(state.variance))
    hidden = changed(state, -4.0, -8.0, 2.0)
    for _ in range(8):
        assert made.follow_free(hidden, covariance, undecided=undecided) is None
    grown = [made.follow_free(state.mean, covariance) for _ in range(8)]
    assert any(before is not None for before in grown) != undecided


def test_a_start_ends_the_row_of_states_that_show_a_push(state, past):
    covariance = pack_array(np.diag(state.variance))
    absorbed = changed(state, -4.0, -8.0, 2.0)
    assert not any(past.follow_free(absorbed, covariance) for _ in range(4))
    past.keep_only(past.present(state.mean, covariance))
    assert [past.follow_free(absorbed, covariance) is None for _ in range(7)] == [True] * 7


def test_a_state_that_did_not_know_coulomb_friction_is_not_kept(state):
    made, variance = FreeSpaceHistory(state, signals()), state.variance.copy()
    made.append(state.mean, pack_array(np.diag(variance)))
    knew, variance[state.parts["coulomb"]] = changed(state, 1.0), variance[state.parts["coulomb"]] / 3.0
    made.append(knew, pack_array(np.diag(variance)))
    np.testing.assert_array_equal(made.ago(30)[0], state.mean)
    variance[state.parts["coulomb"]] /= 2.0
    made.append(changed(state, 2.0), pack_array(np.diag(variance)))
    np.testing.assert_array_equal(made.ago(30)[0], knew)


@pytest.mark.parametrize(
    ("row", "seed"),
    [("slow push, moving", 53), ("slow push, moving", 58), ("slow push, still", 53)]
    + [("slow push, still", seed) for seed in (51, 62, 63)],
)
def test_a_push_grown_within_five_seconds_is_named_with_its_force(row, seed):
    recording = make_case("ur16e", row, seed).recording
    size = np.linalg.norm(recording.force, axis=1)
    grown = np.flatnonzero(size > 0.999 * size.max())
    assert len(grown) > 2 * RATE and grown[0] > GROWTH * RATE
    stream, found, wanted = open_stream("ur16e", "contact_imm", "ur16e_driver"), {}, set(grown.tolist())
    for k, sample in enumerate(recording.samples()):
        stream.push_fast(*sample)
        if k in wanted:
            found[k] = stream.estimate()
        if k == grown[-1]:
            break
    error = np.linalg.norm([found[k].force_tcp - recording.force[k] for k in grown], axis=1)
    assert not any(found[k].mode == "free" for k in grown)
    assert error.mean() < 0.15 * size.max()
