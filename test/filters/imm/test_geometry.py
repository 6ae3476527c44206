"""What nobody told about a contact, found by sliding and turning: how the surface is tilted, how long the tool is."""

import numpy as np
import pytest

from contact_estimation.filters.registry import open_stream
from contact_estimation.simulation.session import open_simulation

#: Of the scenarios in config/tasks: normal of the slope in base axes, length of the finger [m].
SLOPE, FINGER = np.array([0.34202014, 0.0, 0.93969262]), 0.15


def watch(scenario, robot, seconds, every):
    """Samples and estimates of a simulated arm, from the moment it is touched firmly."""
    simulation = open_simulation(scenario, robot, seed=3)
    stream, pressed, touched = open_stream(simulation.arm, "contact_imm", simulation.imperfections.sensors), [], False
    for k, sample in enumerate(simulation.run(seconds)):
        stream.push_fast(sample.stamp_ns, sample.q, sample.dq, sample.tau)
        touched |= np.linalg.norm(sample.truth["wrench_tcp"][:3]) > 3.0
        if touched and k % every == 0:
            pressed.append((sample, stream.estimate()))
    return pressed


@pytest.mark.parametrize(("robot", "largest"), [("fr3", 5.0), ("ur16e", 12.0)])
def test_sliding_tells_how_a_surface_is_tilted(robot, largest):
    pressed = watch("tilted_plane", robot, 15.0, 50)
    normal = pressed[-1][1].contacts[0].stiffness
    off = np.degrees(np.arccos(normal @ SLOPE / np.linalg.norm(normal)))
    assert off < largest  # 20 degrees at touch
    errors = np.array([e.force_tcp - s.truth["wrench_tcp"][:3] for s, e in pressed])
    assert np.sqrt((errors**2).sum(axis=1).mean()) < {"fr3": 1.5, "ur16e": 8.0}[robot]


def test_turning_tells_how_long_the_tool_is():
    pressed = watch("pivot", "fr3", 12.0, 50)
    assert pressed[-1][1].mode == "contact_1"
    assert pressed[-1][1].contacts[0].point_tcp[2] == pytest.approx(FINGER, abs=0.03)


def test_a_surface_that_is_flat_is_not_tilted():
    pressed = watch("plane", "fr3", 12.0, 50)
    normals = np.array([e.contacts[0].stiffness for _, e in pressed if e.mode == "contact_1"])
    cosine = normals[:, 2] / np.linalg.norm(normals, axis=1)
    assert np.degrees(np.arccos(cosine.min())) < 10.0
