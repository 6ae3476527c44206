"""The probing observer: joint positions and torque in, contact out."""

from pathlib import Path

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.observer import Observer
from contact_estimation.filters.registry import make_observer, open_stream
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.joint_torque import tool_jacobian
from contact_estimation.identify.probing.observer import ProbingObserver, ProbingObserverSettings
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import homogeneous
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_yaml, replace
from contact_estimation.studies.probing.exploration import ArmTool
from contact_estimation.studies.probing.sensorless import ARMS
from contact_estimation.studies.probing.simulated_probe import (
    GuardedPlan,
    Guess,
    Motion,
    SpatialProbe,
    Truth,
    contact_wrench,
)

CONFIG = Path(__file__).resolve().parents[3] / "config" / "observers" / "probing.yaml"
DT, POSTURE = 0.002, np.array(ARMS["fr3"].posture)


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


def in_the_base(truth, guess, position, rotation):
    """The drawn surface moved so that the tool touches it at the arm's posture."""
    move = homogeneous(rotation, position) @ np.linalg.inv(guess.pose(0))
    turn = move[:3, :3]
    normal = truth.normal @ turn.T
    return (
        Truth(truth.tips, normal, truth.d + normal @ move[:3, 3], truth.stiffness, truth.friction),
        Guess(guess.tips, turn @ guess.surface, rotation[None], position[None]),
    )


def joint_torque(arm, side, q, dq, ddq):
    """What a sensor on ``side`` of the gears measures in free space."""
    inertia = arm.mass(q) - (np.diag(arm.motor.armature) if side == "link" else 0.0)
    rigid = inertia @ (ddq * np.ones(arm.n)) + arm.coriolis(q, dq) + arm.gravity(q)
    return rigid if side == "link" else rigid + arm.motor.viscous * dq


@pytest.mark.parametrize("side", ["motor", "link"])
def test_acceleration_in_the_air_is_no_contact(arm, side):
    """Each joint swings by 0.1 rad at 1 Hz: newtons of inertia, none of which may be taken for a force."""
    settings = ProbingObserverSettings(tip=[0.0, 0.0, 0.15], normal=[0.0, 0.0, 1.0], torque_std=[0.05] * 7)
    observer, rate, swing = make_observer(arm, settings, sensors=SensorSettings(torque_side=side)), 2.0 * np.pi, 0.1
    observer.reset(0.0, POSTURE)
    forces, inertial = [], []
    for k in range(1, 501):
        q = POSTURE + swing * (1.0 - np.cos(rate * k * DT))
        dq = np.full(7, swing * rate * np.sin(rate * k * DT))
        ddq = np.full(7, swing * rate**2 * np.cos(rate * k * DT))
        observer.step(DT, q, dq, joint_torque(arm, side, q, dq, ddq))
        forces.append(np.abs(observer.estimate().tau_ext).max())
        inertial.append(np.abs(arm.mass(q) @ ddq).max())
    assert max(inertial) > 5.0 and max(forces) < 0.02 * max(inertial)
    assert observer.estimate().contacts == ()


