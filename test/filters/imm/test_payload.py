"""Payloads by regression of joint torque: planted loads come back, pushes and clean torque are none."""

import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.codegen import compile_function
from contact_estimation.filters.imm.payload import Payload, PayloadTest, build_regressor
from contact_estimation.filters.imm.settings import MismatchSettings
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.actuators import actuators_of

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from contact_worlds import SENSORS, make_case
from random_worlds import draw
from rigid_body_recording import RATE, Push, RigidBodyArm, World, pushes, random_motion, record

STEP, COM = 0.1, np.array([0.03, -0.02, 0.08])


@pytest.fixture(scope="module", params=["fr3", "ur16e"])
def arm(request):
    return load_arm(request.param)


def watched(arm, external, seed=0, seconds=20.0, amplitude=0.4, told="found", compliance=0.0):
    """What is ``told`` while ``external(t, q)`` (n,) [Nm] acts, after every step; with bias, friction and noise.

    ``compliance`` [rad/Nm] is that of the arm's controller: how far each joint gives way.
    """
    actuators, rng = actuators_of(arm), np.random.default_rng(seed)
    friction, start = actuators.friction, np.array(arm.settings.ready)
    bias = rng.normal(friction.bias, 0.5 * np.array(friction.bias_std))
    phase, found = rng.uniform(0, 6, arm.n), []
    test = PayloadTest(arm, actuators, MismatchSettings())
    for t in np.arange(0.0, seconds, STEP):
        q = start + amplitude * np.sin(0.7 * t + phase)
        q += compliance * external(t, q)
        presliding = np.sign(np.cos(0.7 * t + phase))
        noise = rng.normal(0.0, actuators.torque_noise)
        test.add(STEP, q, presliding, external(t, q) - bias - np.array(friction.coulomb) * presliding + noise)
        found.append(getattr(test, told))
    return found


def load_of(arm, mass):
    """Return the torque of a load behind the flange: what gravity does to the arm with it, less that without."""
    loaded = Arm(dataclasses.replace(arm.settings, tool_mass=mass, tool_com=COM.tolist()))
    return lambda t, q: arm.gravity(q) - loaded.gravity(q)


