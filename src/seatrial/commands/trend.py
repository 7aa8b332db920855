"""`seatrial trend`: show the metrics of a system over its runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.commands import _options as options
from seatrial.commands._rows import write_files
from seatrial.commands._runs import run_path
from seatrial.errors import SeatrialError
from seatrial.output import echo, write_data
from seatrial.paths import criteria_file, home, results_dir

if TYPE_CHECKING:
    from seatrial.report.trend.series import Trend

_MOST_CHANGES = 20


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.argument("runs", type=options.RUN, nargs=-1, metavar="[RUN]...")
@options.campaigns
@options.checks
@options.repeated("--metric", "metrics", help="Only this metric, e.g. bw_4MiB.")
@options.repeated("--environment", "environments", help="Only this one.")
@options.since
@options.until
@options.count("--last", help="Largest number of runs, the newest.")
@options.out(
    help="Folder for the files (default: reports/out/SYSTEM/trend in SEATRIAL_HOME)."
)
@options.note
@options.form("Format of the output; json and csv have every point.")
def trend(
    system: str,
    runs: tuple[str, ...],
    campaigns: tuple[str, ...],
    checks: tuple[str, ...],
    metrics: tuple[str, ...],
    environments: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    last: int | None,
    out: Path | None,
    notes: tuple[str, ...],
    form: str,
) -> None:
    """Show metrics of SYSTEM over its closed runs: trend.html and trend.csv.

    RUN is the path of a run or the file of a packed one, or its id; default: all runs.
    For each run: the median, the range of its jobs, and the worst place, with the
    limits of its time and of today. Changes between runs are marked: nodes,
    configuration, suite, criteria. A run without the number leaves a gap with the
    reason. Without --check and --metric, the metrics with a criterion are shown.
    Replays are left out.

    No run is judged. With --format json or csv, files are written only with --out.

    Exit status: 0, also if numbers are beyond a limit; 2 usage, or a run that is
    changed or cannot be read.

    Example: seatrial trend lab --campaign nightly --check ImbRing --last 30
    """
    from seatrial.criteria.criteria import Criteria
    from seatrial.report.trend.page import trend_html
    from seatrial.report.trend.series import Choice
    from seatrial.report.trend.text import trend_csv
    from seatrial.report.trend.trend import trend as trend_of
    from seatrial.runs.closed_run import closed_runs

    suite = home()
    paths = [run_path(run) for run in runs] or closed_runs(results_dir(suite), system)
    chosen = _runs(paths, system, campaigns, since, until)
    file = criteria_file(suite, system)
    today = Criteria.load(file) if file.is_file() else None
    choice = Choice(checks, metrics, environments)
    trend_data = trend_of(system, chosen[-last:] if last else chosen, today, choice)
    _print(trend_data, form)
    if len(trend_data.nights) == 1:
        echo("one run only: a trend needs more", err=True)
    if form != "table" and out is None:
        return
    texts = {
        "trend.html": trend_html(trend_data, suite, notes),
        "trend.csv": trend_csv(trend_data),
    }
    folder = out or suite / "reports" / "out" / system / "trend"
    echo(*map(str, write_files(folder, texts)), err=form != "table")


def _runs(
    paths: Sequence[Path],
    system: str,
    campaigns: Sequence[str],
    since: datetime | None,
    until: datetime | None,
) -> list[Path]:
    """Return the chosen runs, oldest first; SeatrialError lists the known ones."""
    from seatrial.model.manifest import MANIFEST
    from seatrial.runs.closed_run import by_start, closed_runs, read_manifests
    from seatrial.runs.query import choose

    manifests = read_manifests(paths)
    others = {str(manifest["system"]) for manifest in manifests.values()} - {system}
    if others:
        raise SeatrialError(
            f"runs of {', '.join(sorted(others))}; expected runs of {system} alone"
        )
    if not manifests:
        results = results_dir(home())
        known = ", ".join(sorted({run.parent.name for run in closed_runs(results)}))
        raise SeatrialError(
            f"no closed run of system {system!r} below {results}; "
            + (f"expected one of: {known}" if known else "there is none of any system")
        )
    measured = choose(manifests)
    if not measured:
        raise SeatrialError(
            f"{system} has replays of recorded output only: no measurements, and no "
            "trend"
        )
    chosen = choose(measured, campaigns=campaigns, since=since, until=until)
    if not chosen:
        raise SeatrialError(
            f"none of the {len(measured)} runs of {system} fits --campaign, --since "
            f"and --until; they are {_described(measured)}"
        )
    return by_start(chosen, MANIFEST)


def _described(manifests: Mapping[Path, Mapping[str, Any]]) -> str:
    from seatrial.runs.query import started

    names = {str(manifest.get("campaign")) for manifest in manifests.values()}
    moments = [started(path, manifest) for path, manifest in manifests.items()]
    return (
        f"of {', '.join(sorted(names))}, started from {min(moments):%Y-%m-%d %H:%M} "
        f"to {max(moments):%Y-%m-%d %H:%M} UTC"
    )


def _print(trend: "Trend", form: str) -> None:
    from seatrial.console import Terminal
    from seatrial.report.trend.text import trend_csv, trend_json, trend_table

    if form != "table":
        write_data(trend_json(trend) if form == "json" else trend_csv(trend))
        return
    console = Terminal()
    nights = trend.nights
    console.print_line(
        f"{trend.system}: {len(nights)} {'run' if len(nights) == 1 else 'runs'}, "
        f"{nights[0].started} to {nights[-1].started}, {len(trend.series)} series"
    )
    console.print(trend_table(trend))
    changes = [(night.run, change) for night in nights for change in night.changes] + [
        ("since then", change) for change in trend.since
    ]
    for when, change in changes[-_MOST_CHANGES:]:
        console.print_line(f"{when}: {change.kind}: {change.words}")
    if len(changes) > _MOST_CHANGES:
        more = len(changes) - _MOST_CHANGES
        echo(f"and {more} earlier changes, see trend.html")
