"""What older versions wrote: runs, criteria and ledgers are read and judged today.

`tests/data/older` was written by these versions themselves: a run of schema 1 of eight
repeats, whose check is `echo`, without its raw output (by commit bf4c9999); criteria of
the lab (a3eb14d1); a ledger of two runs and a repair (2735cb11). The recorded runs in
`reports/demo` are of the same week: without classes of nodes, settings and a ledger.
"""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.planned_findings import NO_PLAN
from seatrial.runs.closed_run import load_run
from seatrial.runs.ledger import LEDGER, begin, close, read_ledger
from seatrial.runs.ledger_check import OLD
from seatrial.runs.ledger_entries import parse_ledger

OLDER = Path(__file__).parent / "data" / "older"
RUN = OLDER / "20261126T215000Z-eight"
LIMITS = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: contract, clause: '1'}
criteria:
  - check: Echo
    where: {$environ: openmpi}
    model: every
    limits: {latency_8B: LIMIT us}
"""


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in arguments])


def judged(limit: str) -> Judgement:
    text = LIMITS.replace("LIMIT", limit).encode()
    return judge(load_run(RUN), Criteria.parse(text, Path("c.yaml"), ANY))


def test_a_run_of_the_first_schema_is_verified_and_has_its_numbers() -> None:
    done = command("verify", RUN)
    assert done.exit_code == 0, done.output
    run = load_run(RUN)
    assert run.manifest["schema"] == 1
    assert {case.result for case in run.cases} == {"pass", "skip"}
    values = run.measurements.select("value", "unit").collect()
    assert values.unique().rows() == [(3.0, "us")]
    assert len(values) == 24


@pytest.mark.parametrize(("limit", "verdict"), [("10", "pass"), ("2", "fail")])
def test_a_run_of_the_first_schema_is_judged_and_says_what_it_lacks(
    limit: str, verdict: str
) -> None:
    judgement = judged(limit)
    findings = [f for f in judgement.findings if f.criterion]
    assert [(f.case, f.place, f.verdict, f.n) for f in findings] == [
        ("Echo %x=1", "cn01", verdict, 8),
        ("Echo %x=2", "cn01", verdict, 8),
    ]
    said = [*judgement.notes, *judgement.history]
    assert {NO_PLAN, OLD} <= {*said}
    # It has no number of cn02, which was there: no version hides that.
    assert judgement.verdict == ("fail" if verdict == "fail" else "undecided")


def test_a_run_of_the_first_schema_is_reported_queried_and_exported(
    tmp_path: Path,
) -> None:
    limits = tmp_path / "criteria.yaml"
    limits.write_text(LIMITS.replace("LIMIT", "10"))
    out = tmp_path / "out"
    done = command("report", RUN, "--criteria", limits, "--out", out, "--form", "html")
    assert done.exit_code == 0, done.output
    assert "an older Seatrial made it" in (out / "report.html").read_text()
    rows = json.loads(command("query", RUN, "--format", "json").stdout)
    assert len(rows) == 24
    assert command("export", RUN, "--format", "openmetrics").exit_code == 0


def test_criteria_of_an_older_version_are_criteria_today() -> None:
    content = (OLDER / "criteria.yaml").read_bytes()
    old = Criteria.parse(content, OLDER / "criteria.yaml", ANY)
    assert len(old.criteria) == 82
    assert old.absence.at_most == 0, "nothing that came later is granted"
    assert old.absence.spares == ""
    assert not any(rule.optional for rule in old.criteria)


def test_a_ledger_of_an_older_version_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    folder.mkdir()
    shutil.copy(OLDER / LEDGER, folder)
    for run in ("20261125T010000Z-smoke", "20261125T020000Z-smoke"):
        (folder / run).mkdir()
    place = begin(folder, "new", campaign="smoke", criteria="a" * 64, partial=False)
    close(folder, "new", "c" * 64)
    assert (place.entry, place.number) == (6, 3)
    whole = read_ledger(folder) or b""
    assert whole.startswith((OLDER / LEDGER).read_bytes())
    ledger = parse_ledger(whole)
    assert ledger.problem == ""
    assert [entry.event for entry in ledger.entries] == [
        *("started", "closed", "started", "closed", "repaired", "started", "closed")
    ]
