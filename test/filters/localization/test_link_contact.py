"""A push at a link through the default observer: recorded by rigid-body dynamics, told by stream and export."""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.filters.registry import open_stream
from contact_estimation.io.export import EstimateLog
from contact_estimation.viz.curves import Curves
from contact_estimation.viz.frames import estimate_at
from contact_estimation.viz.markers import estimate_shapes

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmark"))
from rigid_body_recording import RATE, START, Push, RigidBodyArm, World, pushes, random_motion, record

LINK, POINT, NORMAL = 4, np.array([0.0, 0.095, -0.1]), np.array([0.0, 1.0, 0.0])  # the side of link 5


@pytest.fixture(scope="module")
def run():
    """Estimates of a push from 1 to 2.4 s, the log of them, and the true point in the base frame."""
    arm, t = RigidBodyArm("fr3"), np.arange(int(2.8 * RATE)) / RATE
    theta = random_motion("fr3", t, np.random.default_rng(4), 0.0, 1.0)
    pin.forwardKinematics(arm.model, arm.data, theta[0])
    pose = arm.data.oMi[LINK + 1]
    push = Push(1.0, 2.4, -30.0 * (pose.rotation @ NORMAL), link=LINK, offset=POINT)
    at = pose.act(POINT)
    recording = record(arm, theta, pushes(arm, [push], t), World())
    stream, found, log = open_stream("fr3", "contact_imm"), [], EstimateLog("contact_imm", len(t))
    for sample in zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau):
        found.append(stream.push(*sample))
        log.append(sample[0], found[-1])
    return found, log, at


def test_the_link_is_named_while_it_is_pushed_and_not_before_or_after(run):
    found, _, _ = run
    links = [estimate.contact_link[-1] for estimate in found]
    assert links[int(2.0 * RATE)] == "fr3_link5"
    assert not any(links[: int(0.95 * RATE)]) and not any(links[int(2.6 * RATE) :])


def test_the_point_is_told_where_its_spread_allows_one(run):
    found, _, at = run
    contact = found[int(2.0 * RATE)].contacts[-1]
    assert np.linalg.norm(contact.place.point - at) < 0.06
    assert np.isfinite(contact.point_base).all() == (contact.place.spread <= 0.05)
    assert np.linalg.norm(contact.place.region - at, axis=1).min() < 0.03


def test_exports_name_the_link(run, tmp_path):
    found, log, _ = run
    columns = EstimateLog.load(log.save(tmp_path / "log.npz")).columns()
    assert columns["contact_link"].shape == (len(found), 2)
    assert columns["contact_link"][int(2.0 * RATE), 1] == "fr3_link5"
    assert columns["contact_link_probability"][int(2.0 * RATE), 1] > 0.5
    pushed = columns["contact_normal"][int(2.0 * RATE), 1]
    assert np.linalg.norm(pushed) == pytest.approx(1.0) and pushed @ columns["force_base"][int(2.0 * RATE)] > 0
    assert np.isnan(columns["contact_normal"][: int(0.95 * RATE)]).all()
    assert np.isfinite(columns["unexplained"]).all() and not columns["mismatch"].any()
    lines = Curves.of(log).touched_links()
    assert any(line.startswith(f"fr3_link5 by {log.contact_names[1]} for 1.") for line in lines)


def test_the_normal_of_an_unknown_contact_is_its_forces_direction(run):
    found, _, _ = run
    contact = found[int(2.0 * RATE)].contacts[-1]
    np.testing.assert_allclose(contact.normal, contact.place.force / np.linalg.norm(contact.place.force))


def test_a_push_at_rest_shows_no_stiffness(run):
    found, _, _ = run
    assert all(np.isnan(estimate.contacts[-1].stiffness).all() for estimate in found)


def test_a_log_draws_the_region_of_an_unknown_contact(run):
    _, log, _ = run
    row = int(2.0 * RATE)
    shapes = {shape.name: shape for shape in estimate_shapes(estimate_at(log, log.columns(), row), "tcp", "base")}
    assert len(shapes["unknown/region"].points) == len(log.place(row).region) > 0
    assert shapes["unknown/force"].visible or shapes["unknown/wrench"].visible


def test_an_observer_without_external_torque_gets_no_such_contact():
    stream = open_stream("fr3", "momentum")
    q = np.array(START["fr3"])
    assert stream.link_contact is None
    assert [c.name for c in stream.push(1, q, 0 * q, 0 * q).contacts] == ["tcp"]
