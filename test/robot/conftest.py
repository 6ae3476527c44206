"""The two arms that every test of this room runs on."""

import pytest

from contact_estimation.robot import load_arm


@pytest.fixture(scope="session", params=["ur16e", "fr3"])
def arm(request):
    return load_arm(request.param)
