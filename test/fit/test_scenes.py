"""The unbiased fit on simulated scenes: where the tool touches, and where two surfaces are."""

import dataclasses

import numpy as np
import pytest
from contact_scenes import POINT, STIFFNESS, table_and_wall, turning

from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.fit.unbiased import UnbiasedSettings, fit_unbiased
from contact_estimation.robot import load_arm

NORMALS = {"table": [0.0, 0.0, 1.0], "wall": [-1.0, 0.0, 0.0]}


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


@pytest.fixture(scope="module")
def turned():
    return turning()


def fit(arm, recording, normals, estimate):
    settings = load_observer_settings("ekf")
    one = dataclasses.replace(settings.contacts[0], estimate=[])
    contacts = [
        dataclasses.replace(one, name=name, stiffness=(1e4 * np.array(normal)).tolist())
        for name, normal in normals.items()
    ]
    return fit_unbiased(
        arm,
        dataclasses.replace(settings, contacts=contacts),
        load_sensor_settings("joint_torque"),
        [recording],
        UnbiasedSettings(estimate=estimate),
    )


@pytest.mark.parametrize("extra, error", [((), 5e-3), (("tangential",), 1e-3)])
def test_the_point_of_a_turning_tool_is_found_from_13_cm_away(arm, turned, extra, error):
    recording, (place,) = turned
    result = fit(arm, recording, {"spot": [0.0, 0.0, 1.0]}, ("stiffness", "rest", "point", *extra)).contacts[0]
    assert np.linalg.norm(np.array(result.contact.point) - POINT) < error
    if extra:
        np.testing.assert_allclose(result.rests[0], place, atol=3e-4)
        assert 0.5 < result.tangential < 1.5  # the spot is as stiff sideways


def test_a_table_and_a_wall_are_found_where_they_are(arm):
    recording, places = table_and_wall()
    found = fit(arm, recording, NORMALS, ("stiffness", "rest"))
    for result, place, normal in zip(found.contacts, places, NORMALS.values()):
        assert np.dot(normal, result.rests[0]) == pytest.approx(np.dot(normal, place), abs=5e-4)
        assert result.stiffness == pytest.approx(STIFFNESS, rel=0.4)
    assert found.contacts[0].stiffness == pytest.approx(STIFFNESS, rel=0.05)  # pressed without the other as well
    assert [len(turn) for turn in found.passes] == [2] * len(found.passes)
