"""What the driver's tests share."""

from __future__ import annotations

import pytest

from contact_estimation.drivers.rtde_link import RtdeLink
from contact_estimation.robot import load_arm


@pytest.fixture(scope="session")
def arm():
    return load_arm("ur16e")


@pytest.fixture
def patience(monkeypatch):
    """A client process may start slowly where the machine is busy."""
    monkeypatch.setattr(RtdeLink, "START_TIMEOUT", 8.0)
