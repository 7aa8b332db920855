"""`seatrial simulate`: count the wrong verdicts on simulated machines."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.calibration.simulate.machine import SHAPES, Machine
from seatrial.calibration.simulate.scenarios import SCENARIOS, Model
from seatrial.commands import _options as options
from seatrial.commands import _simulated as work
from seatrial.paths import home

if TYPE_CHECKING:
    from seatrial.calibration.simulate.machines import Layout, Setting
    from seatrial.calibration.simulate.nights import NightMachine, NightNoise

_ALL = "all"
_NIGHTLY = "nightly"
_ADAPTIVE = "adaptive"
_FABRIC = "fabric"
_STABILITY = "stability"
_OWN = (_NIGHTLY, _ADAPTIVE, _FABRIC, _STABILITY)
"""Scenarios with machines of their own."""

_PHASES = 200
"""Stability phases of each row by default: seconds."""

_LARGE_NODES = 1000
_YEARS = 4
"""Machine-years of each row of nights by default: about a minute in all."""


def _known_scenarios() -> list[str]:
    from seatrial.calibration.simulate.machines import TRUTHS

    return [*dict.fromkeys([*SCENARIOS, *TRUTHS, _ALL, *_OWN])]


def _known_noises() -> list[str]:
    from seatrial.calibration.simulate.nights import NIGHT_NOISES
    from seatrial.calibration.simulate.noises import NOISES

    return [*dict.fromkeys([*SHAPES, *NOISES, *NIGHT_NOISES])]


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
    "with --criteria all). `nightly`: years of nights; `adaptive`: adaptive sweeps; "
    "`fabric`: suspects of slow pairs; `stability`: tests of phases. An unknown name "
    "prints all.",
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
@click.option(
    "--nodes",
    type=click.IntRange(3),
    help=f"Nodes of each machine (default: {Machine.nodes}; nightly, adaptive "
    "and fabric 1000).",
)
@click.option(
    "--metrics",
    type=click.IntRange(1, 60),
    help="Without --criteria: metrics of each node "
    f"(default: {Machine.metrics}; nightly 20).",
)
@options.count(
    "--repeats",
    help=f"Allocations of each machine (default: {Machine.repeats}; with --criteria, "
    "and adaptive, the repeats of the campaign acceptance).",
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
@options.count(
    "--runs",
    help="Machines of each scenario and shape (default: 40), or years of nights "
    f"({_YEARS}).",
)
@options.option("--seed", type=click.IntRange(0), default=1)
@options.count(
    "--workers",
    help="With --criteria, of nights and adaptive sweeps: processes (default: all "
    "processors).",
)
@options.form("Format of the rates.")
def simulate(
    file: Path | None,
    scenarios: tuple[str, ...],
    shapes: tuple[str, ...],
    model: Model,
    nodes: int | None,
    metrics: int | None,
    repeats: int | None,
    cv: float,
    shared: float,
    pairs: tuple[str, ...],
    whole: tuple[str, ...],
    runs: int | None,
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

    --scenario nightly plays years of nights: false alarms a year, and nights until a
    fault is confirmed. --scenario adaptive sweeps large machines adaptively, fabric
    names bad parts by routes: found faults, sound parts blamed, share of the pairs.
    stability plays phases of failing machines: realised risks of the demonstration
    tests.

    Example: seatrial simulate --criteria criteria.yaml --noise ar1 --runs 500
    """
    _require_alone(file, scenarios)
    if _NIGHTLY in scenarios:
        size, noises = _nights(shapes, nodes, metrics, cv)
        work.play_nights(size, noises, runs or _YEARS, seed, workers, form)
        return
    if {_ADAPTIVE, _FABRIC, _STABILITY}.intersection(scenarios):
        large = nodes or _LARGE_NODES
        _play(scenarios[0], large, repeats, runs, seed, workers, form)
        return
    runs = runs or 40
    nodes = nodes or Machine.nodes
    if file is None:
        base, chosen = _compared(nodes, metrics, repeats, scenarios)
        _require_known("--noise", shapes, SHAPES)
        work.compare_rules(base, chosen, shapes, model, runs, seed, form)
        return
    from seatrial.calibration.simulate.machines import Setting

    quiet = Setting(nodes=nodes, repeats=repeats or _planned(), cv=cv, shared=shared)
    layouts, truths = _layouts(pairs, whole), _truths(scenarios)
    settings = _settings(quiet, shapes)
    work.judge_by(file, layouts, settings, truths, runs, seed, workers, form)


def _play(
    scenario: str,
    nodes: int,
    repeats: int | None,
    runs: int | None,
    seed: int,
    workers: int | None,
    form: str,
) -> None:
    """Run a simulation with machines of its own, that of nights left out."""
    if scenario == _STABILITY:
        work.demonstrate_stability(runs or _PHASES, seed, form)
    elif scenario == _ADAPTIVE:
        repeats = repeats or _planned()
        work.sweep_adaptively(nodes, repeats, runs or 40, seed, workers, form)
    else:
        work.locate_faults(nodes, runs or 40, seed, workers, form)


def _truths(scenarios: Sequence[str]) -> list[str]:
    """Return the machines that criteria judge: all, or those that are named."""
    from seatrial.calibration.simulate.machines import TRUTHS

    scenarios = () if _ALL in scenarios else scenarios
    _require_known("--scenario", scenarios, TRUTHS)
    return [name for name in TRUTHS if name in (scenarios or TRUTHS)]


def _settings(size: "Setting", shapes: Sequence[str]) -> list["Setting"]:
    """Return the machines of a size with each noise, or those that are named."""
    from seatrial.calibration.simulate.noises import NOISES

    _require_known("--noise", shapes, NOISES)
    return [replace(size, noise=n) for n in NOISES if n in (shapes or NOISES)]


def _layouts(pairs: Sequence[str], whole: Sequence[str]) -> dict[str, "Layout"]:
    """Return what the named checks measure."""
    layouts: dict[str, Layout] = dict.fromkeys(whole, "whole")
    return layouts | dict.fromkeys(pairs, "pairs")


def _compared(
    nodes: int, metrics: int | None, repeats: int | None, scenarios: Sequence[str]
) -> tuple[Machine, Sequence[str]]:
    """Return the machine that other rules judge, too, and the scenarios."""
    scenarios = tuple(SCENARIOS) if _ALL in scenarios else scenarios
    _require_known("--scenario", scenarios, SCENARIOS)
    base = Machine(nodes=nodes, repeats=repeats or Machine.repeats)
    return replace(base, metrics=metrics or base.metrics), scenarios


def _nights(
    shapes: Sequence[str],
    nodes: int | None,
    metrics: int | None,
    cv: float,
) -> tuple["NightMachine", list["NightNoise"]]:
    """Return the size of a machine whose nights are played, and its noises."""
    from seatrial.calibration.simulate.nights import NIGHT_NOISES, NightMachine

    _require_known("--noise", shapes, NIGHT_NOISES)
    size = NightMachine(cv=cv)
    size = replace(size, nodes=nodes or size.nodes, metrics=metrics or size.metrics)
    return size, [noise for noise in NIGHT_NOISES if noise in (shapes or NIGHT_NOISES)]


def _require_alone(file: Path | None, scenarios: Sequence[str]) -> None:
    """Refuse other scenarios, or criteria, beside one that has machines of its own."""
    for name in {*_OWN}.intersection(scenarios):
        if file is not None or len(scenarios) > 1:
            problem = f"{name}: expected it alone, without --criteria"
            raise click.BadParameter(problem, param_hint="--scenario")


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
