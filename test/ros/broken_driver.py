"""Drivers with a defect, for tests of the node around them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm

REST = np.array([0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8])


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """It has none."""


class BreaksSoon:
    """A still FR3 whose reading fails after a second in a way that nobody foresaw."""

    live, commandable = True, False

    def __init__(self, arm: Arm, settings: NoSettings) -> None:
        self.joint_names, self._arm, self._left = tuple(arm.joint_names), arm, 0

    def connect(self) -> None:
        self._left = 500

    def read(self) -> Sample:
        self._left -= 1
        if self._left < 0:
            raise ZeroDivisionError("a defect")
        time.sleep(0.002)
        return Sample(time.time_ns(), REST, np.zeros(7), self._arm.gravity(REST))

    def equilibrium(self) -> None:
        return None

    def command(self, pose: EquilibriumPose) -> None:
        raise AssertionError("it takes none")

    def close(self) -> None:
        self._left = 0


class FallsSilent(BreaksSoon):
    """A still FR3 that sends no sample and names no problem."""

    def read(self) -> Sample:
        time.sleep(0.01)
        raise DriverError("no sample")


class EndsSoon(BreaksSoon):
    """A still FR3 whose samples end after a second, though nobody closed it."""

    def read(self) -> Sample | None:
        return super().read() if self._left > 0 else None


class CannotClose(BreaksSoon):
    """A still FR3 that cannot be closed the first time."""

    closed = 0

    def close(self) -> None:
        self.closed += 1
        if self.closed == 1:
            raise ValueError("a defect")
        super().close()


class CannotConnect(BreaksSoon):
    """An FR3 whose connection has a defect."""

    def connect(self) -> None:
        raise ValueError("a defect")
