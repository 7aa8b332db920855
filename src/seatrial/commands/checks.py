"""`seatrial checks`: list all checks."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._rows import write_rows
from seatrial.output import write_data

if TYPE_CHECKING:
    from rich.table import Table

    from seatrial.checks.catalogue import Entry
    from seatrial.checks.sources import CheckVariable


@click.command()
@click.argument("name", required=False)
@options.form(
    "Format of the output; markdown is the table of the docs.",
    ("table", "json", "csv", "markdown"),
)
@click.option("--system", help="Add this system's number of cases and recorded times.")
def checks(name: str | None, form: str, system: str | None) -> None:
    """List all checks: question, tool, metrics, needs, time, experiments.

    With NAME, list the variables of that check, their defaults and meanings. A
    campaign sets them by `variables: {NAME.variable: value}`, plain ReFrame by
    `-S NAME.variable=value`.

    The time of a case is stated by the check; with --system it is the median of the
    recorded times. Experiments are those of the papers that a check repeats. The
    command needs neither Slurm nor MPI.

    Exit status: 0; 2 usage or environment, or an incomplete check.

    Example: seatrial checks --system lab
    """
    from seatrial.checks.catalogue import catalogue, format_catalogue
    from seatrial.checks.sources import variables_of
    from seatrial.console import Terminal

    home = paths.home()
    if name is not None:
        if system is not None or form == "markdown":
            raise click.UsageError("NAME takes no --system and no --format markdown")
        _print_variables(variables_of(paths.checks_dir(home), name), form)
        return
    entries = catalogue(paths.checks_dir(home), home)
    if system is not None:
        entries = _of_system(home, system, entries)
    if form == "table":
        Terminal().print(_table(entries, system))
    else:
        write_data(format_catalogue(entries, form))


def _print_variables(variables: list["CheckVariable"], form: str) -> None:
    from seatrial.checks.sources import CheckVariable
    from seatrial.console import Terminal, folding_table

    if form != "table":
        columns = [field.name for field in fields(CheckVariable)]
        write_rows([vars(variable) for variable in variables], form, columns)
        return
    table = folding_table("variable", "default", "meaning")
    for variable in variables:
        name = f"{variable.check}.{variable.variable}"
        table.add_row(name, variable.default or "-", variable.meaning or "-")
    Terminal().print(table)


def _of_system(home: Path, system: str, entries: list["Entry"]) -> list["Entry"]:
    from seatrial.checks.catalogue import on_system, recorded_times
    from seatrial.checks.listing import list_cases
    from seatrial.system.description import (
        is_provisioned,
        known_systems,
        load_system,
        unknown_system,
    )

    times = recorded_times(paths.results_dir(home), system)
    if is_provisioned(home, system):
        settings = load_system(home, system).settings
        cases = list_cases(settings, system, paths.checks_dir(home), home)
        return on_system(entries, cases, times)
    if not times and system not in known_systems(home):
        raise unknown_system(home, system)
    return on_system(entries, None, times)


def _table(entries: list["Entry"], system: str | None) -> "Table":
    from seatrial.checks.catalogue import metric_words
    from seatrial.console import folding_table
    from seatrial.model.units import rounded

    table = folding_table("check", "question", "tool", "metrics", "needs")
    for heading in ("cases", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("experiments", "tags"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        table.add_row(
            entry.check,
            entry.question,
            entry.tool,
            metric_words(entry),
            ", ".join((*entry.extent, *entry.needs)),
            str(entry.cases),
            f"{rounded(entry.typical_s, 3)} s"
            + ("" if entry.recorded or not system else " stated"),
            ", ".join(entry.experiments),
            ", ".join(entry.tags),
        )
    return table
