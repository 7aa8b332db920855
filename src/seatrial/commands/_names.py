"""Types of arguments that the shell completes: systems, runs, campaigns."""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from seatrial.errors import SeatrialError
from seatrial.paths import home, results_dir


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
    from seatrial.campaign.campaign_file import known_campaigns

    return known_campaigns(home())


SYSTEM = Name(_systems, files=False)
RUN = Name(_runs, files=True)
CAMPAIGN = Name(_campaigns, files=False)
