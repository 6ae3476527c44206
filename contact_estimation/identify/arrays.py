"""The array type of the identification packages."""

import numpy as np
import numpy.typing as npt

#: Array of floats; its shape stands in the docstring or in the comment beside it.
Array = npt.NDArray[np.float64]
#: Array of indices.
Indices = npt.NDArray[np.int_]
#: Array of booleans.
Flags = npt.NDArray[np.bool_]
