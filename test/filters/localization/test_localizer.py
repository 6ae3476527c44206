"""The place of a push, from joint torque that Pinocchio and random numbers made; and what must be refused."""

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.filters.localization import LocalizationSettings
from contact_estimation.filters.localization.localizer import ContactLocalizer
from contact_estimation.robot import load_arm

START = {"ur16e": [0.2, -1.6, 1.9, -1.8, -1.5, 0.3], "fr3": [0.1, -0.6, 0.2, -2.2, 0.1, 1.7, 0.8]}
STD = {"fr3": 0.06, "ur16e": 0.3}  # [Nm] of the torque


@pytest.fixture(scope="module")
def localizers():
    return {robot: ContactLocalizer(load_arm(robot), LocalizationSettings(torque_floor=1e-4)) for robot in STD}


def push_torque(arm, q, joint, point, force):
    """J^T F (n,) of a force (3,) in base axes at a point (3,) in the frame of a joint; and the point in the base."""
    data = arm.model.createData()
    jacobian = pin.computeJointJacobians(arm.model, data, q)
    at = data.oMi[joint + 1].act(point)
    jacobian = pin.getJointJacobian(arm.model, data, joint + 1, pin.WORLD)
    return (jacobian[:3] - pin.skew(at) @ jacobian[3:]).T @ force, at


def side_of_cylinder(rng, centre, radius, half):
    """A random point of a cylinder along z, and its outward normal."""
    turn = rng.uniform(0, 2 * np.pi)
    normal = np.array([np.cos(turn), np.sin(turn), 0.0])
    return centre + radius * normal + [0, 0, rng.uniform(-half, half)], normal


#: Link -> joint, centre, radius, half length of a free cylinder along z of its joint's frame.
FREE = {
    "fr3_link5": (4, [0.0, 0.05, -0.1], 0.045, 0.08),
    "fr3_link7": (6, [0.0, 0.0, 0.08], 0.044, 0.02),
    "wrist_3_link": (5, [0.0, 0.0, -0.02], 0.045, 0.018),
}


def pushes(localizer, link, count, motion, seed=1):
    """Yield posterior, true point and true force of pushes at a link."""
    arm, rng = localizer.arm, np.random.default_rng(seed)
    joint, *cylinder = FREE[link]
    std = STD[arm.name]
    for _ in range(count):
        q0 = np.array(START[arm.name]) + rng.uniform(-0.3, 0.3, arm.n)
        point, normal = side_of_cylinder(rng, *cylinder)
        _, at = push_torque(arm, q0, joint, point, np.zeros(3))
        force = -rng.uniform(20, 40) * (push_direction(arm, q0, joint, normal) + 0.15 * rng.normal(size=3))
        bias, speed = rng.normal(0, std, arm.n), motion * rng.uniform(-1, 1, arm.n)
        localizer.reset()
        for k in range(25):
            q = q0 + 0.02 * k * speed
            torque, at = push_torque(arm, q, joint, point, force)
            localizer.add(0.02, q, torque + bias + rng.normal(0, 0.1 * std, arm.n), std**2 * np.eye(arm.n))
            if k % 12 == 0:
                localizer.scan(0, localizer.count)
                place = localizer.place()
        yield place, at, force


def push_direction(arm, q, joint, normal):
    data = arm.model.createData()
    pin.forwardKinematics(arm.model, data, q)
    return data.oMi[joint + 1].rotation @ normal


@pytest.mark.parametrize("motion", [0.0, 0.3])
@pytest.mark.parametrize("link, limit", [("fr3_link5", 0.03), ("fr3_link7", 0.02), ("wrist_3_link", 0.04)])
def test_pushes_are_found_where_they_are(localizers, link, limit, motion):
    localizer = localizers["fr3" if link.startswith("fr3") else "ur16e"]
    rows, names = list(pushes(localizer, link, 20, motion)), list(localizer.surface.names)
    links = [place.link for place, _, _ in rows]
    assert np.mean([abs(names.index(name) - names.index(link)) <= 1 for name in links]) >= 0.95
    # A radial push at wrist 3 passes its axis: its torque is that of a push at wrist 2.
    assert link == "wrist_3_link" or links.count(link) >= 0.85 * len(links)
    assert np.median([np.linalg.norm(place.point - at) for place, at, _ in rows]) < limit
    assert np.median([np.linalg.norm(place.force - f) / np.linalg.norm(f) for place, _, f in rows]) < 0.1


