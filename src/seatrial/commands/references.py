"""`seatrial references`: generate, measure and compare references."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._runs import run_path
from seatrial.errors import Exit, SeatrialError
from seatrial.output import echo, write_data

if TYPE_CHECKING:
    from seatrial.calibration.baselines import Refusal
    from seatrial.criteria.criterion import Model


@click.group()
def references() -> None:
    """Generate, measure and compare the references of a system.

    Example: seatrial references generate lab --check
    """


@references.command()
@click.argument("system", type=options.SYSTEM)
@click.option("--check", is_flag=True, help="Change nothing; list the stale files.")
@click.pass_context
def generate(ctx: click.Context, system: str, check: bool) -> None:
    """Write ReFrame's reference files from reference-data/SYSTEM/criteria.yaml.

    `seatrial run` does this too. Commit the files: plain ReFrame then has the same
    limits as the judge.

    Exit status: 0; 1 with --check if a file is stale; 2 usage, or broken criteria.

    Example: seatrial references generate lab
    """
    from seatrial.criteria.criteria import Criteria
    from seatrial.criteria.reframe_references import (
        compare_reference_files,
        write_reference_files,
    )

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
@click.argument("runs", type=options.RUN, nargs=-1, required=True, metavar="RUN...")
@options.checks
@options.repeated(
    "--metric",
    "metrics",
    help="Only this metric, such as bw_4MiB (default: those the checks declare).",
)
@options.option("--coverage", type=options.Share(), default="0.95")
@options.option("--confidence", type=options.Share(), default="0.95")
@options.model("Distribution of the numbers; `any` assumes none.")
@click.option("--output", type=options.FILE, help="Write to this file.")
def measure_command(
    runs: tuple[str, ...],
    checks: tuple[str, ...],
    metrics: tuple[str, ...],
    coverage: float,
    confidence: float,
    model: "Model",
    output: Path | None,
) -> None:
    """Measure references from closed runs, and print them as criteria to review.

    The limits are tolerance bounds: with the confidence, the coverage of the
    allocations of each place reaches its limit. With 95 % and 95 % this takes 59
    allocations without a model, and at least 3 with one. RUN is the path of a run, its
    id, SYSTEM/latest or latest; all runs are of one system in one configuration. No
    file of the suite changes: review the criteria, add them to criteria.yaml, and
    commit them.

    Exit status: 0; 2 usage, or too little data for every reference.

    Example: seatrial references measure lab/latest --check ImbRing --model lognormal
    """
    import getpass

    from seatrial.calibration.baseline_yaml import criteria_text
    from seatrial.calibration.baselines import Claim, measure, require_alike
    from seatrial.model.manifest import MANIFEST
    from seatrial.runs.closed_run import by_start, load_run

    loaded = [*map(load_run, by_start(map(run_path, runs), MANIFEST))]
    claim = Claim(model, coverage, confidence)
    measured, refused = measure(loaded, claim, checks, metrics)
    if not measured:
        raise SeatrialError(f"no reference can be stated:\n{_reasons(refused)}")
    text = criteria_text(
        measured,
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
    echo(f"{len(measured)} references in {output}, {len(refused)} refused")


def _reasons(refused: Sequence["Refusal"]) -> str:
    """Return each reason once, with its places."""
    places: dict[str, list[str]] = {}
    for refusal in refused:
        places.setdefault(refusal.reason, []).append(str(refusal.history))
    return "\n".join(
        f"  {reason}:\n    " + "\n    ".join(names) for reason, names in places.items()
    )


@references.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("run_ids", type=options.RUN, nargs=-1, metavar="[RUN]...")
@options.option(
    "--against",
    default="HEAD",
    metavar="REV|FILE",
    help="Earlier criteria: a commit of git, or a file.",
)
@options.count("--runs", "number", default=20, help="Number of the newest runs.")
@options.form("Format of the changes; csv has the findings.")
def diff(
    system: str, run_ids: tuple[str, ...], against: str, number: int, form: str
) -> None:
    """Show how changed criteria of SYSTEM change the verdicts on past runs.

    Each past run is judged by the earlier and by the current criteria. The output shows
    its verdicts and every finding that differs. Replays are left out.

    Exit status: 0; 2 usage, or broken criteria.

    Example: seatrial references diff lab --against HEAD~1
    """
    from seatrial.calibration.criteria_impact import (
        compare,
        criteria_at,
        format_changes,
    )
    from seatrial.calibration.impact_table import print_changes
    from seatrial.console import Terminal
    from seatrial.criteria.criteria import Criteria, changes
    from seatrial.runs.closed_run import load_run

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
    print_changes(compared, differing, Terminal())


def _chosen(home: Path, system: str, runs: Sequence[str], number: int) -> list[Path]:
    """Return the named runs, else the newest of the system, without replays."""
    from seatrial.model.manifest import read_manifest
    from seatrial.runs.closed_run import closed_runs

    named = [run_path(run) for run in runs]
    for path in named:
        if read_manifest(path)["system"] != system:
            raise SeatrialError(f"{path}: expected a run of system {system!r}")

    def is_measured(path: Path) -> bool:
        with suppress(SeatrialError):  # loading reports a run that cannot be read
            return not read_manifest(path).get("replay")
        return True

    newest = closed_runs(paths.results_dir(home), system) if not runs else []
    return [*filter(is_measured, named or newest)][0 if runs else -number :]
