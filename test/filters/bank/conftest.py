"""Banks of one and two contacts on a UR16e."""

import pytest

from contact_estimation.filters.bank.layout import BankLayout
from contact_estimation.filters.bank.settings import BankContact, BankSettings, load_drive_settings
from contact_estimation.robot import load_arm

ALL = ["stiffness", "rest", "normal", "point", "tangential"]


@pytest.fixture(scope="session")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="session")
def drives():
    return load_drive_settings("ur16e")


@pytest.fixture(scope="session")
def two_contacts():
    """One contact that slides with everything estimated, and a second one sideways that sticks, its rest height
    given."""
    return BankSettings(
        contacts=[
            BankContact(
                name="table", normal=[0.0, 0.1, 1.0], estimate=ALL, point_std=[0.02, 0.02, 0.01], friction_std=0.1
            ),
            BankContact(
                name="wall", normal=[1.0, 0.0, 0.0], estimate=["stiffness", "rest", "tangential"], rest=0.4, sticks=True
            ),
        ]
    )


@pytest.fixture(scope="session")
def layout(two_contacts, drives):
    return BankLayout(two_contacts, drives, 6)
