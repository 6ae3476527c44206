"""Bags of both storages: round trips, choice of topics, and what damaged bags are told."""

import dataclasses
import shutil

import numpy as np
import pytest
from recordings import JOINTS, assert_equal, small_recording
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from shared import shared_file

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.bag import BagFile, read_bag
from contact_estimation.io.bag_writer import STORAGE, write_bag
from contact_estimation.io.npz import read_npz, write_npz
from contact_estimation.io.open import open_recording
from contact_estimation.io.topics import JOINT_STATE, POINT, TRUTH_TOPICS, WRENCH, WRENCH_TOPIC, WRENCH_ZERO_TOPIC

STORE = get_typestore(Stores.ROS2_JAZZY)


@pytest.fixture(params=sorted(STORAGE))
def storage(request):
    return request.param


def storage_file(bag, storage):
    return bag / f"{bag.name}.{'mcap' if storage == 'mcap' else 'db3'}"


@pytest.mark.parametrize("count", [1, 300, 5000])
def test_round_trip(tmp_path, storage, count):
    recording = small_recording(count)
    bag = write_bag(tmp_path / "bag", recording, storage)
    assert_equal(read_bag(bag), recording)
    assert_equal(read_bag(storage_file(bag, storage)), recording)


def test_npz_to_mcap_to_sqlite3_to_npz(tmp_path):
    recording = small_recording()
    first = open_recording(write_npz(tmp_path / "a.npz", recording))
    second = open_recording(write_bag(tmp_path / "b", first, "mcap"))
    third = open_recording(write_bag(tmp_path / "c", second, "sqlite3"))
    assert_equal(open_recording(write_npz(tmp_path / "d.npz", third)), recording)


def test_real_recording_through_a_bag(tmp_path, storage):
    names = tuple("abcdef")
    recording = read_npz(shared_file("data/ur16e_press/ur_vertical_1.npz"), names)
    assert_equal(read_bag(write_bag(tmp_path / "bag", recording, storage)), recording)


def test_joints_by_name(tmp_path):
    recording = small_recording()
    bag = write_bag(tmp_path / "bag", recording)
    turned = read_bag(bag, JOINTS[::-1])
    np.testing.assert_array_equal(turned.q, recording.q[:, ::-1])
    np.testing.assert_array_equal(turned.truth["tau_ext"], recording.truth["tau_ext"][:, ::-1])
    with pytest.raises(RecordingError, match=r"nearest there: 'elbow_joint'"):
        read_bag(bag, (*JOINTS[:2], "elbow_jiont"))
    with pytest.raises(RecordingError, match=r"no joint 'fr3_joint1'"):
        read_bag(bag, ("fr3_joint1",))


