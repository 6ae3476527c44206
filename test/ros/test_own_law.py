"""A contact law in one file outside the package, in the estimator's process and in its messages."""

from __future__ import annotations

import arm_samples as samples
import numpy as np
import yaml
from contact_estimation.msg import ContactEstimate
from own_law import ADHESIVE, adhesive_observer
from test_graph import WHOLE, assert_close, offline

from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos


def test_the_estimator_runs_a_law_of_ones_own(graph, tmp_path):
    arm = load_arm("ur16e")
    (tmp_path / "pad.py").write_text(ADHESIVE)
    law = f"{tmp_path}/pad.py:Adhesive"
    recording = samples.recording(arm, 300)
    observer = tmp_path / "pad.yaml"
    mapping = adhesive_observer(law, arm.tcp_pose(recording.q[0])[0])
    mapping["contacts"][0]["estimate"] = ["stiffness", "law"]
    observer.write_text(yaml.safe_dump(mapping))
    bag = write_bag(tmp_path / "bag", recording)
    expected = offline(open_recording(bag, arm.joint_names), str(observer), "joint_torque")
    got = graph.watch(ContactEstimate, "/estimator/contact_estimate", qos.COMPLETE)
    parameters = {"observer": str(observer), "sensors": "joint_torque", "complete": True}
    with graph.start("estimator", parameters) as estimator:
        graph.wait_for_publisher("/estimator/contact_estimate")
        with graph.start("replay_driver", {"recording": str(bag), **WHOLE, "wait_for": ["estimator"]}) as driver:
            assert graph.spin(lambda: len(got) == len(expected)), driver.text() + estimator.text()
    by_stamp = dict(zip(recording.stamps_ns.tolist(), expected))
    values = []
    for message in got:
        estimate = convert.from_contact_estimate(message)
        one = by_stamp[convert.stamp_ns(message.header.stamp)]
        assert_close(estimate, one)
        assert estimate.contacts[0].law == law
        values.append(estimate.contacts[0].law_parameters["reach"])
        assert values[-1] == one.contacts[0].law_parameters["reach"]
    assert np.std(values) > 0  # it is estimated
