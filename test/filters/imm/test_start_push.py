"""A push since before the start: named or told as undecided, gone once it ends; a known bias hides no other push."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from drawn_worlds import estimates_of

from contact_estimation.filters.registry import open_stream

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from contact_worlds import direction, random_posture
from random_worlds import draw
from rigid_body_recording import RATE, Push, RigidBodyArm, World, pushes, random_motion, record, surface, window
from start_push import recording

#: Torque bias [Nm] of a usual size (its prior has 6 Nm), and a push [N] that has about twice that torque.
BIAS, FORCE = np.array([0.0, 7.0, 0.0, 0.0, 0.0, 0.0]), np.array([20.0, 25.0, -20.0])


def run(plan, seconds, amplitude=0.0, bias=None, seed=4, robot="ur16e"):
    """Recording and estimates of a simulated arm."""
    arm, t = RigidBodyArm(robot), np.arange(round(seconds * RATE)) / RATE
    theta = random_motion(robot, t, np.random.default_rng(seed), amplitude, 1.0)
    made = record(arm, theta, pushes(arm, plan, t), World(seed=seed))
    if bias is not None:
        made.tau[:] += bias
    stream = open_stream(robot, "contact_imm", "ur16e_driver")
    return t, made, [stream.push(*sample) for sample in zip(made.stamps.tolist(), made.q, made.dq, made.tau)]


def never_free(found):
    """Whether each estimate says that a payload may be part of its push."""
    return np.array(["not been free since the start" in e.mismatch for e in found])


def error(made, found):
    """Size (N,) [N] of the error of the force."""
    return np.linalg.norm([e.force_tcp for e in found] - made.force, axis=1)


@pytest.fixture(scope="module")
def small():
    """A push that the torque bias may be, from before the start until four seconds."""
    return run([Push(-2.0, 4.0, FORCE)], 6.0)


def test_a_push_that_a_bias_may_be_is_told_as_undecided(small):
    t, _, found = small
    held = np.flatnonzero((t > 1.0) & (t < 3.5))
    assert all("cannot be distinguished" in found[k].mismatch for k in held)
    assert all(found[k].mode == "free" for k in held)
    sigma = np.array([np.sqrt(np.trace(found[k].force_covariance)) for k in held])
    assert sigma.min() > 5.0  # of a force that is zero or all of the push


def test_nothing_is_left_of_it_once_it_has_ended(small):
    t, made, found = small
    after = t > 4.5
    assert error(made, found)[after].max() < 5.0
    assert all(e.mode == "free" and not e.mismatch for e in np.array(found, object)[after])


@pytest.mark.parametrize("amplitude", [0.0, 0.15])
def test_a_push_beyond_any_bias_is_named_and_ends(amplitude):
    t, made, found = run([Push(-2.0, 4.0, 3.0 * FORCE)], 6.0, amplitude)
    held, after = (t > 1.0) & (t < 3.5), t > 4.5
    assert all(e.mode != "free" for e in np.array(found, object)[held])
    assert error(made, found)[held].mean() < 0.3 * np.linalg.norm(3.0 * FORCE)
    assert error(made, found)[after].max() < 10.0
    assert never_free(found)[held].all() and not never_free(found)[after].any()


def test_a_payload_that_nobody_told_is_told_while_pushes_come_and_go_since_the_start():
    made = draw("fr3", 1120).recording
    stream = open_stream("fr3", "contact_imm")
    found = [stream.push(*sample) for sample in itertools.islice(made.samples(), 9 * RATE)][RATE // 50 :]
    assert all(e.mode == "unknown" for e in found)
    assert all("payload" in e.mismatch for e in found)


def test_a_push_that_free_space_hid_at_first_may_be_a_payload():
    _, _, found = run([Push(-2.0, 4.0, 1.5 * FORCE)], 4.0, 0.15, seed=5)
    modes = [e.mode for e in found]
    named = modes.index("unknown")
    assert named > RATE and modes[named:].count("unknown") > RATE // 2
    assert all("payload" in e.mismatch for e in found[named:])


def test_a_push_after_free_space_is_no_payload():
    t, _, found = run([Push(2.0, 4.0, 3.0 * FORCE)], 5.0)
    held = (t > 2.5) & (t < 3.5)
    assert all(e.mode == "unknown" for e in np.array(found, object)[held])
    assert not never_free(found).any()


@pytest.mark.parametrize(("seed", "lifted"), [(3, 2.0), (4, 2.0), (3, 5.0)])
def test_a_load_that_a_hand_lifts_is_no_push_without_a_word(seed, lifted):
    """Nobody told the load, and the arm has not moved: lifted, it seems to have gone; let go, it pushes downwards."""
    arm, t = RigidBodyArm("ur16e"), np.arange(round((7.0 + lifted) * RATE)) / RATE
    arm.carry(2.5, [0.0, 0.0, 0.05])
    plan = [Push(3.0, 3.0 + lifted, np.array([0.0, 0.0, 2.5 * 9.81]))]
    theta = random_motion("ur16e", t, np.random.default_rng(seed), 0.0, 1.0)
    made = record(arm, theta, pushes(arm, plan, t), World(seed=seed))
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    after = np.array([stream.push(*sample) for sample in made.samples()], object)[t > 3.3 + lifted]
    named = [e for e in after if e.mode != "free"]
    assert len(named) > 0.8 * len(after) and np.linalg.norm(named[-1].force_tcp) > 15.0
    assert all("lifts" in e.mismatch or "payload of" in e.mismatch for e in named)


def test_a_push_that_balances_an_untold_load_is_not_free_space_without_a_word():
    """It acts on a link for seconds, by about the weight: the load seems to have gone, while the arm rests, too."""
    made, found = estimates_of(9093, 11.0)
    balanced = [e for k, e in found if k >= 8.4 * RATE]
    assert np.linalg.norm(made.torque[round(8.4 * RATE)]) > 25.0
    assert all(e.mismatch for e in balanced) and any(e.mode == "free" for e in balanced)


def test_a_push_that_friction_may_have_taken_leaves_its_doubt_behind():
    """It begins in a gap, and friction takes most of it; what seems to push once it has ended is friction's error."""
    made, found = estimates_of(1340, 11.0)
    after = [e for k, e in found if k >= 9 * RATE]
    assert not made.touched[9 * RATE : 11 * RATE].any()
    assert all(e.mode == "free" or "likelier than free space before" in e.mismatch for e in after)


