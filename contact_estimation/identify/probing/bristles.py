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
import math
from pathlib import Path

import numpy as np

from contact_estimation.codegen.native import load_native
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.spatial import SpatialModel
from contact_estimation.identify.probing.update import bind, wrench_library

#: Parts of one sample over which the deflection is integrated, so that the result does not depend on the rate.
_PARTS = 16
#: Least length [m], that of an unloaded contact; a deflection below it has no direction.
_SHORTEST = 1e-9


class Drag:
    """Draws bristles behind their tips for one sample, during which the velocity changes linearly.

    Args:
        contacts: number of tips.

    Attributes:
        deflection: (contacts, 3) [m] before the sample, world axes; friction acts against it.
        begin: tangential velocities (contacts, 3) [m/s] at the begin of the sample.
        end: the same at its end.
        length: (contacts,) deflection [m] at which each contact slides.
        moved: deflections (contacts, 3) [m] after :meth:`draw`.
        kept: (contacts,) factor on the error across them before the sample, after :meth:`draw`.
        by_begin: (contacts,) [s] factor on the error of the tangential velocity at the begin of the sample.
        by_end: (contacts,) [s] the same at its end.
    """

    def __init__(self, contacts: int) -> None:
        self.deflection, self.begin, self.end, self.moved = np.zeros((4, contacts, 3))
        self.length, weights = np.zeros(contacts), np.zeros((3, contacts))
        self.kept, self.by_begin, self.by_end = weights
        self._function, self._contacts = _native().ce_drag, contacts
        arrays = self.deflection, self.begin, self.end, self.length, self.moved, weights
        self._addresses = [array.ctypes.data for array in arrays]

    def draw(self, dt: float) -> None:
        """Compute the deflections after a sample of length ``dt`` [s], and the factors."""
        self._function(self._contacts, _PARTS, dt, _SHORTEST, *self._addresses)


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
        x: the filter's state (n,), changed in place.
        covariance: its covariance (n, n), changed in place, too.
        error: indices of the error across the bristles in the state.
        kinematic: indices of pose and twist.

    Attributes:
        deflection: (contacts, 3) [m], world axes; a buffer.
    """

    def __init__(
        self,
        model: SpatialModel,
        stiffness: float,
        x: np.ndarray,
        covariance: np.ndarray,
        error: slice,
        kinematic: slice,
    ) -> None:
        self._model, self._stiffness, self._error = model, stiffness, x[error]
        self._first = list(model.bristle_contacts)
        self._surfaces = [model.surface_of(i) for i in range(model.contacts)]
        self._drag, self._across = Drag(model.contacts), np.zeros((model.contacts, 3))
        self.deflection = self._drag.deflection
        self._rows, self._shared = np.zeros((2, len(self._first), kinematic.stop))
        self._kept = np.zeros(len(self._first))
        given = len(covariance), error.start, len(self._first), self._kept, self._shared, covariance
        self._mix_in_place = bind(wrench_library(model).ce_mix, *given)

    def predict(self, dt: float, measured: Mean) -> None:
        """Predict the state's covariance before a sample with measured pose and twist.

        The bristles keep what they keep of their error, and take the last twist's share.
        """
        drag = self._drag
        drag.end[:] = self._model.velocities(measured)
        drag.draw(dt)
        self._mix(drag.kept, drag.by_begin)

    def follow(self, dt: float, mean: Mean, velocities: np.ndarray, force: float) -> None:
        """Update the bristles with the estimated pose and twist; the covariance takes this twist's share of error.

        Args:
            dt: length of the sample [s].
            mean: estimated pose, twist and parameters.
            velocities: tangential velocities (contacts, 3) of the tips [m/s].
            force: norm of the measured force [N].
        """
        drag = self._drag
        drag.length[:], drag.end[:] = self._model.grips(mean, force) / self._stiffness, velocities
        drag.draw(dt)
        rows, across = self._model.transverse(mean)
        turned = np.einsum("ci,ci->c", across, self._across)  # at a reversal the side that counts as positive changes
        self._error *= turned[self._first]
        drag.deflection[:], drag.begin[:] = drag.moved, velocities
        self._rows[:], self._across = rows, across
        self.absorb_error()
        self._mix(turned, drag.by_end)

    def absorb_error(self) -> None:
        """Move the estimated error from the state to the deflection."""
        self.deflection += self._error[self._surfaces, None] * self._across
        self._error[:] = 0.0

    def turn_by_error(self) -> np.ndarray:
        """Return the transverse velocity per error across the bristles (surfaces,) [1/s] that turns friction alike."""
        velocity, deflection = self._drag.begin[self._first], self.deflection[self._first]
        # Plain numbers: far faster than short arrays.
        return np.array([math.sqrt(v @ v / max(z @ z, _SHORTEST**2)) for v, z in zip(velocity, deflection)])

    def _mix(self, kept: np.ndarray, share: np.ndarray) -> None:
        """Change the covariance by error = kept error + share (velocity across), per surface."""
        self._kept[:] = kept[self._first]
        np.multiply(share[self._first, None], self._rows, out=self._shared)
        self._mix_in_place()
