"""Decisions of `seatrial accept`. Lab, runs and reports are stand-ins."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from seatrial.cli import main
from seatrial.commands import accept as command

CLEAN, SLOW = "functional", "selftest"


class Lab:
    """Gives the runs of a campaign their verdicts in turn; notes what was judged."""

    def __init__(self, **verdicts: list[tuple[str, Sequence[str]]]) -> None:
        self.left = verdicts
        self.links: list[str | None] = []
        self.judged: list[tuple[str, ...]] = []

    def run(self, *order: Any) -> Path:
        campaign, run_id = order[3], order[5]
        return Path(f"{run_id}-{len(self.left[campaign])}")

    def judge(
        self, home: Path, path: Path, further: Sequence[Path] = ()
    ) -> tuple[None, Any]:
        self.judged.append((path.name, *(other.name for other in further)))
        verdict, convicted = self.left[path.name.partition("-")[0]].pop(0)
        return None, SimpleNamespace(verdict=verdict, convicted=tuple(convicted))


def accepted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Return the exit status and what was printed."""
    places: dict[str, Any] = {
        "commands.lab.require_root_on_debian": lambda: None,
        "runs.open_run.try_folder": lambda folder: None,
        "runs.open_run.new_run_id": lambda campaign: campaign,
        "system.playbooks.playbook": lambda *which: None,
        "system.lab.cluster.slow_link": lambda node, rate: lab.links.append(rate),
        "system.login_node.load_remote": lambda home, system: None,
        "campaign.remote.run_remotely": lab.run,
        "judge.summary.print_summary": lambda *what: None,
        "report.write_report": lambda *what: {"report.html": Path("page")},
    }
    for name, stand_in in places.items():
        monkeypatch.setattr(f"seatrial.{name}", stand_in)
    monkeypatch.setattr(command, "judged", lab.judge)
    done = CliRunner().invoke(main, ["accept"])
    return done.exit_code, done.output


PASS, FAIL, UNDECIDED = ("pass", ()), ("fail", ("cn03",)), ("undecided", ())


@pytest.mark.parametrize(
    ("clean", "slow", "status"),
    [
        ([PASS], FAIL, 0),
        ([UNDECIDED, PASS], FAIL, 0),
        ([UNDECIDED, UNDECIDED], FAIL, 1),
        ([UNDECIDED, FAIL], FAIL, 1),
        ([FAIL], FAIL, 1),  # a fail is not measured again
        ([PASS], ("fail", ("cn03", "cn04")), 1),
        ([PASS], UNDECIDED, 1),
    ],
)
def test_only_an_undecided_clean_run_is_repeated_once(
    clean: list[Any], slow: Any, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(**{CLEAN: [*clean], SLOW: [slow]})
    code, text = accepted(lab, monkeypatch)
    assert (code, lab.left) == (status, {CLEAN: [], SLOW: []})
    first, *again = lab.judged[: len(clean)]
    assert first == (f"{CLEAN}-{len(clean)}",)
    assert again == [(f"{CLEAN}-1", *first)] * (len(clean) - 1)
    assert lab.links == [None, "100mbit", None]
    assert f"clean run:  {clean[-1][0]}, page" in text
    assert ("the run is repeated" in text) == (len(clean) == 2)
