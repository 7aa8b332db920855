"""Work on a few rows of an array at a time: copies of millions take much memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
_ROWS = 1 << 16


def by_rows(function: Callable[[_Array], _Array], values: _Array) -> _Array:
    """Return the results of a function that works on each row by itself."""
    return in_parts(lambda rows: function(values[rows]), len(values))


def in_parts(function: Callable[[slice], _Array], height: int) -> _Array:
    """Return the results of a function of some rows, for all rows up to `height`."""
    first = function(slice(0, _ROWS))
    if height <= _ROWS:
        return first
    results = np.empty((height, *first.shape[1:]), first.dtype)
    results[:_ROWS] = first
    for start in range(_ROWS, height, _ROWS):
        rows = slice(start, start + _ROWS)
        results[rows] = function(rows)
    return results
