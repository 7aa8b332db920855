"""`seatrial simulate`: count the wrong verdicts on simulated machines."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.calibration.simulate.machine import SHAPES, Machine
from seatrial.calibration.simulate.scenarios import SCENARIOS, STORY, Model
from seatrial.commands import _options as options
from seatrial.output import write_data
from seatrial.paths import home

if TYPE_CHECKING:
    from seatrial.calibration.simulate.machines import Layout, Setting

_ALL = "all"

_FEW = 100
"""Machines that one process judges sooner than several start."""


def _known_scenarios() -> list[str]:
    from seatrial.calibration.simulate.machines import TRUTHS

    return [*dict.fromkeys([*SCENARIOS, *TRUTHS, _ALL])]


def _known_noises() -> list[str]:
    from seatrial.calibration.simulate.noises import NOISES

    return [*dict.fromkeys([*SHAPES, *NOISES])]


@click.command()
@click.option(
    "--criteria",
    "file",
    type=options.PRESENT_FILE,
    help="Judge by these criteria as they are, with their risks, cap and burden.",
)
@options.repeated(
    "--scenario",
    "scenarios",
    type=options.OneOf(_known_scenarios),
    metavar="FAULT",
    help="Fault of the machine, or `all`; may be repeated (default: the main ones; "
    "with --criteria all). An unknown name prints all.",
)
@options.repeated(
    "--noise",
    "shapes",
    type=options.OneOf(_known_noises),
    metavar="SHAPE",
    help="Shape of the noise; may be repeated (default: all). An unknown name prints "
    "all.",
)
@options.model("Without --criteria: the distribution that the criteria assume.")
@options.option(
    "--nodes",
    type=click.IntRange(3),
    default=Machine.nodes,
    help="Nodes of each machine.",
)
@options.option(
    "--metrics",
    type=click.IntRange(1, 60),
    default=Machine.metrics,
    help="Without --criteria: metrics of each node.",
)
@options.count(
    "--repeats",
    help=f"Allocations of each machine (default: {Machine.repeats}; with --criteria "
    "the repeats of the campaign acceptance).",
)
@options.option(
    "--cv",
    type=options.Share(),
    default=0.02,
    help="With --criteria: scatter of a place, a share of its level.",
)
@options.option(
    "--shared",
    type=click.FloatRange(0, 1),
    default=0.25,
    help="With --criteria: part of the variance that all places of an allocation "
    "share.",
)
@options.repeated(
    "--pairs", metavar="CLASS", help="With --criteria: this check measures pairs."
)
@options.repeated(
    "--whole",
    metavar="CLASS",
    help="With --criteria: this check takes one number of all nodes.",
)
@options.count("--runs", default=40, help="Machines of each scenario and shape.")
@options.option("--seed", type=click.IntRange(0), default=1)
@options.count(
    "--workers", help="With --criteria: processes that judge (default: all processors)."
)
@options.form("Format of the rates.")
def simulate(
    file: Path | None,
    scenarios: tuple[str, ...],
    shapes: tuple[str, ...],
    model: Model,
    nodes: int,
    metrics: int,
    repeats: int | None,
    cv: float,
    shared: float,
    pairs: tuple[str, ...],
    whole: tuple[str, ...],
    runs: int,
    seed: int,
    workers: int | None,
    form: str,
) -> None:
    """Judge simulated machines with known faults, and count the wrong verdicts.

    Draws machines at random, healthy ones and ones with planted faults, and judges
    them. Prints the rates of wrong verdicts beside the declared risks, with exact
    intervals of 95 %.

    With --criteria the machines are judged by the criteria of the file as they are. A
    check measures every node, unless --pairs or --whole name it.

    Without, the criteria have risks of 5 % (10 % of the suspects), and the same
    machines are judged by rules of other suites: one value against 5 % tolerance, mean
    minus 2 or 3 standard deviations over the nodes, median minus 2 or 3 MAD.

    Example: seatrial simulate --criteria criteria.yaml --noise ar1 --runs 500
    """
    if file is None:
        scenarios = tuple(SCENARIOS) if _ALL in scenarios else scenarios
        _require_known("--scenario", scenarios, SCENARIOS)
        _require_known("--noise", shapes, SHAPES)
        base = Machine(nodes=nodes, metrics=metrics, repeats=repeats or Machine.repeats)
        _compare_rules(base, scenarios, shapes, model, runs, seed, form)
        return
    from seatrial.calibration.simulate.machines import TRUTHS, Setting
    from seatrial.calibration.simulate.noises import NOISES

    scenarios = () if _ALL in scenarios else scenarios
    _require_known("--scenario", scenarios, TRUTHS)
    _require_known("--noise", shapes, NOISES)
    quiet = Setting(nodes=nodes, repeats=repeats or _planned(), cv=cv, shared=shared)
    settings = [replace(quiet, noise=n) for n in NOISES if n in (shapes or NOISES)]
    truths = [name for name in TRUTHS if name in (scenarios or TRUTHS)]
    layouts: dict[str, Layout] = dict.fromkeys(whole, "whole")
    layouts |= dict.fromkeys(pairs, "pairs")
    _judge_by(file, layouts, settings, truths, runs, seed, workers, form)


def _require_known(option: str, chosen: Sequence[str], known: Collection[str]) -> None:
    """Refuse what is known with --criteria only, or without it only."""
    for name in chosen:
        if name not in known:
            raise click.BadParameter(
                f"{name!r}: with and without --criteria there are others; expected "
                f"{', '.join(known)}",
                param_hint=option,
            )


def _planned() -> int:
    """Return the repeats of the campaign acceptance."""
    from seatrial.campaign.campaign_file import load_campaign

    return load_campaign(home(), "acceptance").repeats


def _judge_by(
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
        as_text,
        heading,
        legend,
        rates_table,
    )
    from seatrial.console import Terminal
    from seatrial.criteria.criteria import Criteria
    from seatrial.errors import SeatrialError

    criteria = Criteria.load(file, known=())
    if not criteria.criteria:
        raise SeatrialError(
            f"{file}: all criteria are of settings; expected one with a limit or a "
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
    if form != "table":
        write_data(as_text(criteria, counted, form))
        return
    console = Terminal()
    console.print_line((heading(criteria, counted), "bold"))
    console.print(rates_table(criteria, counted))
    console.print(legend(counted))


def _compare_rules(
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
        as_text,
        facts_table,
        legend,
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
        write_data(as_text(results, form))
        return
    console = Terminal()
    console.print(results_table(results))
    console.print(legend(results))
    if not scenarios:
        console.print(facts_table(seed))


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
