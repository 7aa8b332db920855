"""`seatrial references`: made from criteria, measured from runs, compared on runs."""

import getpass
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click
from rich.table import Table
from rich.text import Text

from seatrial import paths
from seatrial.calibration.baseline_yaml import criteria_text
from seatrial.calibration.baselines import Claim, Refusal, measure, require_alike
from seatrial.calibration.criteria_impact import (
    Changed,
    RunChange,
    compare,
    criteria_at,
    format_changes,
)
from seatrial.commands._names import RUN, SYSTEM
from seatrial.commands._options import format_option
from seatrial.commands._runs import run_path
from seatrial.commands._share import Share
from seatrial.console import Terminal
from seatrial.criteria.criteria import Criteria, changes
from seatrial.criteria.criterion import Model
from seatrial.criteria.reframe_references import (
    compare_reference_files,
    write_reference_files,
)
from seatrial.errors import Exit, SeatrialError
from seatrial.model.units import rounded
from seatrial.output import echo, write_data
from seatrial.runs.closed_run import (
    MANIFEST,
    by_start,
    closed_runs,
    load_run,
    read_manifest,
)

_MODELS = [model for model in get_args(Model) if model != "every"]
_MOST_ROWS = 100


@click.group()
def references() -> None:
    """What a system must reach: made from criteria.yaml, measured, compared.

    Example: seatrial references generate lab --check
    """


@references.command()
@click.argument("system", type=SYSTEM)
@click.option("--check", is_flag=True, help="Change nothing; say which are stale.")
@click.pass_context
def generate(ctx: click.Context, system: str, check: bool) -> None:
    """Write the files that ReFrame reads from reference-data/SYSTEM/criteria.yaml.

    They are committed beside it, so plain ReFrame has the same limits as the judge.

    Exit status: 0; 1 with --check if some are stale; 2 usage, or broken criteria.

    Example: seatrial references generate lab
    """
    home = paths.home()
    criteria = Criteria.load(paths.criteria_file(home, system))
    if not check:
        written = write_reference_files(home, criteria, system)
        for file in written:
            echo(f"{'wrote' if file.exists() else 'removed'} {file}")
        if not written:
            echo("all are up to date")
        return
    stale = compare_reference_files(home, criteria, system)
    for file in stale:
        echo(f"stale: {file}", err=True)
    if stale:
        echo(f"run `seatrial references generate {system}`", err=True)
        ctx.exit(Exit.FAILED)


