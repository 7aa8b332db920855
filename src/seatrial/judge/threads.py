"""Work on several arrays at a time: NumPy and polars let other threads run."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def side_by_side(
    function: Callable[[_T], _R], items: Sequence[_T], *, large: bool = False
) -> list[_R]:
    """Map items in threads, as many as there are processors.

    A single item, or `large` ones, in this thread: one at a time is in memory.
    """
    if large or len(items) == 1:
        return [*map(function, items)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))
