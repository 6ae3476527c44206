"""Replay with the recorded time on /clock: nodes with use_sim_time live in it, and a loop starts them anew."""

import arm_samples as samples
import numpy as np
from contact_estimation.msg import ContactEstimate
from rosgraph_msgs.msg import Clock

from contact_estimation.io.bag_writer import write_bag
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos


def test_recorded_time_is_on_the_clock_and_a_loop_restarts(graph, tmp_path):
    recording = samples.recording(load_arm("ur16e"), 400)  # its stamps are long past: refused by the wall clock
    bag = write_bag(tmp_path / "bag", recording)
    clock = graph.watch(Clock, "/clock", qos.VISUALIZATION)
    estimates = graph.watch(ContactEstimate, "/estimator/contact_estimate")
    source = {"recording": str(bag), "loop": True, "keep_stamps": True, "clock": True, "wait_for": ["estimator"]}
    simulated = {"observer": "momentum", "sensors": "joint_torque", "use_sim_time": True}

    def laps(messages, stamp) -> int:
        return int(np.sum(np.diff([convert.stamp_ns(stamp(m)) for m in messages]) < 0))

    with graph.start("estimator", simulated), graph.start("replay_driver", source) as driver:
        told = graph.spin(lambda: laps(estimates, lambda m: m.header.stamp) >= 2)
        assert told, driver.text()
    stamps = np.array([convert.stamp_ns(message.clock) for message in clock])
    assert laps(clock, lambda m: m.clock) >= 1
    assert recording.stamps_ns[0] <= stamps.min() and stamps.max() <= recording.stamps_ns[-1]
    second = np.flatnonzero(np.diff([convert.stamp_ns(m.header.stamp) for m in estimates]) < 0)[0] + 1
    valid = [message.valid for message in estimates]
    assert np.mean(valid[:second]) > 0.5 and np.mean(valid[second : second + 300]) > 0.5


def test_the_clock_needs_the_stamps(graph, tmp_path):
    bag = write_bag(tmp_path / "bag", samples.recording(load_arm("ur16e"), 50))
    with graph.start("replay_driver", {"recording": str(bag), "clock": True}) as driver:
        assert driver.wait() == 2 and "needs keep_stamps" in driver.text()
