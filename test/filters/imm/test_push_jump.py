"""A second push beside the first one, or one that changes at once: torque beyond the gate is no outlier if it stays."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contact_estimation.filters.imm.push_course import OutliersInARow
from contact_estimation.filters.registry import open_stream

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
import gaps
from rigid_body_recording import RATE, Push, RigidBodyArm, World, pushes, random_motion, record

GATE = 3.0


@pytest.mark.parametrize(
    ("course", "jumps"),
    [
        ([4.0] * 6, [False] * 4 + [True, True]),
        ([4.0, 4.0, 4.0, -4.0, 4.0, 4.0, 4.0], [False] * 7),
        ([4.0, 4.0, 4.0, 4.0, 2.0, 4.0, 4.0], [False] * 7),
        ([-4.0, -9.0, -3.5, -4.0, -5.0, 0.0], [False] * 4 + [True, False]),
    ],
    ids=["stays beyond", "to both sides", "comes back", "below"],
)
def test_only_blocks_in_a_row_to_the_same_side_are_a_jump(course, jumps):
    jump = OutliersInARow(2, np.array([GATE]))
    assert [jump.follow(np.array([0.5, value])) for value in course] == jumps


def test_another_channel_does_not_count_on():
    jump = OutliersInARow(2, np.array([GATE]))
    assert not any(jump.follow(np.array(values)) for values in [[4.0, 0.0]] * 4 + [[0.0, 4.0]] * 4)
    jump.reset()
    assert not jump.follow(np.array([0.0, 4.0]))


def recorded():
    """An FR3 at rest, held by 32 N at the tool from 1.5 s on. From 3 s on 40 N push against its third link, too."""
    arm, t = RigidBodyArm("fr3"), np.arange(6 * RATE) / RATE
    theta = random_motion("fr3", t, np.random.default_rng(4), 0.0, 1.0)
    arm.pose(theta[0])
    side = arm.jacobian(theta[0], 2, np.array([0.0, 0.05, 0.1]))[:, 1]  # how the second joint moves that point
    second = 40.0 * side / np.linalg.norm(side)
    plan = [
        Push(1.5, 5.0, np.array([-5.0, 28.0, -14.0])),
        Push(3.0, 4.5, second, rise=0.1, link=2, offset=np.array([0.0, 0.05, 0.1])),
    ]
    return t, record(arm, theta, pushes(arm, plan, t), World())


def errors(recording):
    """Errors of the joint torque (N, n) [Nm]."""
    stream = open_stream("fr3", "contact_imm")
    samples = recording.samples()
    return np.abs(np.array([stream.push(*sample).tau_ext for sample in samples]) - recording.torque)


def test_a_second_push_is_followed_while_the_first_one_holds():
    t, recording = recorded()
    change = recording.torque[round(3.5 * RATE)] - recording.torque[round(2.9 * RATE)]
    assert np.abs(change).max() > 8.0
    error = errors(recording)
    assert error[(t > 3.15) & (t < 4.4)].max() < 1.5
    assert error[(t > 4.65) & (t < 4.9)].max() < 1.5


def test_outliers_of_a_block_do_not_move_a_push():
    """12 Nm for 10 ms, every 0.3 s."""
    t, recording = recorded()
    spiked = recording.tau.copy()
    hit = (t > 2.0) & (t < 2.9) & ((t % 0.3) < 0.01)
    spiked[hit, 1] += 12.0
    error = errors(replace(recording, tau=spiked))
    assert 0 < hit.sum() < 20 and error[(t > 2.0) & (t < 2.95)].max() < 2.0


def test_gears_that_contradict_the_torque_are_followed_anew():
    """A UR16e slides with 110 N and samples are lost: the force leaves with the offset of a gear, to 130 N of error."""
    row = gaps.ROWS["slides, many gaps"]
    made = gaps.recording("ur16e", row, 409)
    t = np.arange(len(made.q)) / RATE
    stream, errors, words = open_stream("ur16e", "contact_imm", "ur16e_driver"), [], []
    for k in np.flatnonzero(gaps.kept(row, t, 409) & (t < 11.45)):
        estimate = stream.push(int(made.stamps[k]), made.q[k], made.dq[k], made.tau[k])
        if t[k] > 10.8:
            errors.append((t[k], np.linalg.norm(estimate.force_tcp - made.force[k])))
            words.append(estimate.mismatch)
    assert any("no mode explains the torque of shoulder_lift_joint" in text for text in words)
    assert max(error for time, error in errors if time > 10.95) < 25.0


@pytest.mark.parametrize("most", [2, 7])
def test_as_many_as_wanted_are_counted(most):
    outliers = OutliersInARow(3, np.array([GATE]), most)
    assert [outliers.follow(np.array([0.0, -4.0, 1.0])) for _ in range(most)] == [False] * (most - 1) + [True]
    assert outliers.worst == 1
