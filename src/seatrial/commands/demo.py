"""`seatrial demo`: judge, report and compare recorded runs, without a cluster."""

import io
import shlex
import time
from contextlib import redirect_stdout
from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.errors import SeatrialError
from seatrial.output import echo
from seatrial.paths import home

RECORDED = (
    "Recorded. These numbers were taken on Seatrial's lab, 4 or 5 containers on one "
    "small machine, and are shipped with it. Nothing was measured now."
)
"""Note on every page and at the top of the output."""

_LINES = 16


@click.command()
@options.out(
    help="Folder for the pages (default: reports/out/demo below SEATRIAL_HOME)."
)
def demo(out: Path | None) -> None:
    """Judge, report and compare the recorded runs that are shipped with Seatrial.

    The runs are of the lab; reports/demo/README.md describes them. Each command is
    printed before it runs, so that you can repeat it with other options. The demo needs
    neither root nor a cluster, and measures nothing.

    Exit status: 0 for every verdict; 2 usage or environment.

    Example: seatrial demo --out demo
    """
    from seatrial.runs.pack import SUFFIX

    suite = home()
    folder = _near(suite / "reports" / "demo")
    out = out or _near(suite / "reports" / "out" / "demo")
    if not folder.is_dir():
        raise SeatrialError(
            f"{folder}: no recorded runs; expected a complete checkout of the suite"
        )
    started = time.monotonic()
    echo(RECORDED)
    for name, what in (
        ("acceptance", "An acceptance campaign on a sound machine"),
        ("slow-link", "The same machine, with a slow link on one node"),
    ):
        _say(what)
        file = folder / f"{name}{SUFFIX}"
        _run("report", file, "--criteria", "kept", "--out", out / name)
    signers = ("--sealed", "--signers", folder / "allowed_signers")
    for bakeoff, sides, what in (
        (
            "bakeoff",
            ("delivered", "slow-links"),
            "A bake-off of sealed runs: as delivered, and with slower links",
        ),
        (
            "twice",
            ("busy-1", "busy-2"),
            "The same machine twice, while other work kept it busy: no winner",
        ),
    ):
        _say(what)
        named = [f"{side}={folder / f'bakeoff-{side}{SUFFIX}'}" for side in sides]
        _run("compare", *named, *signers, "--out", out / bakeoff)
    _say("Two MPI stacks, out of one run")
    run = folder / f"acceptance{SUFFIX}"
    stacks = [f"{name}={run}@{name}" for name in ("openmpi", "mpich")]
    _run("compare", *stacks, "--out", out / "stacks")
    _say("Eight nights; in the fifth a link was slow, before the seventh came a node")
    nights = sorted(folder.glob(f"night-*{SUFFIX}"))
    metrics = ("--metric", "bw_1MiB", "--metric", "latency_8B")
    _run("trend", "lab", *nights, *metrics, "--out", out / "trend")
    echo("", f"{time.monotonic() - started:.0f} s. {RECORDED}", "Open in a browser:")
    for page in sorted(out.glob("*/*.html")):
        echo(f"  {page}")


def _say(what: str) -> None:
    echo("", f"== {what}")


def _run(*arguments: object) -> None:
    """Print a command and run it with the note; print the first lines of its output."""
    suite = click.get_current_context().find_root().command
    given = [str(argument) for argument in arguments]
    echo(f"$ seatrial {shlex.join(given)}")
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = suite.main(
            [*given, "--note", RECORDED], prog_name="seatrial", standalone_mode=False
        )
    lines = printed.getvalue().splitlines()
    echo(*lines[:_LINES])
    if len(lines) > _LINES:
        echo(f"... and {len(lines) - _LINES} more lines")
    if status:
        raise SeatrialError(f"seatrial {given[0]} ended with status {int(status)}")


def _near(path: Path) -> Path:
    """Return a path relative to the working directory, if it is below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