@pytest.fixture(scope="module", params=["torque", "measured"])
def probed(arm, request):
    """Estimates of an observer whose arm first waits in the air, then probes for 4 s; torque and wrench with a constant
    offset and noise.
    """
    rng = np.random.default_rng(1)
    position, rotation = arm.tcp_pose(POSTURE)
    truth, guess = in_the_base(*SpatialProbe(ProbingSettings()).draw(1, rng), position, rotation)
    settings = ProbingObserverSettings(
        tip=guess.tips[0, 0].tolist(),
        normal=guess.surface[0][:, 2].tolist(),
        torque_std=[0.05] * 7,
        wrench=request.param,
        probing=replace(ProbingSettings(), torque_bias_std=[0.05] * 7 if request.param == "torque" else []),
    )
    observer = make_observer(arm, settings, sensors=SensorSettings(torque_side="link"))
    offset = 0.3 * rng.standard_normal(7)

    def feed(q, dq, wrench, ddq=0.0):
        observer.take_wrench(wrench + offset[:6] + 0.3 * rng.standard_normal(6) * [1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
        tau = joint_torque(arm, "link", q, dq, ddq) - tool_jacobian(arm, q).T @ wrench + offset
        observer.step(DT, q, dq, tau + 0.1 * rng.standard_normal(7))

    start = arm.solve_pose(position + 0.01 * guess.surface[0][:, 2], rotation, POSTURE)
    observer.reset(10.0, start)
    for _ in range(500):
        feed(start, np.zeros(7), np.zeros(6))
    before, slid = observer.estimate(), []
    tool, plan = (ArmTool(arm, POSTURE, guess.pose(0)), GuardedPlan(guess, ProbingSettings(), ExcitationSettings()))
    bristles, wrench, before_dq = np.zeros((1, 1, 3)), np.zeros((1, 6)), np.zeros(7)
    for k in range(int(4.0 / DT)):
        last, twist = tool.q, tool.move(plan.advance(k * DT, DT, wrench)[0], DT)
        plan.position, plan.rotation = tool.pose[None, :3, 3], tool.pose[None, :3, :3]
        motion = Motion(plan.position, plan.rotation, twist[None], wrench)
        wrench, bristles, _ = contact_wrench(truth, motion, bristles, DT)
        dq = (tool.q - last) / DT
        feed(tool.q, dq, wrench[0], (dq - before_dq) / DT)
        before_dq = dq
        slid.append(observer.estimate().valid if k % 50 == 0 else slid[-1])
    return truth, observer, before, observer.estimate(), wrench[0], slid


def test_it_is_an_observer_and_quiet_in_the_air(probed):
    _, observer, before, *_ = probed
    assert isinstance(observer, Observer) and observer.backend == "python"
    assert before.t == pytest.approx(11.0) and before.contacts == () and before.mode == "free"
    assert np.linalg.norm(before.force_base) < 3.0  # 0.3 Nm of offset were learnt


def test_probing_finds_the_surface_and_its_force(probed):
    truth, observer, _, estimate, wrench, _ = probed
    contact, probing = estimate.contacts[0], observer.probing()
    normal = contact.stiffness / np.linalg.norm(contact.stiffness)
    assert np.linalg.norm(contact.point_tcp - truth.tips[0, 0]) < 3e-3 and normal @ truth.normal[0] > np.cos(0.03)
    assert estimate.stiffness == pytest.approx(truth.stiffness[0], abs=500.0)
    assert probing.mean[-1] == pytest.approx(truth.friction[0], abs=0.03)
    assert np.linalg.norm(estimate.force_tcp - wrench[:3]) < 4.0
    assert np.all(np.linalg.eigvalsh(contact.covariance) > -1e-6) and estimate.modes[estimate.mode] == 1.0


def test_an_estimate_is_valid_once_stiffness_and_friction_are_learnt(probed):
    *_, estimate, _, valid = probed
    first = valid.index(False)  # the touch
    assert all(valid[:first]) and not all(valid[first : first + 100]) and all(valid[-750:]) and estimate.valid


def test_a_touch_without_sliding_teaches_nothing_and_a_wrench_that_pulls_is_refused():
    """A real press without a slide: the drives' friction turns at the retreat and makes 60 N in free air."""
    with np.load(shared_file("data/ur16e_press/ur_vertical_1.npz")) as data:
        t, q, dq, tau = (data[name][:2700:2] for name in ("t", "q", "dq", "tau"))
    stream = open_stream("ur16e", "probing")
    estimates = [stream.push(int(1e9 * stamp) + 1, *row) for stamp, *row in zip(t, q, dq, tau)]
    touched = [e for e in estimates if e.contacts]
    assert len(touched) > 1000 and not any(e.valid for e in touched)
    assert "not learnt yet; slide" in touched[10].reason and "pulls at the surface" in touched[-1].reason


def test_without_a_measured_wrench_the_estimate_is_invalid(arm):
    settings = ProbingObserverSettings(tip=[0.0, 0.0, 0.15], normal=[0.0, 0.0, 1.0], wrench="measured")
    observer = make_observer(arm, settings, sensors=SensorSettings(torque_side="link"))
    observer.reset(0.0, POSTURE)
    for k in range(60):
        if k < 30:
            observer.take_wrench(np.zeros(6))
        observer.step(DT, POSTURE, np.zeros(7), np.zeros(7))
        if k == 29:
            assert observer.estimate().valid
    assert not observer.estimate().valid and "no wrench was measured" in observer.estimate().reason


def test_the_motion_goes_on_while_no_wrench_is_measured(arm):
    """A joint turns at 0.1 rad/s in contact; the readings of one block are missing."""
    settings = ProbingObserverSettings(tip=[0.0, 0.0, 0.15], normal=[0.0, 0.0, 1.0], wrench="measured")
    slips = []
    for missing in (range(0), range(800, 820)):
        observer = make_observer(arm, settings, sensors=SensorSettings(torque_side="link"))
        observer.reset(0.0, POSTURE)
        for k in range(840):
            touched, turn = k >= 400, np.array([0.1, *np.zeros(6)])
            if k not in missing:
                observer.take_wrench(np.array([0.0, 0.0, -20.0, 0.0, 0.0, 0.0]) * touched)
            observer.step(DT, POSTURE + turn * (k - 400) * DT * touched, turn * touched, np.zeros(7))
        slips.append(observer.probing().slip)
        assert observer.probing().t == pytest.approx(observer.estimate().t)
    assert np.linalg.norm(slips[0]) > 0.02
    np.testing.assert_allclose(slips[1], slips[0], rtol=0.05)


def test_reset_forgets_the_contact(arm, probed):
    observer = probed[1]
    observer.reset(0.0, POSTURE)
    assert observer.estimate().contacts == () and observer.probing() is None


def test_the_shipped_configuration_fits_its_robot():
    settings = from_yaml(ProbingObserverSettings, CONFIG)
    assert ProbingObserver(load_arm("ur16e"), settings).name == "probing"


def test_mistakes_are_explained(arm):
    good = {"tip": [0.0, 0.0, 0.15], "normal": [0.0, 0.0, 1.0], "torque_std": [0.1] * 7}
    with pytest.raises(ConfigError, match="torque_std has 6 entries"):
        ProbingObserver(arm, ProbingObserverSettings(**{**good, "torque_std": [0.1] * 6}))
    with pytest.raises(ConfigError, match="normal is zero"):
        ProbingObserver(arm, ProbingObserverSettings(**{**good, "normal": [0.0, 0.0, 0.0]}))