def test_the_region_holds_the_truth_as_often_as_it_says(localizers):
    rows = list(pushes(localizers["fr3"], "fr3_link5", 40, 0.0, seed=3))
    held = np.mean([np.linalg.norm(place.region - at, axis=1).min() < 0.02 for place, at, _ in rows])
    assert held >= 0.85
    assert np.median([len(place.region) for place, _, _ in rows]) < 50  # of a thousand candidates


def test_a_push_at_the_first_links_gets_no_point(localizers):
    """Three unknowns of the force and two of the surface need five loaded joints; link 2 has two."""
    localizer, arm = localizers["fr3"], localizers["fr3"].arm
    q = np.array(START["fr3"])
    torque, _ = push_torque(arm, q, 1, np.array([0.06, 0.0, 0.05]), np.array([0.0, 30.0, 10.0]))
    localizer.reset()
    for _ in range(5):
        localizer.add(0.02, q, torque, 0.06**2 * np.eye(7))
    localizer.scan(0, localizer.count)
    place = localizer.place()
    assert place.spread > localizer.settings.largest_spread
    assert place.links.get("fr3_link1", 0.0) + place.links.get("fr3_link2", 0.0) > 0.8


def test_a_torque_that_no_single_push_explains_is_refused(localizers):
    """Two hands that twist the wrist: joint 7 carries more than friction on its link can."""
    localizer = localizers["fr3"]
    localizer.reset()
    torque = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 8.0])
    for _ in range(5):
        localizer.add(0.02, np.array(START["fr3"]), torque, 0.06**2 * np.eye(7))
    localizer.scan(0, localizer.count)
    place = localizer.place()
    assert place.link == "" and "no single pushing contact" in place.reason
    assert not np.isfinite(place.point).any()


@pytest.mark.parametrize("torque, variance", [(1.0, -1.0), (np.nan, 0.06**2), (1.0, np.nan)])
def test_a_frame_that_cannot_be_used_has_no_place_and_spoils_no_later_one(localizers, torque, variance):
    localizer, q = localizers["fr3"], np.array(START["fr3"])
    push, _ = push_torque(localizer.arm, q, 4, np.array([0.0, 0.095, -0.1]), np.array([5.0, -20.0, 3.0]))
    localizer.reset()
    links = []
    for factor, spread in ((1.0, 0.06**2), (torque, variance), (1.0, 0.06**2)):
        localizer.add(0.02, q, factor * push, spread * np.eye(7))
        localizer.scan(0, localizer.count)
        place = localizer.place()
        links.append(place.link)
    assert links[0] == links[2] != "" and links[1] == ""


def test_a_scan_in_shares_equals_one_in_a_piece(localizers):
    localizer, q = localizers["fr3"], np.array(START["fr3"])
    torque, _ = push_torque(localizer.arm, q, 4, np.array([0.0, 0.095, -0.1]), np.array([5.0, -20.0, 3.0]))
    points = []
    for share in (localizer.count, 97):
        localizer.reset()
        localizer.add(0.02, q, torque, 0.06**2 * np.eye(7))
        for begin in range(0, localizer.count, share):
            localizer.scan(begin, begin + share)
        points.append(localizer.place().point)
    np.testing.assert_array_equal(*points)


@pytest.mark.parametrize("robot", sorted(STD))
def test_torque_that_tells_nothing_leaves_every_link_as_likely_as_another(localizers, robot):
    localizer = localizers[robot]
    localizer.reset()
    localizer.add(0.02, np.array(START[robot]), np.zeros(localizer.arm.n), 1e8 * np.eye(localizer.arm.n))
    localizer.scan(0, localizer.count)
    links = localizer.place().links
    assert len(links) == len(localizer.surface.names) >= 5
    assert np.ptp(list(links.values())) < 0.02
