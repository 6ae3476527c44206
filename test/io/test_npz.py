"""Recordings as .npz archives."""

import numpy as np
import pytest
from recordings import JOINTS, assert_equal, small_recording
from shared import shared_file

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.npz import read_npz, write_npz


@pytest.fixture
def arrays():
    rng = np.random.default_rng(1)
    return {"t": np.arange(50) / 500, **{name: rng.normal(size=(50, 3)) for name in ("q", "dq", "tau", "f_tcp")}}


@pytest.fixture
def saved(tmp_path):
    def save(**data):
        np.savez(tmp_path / "r.npz", **data)
        return tmp_path / "r.npz"

    return save


def test_round_trip(tmp_path):
    recording = small_recording()
    path = write_npz(tmp_path / "deep" / "r.data", recording, extra=lambda block: {"x_tcp": np.ones((len(block), 3))})
    assert_equal(read_npz(path), recording)
    assert np.load(path)["x_tcp"].shape == (300, 3)


def test_columns_without_names_take_the_robots_names(saved, arrays):
    recording = read_npz(saved(**arrays), JOINTS)
    assert recording.joint_names == JOINTS
    np.testing.assert_array_equal(recording.q, arrays["q"])
    np.testing.assert_array_equal(recording.wrench_tcp[:, :3], arrays["f_tcp"])
    assert np.isnan(recording.wrench_tcp[:, 3:]).all()


def test_columns_without_any_name(saved, arrays):
    with pytest.raises(RecordingError, match=r"does not name its 3 joints .*--robot"):
        read_npz(saved(**arrays))


def test_named_columns_are_reordered(tmp_path):
    recording = small_recording()
    turned = read_npz(write_npz(tmp_path / "r.npz", recording), JOINTS[::-1])
    np.testing.assert_array_equal(turned.tau, recording.tau[:, ::-1])


def test_wrong_number_of_joints(saved, arrays):
    with pytest.raises(RecordingError, match=r"has 3 joints, but 4 were expected .*--robot"):
        read_npz(saved(**arrays), ("a", "b", "c", "d"))


def test_missing_key(saved, arrays):
    del arrays["tau"]
    with pytest.raises(RecordingError, match=r"key tau is missing.*this archive has t, q"):
        read_npz(saved(**arrays))


def test_no_stamps_need_a_rate(saved, arrays):
    del arrays["t"]
    path = saved(**arrays)
    with pytest.raises(RecordingError, match=r"no stamps.*--rate"):
        read_npz(path, JOINTS)
    np.testing.assert_allclose(read_npz(path, JOINTS, rate=30.0).t, np.arange(50) / 30, atol=1e-9)


def test_bad_stamps(saved, arrays):
    arrays["t"][4] = np.nan
    with pytest.raises(RecordingError, match=r"1 stamps in t are NaN"):
        read_npz(saved(**arrays), JOINTS)


def test_flat_or_unequal_arrays(saved, arrays):
    with pytest.raises(RecordingError, match=r"q has shape \(150,\)"):
        read_npz(saved(**(arrays | {"q": arrays["q"].ravel()})))
    with pytest.raises(RecordingError, match=r"torque_tcp has shape \(49, 3\), expected \(50"):
        read_npz(saved(**arrays, torque_tcp=np.zeros((49, 3))), JOINTS)
    with pytest.raises(RecordingError, match=r"f_tcp has shape \(49, 3\)"):
        read_npz(saved(**(arrays | {"f_tcp": np.zeros((49, 3))})), JOINTS)
    with pytest.raises(RecordingError, match=r"f_tcp has shape \(50, 2\), expected \(50, 3\)"):
        read_npz(saved(**(arrays | {"f_tcp": np.zeros((50, 2))})), JOINTS)
    with pytest.raises(RecordingError, match=r"tau has shape \(50, 2\), expected \(50, 3\)"):
        read_npz(saved(**(arrays | {"tau": np.zeros((50, 2))})), JOINTS)


def test_force_in_base_axes_is_turned(saved, arrays):
    arrays["f_base"] = arrays.pop("f_tcp")
    path = saved(**arrays)
    assert read_npz(path, JOINTS).wrench_tcp is None
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])  # TCP x is base y
    force = read_npz(path, JOINTS, rotation=lambda q: np.tile(turn, (len(q), 1, 1))).wrench_tcp[:, :3]
    np.testing.assert_allclose(force, arrays["f_base"][:, [1, 0, 2]] * [1, -1, 1])


def test_pickled_objects_are_never_loaded(tmp_path, arrays):
    np.savez(tmp_path / "evil.npz", **(arrays | {"q": np.array([{"a": 1}], dtype=object)}))
    with pytest.raises(RecordingError, match=r"never loaded"):
        read_npz(tmp_path / "evil.npz")


def test_truncated(saved, arrays):
    path = saved(**arrays)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(RecordingError, match=r"truncated"):
        read_npz(path)


def test_real_recording():
    recording = read_npz(shared_file("data/ur16e_press/ur_vertical_1.npz"), tuple("abcdef"))
    assert recording.q.shape == (4899, 6) and recording.period == 0.002
    recording.check(max_gap=0.003)
    assert recording.wrench_tcp[:, 2].min() < -60 and abs(recording.wrench_zero[2] - 3.78) < 0.01


def test_real_recording_of_seven_joints_without_stamps():
    path = shared_file("data/franka_press/franka_contact.npz")
    assert read_npz(path, tuple("abcdefg"), rate=30.0).q.shape == (1164, 7)
    with pytest.raises(RecordingError, match=r"7 joints, but 6"):
        read_npz(path, tuple("abcdef"), rate=30.0)


@pytest.mark.parametrize("names", [JOINTS, None], ids=["named", "unnamed"])
def test_transposed_arrays_are_called_so(saved, arrays, names):
    arrays |= {name: arrays[name].T for name in ("q", "dq", "tau")}
    with pytest.raises(
        RecordingError, match=r"q has shape \(3, 50\), expected \(samples, joints\): transpose q, dq and"
    ):
        read_npz(saved(**arrays), names)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"t": 1.7e18 + 2e6 * np.arange(50)}, r"is it in nanoseconds\? .*stamps_ns"),
        ({"t": 1.7e12 + 2 * np.arange(50)}, "is it in milliseconds"),
        ({"t": (1.7e9 + np.arange(50) / 500).astype(np.float32)}, r"t is float32, .* only to 1e\+02 s; .*float64"),
        ({"stamps_ns": 1.7e9 + np.arange(50) / 500}, "whole nanoseconds.* for seconds give"),
        ({"joint_names": np.array([*JOINTS, "gripper"])}, r"joint_names has 4 names .*q has 3 columns"),
    ],
)
def test_times_and_names_that_do_not_fit_say_how_to_mend_them(saved, arrays, change, said):
    with pytest.raises(RecordingError, match=said):
        read_npz(saved(**arrays | {"joint_names": np.array(JOINTS)} | change))


def test_seconds_from_zero_may_be_float32(saved, arrays):
    recording = read_npz(saved(**arrays | {"t": arrays["t"].astype(np.float32)}), JOINTS)
    assert recording.duration == pytest.approx(49 / 500, rel=1e-6)
