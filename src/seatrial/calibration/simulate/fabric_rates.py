"""Rates of right and wrong suspects on model fabrics: a table, JSON or CSV."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from rich.table import Table

from seatrial.calibration.simulate.fabric_trials import (
    THREE_LEVELS,
    Setting,
    Trial,
    trial,
)
from seatrial.calibration.simulate.rates import CONFIDENCE, Rate
from seatrial.errors import SeatrialError

SETTINGS = (
    Setting("sound", 0),
    Setting("1 bad part", 1),
    Setting("2 bad parts", 2),
    Setting("sound, 2 % of the routes wrong", 0, wrong=0.02),
    Setting("1 bad part, 2 % of the routes wrong", 1, wrong=0.02),
    Setting("2 bad parts, 2 % of the routes wrong", 2, wrong=0.02),
    Setting("sound, adaptive", 0, "adaptive"),
    Setting("1 bad part, adaptive", 1, "adaptive"),
    Setting("1 bad part, adaptive, counters", 1, "adaptive", counters=True),
    Setting("1 bad part, adaptive, then pairs", 1, "adaptive", then="pairs"),
    Setting("2 bad parts, adaptive, then pairs", 2, "adaptive", then="pairs"),
    Setting("1 bad part, adaptive, then rounds", 1, "adaptive", then="rounds"),
    Setting("2 bad parts, adaptive, then rounds", 2, "adaptive", then="rounds"),
    Setting("3 levels, sound", 0, shape=THREE_LEVELS),
    Setting("3 levels, 1 bad part", 1, shape=THREE_LEVELS),
    Setting("3 levels, 2 bad parts", 2, shape=THREE_LEVELS),
    Setting("3 levels, 1 bad part, adaptive", 1, "adaptive", shape=THREE_LEVELS),
    Setting(
        "3 levels, 1 bad part, adaptive, then pairs",
        1,
        "adaptive",
        then="pairs",
        shape=THREE_LEVELS,
    ),
    Setting(
        "3 levels, 2 bad parts, adaptive, then pairs",
        2,
        "adaptive",
        then="pairs",
        shape=THREE_LEVELS,
    ),
)
"""The kinds of fabrics."""

_HEADINGS = {
    "first_right": "first right",
    "first_among": "among alike",
    "all_found": "all found",
    "sound_named": "sound named",
}


@dataclass(frozen=True)
class FabricRow:
    """The trials of one kind of fabrics."""

    setting: Setting
    trials: tuple[Trial, ...]

    @property
    def rates(self) -> dict[str, Rate]:
        """Rates of fabrics, those of right suspects only if something is bad."""
        fabrics = len(self.trials)
        bad = fabrics if self.setting.bad else 0
        counts = {
            "first_right": sum(one.first_is_right for one in self.trials),
            "first_among": sum(one.first_is_among for one in self.trials),
            "all_found": sum(one.all_found for one in self.trials),
        }
        rates = {name: Rate(count if bad else 0, bad) for name, count in counts.items()}
        sound = sum(one.blames_sound for one in self.trials)
        return rates | {"sound_named": Rate(sound, fabrics)}

    @property
    def share(self) -> float:
        """The largest share of all pairs that was measured in a fabric."""
        return max(one.share for one in self.trials)


def fabric_rows(
    nodes: int,
    *,
    fabrics: int,
    seed: int,
    workers: int = 1,
    done: Callable[[int], object] = lambda _: None,
) -> Iterator[FabricRow]:
    """Try so many fabrics of each kind; the same seed, the same trials.

    `done` is called with the number of fabrics that are done. SeatrialError if all
    nodes have room on one leaf.
    """
    leaf = max(one.shape.radix // 2 for one in SETTINGS)
    if nodes <= leaf:
        raise SeatrialError(
            f"--nodes {nodes}: expected more than {leaf}: a fabric of one leaf has no "
            "up-links"
        )
    seeds = range(seed, seed + fabrics)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for one in SETTINGS:
            setting = replace(one, shape=replace(one.shape, hosts=nodes))
            trials = []
            for answer in pool.map(partial(trial, setting), seeds):
                trials.append(answer)
                done(1)
            yield FabricRow(setting, tuple(trials))


def heading(rows: Sequence[FabricRow]) -> str:
    """Return the first line: the fabrics that were tried."""
    shape = rows[0].setting.shape
    return (
        f"SIMULATED fabrics, no measurement: {len(rows[0].trials)} fabrics a row, "
        f"{shape.hosts} nodes, fat trees of 2 levels ({shape.radix}-port switches) or "
        f"3 ({THREE_LEVELS.radix}-port switches)"
    )


def legend() -> str:
    """Describe the columns."""
    return (
        f"Shares in %, in brackets the exact interval (Clopper and Pearson) of "
        f"{100 * CONFIDENCE:.0f} % confidence. First right: the most likely part of "
        "the first suspect is bad, and has no equal; among alike: one of its parts is "
        "bad. Sound named: fabrics with a suspect that has no bad part. Then: without "
        "adaptive routing, the pairs that tell parts apart, or rounds of all nodes. "
        "Pairs: the most of all pairs that were measured. Bad nodes are 10 to 50 % "
        "slower, cables 30 to 100 %, switches 20 to 60 %."
    )


def fabrics_table(rows: Sequence[FabricRow]) -> Table:
    """Format the rates of all rows."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fabrics")
    for title in _HEADINGS.values():
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("pairs", justify="right", no_wrap=True)
    for row in rows:
        cells = (row.rates[name].percent for name in _HEADINGS)
        table.add_row(row.setting.name, *cells, f"{100 * row.share:.1f}")
    return table


def records(rows: Sequence[FabricRow]) -> list[dict[str, Any]]:
    """Return all rates as records, shares of 1."""
    return [
        _record(row, name, rate)
        for row in rows
        for name, rate in row.rates.items()
        if rate.trials
    ]


def _record(row: FabricRow, name: str, rate: Rate) -> dict[str, Any]:
    return {
        "data": "simulated",
        "fabrics": row.setting.name,
        "nodes": row.setting.shape.hosts,
        "rate": name,
        **rate.facts,
        "pairs_share_max": row.share,
    }
