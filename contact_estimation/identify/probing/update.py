"""Measurement update with a nonlinear wrench equation, by cubature (paper 4, eq. 16-23); the arithmetic is C.

The cubature update is written as the identical statistical linear regression: slope = P_zc P_cc^-1 and residual
covariance P_zz - slope P_cc slope^T. The residual of the regression acts as measurement noise. It has two parts:

- The part from uncertain parameters is not white: the next sample of the same stroke has nearly the same residual.
  Treated as white, it makes the filter overconfident within half a second of a rough start. Its variance can therefore
  be multiplied (``residual_colour``).
- The part from noise of pose and twist is white and is not multiplied. The rule gives it with the parameters at their
  mean.

The wrench depends on a few linear combinations c = C x of the state: the parameters, and the directions in which noise
of pose and twist enters it. The expectations are integrals over c alone. x follows from c by regression, which is exact
for a Gaussian x. A degree-7 rule is therefore affordable at 1 kHz.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.codegen import named_function, symbols
from contact_estimation.codegen.native import generate, load_native
from contact_estimation.identify.probing.cubature import rule
from contact_estimation.identify.probing.model import ContactModel

#: Lets the compiler use vector instructions: sums over the points may be reordered, and CasADi's helpers be inlined.
_FLAGS = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-semantic-interposition")
_libraries: dict[Hashable, ctypes.CDLL] = {}


def wrench_library(model: ContactModel) -> ctypes.CDLL:
    """Return the compiled wrench equation of a model and the update around it; models of one structure share it.

    Raises:
        CodegenError: there is no C compiler.
    """
    if model.structure not in _libraries:
        size = len(model.parameters) + model.noises
        s = symbols(c=size, conditions=model.conditions.size)
        wrenches = model.wrench_equation(s.c, model.conditions.split(s.conditions))
        wrench = named_function("ce_wrench", s, {"wrench": ca.horzcat(*wrenches)})
        _libraries[model.structure] = compile_update(wrench, model.axes)
    return _libraries[model.structure]


def compile_update(wrench: ca.Function, axes: int) -> ctypes.CDLL:
    """Compile the update around a function ``ce_wrench`` (c, conditions) -> wrench (w, modes); ``axes`` of the pose."""
    size, modes = wrench.size_out(0)
    sizes = {"CE_K": wrench.numel_in(0), "CE_W": size, "CE_MODES": modes, "CE_CONDITIONS": wrench.numel_in(1)}
    sizes["CE_AXES"] = axes
    defines = (f"#define {name} {value}" for name, value in sizes.items())
    before, after = ((Path(__file__).parent / name).read_text() for name in ("vector_math.h", "update.c"))
    source = "\n".join([before, generate([wrench]), *defines, after])
    library = load_native("probing", source, _FLAGS)
    pointer, whole, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
    library.ce_predict.restype, library.ce_predict.argtypes = None, [whole, real, *[pointer] * 2]
    library.ce_correct_motion.restype, library.ce_correct_motion.argtypes = None, [whole, *[pointer] * 4]
    library.ce_project.restype, library.ce_project.argtypes = None, [whole, whole, *[pointer] * 3]
    library.ce_spread.restype, library.ce_spread.argtypes = None, [whole] * 3 + [pointer] * 8
    library.ce_wrenches.restype, library.ce_wrenches.argtypes = None, [whole, *[pointer] * 3]
    library.ce_regress.restype, library.ce_regress.argtypes = None, [whole] * 3 + [pointer] * 8
    library.ce_step.restype = real
    library.ce_step.argtypes = [whole, pointer, pointer, whole, whole, *[pointer] * 3, real, *[pointer] * 6]
    library.ce_merge.restype, library.ce_merge.argtypes = None, [whole, whole, *[pointer] * 5]
    return library


class Lines(NamedTuple):
    """Wrench of every mode around a density of c: z = mean + slope (c - centre) + e, with e ~ (0, residual).

    Attributes:
        mean: (modes, w).
        slope: (modes, w, k).
        residual: (modes, w, w), covariance of the regression's residual.
        white: (modes, w, w), its part from noise of pose and twist; zero where it is not separated.
    """

    mean: np.ndarray
    slope: np.ndarray
    residual: np.ndarray
    white: np.ndarray


class Density(NamedTuple):
    """What the wrench depends on: mean (k,) and covariance (k, k) of c, and the conditions."""

    mean: np.ndarray
    covariance: np.ndarray
    conditions: np.ndarray


class Regression:
    """Statistical linear regression of a wrench on the last entries of c, eq. 16-18.

    Args:
        library: of :func:`compile_update`.
        density: buffers that are read at each :meth:`spread`.
        lines: mean (modes, w), slope (modes, w, varying) and residual (modes, w, w): buffers that :meth:`fit` fills.
        degree: degree of the integration rule: 3, 5 or 7.

    Attributes:
        points: (k, count) of c.
        wrenches: (modes, w, count) there.
    """

    def __init__(
        self, library: ctypes.CDLL, density: Density, lines: tuple[np.ndarray, np.ndarray, np.ndarray], degree: int
    ) -> None:
        modes, size, varying = lines[1].shape
        directions, radii, weights = rule(varying, degree)
        count, root = len(weights), np.zeros((varying, varying))
        self.points, self.wrenches = np.zeros((len(density.mean), count)), np.zeros((modes, size, count))
        made = root, self.points, self.wrenches
        given = *directions.shape, len(radii), directions, radii
        self._spread = bind(library.ce_spread, *given, *density, *made)
        self._fit = [
            bind(library.ce_regress, *given, weights, root, self.wrenches[i], *(line[i] for line in lines))
            for i in range(modes)
        ]

    def spread(self) -> None:
        """Place the points under the density of c and compute the wrenches."""
        self._spread()

    def fit(self, mode: int) -> None:
        """Regress the wrenches of a mode."""
        self._fit[mode]()


class Steps:
    """Kalman steps of the sign modes with their regressed wrenches, and their merge, eq. 19-23.

    Args:
        library: of :func:`compile_update`.
        covariance: P (n, n) predicted; a buffer, as all the next ones.
        selector: C (k, n), from the state to c.
        lines: wrenches of the modes.
        biases: first index and number of the states that enter the wrench through ``bias_map``.
        colour: factor on the residual that repeats.

    Attributes:
        innovation: (w,) measured wrench less the predicted one, to be written before :meth:`add`.
        noise: covariance (w, w) of the measured wrench, to be written, too.
        bias_map: (w, b), from the slow error to the wrench.
        increment: of the state (n,), after :meth:`merge`.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        covariance: np.ndarray,
        selector: np.ndarray,
        lines: Lines,
        biases: tuple[int, int],
        colour: float,
    ) -> None:
        (modes, w), size = lines.mean.shape, len(covariance)
        self.innovation, self.noise, self.bias_map = np.zeros(w), np.zeros((w, w)), np.zeros((w, biases[1]))
        self._whitened, self._likelihoods, self._weights = np.zeros((modes, w)), np.zeros(modes), np.zeros(modes)
        increments, spreads = np.zeros((modes, size)), np.zeros((modes, w, size))
        self.increment, self._count = np.zeros(size), 0
        given = size, covariance, selector, *biases, self.bias_map, self.innovation, self.noise, colour
        slots = [(increments[i], spreads[i], self._whitened[i]) for i in range(modes)]
        self._add = [
            [bind(library.ce_step, *given, *(line[mode] for line in lines[1:]), *slot) for mode in range(modes)]
            for slot in slots
        ]
        merged = self._weights, increments, spreads, covariance, self.increment
        self._merge = [bind(library.ce_merge, count, size, *merged) for count in range(modes + 1)]

    @property
    def log_likelihoods(self) -> np.ndarray:
        """Log-likelihoods of the measured wrench, one per step."""
        return self._likelihoods[: self._count]

    @property
    def whitened(self) -> np.ndarray:
        """Innovations (steps, w) in standard deviations."""
        return self._whitened[: self._count]

    def clear(self) -> None:
        """Forget the steps."""
        self._count = 0

    def add(self, mode: int) -> None:
        """Make the step of a mode."""
        self._likelihoods[self._count] = self._add[self._count][mode]()
        self._count += 1

    def merge(self, weights: np.ndarray) -> None:
        """Merge the steps (GPB1) with ``weights`` (steps,): the covariance becomes that of the mixture."""
        self._weights[: self._count] = weights
        self._merge[self._count]()


