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
from pathlib import Path

import numpy as np

from contact_estimation.codegen.native import load_native
from contact_estimation.identify.probing.model import Mean
from contact_estimation.identify.probing.spatial import SpatialModel


class _Memory(ctypes.Structure):
    """``struct ce_bristles`` of bristles.c: sizes, and addresses of arrays."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("contacts", "surfaces", "n", "motion", "error")),
        *((name, ctypes.c_void_p) for name in ("surface_of", "contact_of", "deflection", "begin", "end", "length")),
        *((name, ctypes.c_void_p) for name in ("moved", "weights", "rows", "across", "new_rows", "new_across")),
        *((name, ctypes.c_void_p) for name in ("state", "covariance", "turns")),
    ]

    def place(self, **arrays: np.ndarray) -> None:
        """Write the addresses of contiguous arrays and keep the arrays alive."""
        self._kept = {**getattr(self, "_kept", {}), **arrays}
        for name, array in arrays.items():
            setattr(self, name, array.ctypes.data)


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
        self.memory = _Memory(contacts=contacts)
        self.memory.place(deflection=self.deflection, begin=self.begin, end=self.end, length=self.length)
        self.memory.place(moved=self.moved, weights=weights)
        self.address = ctypes.addressof(self.memory)

    def draw(self, dt: float) -> None:
        """Compute the deflections after a sample of length ``dt`` [s], and the factors."""
        _native().ce_draw(self.address, dt)


@functools.cache
def _native() -> ctypes.CDLL:
    library = load_native("bristles", (Path(__file__).parent / "bristles.c").read_text())
    for function in (library.ce_draw, library.ce_predict_bristles, library.ce_follow):
        function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_double]
    library.ce_absorb_error.restype, library.ce_absorb_error.argtypes = None, [ctypes.c_void_p]
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
        turns: (surfaces,) [1/s] transverse velocity per error across the bristles that turns friction alike; a buffer.
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
        self._model, self._stiffness, contact_of = model, stiffness, np.array(model.bristle_contacts, ctypes.c_long)
        self._drag, surfaces = Drag(model.contacts), len(contact_of)
        self.deflection, self.turns = self._drag.deflection, np.zeros(surfaces)
        self._rows, self._across = np.zeros((surfaces, kinematic.stop)), np.zeros((model.contacts, 3))
        memory = self._drag.memory
        memory.surfaces, memory.n, memory.motion, memory.error = surfaces, len(x), kinematic.stop, error.start
        memory.place(rows=np.zeros_like(self._rows), across=np.zeros_like(self._across))
        memory.place(new_rows=self._rows, new_across=self._across, state=x[error], covariance=covariance)
        memory.place(turns=self.turns, contact_of=contact_of)
        memory.place(surface_of=np.array([model.surface_of(i) for i in range(model.contacts)], ctypes.c_long))

    def predict(self, dt: float, measured: Mean) -> None:
        """Predict the state's covariance before a sample with measured pose and twist.

        The bristles keep what they keep of their error, and take the last twist's share.
        """
        self._drag.end[:] = self._model.velocities(measured)
        _native().ce_predict_bristles(self._drag.address, dt)

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
        self._rows[:], self._across[:] = self._model.transverse(mean)
        _native().ce_follow(drag.address, dt)

    def absorb_error(self) -> None:
        """Move the estimated error from the state to the deflection."""
        _native().ce_absorb_error(self._drag.address)