def test_free_space_is_not_kept_for_long_under_a_push_since_the_start():
    """Its friction had followed the push, so that the next one of 33 N was free, without a word, for 0.6 s."""
    made, found = estimates_of(8010, 9.2)
    pushed = [e for k, e in found if k >= 8.6 * RATE]
    assert np.linalg.norm(made.force[round(9.0 * RATE)]) > 30.0
    assert all(e.mode == "unknown" or e.mismatch for e in pushed)


def test_a_push_that_a_hand_turns_has_not_ended():
    """A hand guides the arm through a gap; after it the push turns round. Friction must not take what has turned."""
    made, of_samples = estimates_of(1703, 12.0)
    seen, found = zip(*of_samples)
    force = made.force[list(seen)]
    then, turned = len(found) - 6 * RATE, slice(len(found) - 3 * RATE, None)
    assert force[then] @ force[-1] < -0.5 * np.linalg.norm(force[then]) * np.linalg.norm(force[-1])
    missed = np.linalg.norm([e.force_tcp for e in found] - force, axis=1)[turned]
    assert all(e.mode == "unknown" for e in found[turned])
    assert np.median(missed) < 0.2 * np.linalg.norm(force[turned], axis=1).min()


def test_a_push_that_turns_ends_although_it_could_have_followed_its_end():
    made, size = recording("ur16e", "moves", 508)
    stream, t = open_stream("ur16e", "contact_imm", "ur16e_driver"), np.arange(8 * RATE) / RATE
    found = [stream.push(*sample) for sample in made.samples()]
    assert error(made, found)[t > 6.5].max() < 0.1 * size
    assert all(e.mode == "free" for e in np.array(found, object)[t > 6.5])


def test_a_moment_of_free_space_ends_no_doubt_about_what_may_have_acted():
    """A push since the start seems unlikely once the arm moves; it was there, and its end looks like another push."""
    made, _, _ = draw("ur16e", 1691)
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    found = [stream.push(*sample) for sample in itertools.islice(made.samples(), 5 * RATE)]
    assert np.abs(made.torque[:RATE]).max() > 5.0 and not made.touched[4 * RATE : 5 * RATE].any()
    assert any(e.mode == "free" and not e.mismatch for e in found[2 * RATE : 3 * RATE])
    assert all(e.mode == "unknown" and "not been free" in e.mismatch for e in found[4 * RATE :])


def test_a_push_that_fades_while_friction_explains_it_is_no_growing_one():
    """One at a link since the first sample: free space follows it down, and so do torque and deflection."""
    made, of_samples = estimates_of(1059, 5.0)
    found = [estimate for _, estimate in of_samples]
    assert np.abs(made.torque[RATE]).max() > 15.0  # it pushes after a second
    assert not made.touched[round(2.4 * RATE) : 5 * RATE].any()
    assert max(np.linalg.norm(e.force_tcp) for e in found[round(2.4 * RATE) :]) < 3.0


