"""One-sided tolerance bounds: what most of the population reaches, how surely.

A lower bound of coverage P and confidence C: with probability C, at least the share P
of all further values lies above it. (NIST/SEMATECH e-Handbook, 7.2.6.3; Krishnamoorthy
and Mathew, Statistical Tolerance Regions, 2009.)
"""

from functools import lru_cache
from math import ceil, log, sqrt

import scipy


@lru_cache(maxsize=1024)
def normal_factor(n: int, coverage: float, confidence: float) -> float:
    """Return k so that mean - k s of n normal values is the bound; n is at least 2.

    Exact, by the noncentral t distribution.
    """
    shift = float(scipy.stats.norm.ppf(coverage)) * sqrt(n)
    return float(scipy.stats.nct.ppf(confidence, n - 1, shift)) / sqrt(n)


@lru_cache(maxsize=1024)
def order_rank(n: int, coverage: float, confidence: float) -> int:
    """Return r so that the r-th smallest of n values is the bound; 0: n is too small.

    It holds for any distribution: the largest r with P(Bin(n, 1 - P) >= r) >= C.
    """
    rank = int(scipy.stats.binom.ppf(1 - confidence, n, 1 - coverage))
    reached = scipy.stats.binom.sf(rank - 1, n, 1 - coverage) >= confidence
    return rank if reached else rank - 1


def smallest_order_n(coverage: float, confidence: float) -> int:
    """Return the smallest n whose minimum is a bound: 59 for 95/95."""
    n = ceil(log(1 - confidence) / log(coverage) - 1e-9)
    return n if order_rank(n, coverage, confidence) else n + 1
