"""Planted friction, scale, armature and payload are found; what is no free motion of this robot is refused."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from fit.calibration.planted import ARMATURE, PAYLOAD, TRUTH, excitation, free_motion

from contact_estimation.exceptions import ConfigError, IdentificationError, RecordingError
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.effort import with_total_torque
from contact_estimation.fit.calibration.model import design
from contact_estimation.fit.calibration.motion import prepare
from contact_estimation.fit.calibration.outcome import as_yaml, calibration
from contact_estimation.fit.calibration.settings import Calibration
from contact_estimation.fit.calibration.validation import cross_validate, shrinkage
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_yaml

SETTINGS = CalibrationSettings()


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def recordings(arm):
    return [free_motion(arm, seed=seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def found(arm, recordings):
    return identify(arm, recordings, SETTINGS)


def test_the_planted_parameters_are_found_within_their_intervals(arm, found):
    result, friction = calibration(arm, found, SETTINGS), calibration(arm, found, SETTINGS).friction
    np.testing.assert_allclose(np.array(friction.viscous) + arm.motor.viscous, TRUTH.viscous, rtol=0.05)
    for name, tolerance in (("coulomb", 0.05), ("torque_scale", 0.03), ("presliding", 0.25)):
        weighed = found.weighed if name == "torque_scale" else np.full(arm.n, True)
        np.testing.assert_allclose(
            np.array(getattr(friction, name))[weighed],
            np.array(getattr(TRUTH, name))[weighed],
            rtol=tolerance,
            err_msg=name,
        )
    np.testing.assert_allclose(friction.bias, TRUTH.bias, atol=0.25)
    np.testing.assert_allclose(result.armature, ARMATURE, rtol=0.15)
    assert result.payload.mass == pytest.approx(PAYLOAD[0], abs=0.15)
    np.testing.assert_allclose(result.payload.com, PAYLOAD[1], atol=0.01)
    gain = 1 / np.array(TRUTH.torque_scale)
    errors = np.concatenate(
        [
            (found.value(name) - np.array(getattr(TRUTH, name)) * gain) / found.std(name)
            for name in ("viscous", "coulomb", "bias", "asymmetry")
        ]
    )
    assert np.mean(np.abs(errors) < 1.96) > 0.8  # 24 intervals of 95 %, not independent


@pytest.mark.parametrize("seconds, colour", [(15.0, 0.98), (15.0, 0.995), (30.0, 0.98)])
def test_intervals_of_short_recordings_cover_the_truth(arm, seconds, colour):
    """Twelve recordings, residuals that last up to 2 s, 34 intervals each: friction, bias, rotor inertia, payload."""
    gain, hits = 1 / np.array(TRUTH.torque_scale), []
    truth = {name: np.array(getattr(TRUTH, name)) * gain for name in ("viscous", "coulomb", "bias", "asymmetry")}
    truth["armature"], truth["payload"] = ARMATURE * gain, np.array([PAYLOAD[0], *PAYLOAD[0] * PAYLOAD[1]])
    for seed in range(20, 32):
        found = identify(arm, [free_motion(arm, seconds=seconds, seed=seed, colour=colour)], SETTINGS)
        hits.append(np.concatenate([np.abs(found.value(k) - v) < 1.96 * found.std(k) for k, v in truth.items()]))
    assert 0.89 < np.mean(hits) < 0.995, np.mean(hits)


def test_breakaway_lengths_are_within_their_intervals(arm, found):
    errors = (found.value("log_presliding") - np.log(TRUTH.presliding)) / found.std("log_presliding")
    assert np.sqrt(np.mean(errors**2)) < 1.5


def test_a_load_far_from_the_flange_does_not_turn_into_rotor_inertia(arm):
    """A point mass has a second moment about the flange, 0.016 kg m^2 here; the wrists' rotors have 0.45 and 0.5."""
    quiet = identify(arm, [free_motion(arm, seed=seed, noise=0.002) for seed in (0, 1)], SETTINGS)
    np.testing.assert_allclose(quiet.value("armature")[3:5], ARMATURE[3:5], atol=0.004)