@pytest.mark.parametrize(("link", "seed"), [(3, 7), (4, 4), (4, 5)])
def test_a_push_at_a_link_that_begins_in_a_gap_is_no_force_at_the_tool(link, seed):
    """Friction would take what such a force leaves of its torque, and keep it once the push has ended."""
    arm, t = RigidBodyArm("ur16e"), np.arange(8 * RATE) / RATE
    force = np.random.default_rng(seed).normal(size=3)
    plan = [Push(3.0, 6.0, 70.0 * force / np.linalg.norm(force), 0.05, link, np.full(3, 0.05))]
    theta = random_motion(arm, t, np.random.default_rng(seed), 0.0, 1.0)
    made = record(arm, theta, pushes(arm, plan, t), World(seed=seed))
    stream, seen = open_stream("ur16e", "contact_imm", "ur16e_driver"), (t < 2.95) | (t > 3.25)
    found = [stream.push(*sample) for sample, there in zip(made.samples(), seen) if there]
    missed = np.linalg.norm([e.tau_ext for e in found] - made.torque[seen], axis=1)
    held, after = (t[seen] > 4.5) & (t[seen] < 5.7), t[seen] > 6.3
    assert not never_free(found).any()
    assert missed[held].max() < 0.25 * np.linalg.norm(made.torque[seen][held], axis=1).min()
    assert max(np.linalg.norm(found[k].force_tcp) for k in np.flatnonzero(after)) < 3.0


@pytest.mark.parametrize("amplitude", [0.0, 0.15])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_push_that_begins_is_not_the_end_of_another(sign, amplitude):
    """It takes the torque of a usual bias back, or adds to it, at an arm that rests or has moved in free space."""
    t, made, found = run([Push(6.0, 9.0, sign * FORCE)], 10.0, amplitude, BIAS)
    held = (t > 6.8) & (t < 8.7)
    assert np.mean([e.mode != "free" for e in np.array(found, object)[held]]) > 0.95
    assert np.median(error(made, found)[held]) < 0.4 * np.linalg.norm(FORCE)


def test_nothing_is_told_where_nothing_pushes():
    _, _, found = run([], 4.0, 0.1)
    assert not any(e.mismatch for e in found)


def test_free_space_that_is_unlikely_is_not_named_without_a_word():
    """Two kinds of contact share the probability of a push at rest, and either's force may be torque bias."""
    made, _ = recording("ur16e", "rests", 514, anywhere=True)
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    found = [stream.push(*sample) for sample in itertools.islice(made.samples(), 3 * RATE)][RATE:]
    assert all(e.mode == "free" and e.modes["free"] < 0.3 for e in found)
    assert all("likelier than free space" in e.mismatch for e in found)


def touch_and_go(seed, stiffness, speed):
    """A recording of an FR3 that rests, moves straight onto a surface [N/m] with a speed [m/s], and off after 8 s."""
    arm, t = RigidBodyArm("fr3", random_posture("fr3", seed)), np.arange(10 * RATE) / RATE
    normal, pose, end = direction(np.random.default_rng(seed + 70)), arm.pose(arm.start), 0.06 + 50.0 / stiffness
    way = np.minimum(speed * np.clip(t - 3.0, 0.0, None), end) - end * window(t, 8.0, 14.0, 0.5)
    joints, at = [], arm.start
    for down in way[::10]:
        at = arm.reach(pose.translation - normal * down, pose.rotation, at)
        joints.append(at)
    theta = np.column_stack([np.interp(t, t[::10], column) for column in np.array(joints).T])
    smooth = [np.convolve(np.pad(column, 7, "edge"), np.full(15, 1 / 15), "valid") for column in theta.T]
    return record(
        arm,
        np.column_stack(smooth),
        surface(arm, pose.translation - normal * 0.06, normal, stiffness, 0.3),
        World(seed=seed),
    )


@pytest.mark.parametrize(("seed", "stiffness", "speed"), [(1, 1e5, 0.1), (2, 1e4, 0.25)])
def test_the_release_of_a_press_is_no_push_since_the_start(seed, stiffness, speed):
    """A window in which a press ends fits neither hypothesis: the torque bias took its mean."""
    recording = touch_and_go(seed, stiffness, speed)
    stream = open_stream("fr3", "contact_imm", None)
    found = [stream.push(*sample) for sample in recording.samples()]
    assert np.linalg.norm(recording.force, axis=1).max() > 30.0
    after = np.linalg.norm([e.force_tcp for e in found[-RATE:]], axis=1)
    assert after.max() < 2.0 and not any(e.mismatch for e in found[-RATE:])
