"""The contact IMM filter on simulated presses: no force in free motion, force and stiffness in contact, counts."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from simulated_press import PressSettings, PressSimulation

from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.localization import link_contact_of
from contact_estimation.filters.registry import load_observer_settings, open_stream
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import actuators_of

STARTS = {"ur16e": [-0.99, -1.02, 2.297, -2.875, -1.551, 0.563], "fr3": [0.0, -0.3, 0.0, -2.2, 0.0, 1.9, 0.785]}


@pytest.fixture(scope="module", params=["ur16e", "fr3"])
def samples(request):
    """One press of 4 mm on 25 kN/m, with its truth."""
    simulation = PressSimulation(load_arm(request.param), PressSettings(start=STARTS[request.param]), seed=1)
    return simulation.arm, [simulation.step() for _ in range(2500)]


def run(arm, samples, turn=0.0):
    """Estimates of all samples; ``turn`` [rad] turns the recording about the base."""
    stream = open_stream(arm, "contact_imm", "joint_torque")
    about = np.eye(arm.n)[0] * turn
    return stream, [stream.push(s.stamp_ns, s.q + about, s.dq, s.tau) for s in samples]


@pytest.fixture(scope="module")
def press(samples):
    arm, rows = samples
    return *samples, *run(arm, rows)


def test_free_motion_has_no_force(press):
    _, rows, _, estimates = press
    before = [e for e, s in zip(estimates, rows[: next(k for k, s in enumerate(rows) if s.in_contact)]) if s]
    assert len(before) > 400
    assert {e.mode for e in before} == {"free"}
    assert max(np.linalg.norm(e.force_tcp) for e in before) < 0.5
    assert max(e.contacts[0].probability for e in before) < 0.5


def test_press_recovers_stiffness_and_force(press):
    _, rows, _, estimates = press
    pressed = [k for k, s in enumerate(rows) if np.linalg.norm(s.force_tcp) > 20.0]
    error = np.array([estimates[k].force_tcp - rows[k].force_tcp for k in pressed])
    peak = max(np.linalg.norm(s.force_tcp) for s in rows)
    assert (np.sqrt((error**2).mean(axis=0)) < [1.0, 1.0, 0.05 * peak]).all()
    assert all(estimates[k].mode == "contact_1" for k in pressed)
    assert estimates[pressed[-1]].stiffness == pytest.approx(25e3, rel=0.05)
    # Nobody told where along the tool it is touched: the depth is known, not the height.
    found, true = estimates[pressed[-1]].contacts[0], rows[pressed[-1]]
    depth = (found.rest - found.point_base)[2]
    assert depth == pytest.approx((true.rest - true.contact_point)[2], abs=2e-4)


def test_contact_closes_and_opens_once(press):
    _, _, _, estimates = press
    changes = [b.mode for a, b in itertools.pairwise(estimates) if a.mode != b.mode]
    assert changes == ["contact_1", "free"]


def test_turned_about_the_base_it_finds_the_same(press):
    arm, rows, _, estimates = press
    _, turned = run(arm, rows[:1200], turn=0.9)
    for a, b in list(zip(estimates, turned))[::50]:
        np.testing.assert_allclose(b.force_tcp, a.force_tcp, atol=1e-6)
        assert b.stiffness == pytest.approx(a.stiffness, rel=1e-6)


def test_started_in_the_middle_of_a_contact(samples):
    arm, rows = samples
    pressed = [k for k, s in enumerate(rows) if np.linalg.norm(s.force_tcp) > 20.0]
    _, estimates = run(arm, rows[pressed[0] : pressed[-1]])
    assert estimates[-1].mode == "contact_1"
    assert np.linalg.norm(estimates[-1].force_tcp - rows[pressed[-1] - 1].force_tcp) < 8.0


def outliers(observer):
    """Blocks beyond the gate, by channel."""
    return Counter({channel: int(text.split()[0]) for channel, text in observer.facts().items()})


def test_spikes_are_rejected_and_counted_by_channel(press):
    """10-60 Nm for 10 ms on one joint, as at the stops of real recordings."""
    arm, rows, stream, estimates = press
    quiet = outliers(stream.observer)
    spiked = list(rows)
    for start in (900, 1200, 1500):
        for k in range(start, start + 5):
            tau = rows[k].tau.copy()
            tau[1] += 60.0
            spiked[k] = dataclasses.replace(rows[k], tau=tau)
    stream, found = run(arm, spiked)
    more = outliers(stream.observer) - quiet
    told = stream.counters["spike"] + stream.counters["implausible"]  # where the stream's monitor sees them first
    assert more[f"torque of {arm.joint_names[1]}"] + told >= 3
    force = np.array([e.force_tcp - c.force_tcp for e, c in zip(found, estimates) if e.valid])
    assert found[-1].valid  # whoever doubts the torque meanwhile trusts it again within two seconds
    assert np.abs(force).max() < 8.0  # of 60 Nm, which would be 80 N and more at the TCP


def test_what_the_motion_does_not_show_is_named_and_not_moved(press):
    """Before the touch everything is unseen; a press shows the stiffness."""
    _, rows, _, estimates = press
    before, last = estimates[0].contacts[0], estimates[max(k for k, s in enumerate(rows) if s.in_contact)].contacts[0]
    assert before.unseen == before.parameters  # nothing was touched yet
    assert "stiffness" not in last.unseen and last.remaining[last.parameters.index("stiffness")] < 0.3
    assert set(last.unseen) == {n for n, left in zip(last.parameters, last.remaining) if left**2 > 0.5}


def always_closed(arm):
    """Return an observer with no other mode than a closed contact, of little friction and a known point."""
    from contact_estimation.filters.imm.observer import ContactImm
    from contact_estimation.filters.registry import load_observer_settings

    settings = load_observer_settings("contact_imm")
    contact = dataclasses.replace(
        settings.contacts[0],
        friction_std=0.0,
        point_std=[0.0, 0.0, 0.0],
        rest_std=1e-6,
        rest_std_first=1e-6,
        rest_random_walk=0.0,
    )
    return ContactImm(arm, dataclasses.replace(settings, contacts=[contact], modes=[["contact_1"]]))


def test_unseen_directions_stay_where_they_were():
    """Without any force (contact held closed, arm at rest on the rest position) nothing informs the stiffness: it does
    not move."""
    arm = load_arm("fr3")
    observer, q = always_closed(arm), np.array(STARTS["fr3"])
    gravity, rng = arm.gravity(q), np.random.default_rng(0)
    observer.reset(0.0, q)
    for _ in range(1000):
        observer.step(0.002, q, np.zeros(7), gravity + 0.3 * rng.standard_normal(7))
    found = observer.estimate().contacts[0]
    assert "stiffness" in found.unseen
    assert np.linalg.norm(found.stiffness) == pytest.approx(observer.settings.contacts[0].stiffness, rel=0.02)
    assert found.remaining[found.parameters.index("stiffness")] > 0.95


def test_without_a_mode_of_an_unknown_contact_none_is_localised():
    arm = load_arm("fr3")
    observer = always_closed(arm)
    assert observer.external_torque is None and link_contact_of(observer, arm, 0.002) is None


def test_facts_explain_the_outliers(press):
    _, _, stream, _ = press
    facts = stream.observer.facts()
    assert list(facts) == stream.observer.channels
    assert all("standard deviations, mean square" in text for text in facts.values())


def test_noisy_encoders_widen_the_deadband(samples):
    """100 urad of encoder noise must not pump the presliding states of an arm at rest."""
    arm, rows = samples
    sensors = load_sensor_settings("joint_torque", arm.settings.folder)
    settings, q = load_observer_settings("contact_imm", arm.settings.folder), rows[0].q

    def rest(**changes):
        actuators = dataclasses.replace(actuators_of(arm), **changes)
        stream = SampleStream(ContactImm(arm, settings, sensors=sensors, actuators=actuators), arm, sensors)
        rng, states = np.random.default_rng(0), []
        for k in range(1500):
            stream.push_fast(1 + 2_000_000 * k, q + 1e-4 * rng.standard_normal(arm.n), np.zeros(arm.n), arm.gravity(q))
            states.append(stream.observer._samples.parts.presliding.copy())
        return stream.observer, np.abs(np.diff(states[500:], axis=0)).sum(axis=0)

    observer, way = rest()
    np.testing.assert_allclose(np.sqrt(observer._samples.parts.encoder_noise), 1e-4, rtol=0.2)
    assert observer.estimate().mode == "free"
    _, pumped = rest(deadband_noise=1e-3)
    assert (way < 0.05 * pumped).all() and pumped.min() > 1.0