def test_the_ends_of_a_recording_are_as_good_as_its_middle(arm):
    """A zero-phase filter lacks what is beyond the ends; without noise or friction all residuals are then of it."""
    t, q, dq, ddq = excitation(arm, 10.0, 5)
    tau = np.array([pin.rnea(arm.model, arm.model.createData(), *state) for state in zip(q, dq, ddq)])
    d = design(arm, prepare(Recording(np.round(t * 1e9).astype(np.int64), arm.joint_names, q, dq, tau, "clean"), 6.0))
    assert np.abs(d.motion.tau - d.rigid).max() < 0.3


def test_what_was_not_seen_is_predicted_far_better_than_by_the_rigid_model(arm, found):
    ratio = shrinkage(cross_validate(arm, found.designs, SETTINGS))
    assert (ratio < 0.25).all(), ratio


def test_a_single_recording_is_validated_on_its_halves(arm, found):
    halves = cross_validate(arm, found.designs[:1], SETTINGS)
    assert [p.source.split("(")[1] for p in halves] == ["first half)", "second half)"]
    assert (shrinkage(halves) < 0.4).all()


def test_outliers_do_not_move_the_result(arm, recordings, found):
    rng = np.random.default_rng(0)
    tau = recordings[0].tau.copy()
    for start in rng.integers(0, len(tau) - 10, 12):  # 10-60 Nm spikes of 20 ms, as at every stop of the UR
        tau[start : start + 4, 1] += rng.uniform(10, 60) * rng.choice([-1, 1])
    spiked = identify(arm, [dataclasses.replace(recordings[0], tau=tau), recordings[1]], SETTINGS)
    moved = np.abs(spiked.value("coulomb") - found.value("coulomb")) / found.std("coulomb")
    assert moved.max() < 1.0


def test_the_written_file_loads_and_carries_intervals(arm, found, tmp_path):
    result = calibration(arm, found, SETTINGS)
    text = as_yaml(arm, result, found, "Written by a test")
    (tmp_path / "c.yaml").write_text(text)
    loaded = from_yaml(Calibration, tmp_path / "c.yaml")
    np.testing.assert_allclose(loaded.friction.coulomb, result.friction.coulomb, rtol=1e-4)
    assert text.startswith("# Written by a test\n") and text.count("# 95 %:") == 7
    loaded.friction.check_joints(arm.n, arm.name)


def test_contact_in_the_recording_is_refused(arm):
    pushed = free_motion(arm, seconds=20, seed=4, contact=(8.0, 10.0, [0.0, 0.0, 80.0]))
    with pytest.raises(IdentificationError, match=r"contact at (7\.[89]|8|9)\d*.* N at the TCP.*condition number"):
        identify(arm, [pushed], SETTINGS)


def test_a_measured_contact_is_refused_at_once(arm, recordings):
    wrench = np.zeros((len(recordings[0]), 6))
    wrench[2000:2100, 2] = -40.0
    with pytest.raises(IdentificationError, match=r"contact at 10.0 s: the force sensor reads 40 N"):
        identify(arm, [dataclasses.replace(recordings[0], wrench_tcp=wrench)], SETTINGS)


def test_a_saturated_torque_is_named(arm, recordings):
    tau = recordings[0].tau.copy()
    limit = 0.8 * np.abs(tau[:, 3]).max()
    tau[:, 3] = np.clip(tau[:, 3], -limit, limit)
    with pytest.raises(IdentificationError, match=r"torque of wrist_1_joint is saturated: \d+ % .* Nm"):
        identify(arm, [dataclasses.replace(recordings[0], tau=tau)], SETTINGS)


def test_a_coarse_torque_is_not_saturated(arm, recordings):
    coarse = [dataclasses.replace(r, tau=np.round(r.tau / 0.5) * 0.5) for r in recordings]
    identify(arm, coarse, SETTINGS)


def test_a_smooth_peak_of_a_coarse_torque_has_at_most_two_and_a_half_times_the_samples_beside_it():
    """What saturation may not be confused with: (sqrt(2) + 1) wherever the steps lie below the peak."""
    t = np.linspace(-1.0, 1.0, 200_001)
    ratios = []
    for offset in np.linspace(0.0, 0.99, 34):
        _, counts = np.unique(np.round(20.0 * np.cos(t) + offset), return_counts=True)
        ratios.append(counts[-1] / counts[-2])
    assert 2.3 < max(ratios) < 2.5


