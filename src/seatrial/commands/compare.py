"""`seatrial compare`: which system is better, by how much, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from seatrial.checks.sources import experiments_of, known_checks
from seatrial.commands._note import note_option
from seatrial.commands._options import format_option
from seatrial.commands._runs import run_path, signers_of
from seatrial.commands._share import Share
from seatrial.compare.compare import compare as compare_sides
from seatrial.compare.formats import as_csv, as_json
from seatrial.compare.records import Comparison
from seatrial.compare.sides import Entrant, open_sides, priced
from seatrial.compare.terminal import print_comparison
from seatrial.console import Terminal
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.published import Published, load_published
from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError
from seatrial.output import echo, write_data
from seatrial.paths import checks_dir, home, published_dir
from seatrial.runs.closed_run import KEPT_WEIGHTS
from seatrial.runs.open_run import disk_errors
from seatrial.runs.seal import require_signer


class Amount(click.ParamType[tuple[str, float]]):
    """A side's name and a number above 0: `acme=1200000`."""

    name = "name=number"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, float]:
        """Split it at the last equals sign."""
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
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What counts how much (default: the weights that all runs recorded).",
)
@click.option(
    "--criteria",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge each run by this file; one that fails cannot win.",
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    type=Amount(),
    metavar="NAME=AMOUNT",
    help="What a side costs, all in one currency.",
)
@click.option(
    "--power",
    "powers",
    multiple=True,
    type=Amount(),
    metavar="NAME=KW",
    help="What a side draws, in kW.",
)
@click.option(
    "--sealed", is_flag=True, help="Every run must be sealed by who is known."
)
@click.option(
    "--signers",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Whose signatures are known: a file as OpenSSH's allowed_signers. Default: "
    "reference-data/SYSTEM/allowed_signers, else reference-data/allowed_signers.",
)
@click.option(
    "--confidence",
    type=Share(least=0.5),
    default="95%",
    show_default=True,
    help="Of every interval, and of the win.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write compare.html, compare.json and compare.csv into this folder.",
)
@note_option
@format_option("How to print it; csv has all paired numbers, json all.")
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
    """Compare systems in a bake-off: who is better, by how much, and how sure.

    SIDE is [NAME=]RUN[@ENVIRONMENT], with RUN a path, an id, SYSTEM/latest or latest,
    or [NAME=]published:SYSTEM, a system of a paper. The first is the baseline. Ratios
    above 1 are better, whatever is measured. What not all sides ran is listed.

    Somebody wins only by weights that all runs recorded before their first number, and
    by more than chance.

    Exit status: 0 compared, with or without a winner; 2 usage, or not to be compared; 1
    not sealed or changed, 3 sealed by an unknown signer (with --sealed).

    Example: seatrial compare acme/latest zenith/latest --out bakeoff
    """
    if signers is not None and not signers.is_file():
        raise SeatrialError(f"{signers}: no such file; expected one of known signers")
    published = cache(lambda: load_published(published_dir(home())))

    def known(system: str) -> Path | None:
        return signers or signers_of(system)

    entrants = open_sides(sides, run_path, published, known)
    entrants = priced(entrants, _once("price", prices), _once("power", powers))
    if sealed:
        for each in entrants:
            _require_sealed(each, known)
    if criteria is not None:
        entrants = _judged(entrants, criteria)
    chosen, told = _weights(entrants, weights)
    comparison = compare_sides(
        entrants,
        chosen,
        confidence=confidence,
        notes=told,
        **_papers(entrants, published),
    )
    if out is not None:
        _write(comparison, out, notes)
    if form == "table":
        print_comparison(comparison, Terminal())
        if out is not None:
            echo(str(out / "compare.html"))
    else:
        text = as_json(comparison) if form == "json" else as_csv(comparison)
        write_data(text)


def _once(what: str, given: Sequence[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, amount in given:
        if name in found:
            raise SeatrialError(f"--{what}: {name} is given twice; expected one number")
        found[name] = amount
    return found


def _require_sealed(entrant: Entrant, known: Any) -> None:
    if entrant.run is None:
        return
    file = known(entrant.side.system)
    if file is None:
        raise SeatrialError(
            f"{entrant.side.name}: --sealed needs the known signers; expected "
            f"reference-data/{entrant.side.system}/allowed_signers, or --signers"
        )
    try:
        require_signer(entrant.run.path, entrant.run.sealed, file)
    except SeatrialError as error:  # a packed run is opened somewhere: say whose it is
        raise SeatrialError(f"{entrant.side.name}: {error}", error.exit_code) from error


def _judged(entrants: Sequence[Entrant], file: Path) -> list[Entrant]:
    """Judge every run by the same criteria."""
    from seatrial.judge.judge import judge

    criteria = Criteria.load(file, known=())
    found = []
    for each in entrants:
        if each.run is not None:
            judgement = judge(each.run, criteria)
            side = replace(
                each.side, verdict=judgement.verdict, digest=judgement.digest
            )
            each = replace(each, side=side)
        found.append(each)
    return found


def _weights(
    entrants: Sequence[Entrant], file: Path | None
) -> tuple[Weights | None, list[str]]:
    """Read the weights of a file, else those that all runs kept."""
    if file is not None:
        try:
            checks = known_checks(checks_dir(home()))
        except SeatrialError:  # a bake-off opens on a machine without the suite's files
            checks = frozenset()
        return Weights.load(file, checks), []
    runs = [each for each in entrants if each.run is not None]
    kept: dict[str, Weights] = {}
    for each in runs:
        assert each.run is not None
        content = each.run.kept.get(KEPT_WEIGHTS)
        if content is not None:
            file = each.run.path / KEPT_WEIGHTS
            found = Weights.parse(content, file, known=())
            name = (each.run.manifest.get("weights") or {}).get("name")
            kept[each.side.name] = replace(found, name=name or found.name)
    hashes = {name: weights.sha256 for name, weights in kept.items()}
    if len(set(hashes.values())) > 1:
        told = ", ".join(f"{name} {digest}" for name, digest in hashes.items())
        raise SeatrialError(
            f"the runs kept different weights, SHA-256: {told}; expected the same in "
            "all; --weights FILE compares by one, without a winner"
        )
    if not kept:
        return None, []
    without = [each.side.name for each in runs if each.side.name not in kept]
    if without:
        note = f"{' and '.join(without)} kept no weights, {' and '.join(kept)} did"
        return None, [f"{note}: compared without; --weights FILE compares by them"]
    return next(iter(kept.values())), []


def _papers(entrants: Sequence[Entrant], published: Any) -> dict[str, Any]:
    """Give what is needed to compare with published systems, if there are some."""
    if not any(each.system for each in entrants):
        return {}
    papers: Published = published()
    beside_runs = any(each.run for each in entrants)
    own: Mapping[str, tuple[str, ...]] = (
        experiments_of(checks_dir(home())) if beside_runs else {}
    )
    return {"published": papers, "experiments": own}


def _write(comparison: Comparison, folder: Path, notes: Sequence[str]) -> None:
    from seatrial.compare.html_page import compare_html

    texts = {
        "compare.html": compare_html(comparison, home(), notes),
        "compare.json": as_json(comparison),
        "compare.csv": as_csv(comparison),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with disk_errors(folder):
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
