"""Options, arguments and types of values that several commands share.

The shell completes the names of systems, runs and campaigns.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from seatrial import interrupts
from seatrial.errors import SeatrialError
from seatrial.paths import home, known_campaigns, results_dir

_RATE = re.compile(r"(?=.*[1-9])\d+(\.\d+)?([kmgt]i?)?(bit|bps)", re.IGNORECASE)

FILE = click.Path(dir_okay=False, path_type=Path)
PRESENT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


class Name(click.ParamType[str]):
    """A name; the shell completes it from `known`, or from files too."""

    name = "text"

    def __init__(self, known: Callable[[], Iterable[str]], *, files: bool) -> None:
        self.known = known
        self.files = files

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the known names; without a match, the files if `files` is set."""
        try:
            names = sorted(set(self.known()))
        except SeatrialError:  # no home of the suite, or unreadable results
            names = []
        items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        if self.files and not items:
            return [CompletionItem(incomplete, type="file")]
        return items


class OneOf(Name):
    """One of the names of `known`, which is called only for a value or completion."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        super().__init__(known, files=False)

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Refuse an unknown name."""
        name: str = click.Choice([*self.known()]).convert(value, param, ctx)
        return name


def _systems() -> Iterable[str]:
    from seatrial.system.description import known_systems

    recorded = (path for path in results_dir(home()).glob("*") if path.is_dir())
    return [*known_systems(home()), *(path.name for path in recorded)]


def _runs() -> Iterable[str]:
    from seatrial.runs.closed_run import closed_runs

    runs = closed_runs(results_dir(home()))
    latest = [f"{run.parent.name}/latest" for run in runs]
    return [*latest, *(run.name for run in runs), *(["latest"] if runs else [])]


def _campaigns() -> Iterable[str]:
    return known_campaigns(home())


SYSTEM = Name(_systems, files=False)
RUN = Name(_runs, files=True)
CAMPAIGN = Name(_campaigns, files=False)


class Moment(click.ParamType[datetime]):
    """A date, or a time as ISO 8601; in UTC by default."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        """Parse a time; a date is its first moment."""
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r}: expected for example 2026-11-21 or 2026-11-21T06:30")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Share(click.ParamType[float]):
    """A number above `least` and below 1, or as a percentage: 0.95, 95%."""

    name = "share"

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Parse a share."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not self.least < share < 1:
            between = f"between {self.least:g} and 1"
            self.fail(f"{value!r}: expected a share {between}: 0.95, or 95%")
        return share


class Rate(click.ParamType[str]):
    """A rate above 0 with its unit: 200mbit, 1.5gbit; tc's `bps` are bytes."""

    name = "rate"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Check a rate."""
        if not _RATE.fullmatch(str(value)):
            self.fail(f"{value!r}: expected a number above 0 and a unit: 200mbit")
        return str(value)


option = partial(click.option, show_default=True)
repeated = partial(click.option, multiple=True)
count = partial(option, type=click.IntRange(min=1))
out = partial(click.option, "--out", type=FOLDER)


def form(
    text: str | None, forms: Sequence[str] = ("table", "json", "csv")
) -> Callable[[Any], Any]:
    """Return the option `--format`; the first form is the default."""
    choice = click.Choice(forms)
    return option("--format", "form", type=choice, default=forms[0], help=text)


def model(text: str) -> Callable[[Any], Any]:
    """Return the option `--model any|normal|lognormal`."""
    choice = click.Choice(["any", "normal", "lognormal"])
    return option("--model", type=choice, default="any", help=text)


campaigns = repeated(
    "--campaign", "campaigns", type=CAMPAIGN, help="Runs of this campaign."
)
checks = repeated("--check", "checks", metavar="CLASS", help="Only this check.")
note = repeated(
    "--note",
    "notes",
    metavar="TEXT",
    help="Write this text at the top of every page; may be repeated.",
)
results = click.option(
    "--results",
    type=FOLDER,
    help="Folder of all runs (default: SEATRIAL_RESULTS, else results/).",
)
signers = click.option(
    "--signers",
    type=FILE,
    help="Known signers, in the format of OpenSSH's allowed_signers. Default: "
    "reference-data/SYSTEM/allowed_signers, else reference-data/allowed_signers.",
)
since = click.option(
    "--since", type=Moment(), help="Runs that started at this time or later."
)
until = click.option(
    "--until", type=Moment(), help="Runs that started before this time."
)
stop_on_eof = click.option(
    "--stop-on-eof",
    is_flag=True,
    hidden=True,
    expose_value=False,
    callback=lambda ctx, param, value: interrupts.stop_on_eof() if value else None,
)
criteria = click.option(
    "--criteria",
    metavar="FILE",
    help="Judge by this file, or with `kept` by the criteria that the run kept when it "
    "started (default: reference-data/SYSTEM/criteria.yaml).",
)