class Bag:
    """Writes hand-made messages."""

    def __init__(self, path, storage="mcap"):
        self.path, self.writer = path, Writer(path, version=9, storage_plugin=getattr(StoragePlugin, storage.upper()))
        self.connections = {}

    def __enter__(self):
        self.writer.open()
        return self

    def __exit__(self, *_):
        self.writer.close()

    def topic(self, name, kind):
        self.connections[name] = self.writer.add_connection(name, kind, typestore=STORE)

    def header(self, stamp, frame):
        time = STORE.types["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9))
        return STORE.types["std_msgs/msg/Header"](time, frame)

    def write(self, topic, stamp, message, log=None):
        connection = self.connections[topic]
        self.writer.write(connection, stamp if log is None else log, STORE.serialize_cdr(message, connection.msgtype))

    def joints(self, topic, stamp, names, position, velocity=None, effort=None, log=None):
        arrays = [np.asarray(position if v is None else v, float) for v in (position, velocity, effort)]
        self.write(topic, stamp, STORE.types[JOINT_STATE](self.header(stamp, "base"), list(names), *arrays), log)

    def wrench(self, topic, stamp, frame, force):
        vector = STORE.types["geometry_msgs/msg/Vector3"]
        wrench = STORE.types["geometry_msgs/msg/Wrench"](vector(*map(float, force)), vector(0.0, 0.0, 0.0))
        self.write(topic, stamp, STORE.types[WRENCH](self.header(stamp, frame), wrench))


def test_another_publisher_on_the_topic_is_left_out(tmp_path, storage):
    with Bag(tmp_path / "bag", storage) as bag:
        bag.topic("/joint_states", JOINT_STATE)
        for k in range(20):
            bag.joints("/joint_states", 1 + 2 * k, ["gripper"], [9.0])
            bag.joints("/joint_states", 2 + 2 * k, ["a", "b"] if k % 2 else ["b", "a"], [k, -k] if k % 2 else [-k, k])
    recording = read_bag(tmp_path / "bag", ("a", "b"))
    np.testing.assert_array_equal(recording.q, np.outer(np.arange(20), [1, -1]))
    np.testing.assert_array_equal(recording.stamps_ns, 2 + 2 * np.arange(20))


def test_messages_without_effort(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        bag.topic("/joint_states", JOINT_STATE)
        bag.joints("/joint_states", 1, ["a", "b"], [1, 2], effort=[])
    with pytest.raises(RecordingError, match=r"effort has 0 entries for 2 joint names"):
        read_bag(tmp_path / "bag")


def test_zero_stamps(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        bag.topic("/joint_states", JOINT_STATE)
        for k in range(3):
            bag.joints("/joint_states", 0, ["a"], [1], log=k + 1)
    with pytest.raises(RecordingError, match=r"every header.stamp on /joint_states is zero"):
        read_bag(tmp_path / "bag")


def test_topics_are_chosen_or_asked_for(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        bag.topic("/arm/joint_states", JOINT_STATE)
        bag.joints("/arm/joint_states", 1, ["a"], [1])
    assert read_bag(tmp_path / "bag").q[0, 0] == 1
    with pytest.raises(RecordingError, match=r"no topic '/joint_state' \(nearest there: '/arm/joint_states'\)"):
        read_bag(tmp_path / "bag", joint_states="/joint_state")
    with pytest.raises(RecordingError, match=r"no topic '/ft' .*The bag has /arm/joint_states \(sensor_msgs"):
        read_bag(tmp_path / "bag", wrench="/ft")
    with pytest.raises(RecordingError, match=r"carries sensor_msgs/msg/JointState, expected geometry_msgs"):
        read_bag(tmp_path / "bag", wrench="/arm/joint_states")
    with Bag(tmp_path / "two") as bag:
        for k, name in enumerate(("/left", "/right")):
            bag.topic(name, JOINT_STATE)
            bag.joints(name, 1, ["a"], [k])
    with pytest.raises(RecordingError, match=r"several topics carry joint states; .*--joint-states.*/left.*right"):
        read_bag(tmp_path / "two")
    assert read_bag(tmp_path / "two", joint_states="/right").q[0, 0] == 1
    with Bag(tmp_path / "none") as bag:
        bag.topic("/point", POINT)
    with pytest.raises(RecordingError, match=r"no topic carries joint states. The bag has /point"):
        read_bag(tmp_path / "none")


def test_a_bag_of_franka_ros2_is_read_at_its_full_rate(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for topic, count in (("/joint_states", 1), ("/franka/joint_states", 5), ("/fr3_gripper/joint_states", 2)):
            bag.topic(topic, JOINT_STATE)
            for k in range(count):
                bag.joints(topic, k + 1, ["a"], [k])
    assert read_bag(tmp_path / "bag").q[:, 0].tolist() == [0, 1, 2, 3, 4]


def namespaced(path, spaces, prefix=""):
    """A bag of arms in namespaces, with wrench and truth, as record:=true of the launch writes it."""
    with Bag(path) as bag:
        for k, space in enumerate(spaces):
            states, truth, wrench = (
                space + topic for topic in ("/joint_states", TRUTH_TOPICS["tau_ext"][0], WRENCH_TOPIC)
            )
            for topic, kind in ((states, JOINT_STATE), (truth, JOINT_STATE), (wrench, WRENCH)):
                bag.topic(topic, kind)
            bag.wrench(wrench, 1, f"{prefix}base_link", (7.0, 0.0, 0.0))
            bag.joints(states, 1, [prefix + "a", prefix + "b"], [k, k])
            bag.joints(truth, 1, [prefix + "b", prefix + "a"], [0, 0], effort=[2, 1])
    return path


def test_a_bag_of_an_arm_in_a_namespace_behind_a_prefix_needs_no_renaming(tmp_path):
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    given = {"base_frame": "base_link", "rotation": lambda q: np.tile(turn, (len(q), 1, 1))}
    recording = read_bag(namespaced(tmp_path / "one", ["/left"], "left_"), ("a", "b"), **given)
    assert recording.joint_names == ("a", "b") and recording.truth["tau_ext"].tolist() == [[1, 2]]
    np.testing.assert_allclose(recording.wrench_tcp[0, :3], [0, -7, 0])
    two = namespaced(tmp_path / "two", ["/left", "/right"])
    with pytest.raises(RecordingError, match=r"several topics carry joint states; .*--joint-states"):
        read_bag(two, ("a", "b"))
    recording = read_bag(two, ("a", "b"), joint_states="/right/joint_states")
    assert recording.q.tolist() == [[1, 1]] and recording.truth["tau_ext"].tolist() == [[1, 2]]


def test_joints_of_two_arms_in_one_message_are_told(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        bag.topic("/joint_states", JOINT_STATE)
        bag.joints("/joint_states", 1, ["left_a", "left_b", "right_a", "right_b"], [1, 2, 3, 4])
    with pytest.raises(RecordingError, match=r"joints of several arms are there, behind 'left_', 'right_'"):
        read_bag(tmp_path / "bag", ("a", "b"))


def test_two_arms_on_one_topic_are_told(tmp_path):
    """Each message has one arm: their samples would alternate in the recording of one."""
    with Bag(tmp_path / "bag") as bag:
        bag.topic("/joint_states", JOINT_STATE)
        for k in range(10):
            for arm in ("left_", "right_"):
                bag.joints("/joint_states", k + 1, [arm + "a", arm + "b"], [1, 2])
    with pytest.raises(RecordingError, match=r"joints of several arms are there, behind 'left_' and 'right_'"):
        read_bag(tmp_path / "bag", ("a", "b"))
    recording = BagFile(tmp_path / "bag")  # without a robot the first message names the joints
    assert recording.head.joint_names == ("left_a", "left_b") and len(recording) == 10
    assert (
        len(recording.notes) == 1 and "10 messages of other joints are left out: right_a, right_b" in recording.notes[0]
    )


def test_topics_without_a_message_are_taken_for_absent(tmp_path, storage):
    """A recorder lists topics whose publishers said nothing, such as a sensor that is not there."""
    silent = {"/franka/joint_states": JOINT_STATE, WRENCH_TOPIC: WRENCH, "/left/joint_states": JOINT_STATE}
    silent |= {TRUTH_TOPICS["wrench_tcp"][0]: WRENCH, WRENCH_ZERO_TOPIC: WRENCH}
    with Bag(tmp_path / "bag", storage) as bag:
        for topic, kind in (silent | {"/joint_states": JOINT_STATE}).items():
            bag.topic(topic, kind)
        bag.joints("/joint_states", 1, ["a"], [1])
    recording = read_bag(tmp_path / "bag", ("a",))
    assert recording.q.tolist() == [[1]] and recording.wrench_tcp is None and not recording.truth
    with pytest.raises(RecordingError, match=r"wrench: holds no message"):
        read_bag(tmp_path / "bag", ("a",), wrench=WRENCH_TOPIC)


def slow_wrench(bag, frame):
    """Joint states every 2 ns, a wrench every 10 ns from 10 ns on."""
    bag.topic("/joint_states", JOINT_STATE)
    bag.topic(WRENCH_TOPIC, WRENCH)
    for stamp in range(2, 52, 2):
        bag.joints("/joint_states", stamp, ["a"], [stamp])
    for stamp in range(10, 60, 10):
        bag.wrench(WRENCH_TOPIC, stamp, frame, (stamp, 1, 2))


def test_wrench_at_another_rate_is_interpolated(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        slow_wrench(bag, "tool0")
    recording = read_bag(tmp_path / "bag", base_frame="base_link")
    early = recording.stamps_ns < 10
    assert np.isnan(recording.wrench_tcp[early]).all()
    np.testing.assert_allclose(recording.wrench_tcp[~early, 0], recording.stamps_ns[~early])


def test_wrench_in_base_axes_is_turned(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        slow_wrench(bag, "base_link")
    with pytest.raises(RecordingError, match=r"has base axes.*name the robot"):
        read_bag(tmp_path / "bag", base_frame="base_link")
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    recording = read_bag(tmp_path / "bag", base_frame="base_link", rotation=lambda q: np.tile(turn, (len(q), 1, 1)))
    np.testing.assert_allclose(recording.wrench_tcp[-1, :3], [1, -50, 2])


@pytest.mark.parametrize("frame", ["/base_link", "ur/base_link"])
def test_a_namespace_in_front_of_the_base_frame_changes_nothing(tmp_path, frame):
    with Bag(tmp_path / "bag") as bag:
        slow_wrench(bag, frame)
    with pytest.raises(RecordingError, match=r"has base axes.*name the robot"):
        read_bag(tmp_path / "bag", ("a",), base_frame="base_link")


@pytest.mark.parametrize("frame", ["ft300_base_link", "hand_base_link", "tool0"])
def test_the_base_of_a_sensor_is_not_the_base_of_the_robot(tmp_path, frame):
    """Its wrench has the TCP's axes: turned out of base axes it would be a wrong reference, without a word."""
    with Bag(tmp_path / "bag") as bag:
        slow_wrench(bag, frame)
    recording = read_bag(tmp_path / "bag", ("a",), base_frame="base_link", rotation=lambda q: np.zeros((len(q), 3, 3)))
    np.testing.assert_allclose(recording.wrench_tcp[-1, :3], [50, 1, 2])


def test_empty_bags(tmp_path, storage):
    with Bag(tmp_path / "bag", storage):
        pass
    with pytest.raises(RecordingError, match=r"the bag is empty"):
        read_bag(tmp_path / "bag")
    with Bag(tmp_path / "silent", storage) as bag:
        bag.topic("/joint_states", JOINT_STATE)
    with pytest.raises(RecordingError, match=r"/joint_states: holds no message"):
        read_bag(tmp_path / "silent")


@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_truncated_bags(tmp_path, storage, share):
    bag = write_bag(tmp_path / "bag", small_recording(3000), storage)
    file = storage_file(bag, storage)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    with pytest.raises(RecordingError, match=r"truncated or damaged.*recover"):
        read_bag(bag)


def test_a_recording_that_was_cut_off(tmp_path):
    bag = write_bag(tmp_path / "bag", small_recording())
    (bag / "metadata.yaml").unlink()
    with pytest.raises(RecordingError, match=r"contact-estimation convert"):
        read_bag(bag)
    shutil.rmtree(bag)
    with pytest.raises(RecordingError, match=r"no such file"):
        read_bag(bag)


def test_writer_refuses(tmp_path):
    (tmp_path / "bag").mkdir()
    with pytest.raises(RecordingError, match=r"exists already"):
        write_bag(tmp_path / "bag", small_recording())
    with pytest.raises(RecordingError, match=r"negative"):
        write_bag(tmp_path / "new", small_recording(start_ns=-5))
    assert not (tmp_path / "new").exists()


def test_stamps_out_of_order_are_kept_for_the_check(tmp_path):
    recording = small_recording(truth={})
    stamps = recording.stamps_ns.copy()
    stamps[5] = stamps[4]
    recording = dataclasses.replace(recording, stamps_ns=stamps)
    with pytest.raises(RecordingError, match=r"1 stamps repeat"):
        read_bag(write_bag(tmp_path / "bag", recording)).check()
