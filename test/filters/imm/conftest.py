"""Filters of one and two contacts on a UR16e."""

import pytest

from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.settings import ImmSettings, UnknownContactSettings
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import load_actuators

ALL = ["stiffness", "rest", "normal", "point", "tangential"]


@pytest.fixture(scope="session")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="session")
def actuators():
    return load_actuators("ur16e")


@pytest.fixture(scope="session")
def two_contacts():
    """One contact that slides with everything estimated, and a second one sideways that sticks, its rest height
    given."""
    return ImmSettings(
        unknown=UnknownContactSettings(filters=0),
        contacts=[
            ImmContact(
                name="table", normal=[0.0, 0.1, 1.0], estimate=ALL, point_std=[0.02, 0.02, 0.01], friction_std=0.1
            ),
            ImmContact(
                name="wall",
                normal=[1.0, 0.0, 0.0],
                estimate=["stiffness", "rest", "tangential"],
                rest=0.4,
                law="sticking",
            ),
        ],
    )


@pytest.fixture(scope="session")
def layout(two_contacts, actuators):
    return StateLayout(two_contacts, actuators, 6)
