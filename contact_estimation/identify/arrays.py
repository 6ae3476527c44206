"""The array types of the identification packages, and runs of equal samples."""

import numpy as np
import numpy.typing as npt

#: Array of floats; its shape stands in the docstring or in the comment beside it.
Array = npt.NDArray[np.float64]
#: Array of indices.
Indices = npt.NDArray[np.int_]
#: Array of booleans.
Flags = npt.NDArray[np.bool_]


def equal_runs(same: Flags) -> tuple[Indices, Indices]:
    """Return the first and the last sample (r,) of every run of equal samples, those of one sample among them.

    Args:
        same: (T-1,) which of T samples equal the one before.
    """
    begins = np.flatnonzero(~same) + 1
    return np.append(0, begins), np.append(begins - 1, len(same))
