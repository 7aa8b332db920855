"""Methods by which a level is judged, and the fewest allocations that each takes."""

from itertools import count
from typing import Literal

Method = Literal["t", "order"]
T_SMALLEST_N = 3


def smallest_n(method: Method, risk: float) -> int:
    """Return the fewest units that can bound a level at this risk."""
    if method == "t":
        return T_SMALLEST_N
    return next(n for n in count(1) if 0.5**n <= risk)
