"""Parts of the commands of `seatrial fabric`."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.commands import _options as options
from seatrial.commands._rows import write_rows
from seatrial.errors import SeatrialError
from seatrial.output import complain, write_data

if TYPE_CHECKING:
    from seatrial.fabric.findings import Finding
    from seatrial.fabric.generate import Shape
    from seatrial.fabric.records import Fabric
    from seatrial.fabric.tools import Output

_STYLES = {"ok": "green", "odd": "yellow", "unknown": "yellow"}
_MOST_SPOTS = 4

fabric_option = click.option(
    "--fabric",
    "fabric_file",
    type=options.PRESENT_FILE,
    help="Read this file of `seatrial fabric discover`.",
)
"""An option of several commands: `fabric_file`."""


def discovered(
    sources: Sequence[Path], file: Path | None = None, save: Path | None = None
) -> "Fabric":
    """Return the fabric: of a file, of operators' files, or by the tools here.

    `save` is a folder for what the tools print.

    Raises SeatrialError if it cannot be read.
    """
    from seatrial.console import Terminal
    from seatrial.fabric.discover import by_tools, from_files
    from seatrial.fabric.records import read_fabric

    if file is not None:
        if sources:
            raise SeatrialError("--from and --fabric: expected one of them, got both")
        return read_fabric(file)
    if sources:
        return from_files(sources)
    with Terminal(stderr=True).status("discovering the fabric"):
        return by_tools(save)


def known_nodes(home: Path, system: str) -> Collection[str]:
    """Return the delivered nodes of a system; none if nothing tells them.

    They come from its description here, or from node_classes of the inventory.
    """
    from seatrial.standins.hostlist import expand
    from seatrial.system.description import is_provisioned, load_system
    from seatrial.system.doctor.probe import host_list
    from seatrial.system.login_node import login_variables

    if is_provisioned(home, system):
        return {node.name for node in load_system(home, system).nodes}
    templates = {
        "classes": "{{ node_classes | default([]) }}",
        "groups": "{{ groups }}",
    }
    try:
        settings = login_variables(home / "inventories" / system, home, templates)
        lists = [host_list(one, settings["groups"]) for one in settings["classes"]]
        return {node for text in lists if text for node in expand(text)}
    except (SeatrialError, ValueError):
        return ()  # an inventory without a login node, or another form of lists


def keep_fabric(
    home: Path,
    system: str,
    found: "Fabric",
    sources: Sequence[Path],
    told: "Sequence[Output] | None" = None,
) -> None:
    """Write the fabric beside the description of a system: runs keep it from then on.

    So do they keep its forwarding tables, if there are any (`told`: those that a tool
    printed elsewhere): a warning and a finding say
    if they do not fit. Raises SeatrialError if the system is not provisioned here, or a
    file of tables is damaged.
    """
    from msgspec.structs import replace

    from seatrial.fabric.forwarding import forwarding_text, misfit
    from seatrial.fabric.records import write_fabric
    from seatrial.paths import DISCOVERED_FILE, ROUTES_FILE
    from seatrial.system.description import load_system

    folder, routes = load_system(home, system).folder, ""
    try:
        routes = forwarding_text(sources, told)
    except SeatrialError as error:
        if sources:
            raise
        complain(f"{error} No forwarding tables are kept.")
    if problem := misfit(found, routes):
        complain(f"forwarding tables: {problem}. Run dump_fts beside the discovery.")
    write_fabric(folder / DISCOVERED_FILE, replace(found, routes=problem))
    (folder / ROUTES_FILE).unlink(missing_ok=True)
    if routes:
        save_text(routes, folder / ROUTES_FILE)


def shape_of(numbers: Mapping[str, Any]) -> "Shape":
    """Return the shape of the options of `plan`; SeatrialError for a wrong one."""
    from seatrial.fabric.generate import Shape
    from seatrial.parsers.fabric.seen import SPEEDS, WIDTHS

    dims, width = str(numbers["dims"]), str(numbers["width"]).lower().removesuffix("x")
    if dims and not all(part.isdecimal() for part in dims.split("x")):
        raise SeatrialError(f"--dims: expected numbers such as 8x8x8, got {dims!r}")
    if not width.isdecimal() or int(width) not in WIDTHS:
        raise SeatrialError(f"--width: expected 1x to 12x, got {numbers['width']!r}")
    speed = str(numbers["speed"]).upper()
    if speed not in SPEEDS:
        known = ", ".join(SPEEDS)
        raise SeatrialError(f"--speed: expected {known}, got {numbers['speed']!r}")
    return Shape(
        numbers["kind"],
        numbers["hosts"],
        numbers["radix"],
        numbers["blocking"],
        tuple(int(part) for part in dims.split("x")) if dims else (),
        numbers["rails"],
        numbers["prefix"],
        int(width),
        speed,
    )


def save_text(text: str, output: Path | None) -> None:
    """Write a text to a file, or to standard output."""
    if output is None:
        write_data(text)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, "utf-8")


def as_rows(
    findings: Sequence["Finding"], form: str
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return findings as records for JSON, or as rows for CSV with their columns."""
    if form == "json":
        return [asdict(one) for one in findings], ()
    rows = [
        {
            "verdict": one.verdict,
            "kind": one.kind,
            "where": " - ".join(map(str, one.spots)),
            "cables": " ".join(one.cables),
            "declared": one.declared,
            "actual": one.actual,
            "reason": one.reason,
            "plan_lines": " ".join(map(str, one.lines)),
        }
        for one in findings
    ]
    names = ("verdict", "kind", "where", "cables", "declared", "actual", "reason")
    return rows, (*names, "plan_lines")


def print_findings(findings: Sequence["Finding"]) -> None:
    """Print a table, worst first, and the number of findings by verdict."""
    from rich.text import Text

    from seatrial.audit.rows import VERDICTS
    from seatrial.console import Terminal, folding_table

    table = folding_table("", "what", "where", "cable", "declared", "actual", "note")
    for one in findings:
        spots = [str(spot) for spot in one.spots[:_MOST_SPOTS]]
        spots += ["..."] if one.spots[_MOST_SPOTS:] else []
        labels = [*one.cables[:_MOST_SPOTS]]
        labels += ["..."] if one.cables[_MOST_SPOTS:] else []
        table.add_row(
            Text(one.verdict, style=_STYLES.get(one.verdict, "red")),
            one.kind,
            "\n".join(spots),
            " ".join(labels),
            one.declared.replace("; ", "\n"),
            one.actual.replace("; ", "\n"),
            one.reason,
        )
    console = Terminal()
    if findings:
        console.print(table)
    counts = Counter[str](one.verdict for one in findings)
    parts = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    noun = "finding" if len(findings) == 1 else "findings"
    console.print_line(f"{len(findings)} {noun}{': ' if parts else ''}{parts}")


def write_findings(findings: Sequence["Finding"], form: str) -> None:
    """Print findings as a table, or write them as JSON or CSV."""
    if form == "table":
        print_findings(findings)
    else:
        rows, columns = as_rows(findings, form)
        write_rows(rows, form, columns)