@references.command("measure")
@click.argument("runs", type=RUN, nargs=-1, required=True, metavar="RUN...")
@click.option("--check", "checks", multiple=True, metavar="CLASS", help="Only these.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Only these flat names, bw_4MiB (default: what the checks declare).",
)
@click.option("--coverage", type=Share(), default="0.95", show_default=True)
@click.option("--confidence", type=Share(), default="0.95", show_default=True)
@click.option(
    "--model",
    type=click.Choice(_MODELS),
    default="any",
    show_default=True,
    help="How numbers scatter; `any` takes nothing for granted.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there."
)
def measure_command(
    runs: tuple[str, ...],
    checks: tuple[str, ...],
    metrics: tuple[str, ...],
    coverage: float,
    confidence: float,
    model: Model,
    output: Path | None,
) -> None:
    """Measure references from closed runs, and print them as criteria to review.

    With the confidence, at least the coverage of the allocations of each place reaches
    the limit. Without a model that takes 59 allocations (95 % and 95 %), with one at
    least 3. RUN is the path of a run, its id, SYSTEM/latest or latest; all are of one
    system in one configuration. Nothing else is changed: a person puts criteria into
    criteria.yaml and commits them.

    Exit status: 0; 2 usage, or no reference can be stated.

    Example: seatrial references measure lab/latest --check ImbRing --model lognormal
    """
    chosen = by_start((run_path(each) for each in runs), MANIFEST)
    loaded = [load_run(path) for path in chosen]
    claim = Claim(model, coverage, confidence)
    found, refused = measure(loaded, claim, checks, metrics)
    if not found:
        raise SeatrialError(f"no reference can be stated:\n{_reasons(refused)}")
    text = criteria_text(
        found,
        refused,
        claim,
        runs=[run.manifest["run"] for run in loaded],
        system=loaded[0].manifest["system"],
        configuration=require_alike(loaded),
        who=getpass.getuser(),
        day=datetime.now(UTC).date(),
    )
    if output is None:
        write_data(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SeatrialError(f"{output}: {error.strerror}") from error
    echo(f"{len(found)} references in {output}, {len(refused)} refused")


def _reasons(refused: Sequence[Refusal]) -> str:
    """Name each reason once, with what it holds for."""
    about: dict[str, list[str]] = {}
    for each in refused:
        about.setdefault(each.reason, []).append(str(each.history))
    return "\n".join(
        f"  {reason}:\n    " + "\n    ".join(names) for reason, names in about.items()
    )


@references.command()
@click.argument("system", type=SYSTEM)
@click.argument("run_ids", type=RUN, nargs=-1, metavar="[RUN]...")
@click.option(
    "--against",
    default="HEAD",
    show_default=True,
    metavar="REV|FILE",
    help="The criteria before: a commit of git, or a file.",
)
@click.option(
    "--runs",
    "number",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="So many of the newest runs.",
)
@format_option("How to print what changes; csv has the findings.")
def diff(
    system: str, run_ids: tuple[str, ...], against: str, number: int, form: str
) -> None:
    """Show what the criteria of SYSTEM change in the verdicts on past runs.

    Past runs are judged by the criteria before and by those of today; of each the
    verdict and every finding that differs is shown. Replays are left out.

    Exit status: 0; 2 usage, or broken criteria.

    Example: seatrial references diff lab --against HEAD~1
    """
    home = paths.home()
    old = criteria_at(home, system, against)
    new = Criteria.load(paths.criteria_file(home, system))
    compared = []
    for path in _chosen(home, system, run_ids, number):
        try:
            compared.append(compare(load_run(path), old, new))
        except SeatrialError as error:
            echo(f"left out: {error}", err=True)
    differing = changes(old, new)
    if form != "table":
        write_data(format_changes(compared, differing, form))
        return
    _print(compared, differing)


def _chosen(home: Path, system: str, runs: Sequence[str], number: int) -> list[Path]:
    """Choose the runs named, or the newest of the system; replays are left out."""
    if runs:
        named = [run_path(each) for each in runs]
        for path in named:
            if read_manifest(path)["system"] != system:
                raise SeatrialError(f"{path}: expected a run of system {system!r}")
        return [path for path in named if not read_manifest(path).get("replay")]
    found = closed_runs(paths.results_dir(home), system)
    return [path for path in found if not _is_replay(path)][-number:]


def _is_replay(path: Path) -> bool:
    """Return True for a replay; a run that cannot be read is reported when loaded."""
    with suppress(SeatrialError):
        return bool(read_manifest(path).get("replay"))
    return False


def _print(runs: Sequence[RunChange], differing: dict[str, str]) -> None:
    console = Terminal()
    for name, what in differing.items():
        console.print(Text(f"{name or 'risks of the machine'}: {what}"))
    if not differing:
        console.print("no criterion differs")
    if not runs:
        console.print("no run to judge")
        return
    findings = [each for run in runs for each in run.changed]
    if not findings and all(run.old == run.new for run in runs):
        same = f"no verdict and no finding changes in {len(runs)} runs"
        moved = sum(run.moved for run in runs)
        tail = f"; {moved} findings have another limit" if moved else ""
        console.print(same + tail)
        return
    console.print(_runs_table(runs))
    if findings:
        console.print(_findings_table(findings[:_MOST_ROWS]))
    if len(findings) > _MOST_ROWS:
        console.print(f"... and {len(findings) - _MOST_ROWS} more: --format csv")


def _runs_table(runs: Sequence[RunChange]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "old", "new"):
        table.add_column(heading, overflow="fold")
    for heading in ("findings changed", "only the limit", "same"):
        table.add_column(heading, justify="right")
    for run in runs:
        counts = (len(run.changed), run.moved, run.same)
        table.add_row(run.run, run.old, run.new, *map(str, counts))
    return table


def _findings_table(findings: Sequence[Changed]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "criterion", "case", "place", "old", "new"):
        table.add_column(heading, overflow="fold")
    for heading in ("old limit", "new limit"):
        table.add_column(heading, justify="right", overflow="fold")
    for each in findings:
        case = " ".join(filter(None, (each.case, each.environment)))
        texts = (each.run, each.criterion, case, each.place, each.old, each.new)
        limits = (_limit(each.old_limit, each.unit), _limit(each.new_limit, each.unit))
        table.add_row(*(Text(text) for text in (*texts, *limits)))
    return table


def _limit(limit: float | None, unit: str) -> str:
    return "" if limit is None else f"{rounded(limit)} {unit}"