def test_the_regressor_is_that_of_a_load_behind_the_flange(arm):
    q, regressor = np.array(arm.settings.ready) + 0.2, compile_function(build_regressor(arm))
    torque = regressor.evaluate(q)[0] @ np.append(2.0, 2.0 * COM)
    np.testing.assert_allclose(torque, load_of(arm, 2.0)(0.0, q), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_load_of_two_kilograms_is_found(arm, seed):
    found = watched(arm, load_of(arm, 2.0), seed)[-1]
    assert found is not None and found.mass == pytest.approx(2.0, abs=0.6)


def with_tool(arm, mass):
    """The arm, and the torque (n,) [Nm] that its named tool of ``mass`` [kg] does not exert where it is not there."""
    named, load = Arm(dataclasses.replace(arm.settings, tool_mass=mass, tool_com=COM.tolist())), load_of(arm, mass)
    return named, lambda t, q: -load(t, q)


@pytest.mark.parametrize("seed", range(3))
def test_a_named_tool_that_is_not_there_is_found(arm, seed):
    mass = {"fr3": 1.0, "ur16e": 3.0}[arm.name]
    found = watched(*with_tool(arm, mass), seed)[-1]
    assert found is not None and found.mass == pytest.approx(-mass, abs=0.3 * mass)


def test_more_than_the_named_tool_cannot_be_missing():
    """What pushes up by more is a push."""
    named, missing = with_tool(load_arm("fr3"), 1.0)
    assert not any(watched(named, lambda t, q: 2.0 * missing(t, q)))
    assert not any(watched(load_arm("fr3"), missing))


def test_a_load_picked_up_is_found_and_one_put_down_is_forgotten():
    arm = load_arm("fr3")
    load = load_of(arm, 2.0)
    found = watched(arm, lambda t, q: load(t, q) * (10 <= t < 25), seconds=40.0)
    masses = [None if p is None else p.mass for p in found]
    assert masses[95] is None and masses[220] == pytest.approx(2.0, abs=0.2) and masses[-1] is None


@pytest.mark.parametrize("seed", range(5))
def test_a_free_arm_carries_nothing(arm, seed):
    assert not any(watched(arm, lambda t, q: np.zeros(arm.n), seed))


@pytest.mark.parametrize("direction", [[20.0, 0.0, 0.0], [0.0, -20.0, 0.0], [0.0, 0.0, 20.0], [12.0, 12.0, 12.0]])
def test_a_push_that_is_no_weight_is_none(direction):
    arm = load_arm("fr3")
    found = watched(arm, lambda t, q: arm.tcp_jacobian(q)[:3].T @ np.array(direction))
    assert not any(found)


def test_a_short_push_downwards_is_none():
    arm = load_arm("fr3")
    found = watched(arm, lambda t, q: arm.tcp_jacobian(q)[:3].T @ np.array([0.0, 0.0, -20.0]) * (8 <= t < 11))
    assert not any(found)


@pytest.mark.parametrize(("mass", "factor", "shown"), [(2.0, 1.0, True), (0.0, 2.0, False), (0.0, 1.6, False)])
@pytest.mark.parametrize("seed", range(3))
def test_motion_tells_a_load_from_a_torque_that_is_scaled(arm, mass, factor, shown, seed):
    mass *= {"fr3": 1.0, "ur16e": 3.0}[arm.name]
    load = load_of(arm, mass)
    found = watched(arm, lambda t, q: load(t, q) - (factor - 1.0) * arm.gravity(q), seed, told="is_no_scale")
    assert found[-1] == shown


def test_at_rest_nothing_tells_a_load_from_a_torque_that_is_scaled(arm):
    assert not any(watched(arm, load_of(arm, 2.0), amplitude=0.0, told="is_no_scale"))


@pytest.mark.parametrize(("mass", "factor"), [(2.0, 1.0), (0.0, 1.9)])
def test_an_estimate_with_a_load_is_valid_once_motion_has_shown_the_load(mass, factor):
    """The monitor takes 2 kg on an FR3 for a torque that is scaled, but a doubled torque is none of a load."""
    arm, t = RigidBodyArm("fr3"), np.arange(8 * RATE) / RATE
    arm.carry(mass, [0.02, 0.0, 0.06])
    made = record(arm, random_motion("fr3", t, np.random.default_rng([11, 5]), 0.3, 1.0), pushes(arm, [], t), World())
    made.tau *= factor
    stream = open_stream("fr3", "contact_imm", None)
    found = [stream.push(*sample) for sample in made.samples()]
    assert any("scaled by a common factor" in e.reason for e in found[: 4 * RATE])
    late = found[5 * RATE :]
    if mass:
        assert all(e.valid and "payload of about 2" in e.mismatch for e in late)
        assert np.linalg.norm([e.force_tcp for e in late], axis=1).max() < 2.0
    else:
        assert not any(e.valid for e in late)


def test_a_payload_of_an_arm_that_has_never_moved_is_told_until_it_goes():
    """Without motion it may be a push as well: that is said, and a push beside it does not end the words."""
    arm = load_arm("fr3")
    load, push = load_of(arm, 2.0), np.array([0.0, 0.0, 30.0])

    def external(t, q):
        return (load(t, q) if t < 9.0 else 0.0) + (arm.tcp_jacobian(q)[:3].T @ push if 4.0 < t < 7.0 else 0.0)

    found = watched(arm, external, seconds=14.0, amplitude=0.0)
    told = np.array([payload is not None for payload in found])
    t = STEP * np.arange(len(told))
    assert told[(t > 1.5) & (t < 8.5)].all()
    assert abs(found[30].mass - 2.0) < 0.4
    assert not told[t > 11.0].any()


def test_a_push_downwards_of_an_arm_that_has_rested_is_told_as_no_payload():
    """Only what is there at the first sample is told at once: most pushes that begin later are short."""
    load = load_of(load_arm("fr3"), 2.0)
    found = watched(load_arm("fr3"), lambda t, q: load(t, q) if 3.0 < t < 8.0 else np.zeros(7), amplitude=0.0)
    assert not any(found)


def test_a_payload_is_no_contact_once_the_arm_has_moved():
    arm = load_arm("fr3")
    moving = watched(arm, load_of(arm, 2.0), told="carried")
    assert moving[5] is None and moving[25].mass == pytest.approx(2.0, abs=0.3)
    assert not any(watched(arm, load_of(arm, 2.0), amplitude=1e-4, told="carried"))  # it may be a push that lasts


@pytest.mark.parametrize("compliance", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("grows", [0.3, 5.0])
def test_a_push_that_an_arm_gives_way_to_is_not_carried(compliance, grows):
    arm = load_arm("fr3")

    def push(t, q):
        return arm.tcp_jacobian(q)[:3].T @ [0.0, 0.0, -20.0] * np.clip((t - 2.0) / grows, 0.0, 1.0)

    assert not any(watched(arm, push, amplitude=0.0, told="carried", compliance=compliance))


def test_a_payload_that_is_put_down_is_carried_no_longer():
    arm = load_arm("fr3")
    load = load_of(arm, 2.0)
    carried, relieved = (watched(arm, lambda t, q: load(t, q) * (t < 10), told=k) for k in ("carried", "relieved"))
    assert carried[99] is not None and carried[-1] is None
    assert relieved[99] is None and relieved[-1].mass == carried[99].mass  # a hand may lift it


@pytest.mark.parametrize("masses", [(1.0, 2.5), (2.5, 1.0)])
def test_a_payload_that_gains_or_loses_a_part_is_carried_as_it_is(masses):
    arm = load_arm("fr3")
    before, after = (load_of(arm, mass) for mass in masses)
    carried = watched(arm, lambda t, q: (before if t < 20 else after)(t, q), seconds=40.0, told="carried")
    assert carried[199].mass == pytest.approx(masses[0], abs=0.2)
    assert carried[-1].mass == pytest.approx(masses[1], abs=0.2)


def test_a_push_beside_a_payload_does_not_end_it():
    arm = load_arm("fr3")
    load = load_of(arm, 2.0)
    lifted = watched(
        arm, lambda t, q: load(t, q) + arm.tcp_jacobian(q)[:3].T @ [0.0, 0.0, 30.0 * (t > 5)], told="carried"
    )
    assert lifted[-1] is not None


def test_a_payload_is_left_out_of_a_push_until_it_is_forgotten():
    arm, t = RigidBodyArm("fr3"), np.arange(6 * RATE) / RATE
    arm.carry(2.0, [0.0, 0.0, 0.05])
    push = pushes(arm, [Push(4.0, 5.2, np.array([9.0, 0.0, 12.0]))], t)
    recording = record(arm, random_motion("fr3", t, np.random.default_rng(2), 0.1, 1.0), push, World())
    stream = open_stream("fr3", "contact_imm", None)
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    error = np.linalg.norm(np.array([e.force_tcp for e in found]) - recording.force, axis=1)
    held, free = (t > 4.5) & (t < 4.9), ((t > 3.5) & (t < 4.0)) | (t > 5.4)
    assert error[held].max() < 1.0 and error[free].max() < 1.0
    assert "payload of about 2" in found[-1].mismatch

    def force_at_rest():
        start = int(recording.stamps[-1])
        for k in range(150):
            e = stream.push(start + (k + 1) * 10**9 // RATE, recording.q[-1], np.zeros(arm.n), recording.tau[-1])
        return np.linalg.norm(e.force_tcp)

    stream.restart()
    end = int(recording.stamps[-1])
    first = stream.push(end + 1, recording.q[-1], np.zeros(arm.n), recording.tau[-1])
    assert "payload of about 2" in first.mismatch  # which is left out of every force from here on
    stream.restart()
    assert force_at_rest() < 1.0  # the arm carries it on
    stream.forget()
    assert force_at_rest() > 15.0


@pytest.mark.parametrize("back", [True, False])
def test_a_tool_that_falls_off_leaves_no_force_and_is_told(tmp_path, back):
    """An FR3 with a named tool of 1 kg, which falls off after 3 s; it may be put back 13 s later."""
    tool = tmp_path / "tool.yaml"
    tool.write_text("mass: 1.0\ncom: [0.02, 0.0, 0.06]\n")
    bare, holding, t = RigidBodyArm("fr3"), RigidBodyArm("fr3"), np.arange(24 * RATE) / RATE
    holding.carry(1.0, [0.02, 0.0, 0.06])

    def act(k, q):
        gone = np.clip((t[k] - 3.0) / 0.05, 0.0, 1.0) * (1.0 - back * np.clip((t[k] - 16.0) / 0.05, 0.0, 1.0))
        holds, alone = (pin.computeGeneralizedGravity(a.model, a.data, q) for a in (holding, bare))
        return gone * (holds - alone), np.zeros(3)

    made = record(holding, random_motion("fr3", t, np.random.default_rng(1), 0.2, 1.0), act, World(seed=1))
    stream = open_stream("fr3", "contact_imm", None, str(tool))
    found = [stream.push(*sample) for sample in made.samples()]
    force = np.linalg.norm([e.force_tcp for e in found], axis=1)
    assert force[(t > 4.0) & (t < 8.0)] == pytest.approx(9.81, abs=1.0)  # so far it may be a push
    assert force[(t > 12.0) & (t < 16.0)].max() < 1.0 and force[t > 18.0].max() < 1.0
    missing, modes = ["kg less than named" in e.mismatch for e in found], [e.mode for e in found]
    assert not any(missing[: 3 * RATE]) and all(missing[12 * RATE : 16 * RATE])
    assert missing[-1] is not back and modes[-1] == "free"


def test_an_observer_without_unknown_contacts_names_a_payload_too(tmp_path):
    arm, t = RigidBodyArm("fr3"), np.arange(4 * RATE) / RATE
    arm.carry(2.0, [0.0, 0.0, 0.05])
    recording = record(arm, random_motion("fr3", t, np.random.default_rng(2), 0.3, 1.0), pushes(arm, [], t), World())
    known = tmp_path / "known.yaml"
    known.write_text("observer: contact_imm\ncontacts: [{normal: [0.0, 0.0, 1.0]}]\nunknown: {filters: 0}\n")
    stream = open_stream("fr3", str(known), None)
    found = [stream.push(*sample) for sample in recording.samples()]
    assert "payload of about 2" in found[-1].mismatch
    assert np.linalg.norm([e.force_tcp for e in found[-RATE:]], axis=1).max() < 1.0


def forces(robot, recording, sensors=None):
    """Forces (N, 3) at the TCP, modes and mismatches after every sample."""
    stream = open_stream(robot, "contact_imm", sensors)
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    return np.array([e.force_tcp for e in found]), [e.mode for e in found], [e.mismatch for e in found]


@pytest.mark.parametrize(("robot", "newtons", "end", "seed"), [("fr3", 25.0, 9.5, 51), ("ur16e", 50.0, 14.5, 53)])
@pytest.mark.parametrize("release", [0.05, 1.0])
def test_a_push_that_was_told_as_a_payload_leaves_no_force_behind(robot, newtons, end, seed, release):
    arm, t = RigidBodyArm(robot), np.arange(round((end + 4.0) * RATE)) / RATE
    share = np.clip(np.minimum((t - 2.5) / 0.3, 1.0 - (t - end) / release), 0.0, 1.0)

    def act(k, q):
        force = np.array([0.0, 0.0, -newtons * share[k]])
        return arm.jacobian(q).T @ force, force

    motion = random_motion(robot, t, np.random.default_rng(seed), 0.2, 1.0)
    sensors = "ur16e_driver" if robot == "ur16e" else None
    force, _, mismatch = forces(robot, record(arm, motion, act, World(seed=seed)), sensors)
    assert "payload" in mismatch[int(end * RATE)]  # nothing tells the two apart until it ends
    assert np.linalg.norm(force[t > end + release + 0.5], axis=1).max() < 3.0


@pytest.mark.parametrize("lifted", [1.0, 0.5])
def test_a_payload_that_is_lifted_is_carried_again_afterwards(lifted):
    arm, t = RigidBodyArm("fr3"), np.arange(11 * RATE) / RATE
    arm.carry(2.0, [0.0, 0.0, 0.05])
    push = pushes(arm, [Push(6.0, 8.0, np.array([0.0, 0.0, lifted * 2.0 * 9.81]))], t)
    motion = random_motion("fr3", t, np.random.default_rng(2), 0.1, 1.0)
    force, modes, mismatch = forces("fr3", record(arm, motion, push, World()))
    assert np.linalg.norm(force[t > 8.5], axis=1).max() < 2.0 and modes[-1] == "free"
    held = int(7.5 * RATE)
    if lifted == 1.0:  # nothing tells whether it was put down
        assert "has gone, or is lifted" in mismatch[held] and np.linalg.norm(force[held]) < 2.0
    else:
        assert np.linalg.norm(force[held]) == pytest.approx(9.81, abs=2.0)
    assert "payload of about 2" in mismatch[-1]


@pytest.mark.parametrize("seed", [313, 323])
def test_a_press_of_the_load_s_weight_with_the_tool_on_its_side_does_not_end_it(seed):
    """The floor is an unknown contact there. It might carry the load, but it pushes."""
    case = make_case("fr3", "floor, payload 2 kg", seed, anywhere=True)
    force, modes, _ = forces("fr3", case.recording)
    held = slice(int(9.0 * RATE), int(11.8 * RATE))
    assert np.linalg.norm(case.recording.force[held], axis=1).min() > 0.7 * 2.0 * 9.81
    assert "free" not in modes[held]
    assert np.linalg.norm((force - case.recording.force)[held], axis=1).mean() < 5.0


def test_a_push_to_the_side_that_lasts_is_no_payload():
    """The friction that a UR16e may have explains it as one of 2.4 kg; the friction that was learnt before does not."""
    made = draw("ur16e", 1311).recording
    stream, t = open_stream("ur16e", "contact_imm", "ur16e_driver"), np.arange(12 * RATE) / RATE
    found = [stream.push(*sample) for sample in itertools.islice(made.samples(), len(t))]
    error = np.linalg.norm(np.array([e.force_tcp for e in found]) - made.force[: len(t)], axis=1)
    held, after = (t > 9.0) & (t < 11.1), (t > 11.4) & (t < 11.75)
    assert made.touched[: len(t)][held].all() and not made.touched[: len(t)][after].any()
    assert not any("payload" in e.mismatch for e in found)
    assert error[held].max() < 15.0 and error[after].max() < 5.0


def test_a_push_beside_a_payload_that_was_there_at_the_start_ends_no_words():
    arm, t = RigidBodyArm("ur16e"), np.arange(6 * RATE) / RATE
    arm.carry(2.5, [0.0, 0.0, 0.05])
    push = pushes(arm, [Push(3.0, 6.5, np.array([30.0, 40.0, 0.0]))], t)
    motion = random_motion("ur16e", t, np.random.default_rng(3), 0.0, 1.0)
    _, modes, mismatch = forces("ur16e", record(arm, motion, push, World(seed=3)), "ur16e_driver")
    held = np.flatnonzero(t > 3.6)
    assert {modes[k] for k in held} == {"unknown"}
    assert all("payload of about" in mismatch[k] for k in held)


def test_a_payload_is_carried_through_gaps_with_one_sample_between_them():
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    q, period = np.array(stream.arm.settings.ready), 2_000_000
    payload = stream.observer._mismatch.payload

    def feed(stamps):
        for stamp in stamps:
            stream.push(stamp, q + 1e-10 * max(stamp - 10**9, 0), np.zeros(6), stream.arm.gravity(q))

    feed(range(0, 300 * period, period))
    payload.carried = Payload(2.0, 0.1, COM, np.eye(4))
    feed([10**9 + 15 * 10**7 * k for k in range(1, 4)])  # each behind a gap
    assert stream.counters["gap"] == 3 and payload.carried is not None
    stream.forget()
    assert payload.carried is None


def test_a_doubt_about_the_torque_that_proves_wrong_hides_no_payload():
    """The load looks like a torque scale until the arm moves; a quarter of a second later the tool touches a floor."""
    case = make_case("fr3", "floor, payload 2 kg", 402)
    stream, touched = open_stream("fr3", "contact_imm", SENSORS["fr3"]), np.flatnonzero(case.recording.touched)
    found = [stream.push(*sample) for sample in itertools.islice(case.recording.samples(), touched[0] + RATE)]
    doubted = [k for k, estimate in enumerate(found) if "scaled by a common factor" in estimate.reason]
    assert 0 < touched[0] - doubted[-1] < 0.3 * RATE
    error = np.array([e.force_tcp - f for e, f in zip(found, case.recording.force)])[touched[0] :]
    assert np.linalg.norm(error[RATE // 2 :], axis=1).max() < 2.0
    assert "payload of about 2.0 kg" in found[-1].mismatch


def test_zeroing_takes_the_weight_of_a_known_payload_off_once():
    """The new offset has it; that of the payload besides would be an upward force, and then a payload that has gone."""
    stream, rng = open_stream("fr3", "contact_imm", None), np.random.default_rng(3)
    arm, load = stream.arm, load_of(stream.arm, 2.0)
    q, payload = np.array(arm.settings.ready), stream.observer._mismatch.payload

    def feed(first, count):
        for k in range(first, first + count):
            tau = arm.gravity(q) - (k >= RATE) * load(0.0, q) + rng.normal(0.0, 0.05, arm.n)
            yield stream.push(10**9 + k * 10**9 // RATE, q, np.zeros(arm.n), tau)

    for _ in feed(0, RATE):
        pass
    payload.carried = Payload(2.0, 0.1, COM, np.eye(4) * 1e-4)
    for _ in feed(RATE, RATE):
        pass
    assert stream.start_zero() and payload.carried is not None, stream.zero.status
    found = list(feed(2 * RATE, 3 * RATE))
    assert stream.zero.status.startswith("zeroed") and payload.carried is None
    after = found[RATE:]
    assert max(np.linalg.norm(e.force_base) for e in found) < 1.0
    assert all(e.valid and e.mode == "free" and not e.mismatch for e in after)
