"""Is the effort signal what the configuration says? Compared with gravity over the first samples, by magnitude."""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm

#: A rival reading must explain gravity this much better before it is believed.
_FACTOR = 0.3
#: [Nm] gravity must be felt for the comparison to mean anything.
_MIN_GRAVITY = 20.0


class TorqueUnitCheck:
    """Accumulates squared misfits of the configured reading of the effort and of its rivals against G(q).

    A contact force cannot trigger it: it shifts every reading's misfit alike, while a wrong unit or meaning misses all
    of gravity.
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, seconds: float = 0.4):
        self._arm, self._gain = arm, arm.motor.drive_gain
        self._configured = "current [A]" if sensors.torque_unit == "A" else "torque [Nm]"
        self._meaning, self._wanted = sensors.torque_meaning, max(int(seconds * sensors.rate), 1)
        self.restart()

    def restart(self) -> None:
        """Begin again with the next sample."""
        self._count, self._gravity = 0, 0.0
        self._misfit = {}

    @property
    def done(self) -> bool:
        """Whether enough samples were seen."""
        return self._count >= self._wanted

    def add(self, q: np.ndarray, effort: np.ndarray) -> None:
        """Take the raw effort (n,) of one sample."""
        gravity = self._arm.gravity(q)
        readings = {"torque [Nm]": effort}
        if self._gain is not None:
            readings["current [A]"] = effort * self._gain
        for name, torque in readings.items():
            self._accumulate(name, "total", torque - gravity)
            self._accumulate(name, "gravity_compensated", torque)
        self._gravity += float(gravity @ gravity)
        self._count += 1

    def _accumulate(self, name, meaning, error):
        self._misfit[name, meaning] = self._misfit.get((name, meaning), 0.0) + float(error @ error)

    def problem(self) -> str:
        """Why the configured reading cannot be right, or an empty string."""
        if not self._count or np.sqrt(self._gravity / self._count) < _MIN_GRAVITY:
            return ""
        meaning = "total" if self._meaning == "total" else "gravity_compensated"
        own = self._misfit[self._configured, meaning]
        rivals = {(self._configured, "total" if meaning != "total" else "gravity_compensated")}
        rivals |= {(name, meaning) for name, kind in self._misfit if kind == meaning and name != self._configured}
        # Another unit first: numbers as small as currents also look like a gravity-compensated torque, not the other
        # way.
        for name, kind in sorted(rivals, key=lambda rival: rival[0] == self._configured):
            # A gravity-compensated reading of nearly nothing fits any small number: only total readings prove a unit.
            if name != self._configured and kind != "total":
                continue
            if self._misfit[name, kind] < _FACTOR**2 * own:
                error, better = np.sqrt(own / self._count), np.sqrt(self._misfit[name, kind] / self._count)
                return (f"the effort is configured as {self._configured}, {self._meaning}, but misses gravity by "
                        f"{error:.0f} Nm; read as {name}, {kind} it misses by {better:.0f} Nm. Correct torque_unit or "
                        f"torque_meaning in the sensor settings, or the driver")
        return ""
