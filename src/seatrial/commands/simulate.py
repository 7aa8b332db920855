"""`seatrial simulate`: count the wrong verdicts on simulated machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from seatrial.calibration.simulate.machine import SHAPES, Machine
from seatrial.calibration.simulate.scenarios import SCENARIOS, STORY, Model
from seatrial.commands import _options as options
from seatrial.output import write_data

_ALL = "all"


@click.command()
@options.repeated(
    "--scenario",
    "scenarios",
    type=click.Choice([*SCENARIOS, _ALL]),
    help="Fault of the machine; may be repeated (default: the main ones).",
)
@options.repeated(
    "--noise",
    "shapes",
    type=click.Choice([*SHAPES]),
    help="Shape of the noise; may be repeated (default: all).",
)
@options.model("Distribution that the criteria assume.")
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
    help="Metrics of each node.",
)
@options.count(
    "--repeats", default=Machine.repeats, help="Allocations of each machine."
)
@options.count("--runs", default=40, help="Machines of each scenario and shape.")
@options.option("--seed", type=click.IntRange(0), default=1)
@options.form("Format of the rates.")
def simulate(
    scenarios: tuple[str, ...],
    shapes: tuple[str, ...],
    model: Model,
    nodes: int,
    metrics: int,
    repeats: int,
    runs: int,
    seed: int,
    form: str,
) -> None:
    """Judge simulated machines with known faults, and count the wrong verdicts.

    Draws machines at random, healthy ones and ones with planted faults, and judges each
    like `seatrial judge`. Prints the rate of wrong verdicts beside the declared risks
    (5 % each; 10 % of the suspects). For comparison, it prints the rates at which rules
    of other suites fail the same machines: one value against 5 % tolerance, mean minus
    2 or 3 standard deviations over the nodes, median minus 2 or 3 MAD. Intervals are
    Wilson's, 95 %.

    Example: seatrial simulate --scenario borderline --noise heavy --runs 500
    """
    from seatrial.calibration.simulate.study import study
    from seatrial.calibration.simulate.tables import (
        as_text,
        facts_table,
        legend,
        results_table,
    )
    from seatrial.console import Terminal

    base = Machine(nodes=nodes, metrics=metrics, repeats=repeats)
    names = SCENARIOS if _ALL in scenarios else scenarios or STORY
    chosen = [SCENARIOS[name] for name in names]
    noise = [shape for shape in SHAPES if shape in (shapes or SHAPES)]
    with _progress(len(chosen) * len(noise) * runs) as judged:
        results = study(
            base, chosen, noise, model=model, runs=runs, seed=seed, judged=judged
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
def _progress(total: int) -> Iterator[Callable[[], object]]:
    """Show a bar on a terminal; yield the function to call after each machine."""
    from rich.progress import Progress

    from seatrial.console import Terminal

    console = Terminal(stderr=True)
    hidden = not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("judging", total=total)
        yield lambda: bar.advance(task)
