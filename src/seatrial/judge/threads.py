"""Work on several arrays at a time: NumPy and polars let other threads run."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def side_by_side(function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Map items in threads, as many as there are processors; a single one in this."""
    if len(items) == 1:
        return [function(items[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))
