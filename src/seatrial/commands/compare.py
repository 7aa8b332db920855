"""`seatrial compare`: compare systems, with the confidence of each difference."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.commands import _options as options
from seatrial.commands._rows import write_files
from seatrial.commands._runs import run_path, signers_of
from seatrial.errors import SeatrialError
from seatrial.output import echo, write_data
from seatrial.paths import home, published_dir

if TYPE_CHECKING:
    from seatrial.compare.records import Comparison


class Amount(click.ParamType[tuple[str, float]]):
    """A side's name and a number above 0: `acme=1200000`."""

    name = "name=number"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, float]:
        """Split a value at the last equals sign."""
        name, _, text = value.rpartition("=")
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not name or not (math.isfinite(amount) and amount > 0):
            self.fail(f"{value!r}: expected NAME and a number above 0: acme=1200000")
        return name, amount


@click.command()
@click.argument("sides", nargs=-1, required=True, metavar="SIDE SIDE [SIDE]...")
@click.option(
    "--weights",
    type=options.PRESENT_FILE,
    help="File of weights (default: the weights that all runs recorded).",
)
@click.option(
    "--criteria",
    type=options.PRESENT_FILE,
    help="Judge each run by this file; a run that fails cannot win.",
)
@options.repeated(
    "--price",
    "prices",
    type=Amount(),
    metavar="NAME=AMOUNT",
    help="Price of a side, all in one currency.",
)
@options.repeated(
    "--power",
    "powers",
    type=Amount(),
    metavar="NAME=KW",
    help="Power of a side, in kW.",
)
@click.option(
    "--sealed", is_flag=True, help="Require of every run the seal of a known signer."
)
@options.signers
@options.option(
    "--confidence",
    type=options.Share(least=0.5),
    default="95%",
    help="Confidence of every interval, and of the win.",
)
@options.out(help="Write compare.html, compare.json and compare.csv into this folder.")
@options.note
@options.form("Format of the output; csv has all paired numbers, json has all.")
def compare(
    sides: tuple[str, ...],
    weights: Path | None,
    criteria: Path | None,
    prices: tuple[tuple[str, float], ...],
    powers: tuple[tuple[str, float], ...],
    sealed: bool,
    signers: Path | None,
    confidence: float,
    out: Path | None,
    notes: tuple[str, ...],
    form: str,
) -> None:
    """Compare systems in a bake-off, with a confidence interval of each difference.

    SIDE is [NAME=]RUN[@ENVIRONMENT], with RUN a path, an id, SYSTEM/latest or latest,
    or [NAME=]published:SYSTEM, a system of a paper. The first side is the baseline.
    Ratios above 1 are better for every metric. Cases that only some sides ran are
    listed.

    A side wins only by weights that all runs recorded before their first number, and
    only by a significant difference.

    Exit status: 0 compared, with or without a winner; 2 usage, or the sides cannot be
    compared; with --sealed 1 not sealed or changed, 3 sealed by an unknown signer.

    Example: seatrial compare acme/latest zenith/latest --out bakeoff
    """
    from seatrial.compare import preparation
    from seatrial.compare.compare import compare as compare_sides
    from seatrial.compare.sides import open_sides, priced
    from seatrial.criteria.published import load_published

    if signers is not None and not signers.is_file():
        raise SeatrialError(f"{signers}: no such file; expected one of known signers")
    published = cache(lambda: load_published(published_dir(home())))

    def known(system: str) -> Path | None:
        return signers or signers_of(system)

    entrants = open_sides(sides, run_path, published, known)
    entrants = priced(entrants, _once("price", prices), _once("power", powers))
    if sealed:
        for entrant in entrants:
            preparation.require_sealed(entrant, known)
    if criteria is not None:
        entrants = preparation.judged_by(entrants, criteria)
    chosen, note = preparation.weights_of(entrants, weights)
    comparison = compare_sides(
        entrants,
        chosen,
        confidence=confidence,
        notes=note,
        **preparation.paper_arguments(entrants, published),
    )
    _show(comparison, form, out, notes)


def _once(option: str, given: Sequence[tuple[str, float]]) -> dict[str, float]:
    amounts: dict[str, float] = {}
    for name, amount in given:
        if name in amounts:
            raise SeatrialError(
                f"--{option}: {name} is given twice; expected one number"
            )
        amounts[name] = amount
    return amounts


def _show(
    comparison: "Comparison", form: str, folder: Path | None, notes: Sequence[str]
) -> None:
    """Write the files into the folder, if any, and print the comparison."""
    from seatrial.compare.formats import as_csv, as_json
    from seatrial.compare.html_page import compare_html
    from seatrial.compare.terminal import print_comparison
    from seatrial.console import Terminal

    if folder is not None:
        texts = {
            "compare.html": compare_html(comparison, home(), notes),
            "compare.json": as_json(comparison),
            "compare.csv": as_csv(comparison),
        }
        write_files(folder, texts)
    if form != "table":
        write_data(as_json(comparison) if form == "json" else as_csv(comparison))
        return
    print_comparison(comparison, Terminal())
    if folder is not None:
        echo(str(folder / "compare.html"))
