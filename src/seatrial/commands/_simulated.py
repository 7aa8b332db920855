"""The simulations of `seatrial simulate`."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.calibration.simulate.machine import SHAPES, Machine
from seatrial.calibration.simulate.scenarios import SCENARIOS, STORY, Model
from seatrial.commands._rows import write_rows

if TYPE_CHECKING:
    from rich.table import Table

    from seatrial.calibration.simulate.machines import Layout, Setting
    from seatrial.calibration.simulate.nights import NightMachine, NightNoise

_FEW = 100
"""Machines that one process judges sooner than several start."""


def judge_by(
    file: Path,
    layouts: dict[str, "Layout"],
    settings: Sequence["Setting"],
    truths: Sequence[str],
    runs: int,
    seed: int,
    workers: int | None,
    form: str,
) -> None:
    """Judge machines by the criteria of a file, and print the rates."""
    from seatrial.calibration.simulate.criteria_rates import rows
    from seatrial.calibration.simulate.criteria_table import (
        heading,
        legend,
        rates_table,
        records,
    )
    from seatrial.criteria.criteria import Criteria
    from seatrial.criteria.keys import ANY
    from seatrial.errors import SeatrialError

    criteria = Criteria.load(file, ANY)
    if not criteria.criteria:
        raise SeatrialError(
            f"{file}: all criteria are of declarations; expected one with a limit or a "
            "tolerance; simulated machines have numbers only"
        )
    total = len(truths) * len(settings) * runs
    processes = workers or len(os.sched_getaffinity(0))
    with _progress(total) as advance:
        counted = rows(
            criteria,
            layouts,
            settings,
            truths,
            machines=runs,
            seed=seed,
            workers=1 if total < _FEW else processes,
            judged=advance,
        )
    _show(
        form,
        records(criteria, counted),
        heading(criteria, counted),
        rates_table(criteria, counted),
        legend(counted),
    )


def compare_rules(
    base: Machine,
    scenarios: Sequence[str],
    shapes: Sequence[str],
    model: Model,
    runs: int,
    seed: int,
    form: str,
) -> None:
    """Judge machines of the scenarios also by the rules of other suites."""
    from seatrial.calibration.simulate.study import study
    from seatrial.calibration.simulate.tables import (
        facts_table,
        legend,
        records,
        results_table,
    )
    from seatrial.console import Terminal

    chosen = [SCENARIOS[name] for name in scenarios or STORY]
    noise = [shape for shape in SHAPES if shape in (shapes or SHAPES)]
    with _progress(len(chosen) * len(noise) * runs) as advance:
        results = study(
            base,
            chosen,
            noise,
            model=model,
            runs=runs,
            seed=seed,
            judged=lambda: advance(1),
        )
    if form != "table":
        rows = records(results)
        write_rows(rows, form, [*rows[0]])
        return
    console = Terminal()
    console.print(results_table(results))
    console.print(legend(results))
    if not scenarios:
        console.print(facts_table(seed))


def play_nights(
    size: "NightMachine",
    noises: Sequence["NightNoise"],
    years: int,
    seed: int,
    workers: int | None,
    form: str,
) -> None:
    """Play years of nights, and print false alarms and delays."""
    from seatrial.calibration.simulate.nightly import machines_of, night_rows
    from seatrial.calibration.simulate.nightly_table import (
        heading,
        legend,
        nights_table,
        records,
    )
    from seatrial.calibration.simulate.nights import FAULTS
    from seatrial.history.rules import Rules

    rules, machines = Rules(), machines_of(noises, FAULTS, size)
    processes = workers or len(os.sched_getaffinity(0))
    with _progress(len(machines) * years) as advance:
        played = night_rows(
            machines, rules, years=years, seed=seed, workers=processes, played=advance
        )
        rows = list(played)
    _show(
        form,
        records(rules, rows),
        heading(size, rules, rows),
        nights_table(rules, rows),
        legend(rows),
    )


def sweep_adaptively(
    nodes: int, repeats: int, machines: int, seed: int, workers: int | None, form: str
) -> None:
    """Sweep machines with bad nodes and up-links adaptively, and print the rates."""
    from seatrial.calibration.simulate.adaptive_rates import FAULTS, sweep_rows
    from seatrial.calibration.simulate.adaptive_table import (
        heading,
        legend,
        records,
        sweeps_table,
    )

    fabrics = {name: replace(fabric, nodes=nodes) for name, fabric in FAULTS.items()}
    with _progress(len(fabrics) * machines) as advance:
        swept = sweep_rows(
            fabrics,
            repeats=repeats,
            machines=machines,
            seed=seed,
            workers=workers or len(os.sched_getaffinity(0)),
            swept=advance,
        )
        rows = list(swept)
    _show(form, records(rows), heading(rows), sweeps_table(rows), legend())


def locate_faults(
    nodes: int, fabrics: int, seed: int, workers: int | None, form: str
) -> None:
    """Locate the bad parts of model fabrics, and print the rates."""
    from seatrial.calibration.simulate.fabric_rates import (
        SETTINGS,
        fabric_rows,
        fabrics_table,
        heading,
        legend,
        records,
    )

    with _progress(len(SETTINGS) * fabrics) as advance:
        processes = workers or len(os.sched_getaffinity(0))
        tried = fabric_rows(
            nodes, fabrics=fabrics, seed=seed, workers=processes, done=advance
        )
        rows = list(tried)
    _show(form, records(rows), heading(rows), fabrics_table(rows), legend())


def demonstrate_stability(machines: int, seed: int, form: str) -> None:
    """Judge simulated stability phases, and print the realised risks."""
    from seatrial.calibration.simulate.lives import LIVES
    from seatrial.calibration.simulate.stability_rates import (
        heading,
        legend,
        records,
        stability_rows,
        stability_table,
    )

    with _progress(6 * len(LIVES) * machines) as advance:
        rows = list(stability_rows(machines, seed, advance))
    _show(form, records(rows), heading(rows), stability_table(rows), legend())


def _show(
    form: str,
    records: Sequence[Mapping[str, Any]],
    heading: str,
    table: "Table",
    legend: str,
) -> None:
    """Write records (one at least) as `json` or `csv`, or print a table."""
    from seatrial.console import Terminal

    if form != "table":
        write_rows(records, form, [*records[0]])
        return
    console = Terminal()
    console.print_line((heading, "bold"))
    console.print(table)
    console.print(legend)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """Show a bar on a terminal; yield the function to call after some machines."""
    from rich.progress import Progress

    from seatrial.console import Terminal

    console = Terminal(stderr=True)
    hidden = not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("judging", total=total)
        yield lambda machines: bar.advance(task, machines)
