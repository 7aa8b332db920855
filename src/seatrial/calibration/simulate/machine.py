"""Parameters of a simulated machine."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Shape = Literal["normal", "lognormal", "heavy", "bimodal"]
Kind = Literal["value", "nodes", "sameness", "pairs"]

SHAPES: dict[Shape, str] = {
    "normal": "normal",
    "lognormal": "normal on the logarithmic scale",
    "heavy": "Student t, 3 degrees of freedom",
    "bimodal": "with turbo 7 times of 10, else without it",
}


@dataclass(frozen=True)
class Machine:
    """Properties of a machine; shares and levels are relative to the limit, 1.

    `noise`, `allocation` and `spread` are standard deviations: of a number within an
    allocation, of what an allocation does to all places alike, of healthy nodes among
    each other. `shared` is the share of the variance of noise and spread that all
    metrics of a node have in common. `drift` is how much everything falls from the
    first allocation to the last; a level is that of the middle. `level` is that of what
    is healthy, `slow_level` of `slow_nodes`, in `slow_metrics` of their metrics, and of
    `slow_links` pairs of healthy nodes. For kind sameness both are relative to the
    other nodes, and more than `tolerance` below them is slow.
    """

    kind: Kind = "nodes"
    nodes: int = 16
    metrics: int = 2
    repeats: int = 12
    shape: Shape = "lognormal"
    noise: float = 0.02
    allocation: float = 0.01
    spread: float = 0.005
    shared: float = 0.0
    drift: float = 0.0
    level: float = 1.1
    slow_level: float = 0.85
    slow_nodes: int = 0
    slow_metrics: int = 1
    slow_links: int = 0
    tolerance: float = 0.05

    @property
    def bound(self) -> float:
        """The level below which a place is slow."""
        return 1 - self.tolerance if self.kind == "sameness" else 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its nodes; a single value has none."""
        return () if self.kind == "value" else _names(self.nodes)


@lru_cache
def _names(count: int) -> tuple[str, ...]:
    return tuple(f"cn{number:05}" for number in range(1, count + 1))
