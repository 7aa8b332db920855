"""`seatrial simulate`: count the wrong verdicts on simulated machines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from seatrial.calibration.simulate.machine import SHAPES, Machine
from seatrial.calibration.simulate.scenarios import SCENARIOS, STORY, Model
from seatrial.commands._options import format_option
from seatrial.output import write_data

_ALL = "all"


@click.command()
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([*SCENARIOS, _ALL]),
    help="Fault of the machine; may be repeated (default: the main ones).",
)
@click.option(
    "--noise",
    "shapes",
    multiple=True,
    type=click.Choice([*SHAPES]),
    help="Shape of the noise; may be repeated (default: all).",
)
@click.option(
    "--model",
    type=click.Choice(["any", "normal", "lognormal"]),
    default="any",
    show_default=True,
    help="Distribution that the criteria assume.",
)
@click.option(
    "--nodes",
    type=click.IntRange(3),
    default=Machine.nodes,
    show_default=True,
    help="Nodes of each machine.",
)
@click.option(
    "--metrics",
    type=click.IntRange(1, 60),
    default=Machine.metrics,
    show_default=True,
    help="Metrics of each node.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=Machine.repeats,
    show_default=True,
    help="Allocations of each machine.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="Machines of each scenario and shape.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@format_option("Format of the rates.")
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