def test_a_joint_that_does_not_move_is_named(arm, recordings):
    q, dq = recordings[0].q.copy(), recordings[0].dq.copy()
    q[:, 4], dq[:, 4] = 0.7, 0.0
    with pytest.raises(IdentificationError, match=r"wrist_2_joint moves over .* rad only.*condition number"):
        identify(arm, [dataclasses.replace(recordings[0], q=q, dq=dq)], SETTINGS)


def test_a_joint_that_moves_one_way_only_is_named(arm, recordings):
    q = recordings[0].q.copy()
    q[:, 0] = 0.03 * recordings[0].t
    with pytest.raises(IdentificationError, match=r"of shoulder_pan_joint cannot be distinguished .condition number"):
        identify(arm, [dataclasses.replace(recordings[0], q=q)], SETTINGS)


@pytest.mark.parametrize(
    "made_with, read_as, words",
    [
        ("ur10e", "ur16e", "the torque of [a-z_0-9]* is .* times what the gravity of robot 'ur16e' asks for"),
        ("ur16e", "ur10e", "seems to carry -.* kg, a negative mass: the torque of shoulder_lift_joint"),
    ],
)
def test_another_robot_is_refused_with_the_joint(made_with, read_as, words):
    """Both have the same chain and joint names."""
    recording = free_motion(load_arm(made_with), seconds=20, seed=2, payload=False)
    with pytest.raises(IdentificationError, match=f"{words}.*condition number"):
        identify(load_arm(read_as), [recording], SETTINGS)


def test_positions_beyond_the_limits_are_another_robots(arm, recordings):
    q = recordings[0].q.copy()
    q[:, 2] += 3.0
    with pytest.raises(
        IdentificationError, match=r"elbow_joint goes .* rad beyond the limits of robot 'ur16e'.*another robot"
    ):
        identify(arm, [dataclasses.replace(recordings[0], q=q)], SETTINGS)


def test_scale_and_links_at_once_are_refused(arm, recordings):
    with pytest.raises(IdentificationError, match="'links' and 'scale' cannot be distinguished"):
        identify(arm, recordings, CalibrationSettings(identify=["scale", "links"]))


def test_link_corrections_explain_a_heavier_link(arm):
    """A payload the calibration is not told about ends up in the links, and the torque is still explained."""
    recording = free_motion(arm, seconds=20, seed=7)
    without = identify(arm, [recording], CalibrationSettings(identify=["armature"]))
    links = identify(arm, [recording], CalibrationSettings(identify=["armature", "links"], link_std=0.5))
    assert (links.std_residual[1:3] < 0.5 * without.std_residual[1:3]).all()


@pytest.mark.parametrize(
    "count, rate, words", [(100, 200.0, "too short to calibrate from"), (200, 20.0, "sampled at 20 Hz, a cut-off")]
)
def test_short_and_slow_recordings_are_refused(arm, recordings, count, rate, words):
    r = recordings[0]
    cut = dataclasses.replace(
        r, stamps_ns=np.arange(count) * int(1e9 / rate), q=r.q[:count], dq=r.dq[:count], tau=r.tau[:count]
    )
    with pytest.raises(RecordingError, match=words):
        identify(arm, [cut], SETTINGS)


def test_effort_becomes_total_torque(arm, recordings):
    r = dataclasses.replace(
        recordings[0],
        stamps_ns=recordings[0].stamps_ns[:20],
        **{name: getattr(recordings[0], name)[:20] for name in ("q", "dq", "tau")},
    )
    current = dataclasses.replace(r, tau=r.tau / arm.motor.drive_gain)
    np.testing.assert_allclose(with_total_torque(arm, SensorSettings(torque_unit="A"), current).tau, r.tau)
    gravity = np.array([arm.gravity(q) for q in r.q])
    compensated = dataclasses.replace(r, tau=r.tau - gravity)
    np.testing.assert_allclose(
        with_total_torque(arm, SensorSettings(torque_meaning="gravity_compensated"), compensated).tau, r.tau
    )
    np.testing.assert_allclose(with_total_torque(arm, SensorSettings(torque_scale=[2.0] * 6), r).tau, 2 * r.tau)
    with pytest.raises(IdentificationError, match="friction and gravity are gone"):
        with_total_torque(arm, SensorSettings(torque_meaning="external"), r)
    with pytest.raises(ConfigError, match="torque_scale has 2 entries"):
        with_total_torque(arm, SensorSettings(torque_scale=[1.0, 1.0]), r)
