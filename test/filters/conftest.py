"""A UR16e, and a stream of its samples."""

import pytest
from stream_feed import Feed

from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture
def feed(arm):
    return Feed(arm)