class Motion:
    """Prediction of a covariance with white jerk, and its update with pose and twist, eq. 8.

    Args:
        library: of :func:`compile_update`.
        covariance: P (n, n) of [pose error; velocity; acceleration; ...]; a buffer.
        jerk: density (axes,) of the squared jerk.
        variances: (2 axes,) of a measured pose and twist.

    Attributes:
        increment: of the state (n,), after :meth:`correct`.
    """

    def __init__(self, library: ctypes.CDLL, covariance: np.ndarray, jerk: np.ndarray, variances: np.ndarray) -> None:
        size = len(covariance)
        self.increment, self._innovation = np.zeros(size), np.zeros(len(variances))
        self._predict = library.ce_predict
        self._given = size, _address(jerk), _address(covariance)
        self._keep = jerk, covariance
        self._correct = bind(library.ce_correct_motion, size, self._innovation, variances, covariance, self.increment)

    def predict(self, dt: float) -> None:
        """Predict over ``dt`` [s]."""
        size, jerk, covariance = self._given
        self._predict(size, dt, jerk, covariance)

    def correct(self, moved: np.ndarray, velocity: np.ndarray) -> None:
        """Update with the innovations (axes,) of pose and twist."""
        self._innovation[: len(moved)], self._innovation[len(moved) :] = moved, velocity
        self._correct()


def _address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def bind(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call of a C function with numbers and the addresses of contiguous arrays, which it keeps alive."""
    given = [_address(value) if isinstance(value, np.ndarray) else value for value in arguments]

    def call(keep: object = arguments) -> Any:
        return function(*given)

    return call


def differentiate(model: ContactModel, density: Density) -> tuple[np.ndarray, np.ndarray]:
    """Linearise the wrench by its Jacobian at the mean, as an extended Kalman filter does.

    Central differences over 1e-4 standard deviations: their error of third order is far below the rule's residual.

    Returns:
        wrenches (modes, w) at the mean and their slopes (modes, w, k).
    """
    steps = 1e-4 * np.sqrt(np.diag(density.covariance))
    k = len(steps)
    points = density.mean[:, None] + np.hstack([np.zeros((k, 1)), np.diag(steps), -np.diag(steps)])
    values = wrenches(model, density.conditions, points)
    return values[:, :, 0], (values[:, :, 1 : k + 1] - values[:, :, k + 1 :]) / (2.0 * steps)


def wrenches(model: ContactModel, conditions: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the wrenches (modes, w, count) [N, Nm] at ``points`` (k, count) of c."""
    points = np.ascontiguousarray(points, dtype=float)
    out = np.zeros((len(model.modes), model.wrench_size, points.shape[1]))
    bind(wrench_library(model).ce_wrenches, points.shape[1], conditions, points, out)()
    return out
