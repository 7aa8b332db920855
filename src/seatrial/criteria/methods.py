"""Methods by which a level is judged, and the fewest allocations that each takes."""

from itertools import count
from typing import Literal

Method = Literal["t", "order"]
T_SMALLEST_N = 3


def smallest_n(method: Method, risk: float, below: float = 0.5) -> int:
    """Return the fewest independent units that can bound a level at this risk.

    Of order statistics it is the value that a share `below` of all values misses.
    """
    if method == "t":
        return T_SMALLEST_N
    return next(n for n in count(1) if (1 - below) ** n <= risk)
