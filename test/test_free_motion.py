"""A real arm in fast free motion: nothing is touched, and no force is told."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.io.npz import read_npz
from contact_estimation.robot import load_arm

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
import panda_pushes


@pytest.fixture(scope="module")
def excited():
    """A Panda's identification motion, up to 1.8 rad/s on every joint; every second sample of 1 kHz."""
    arm = load_arm("panda")
    recording = read_npz(shared_file("data/panda_excitation/panda_excitation.npz"), arm.joint_names)
    rows = list(zip(recording.stamps_ns.tolist(), recording.q, recording.dq, recording.tau))
    return arm, rows[:20000:2]


def estimates(excited, observer, **sensors):
    arm, rows = excited
    told = dataclasses.replace(load_sensor_settings(arm.settings.sensors), **sensors)
    made = make_observer(arm, load_observer_settings(observer), observer, told)
    stream = SampleStream(made, arm, told)
    return [stream.push(*row) for row in rows]


def test_nothing_is_touched(excited):
    found = estimates(excited, "contact_imm")
    assert {e.mode for e in found} == {"free"} and all(e.valid for e in found)
    assert np.sqrt(np.mean([e.force_tcp @ e.force_tcp for e in found])) < 1.0


def test_torque_sensors_behind_the_gears_do_not_see_the_rotors(excited):
    """External torque of the light wrist, which there should be none of, with and without the rotors in the model."""
    torque = {
        side: np.std([e.tau_ext[4:] for e in estimates(excited, "momentum", torque_side=side)], axis=0)
        for side in ("motor", "link")
    }
    assert (torque["link"] < torque["motor"]).all()  # what is left is friction of the bearings
    assert np.linalg.norm(torque["link"]) < 0.6 * np.linalg.norm(torque["motor"])


@pytest.mark.parametrize("seed", [20, 21])
def test_pushes_laid_over_it_are_seen_and_let_go(seed):
    arm = load_arm("panda")
    recording = read_npz(shared_file(panda_pushes.RECORDING), arm.joint_names)
    samples, force = panda_pushes.pushed(arm, recording, seed)
    found = panda_pushes.figures(arm, samples, force, "contact_imm")
    assert found["seen"] > 0.98 and found["rmse"] < 9.0
    assert found["free_rmse"] < 2.5 and found["free_contact"] < 0.05
