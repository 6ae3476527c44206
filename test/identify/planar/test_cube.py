"""Cube tosses: planted truth from a physics engine, the real recording, files that are not what they should be."""

import mujoco
import numpy as np
import pytest
from shared import shared_file

from contact_estimation.exceptions import ConfigError, IdentificationError, RecordingError
from contact_estimation.identify.planar.cube import corner_impacts, identify_cube, load_tosses

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
    assert report.m_over_i == pytest.approx(456.8, rel=0.03)
    assert report.friction == pytest.approx(0.25, abs=0.02) and report.unexplained < 0.1
    assert report.interval[0] < report.m_over_i < report.interval[1]


def test_corner_impacts_obey_the_moment_equation(simulated):
    impacts = corner_impacts(simulated, SIDE, RATE)
    np.testing.assert_allclose(np.linalg.norm(impacts.r, axis=1), SIDE * np.sqrt(3) / 2, rtol=0.05)
    left = np.linalg.norm(impacts.dw - 456.8 * np.cross(impacts.r, impacts.dv), axis=1)
    assert np.median(left) < 0.1 * np.median(np.linalg.norm(impacts.dw, axis=1))


def test_real_tosses():
    tosses = load_tosses(shared_file("data/cube_tosses/cube_tosses_000_399.npz"))
    report = identify_cube(tosses, SIDE, RATE, resamples=100)
    assert report.impacts > 150 and 0.12 < report.friction < 0.22
    # What this recording says, not what its URDF says (457 1/m^2): see docs/identify_planar.md.
    assert report.m_over_i == pytest.approx(310.0, rel=0.06)


def test_files_and_arguments_that_cannot_be_used(tmp_path, simulated):
    np.savez(tmp_path / "lacks.npz", data=np.zeros((3, 13)))
    with pytest.raises(RecordingError, match="lacks start"):
        load_tosses(tmp_path / "lacks.npz")
    np.savez(tmp_path / "range.npz", data=np.zeros((3, 13)), start=np.array([0]), length=np.array([9]))
    with pytest.raises(RecordingError, match="stretches"):
        load_tosses(tmp_path / "range.npz")
    np.savez(tmp_path / "width.npz", data=np.zeros((3, 7)), start=np.array([0]), length=np.array([3]))
    with pytest.raises(RecordingError, match="expected"):
        load_tosses(tmp_path / "width.npz")
    with pytest.raises(RecordingError, match="no such"):
        load_tosses(tmp_path / "absent.npz")
    with pytest.raises(ConfigError, match="side"):
        identify_cube(simulated, -1.0, RATE)
    with pytest.raises(IdentificationError, match="at least"):
        identify_cube(simulated[:1], SIDE, RATE)
