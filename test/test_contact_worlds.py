"""The worlds of the benchmarks: what their gears do under a load that comes and goes."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmark"))
from rigid_body_recording import STRENGTH, Gears, World


def test_a_load_that_grows_is_behind_the_spring_and_one_that_falls_ahead_of_it():
    gears, top = Gears("ur16e", World(hysteresis=1e-4)), 0.3 * np.array(STRENGTH["ur16e"])

    def beside(path):
        """Deflection beside the spring's line [rad] at the middle of a ``path`` of loads, in shares of the top."""
        for share in path:
            found = gears.deflection(share * top) - share * top / gears.stiffness
            gears.load(share * top)
            if share == 0.0:
                middle = found
        return middle

    up = np.linspace(-1, 1, 401)
    beside(up)
    np.testing.assert_allclose(beside(up[::-1]), 1e-4, rtol=1e-9)
    np.testing.assert_allclose(beside(up), -1e-4, rtol=1e-9)


@pytest.mark.parametrize("robot, world", [("ur16e", World()), ("fr3", World(hysteresis=1e-4))])
def test_gears_without_hysteresis_or_without_elasticity_have_none(robot, world):
    gears, torque = Gears(robot, world), np.array(STRENGTH[robot])
    gears.load(torque)
    np.testing.assert_allclose(gears.deflection(-torque), -torque / gears.stiffness, atol=1e-15)
