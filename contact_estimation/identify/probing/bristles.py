"""The bristle state: friction follows the direction of sliding over a distance, not at once.

Before a contact slides it deflects. Bristles of tangential stiffness sigma stretch with the tip's motion, z' = v, up to
the length mu N / sigma at which they slide (the elastic-plastic limit of Dahl's and LuGre's law). Beyond it friction is
mu N against z, and z follows the tip like a rope of that length. If the direction of sliding changes, z approaches it
as exp(-distance / length). An example is 15 N of friction and 20 kN/m, a length of 0.75 mm: 3 mm after a corner of 90
degrees friction is still 2 degrees off.

Noise of the twist turns the bristles, and the effect lasts for that length. The error across the bristles [m] is
therefore a state of the filter, one per surface, correlated with the motion. Updates transfer it to the bristles' mean,
so its own mean stays zero.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contact_estimation.codegen.native import load_native
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.identify.probing.update import bind, wrench_library

#: Parts of one sample over which the deflection is integrated, so that the result does not depend on the rate.
_PARTS = 16
#: Least length [m], that of an unloaded contact; a deflection below it has no direction.
_SHORTEST = 1e-9


class Drag(NamedTuple):
    """Deflections after a sample, and the factors of the error across them.

    Attributes:
        deflection: (contacts, 3) [m].
        kept: (contacts,) factor on the error before the sample.
        begin: (contacts,) [s] factor on the error of the tangential velocity at the begin of the sample.
        end: (contacts,) [s] the same at its end.
    """

    deflection: np.ndarray
    kept: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def drag(deflection: np.ndarray, begin: np.ndarray, end: np.ndarray, dt: float, length: np.ndarray) -> Drag:
    """Draw the bristles behind their tips for one sample, during which the velocity changes linearly.

    Args:
        deflection: (contacts, 3) [m], world axes; friction acts against it.
        begin: tangential velocities (contacts, 3) [m/s] at the begin of the sample.
        end: the same at its end.
        dt: length of the sample [s].
        length: (contacts,) deflection [m] at which each contact slides.
    """
    moved, weights = np.empty_like(deflection), np.empty((3, len(deflection)))
    given = [np.ascontiguousarray(array, dtype=float) for array in (deflection, begin, end, length)]
    results = moved.ctypes.data, weights.ctypes.data
    _native().ce_drag(len(moved), _PARTS, dt, _SHORTEST, *(array.ctypes.data for array in given), *results)
    return Drag(moved, *weights)


@functools.cache
def _native() -> ctypes.CDLL:
    library = load_native("bristles", (Path(__file__).parent / "bristles.c").read_text())
    whole, real, pointer = ctypes.c_int, ctypes.c_double, ctypes.c_void_p
    library.ce_drag.restype, library.ce_drag.argtypes = None, [whole, whole, real, real, *[pointer] * 6]
    return library


class BristleState:
    """Bristles of every contact: their mean deflection, and their error's part in the filter's covariance.

    Args:
        model: a spatial model.
        stiffness: tangential stiffness of a contact before it slides [N/m].
        error: indices of the error across the bristles in the filter's state.
        kinematic: indices of pose and twist.
    """

    def __init__(self, model: SpatialModel, stiffness: float, error: slice, kinematic: slice) -> None:
        self._model, self._stiffness, self._library = model, stiffness, wrench_library(model)
        self._error, self._kinematic = error, kinematic
        self._first = list(model.bristle_contacts)
        self._surfaces = [model.surface_of(i) for i in range(model.contacts)]
        self.deflection, self._velocities, self._across = np.zeros((3, model.contacts, 3))
        self._length = np.zeros(model.contacts)
        self._rows, self._shared = np.zeros((2, len(self._first), kinematic.stop))
        self._kept = np.zeros(len(self._first))
        self._mixed: np.ndarray | None = None
        self._mix_in_place: Callable[[], None] = lambda: None

    def predict(self, covariance: np.ndarray, dt: float, measured: Mean) -> None:
        """Predict the state's covariance, in place, before a sample with measured pose and twist.

        The bristles keep what they keep of their error, and take the last twist's share.
        """
        moved = drag(self.deflection, self._velocities, self._model.velocities(measured), dt, self._length)
        self._mix(covariance, moved.kept, moved.begin)

    def follow(
        self, x: np.ndarray, covariance: np.ndarray, dt: float, mean: Mean, velocities: np.ndarray, force: float
    ) -> None:
        """Update the bristles with the estimated pose and twist; the covariance takes this twist's share of error.

        Args:
            x: the filter's state, changed in place.
            covariance: its covariance, changed in place, too.
            dt: length of the sample [s].
            mean: estimated pose, twist and parameters.
            velocities: tangential velocities (contacts, 3) of the tips [m/s].
            force: norm of the measured force [N].
        """
        self._length = self._model.grips(mean.pose, mean.s, force) / self._stiffness
        moved = drag(self.deflection, self._velocities, velocities, dt, self._length)
        rows, across = self._model.transverse(mean)
        turned = np.einsum("ci,ci->c", across, self._across)  # at a reversal the side that counts as positive changes
        x[self._error] *= turned[self._first]
        self.deflection, self._velocities = moved.deflection, velocities
        self._rows, self._across = rows, across
        self.absorb_error(x)
        self._mix(covariance, turned, moved.end)

    def absorb_error(self, x: np.ndarray) -> None:
        """Move the estimated error from the state ``x``, in place, to the deflection."""
        self.deflection = self.deflection + x[self._error][self._surfaces][:, None] * self._across
        x[self._error] = 0.0

    def turn_by_error(self) -> np.ndarray:
        """Return the transverse velocity per error across the bristles (surfaces,) [1/s] that turns friction alike."""
        velocity, deflection = self._velocities[self._first], self.deflection[self._first]
        speed, length = np.einsum("ci,ci->c", velocity, velocity), np.einsum("ci,ci->c", deflection, deflection)
        return np.asarray(np.sqrt(speed / np.maximum(length, _SHORTEST**2)))

    def _mix(self, covariance: np.ndarray, kept: np.ndarray, share: np.ndarray) -> None:
        """Change the covariance by error = kept error + share (velocity across), per surface."""
        if covariance is not self._mixed:
            given = len(covariance), self._error.start, len(self._first), self._kept, self._shared
            self._mixed, self._mix_in_place = covariance, bind(self._library.ce_mix, *given, covariance)
        self._kept[:] = kept[self._first]
        np.multiply(share[self._first, None], self._rows, out=self._shared)
        self._mix_in_place()
