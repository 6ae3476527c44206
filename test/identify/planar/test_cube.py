"""Cube tosses: planted truth from a physics engine, the real recording, files that are not what they should be."""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shared import shared_file

from contact_estimation.exceptions import ConfigError, IdentificationError, RecordingError
from contact_estimation.identify.planar.cube import identify_cube, unexplained_rotation
from contact_estimation.identify.planar.flight_checks import centre_of_mass
from contact_estimation.identify.planar.tosses import CornerImpacts, corner_impacts, gauge, load_tosses

SIDE, RATE = 0.1048, 148.0
WORLD = """<mujoco><option timestep="0.0002" cone="elliptic"/><worldbody>
<geom type="plane" size="9 9 .1" friction=".25 0 0" solref="-3e4 -60" condim="3"/>
<body><freejoint/><inertial pos="0 0 0" mass=".37" diaginertia=".00081 .00081 .00081"/>
<geom type="box" size=".0524 .0524 .0524" friction=".25 0 0" condim="3" solref="-3e4 -60"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def simulated():
    """40 tosses of a cube with m/I 456.8 and friction 0.25, poses with a little noise."""
    model = mujoco.MjModel.from_xml_string(WORLD)
    data, rng, tosses = mujoco.MjData(model), np.random.default_rng(0), []
    for _ in range(40):
        mujoco.mj_resetData(model, data)
        quaternion = rng.standard_normal(4)
        data.qpos[:] = [0, 0, 0.2, *quaternion / np.linalg.norm(quaternion)]
        data.qvel[:] = [*0.8 * rng.standard_normal(2), -0.5, *4.0 * rng.standard_normal(3)]
        rows = []
        for k in range(60):
            while data.time < k / RATE:
                mujoco.mj_step(model, data)
            rows.append(data.qpos.copy())
        poses = np.array(rows)
        tosses.append(poses + rng.standard_normal(poses.shape) * np.array([3e-5] * 3 + [2e-4] * 4))
    return tosses


def test_planted_cube(simulated):
    report = identify_cube(simulated, SIDE, RATE, resamples=100)
    assert report.m_over_i == pytest.approx(456.8, rel=0.05)
    assert report.m_over_i_corner == pytest.approx(456.8, rel=0.05)
    assert report.friction == pytest.approx(0.25, abs=0.02) and report.unexplained < 0.03
    assert report.scale == pytest.approx(1.0, abs=0.005)


def test_the_length_unit_is_corrected_by_free_fall(simulated):
    shrunk = [np.hstack([toss[:, :3] / 1.05, toss[:, 3:]]) for toss in simulated]
    assert gauge(shrunk, SIDE, RATE).scale == pytest.approx(1.05, rel=0.005)
    exact = identify_cube(simulated, SIDE, RATE, resamples=2)
    assert identify_cube(shrunk, SIDE, RATE, resamples=2).m_over_i == pytest.approx(exact.m_over_i, rel=0.02)


def test_flight_tells_a_planted_centre_of_mass(simulated):
    planted = np.array([0.006, -0.004, 0.008])
    moved = [np.hstack([toss[:, :3] - Rotation.from_quat(toss[:, [4, 5, 6, 3]]).apply(planted), toss[:, 3:]])
             for toss in simulated]
    found = centre_of_mass(moved, SIDE, RATE)
    assert (found.error < 1e-3).all() and found.flights > 20
    np.testing.assert_allclose(found.centre, planted, atol=1e-3)
    with pytest.raises(IdentificationError, match="flies freely"):
        centre_of_mass([toss[:5] for toss in simulated], SIDE, RATE)


def test_corner_impacts_obey_the_moment_equation(simulated):
    impacts = corner_impacts(simulated, SIDE, RATE)
    np.testing.assert_allclose(np.linalg.norm(impacts.r, axis=1), SIDE * np.sqrt(3) / 2, rtol=1e-9)
    left = np.linalg.norm(impacts.dw - 456.8 * np.cross(impacts.r, impacts.dv), axis=1)
    assert np.median(left) < 0.1 * np.median(np.linalg.norm(impacts.dw, axis=1))


def test_a_rotation_is_explained_by_any_point_of_the_section():
    rng = np.random.default_rng(2)
    section, dv = 0.05 * rng.standard_normal((200, 3, 3)), rng.standard_normal((200, 3))
    weights = rng.dirichlet([1.0, 1.0, 1.0], 200)
    r = np.einsum("ni,nij->nj", weights, section)
    nothing = np.zeros(200)
    impacts = CornerImpacts(nothing, nothing, r, section, dv, 400.0 * np.cross(r, dv), r, r)
    assert unexplained_rotation(impacts, 400.0).max() < 1e-9
    assert np.mean(unexplained_rotation(impacts, 800.0)) > 0.1
    # Against brute force: the distance is the smallest over a fine net of points of the triangle.
    net = rng.dirichlet([0.6, 0.6, 0.6], 20000)
    points = 800.0 * np.cross(np.einsum("bi,nij->nbj", net, section[:20]), dv[:20, None])
    brute = np.linalg.norm(impacts.dw[:20, None] - points, axis=2).min(axis=1)
    found = unexplained_rotation(impacts, 800.0)[:20]
    assert (found <= brute + 1e-9).all()
    np.testing.assert_allclose(found, brute, atol=0.02 * np.abs(impacts.dw).max())


def test_real_tosses():
    tosses = load_tosses(shared_file("data/cube_tosses/cube_tosses_000_399.npz"))
    report = identify_cube(tosses, SIDE, RATE, resamples=100)
    assert report.impacts > 150 and 0.12 < report.friction < 0.22
    # What this recording says, not what its URDF says (457 1/m^2): see docs/identify_planar.md.
    assert report.m_over_i == pytest.approx(385.0, rel=0.04) and report.unexplained < 0.06
    assert report.scale == pytest.approx(1.021, abs=0.003) and abs(report.ground) < 5e-4


def test_files_that_are_not_as_expected(tmp_path, simulated):
    def saved(name, **arrays):
        np.savez(tmp_path / name, **arrays)
        return load_tosses(tmp_path / name)

    rows, one = np.tile([1.0, 0, 0, 0, 0, 0, 1], (9, 1)), {"start": np.array([0]), "length": np.array([9])}
    with pytest.raises(RecordingError, match="lacks start"):
        saved("lacks.npz", data=rows)
    with pytest.raises(RecordingError, match="stretches"):
        saved("range.npz", data=rows, start=np.array([0]), length=np.array([10]))
    with pytest.raises(RecordingError, match="whole numbers"):
        saved("fraction.npz", data=rows, start=np.array([0.5]), length=np.array([3]))
    with pytest.raises(RecordingError, match="expected"):
        saved("width.npz", data=rows[:, :6], **one)
    with pytest.raises(RecordingError, match="no pose"):
        saved("empty.npz", data=np.full((9, 13), np.nan), **one)
    with pytest.raises(RecordingError, match="quaternion w"):
        saved("order.npz", data=rows[:, [4, 5, 6, 0, 1, 2, 3]] * 0.3, **one)
    with pytest.raises(RecordingError, match="no such"):
        load_tosses(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(RecordingError, match="readable npz"):
        load_tosses(tmp_path / "text.npz")


def test_a_sample_that_is_missing_splits_its_toss(tmp_path):
    rows = np.tile([1.0, 0, 0, 0, 0, 0, 1], (9, 1))
    rows[4, 5] = np.nan
    np.savez(tmp_path / "gap.npz", data=rows, start=np.array([0]), length=np.array([9]))
    assert [len(toss) for toss in load_tosses(tmp_path / "gap.npz")] == [4, 4]


def test_arguments_that_cannot_be_used(simulated):
    with pytest.raises(ConfigError, match="side"):
        identify_cube(simulated, -1.0, RATE)
    with pytest.raises(IdentificationError, match="at least"):
        identify_cube(simulated[:1], SIDE, RATE)
    with pytest.raises(RecordingError, match="falls at"):
        identify_cube(simulated, SIDE, 130.0)
    scalar_last = [toss[:, [0, 1, 2, 4, 5, 6, 3]] for toss in simulated]
    with pytest.raises(IdentificationError, match="order w, x, y, z"):
        identify_cube(scalar_last, SIDE, RATE)
