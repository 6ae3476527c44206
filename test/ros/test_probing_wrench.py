"""The probing observer's measured wrench reaches it through the estimator node."""

from __future__ import annotations

from pathlib import Path

import arm_samples as samples
import numpy as np
import pytest
import rclpy
import yaml
from rclpy.serialization import serialize_message

from contact_estimation.nodes.estimator import Estimator
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert
from contact_estimation.ros.processes import free_domain

PROBING = Path(__file__).resolve().parents[2] / "config" / "observers" / "probing.yaml"
OFFSET = np.array([1.0, -2.0, 5.0, 0.1, 0.2, 0.3])


@pytest.fixture(scope="module")
def feed(tmp_path_factory):
    """Hand the node the samples of 40 ms with a wrench in a frame; returns its estimate."""
    observer = tmp_path_factory.mktemp("config") / "probing.yaml"
    observer.write_text(yaml.safe_dump({**yaml.safe_load(PROBING.read_text()), "wrench": "measured"}))
    rclpy.init(domain_id=free_domain())
    node = Estimator(defaults={"observer": str(observer), "sensors": "joint_torque", "max_age": 0.0})
    arm, rows = load_arm("ur16e"), iter(range(1000))
    recording = samples.recording(arm, 1000)

    def push(wrench, frame=arm.tcp_frame):
        for _ in range(20):
            row = next(rows)
            stamp = int(recording.stamps_ns[row])
            node.on_wrench(convert.wrench_stamped(convert.header(stamp, frame), wrench[:3], wrench[3:]))
            state = convert.joint_state(
                convert.header(stamp, arm.base_frame),
                arm.joint_names,
                *(part[row] for part in (recording.q, recording.dq, recording.tau)),
            )
            node.on_joint_states(serialize_message(state))
        return node.stream.estimate()

    yield push
    node.destroy_node()
    rclpy.try_shutdown()


def test_a_measured_wrench_is_tared_and_told(feed):
    for _ in range(15):
        estimate = feed(OFFSET)
    assert estimate.valid and np.abs(estimate.force_tcp).max() < 1e-9
    for _ in range(2):
        force = feed(OFFSET + [4.0, 0.0, 0.0, 0.0, 0.0, 0.0]).force_tcp  # below touch_force: the tare goes on
    assert 3.0 < force[0] < 4.0 and np.abs(force[1:]).max() < 1e-9


def test_a_wrench_in_another_frame_is_refused(feed):
    for _ in range(3):
        estimate = feed(OFFSET, "somewhere")
    assert not estimate.valid and "no wrench was measured" in estimate.reason
    for _ in range(2):
        estimate = feed(OFFSET)
    assert estimate.valid
