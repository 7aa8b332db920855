"""Cost and statistical power of a planned campaign."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from criteria_samples import criteria, criterion
from fake_home import write, write_home
from history_runs import NODES, node_run, present, scattered
from judge_samples import CASE

from seatrial.calibration.comparable_runs import comparable_runs
from seatrial.calibration.detection_limits import Prospect, prospects
from seatrial.calibration.plan_table import cost_table
from seatrial.calibration.sweep_plan import ROUND_S, sweep_costs
from seatrial.campaign.campaign_file import Block, Campaign
from seatrial.campaign.cost import (
    CheckCost,
    Cost,
    Recorded,
    allocations,
    cost,
    recorded,
    sessions_of,
)
from seatrial.campaign.schedule import plan_sessions
from seatrial.checks.growth import Place
from seatrial.checks.typical import Typical
from seatrial.cli import main
from seatrial.model.cases import ListedCase
from seatrial.runs.closed_run import Run, closed_runs, load_run

CASES = [ListedCase(f"Echo %x={x}", "lab:batch", "mpich") for x in (1, 2, 3)]
TEXTS = [str(case) for case in CASES]
KNOWN = Recorded(
    times={text: [99.0, 10.0, 20.0, 30.0] for text in TEXTS},
    nodes={TEXTS[0]: 1, TEXTS[1]: 2, TEXTS[2]: 4},
    newest={"Echo": CASES},
    skipped=frozenset(),
    delivered=4,
    between_s=2.0,
    runs=3,
)


def campaign(*blocks: Block, repeats: int = 2, **more: Any) -> Campaign:
    return Campaign("c", "", repeats, blocks or (Block("b", ("Echo",)),), **more)


PLACES = {"lab:batch": Place(4)}


def test_jobs_times_and_node_hours() -> None:
    sessions = sessions_of(campaign(), KNOWN, None, {}, {})
    found = cost(sessions, KNOWN, {}, 1, PLACES)
    (check,) = found.checks
    assert (found.jobs, found.sessions, check.jobs) == (6, 2, 6)
    assert (check.seconds, check.typical) == (20.0, 0)  # of the last three
    assert found.wall_s == 6 * 20 + 2 * 2
    assert found.between_s == 4
    assert found.node_hours == pytest.approx(2 * 20 * (1 + 2 + 4) / 3600)


@pytest.mark.parametrize(
    ("nodes", "seconds", "typical", "start_s", "rounds", "hours"),
    [
        (1000, 400.0, 0, 50.35, 999, 4 * 1000 * 400.0 / 3600),
        (1000, 10.0, 4, 0.0, 999, 4 * 1000 * 999 * ROUND_S / 3600),
        (33, 1.0, 0, 0.0, 33, 4 * 33 * 33 * ROUND_S / 3600),
    ],
)
def test_sweeps_of_all_pairs_and_adaptive_ones(
    nodes: int, seconds: float, typical: int, start_s: float, rounds: int, hours: float
) -> None:
    checks = (
        CheckCost("PairSweep", 4, seconds, None, typical),
        CheckCost("Echo", 4, 1.0, None, 0),
    )
    costs = Cost(4, 8, 1.0, 0.0, None, checks, {})
    (sweep,) = sweep_costs(costs, nodes)
    assert sweep.start_s == pytest.approx(start_s)
    assert sweep.rounds == rounds
    assert sweep.node_hours(rounds) == pytest.approx(hours)
    assert (sweep.least_rounds, sweep.most_rounds) == (12, min(48, rounds))
    least, most = map(sweep.node_hours, (12, min(48, rounds)))
    assert f"{least:,.3g} to {most:,.3g} for an adaptive sweep" in str(sweep)
    assert list(sweep_costs(costs, 12)) == []


@pytest.mark.parametrize(
    ("nodes", "max_jobs", "wall_s"),
    [
        ((1, 2, 4), 1, 60),
        ((1, 2, 4), 3, 40),  # the last waits for the whole machine
        ((1, 1, 1), 3, 20),
        ((1, 1, 1), 2, 40),
        ((4, 4, 4), 3, 60),
    ],
)
def test_jobs_at_a_time(nodes: Sequence[int], max_jobs: int, wall_s: float) -> None:
    known = replace(KNOWN, nodes=dict(zip(TEXTS, nodes, strict=True)), between_s=0.0)
    sessions = sessions_of(campaign(repeats=1), known, None, {}, {})
    assert cost(sessions, known, {}, max_jobs, PLACES).wall_s == wall_s


def test_controls_and_chosen_parameters_count() -> None:
    blocks = (Block("b", ("Echo",), parameters={"Echo": {"x": ("1", "3")}}),)
    planned = campaign(
        *blocks, repeats=4, controls=Block("controls", ("Echo",)), controls_every=2
    )
    counts = allocations(sessions_of(planned, KNOWN, None, {}, {}))
    assert [counts[text] for text in TEXTS] == [7, 3, 7]


STATED = {
    "Npb": {f"Npb %benchmark={name}": Typical(50.0) for name in ("CG", "FT", "IS")},
    "Osu": {
        "Osu %between=nodes": Typical(7.2, 2),
        "Osu %between=cores": Typical(3.6, 1),
    },
}


def test_what_never_ran_has_typical_times() -> None:
    blocks = (
        Block("a", ("Echo", "Npb"), parameters={"Npb": {"benchmark": ("CG", "FT")}}),
        Block("b", ("Osu",)),
    )
    planned = campaign(*blocks, repeats=1)
    sessions = sessions_of(planned, KNOWN, None, {}, STATED)
    found = cost(sessions, KNOWN, STATED, 1, {})
    told = [
        (each.check, each.jobs, each.seconds, each.typical) for each in found.checks
    ]
    assert told == [
        ("Echo", 3, 20.0, 0),
        ("Npb", 2, 50.0, 2),
        ("Osu", 2, pytest.approx(5.4), 2),
    ]
    nowhere = replace(KNOWN, delivered=0)
    assert cost(sessions, nowhere, STATED, 1, {}).node_hours is None


@pytest.mark.parametrize("nodes", [4, 64, 256, 1024])
def test_a_case_is_billed_for_the_nodes_that_it_uses(nodes: int) -> None:
    cases = [
        ListedCase(name, f"big:{part}", "mpich")
        for name in (case for check in STATED.values() for case in check)
        for part in ("cpu", "fat")
    ]
    nothing = replace(KNOWN, times={}, nodes={}, newest={}, delivered=0, runs=0)
    planned = campaign(Block("b", ("Npb", "Osu")), repeats=1)
    sessions = sessions_of(planned, nothing, cases, {}, STATED)
    places = {"big:cpu": Place(nodes), "big:fat": Place(2)}
    found = cost(sessions, nothing, STATED, 1, places)
    hours = {each.check: each.node_hours for each in found.checks}
    assert hours == {
        "Npb": pytest.approx(3 * 50.0 * (nodes + 2) / 3600),
        "Osu": pytest.approx(2 * (2 * 7.2 + 3.6) / 3600),
    }


def test_recorded_times_and_nodes_come_before_typical_ones() -> None:
    stated = {"Echo": {case.case: Typical(1e6, 1000) for case in CASES}}
    known = replace(KNOWN, times={text: KNOWN.times[text] for text in TEXTS[:2]})
    sessions = sessions_of(campaign(repeats=1), known, CASES, {}, stated)
    (check,) = cost(sessions, known, stated, 1, PLACES).checks
    assert (check.jobs, check.typical) == (3, 1)
    assert check.node_hours == pytest.approx((20 * 1 + 20 * 2 + 1e6 * 4) / 3600)


@pytest.mark.parametrize("check", ["Echo", "Ior"])  # one with times that grow, too
def test_what_was_skipped_is_no_job(check: str) -> None:
    """Checks are not asked for typical times if all cases came up before."""
    case = ListedCase(f"{check} %x=1", "lab:batch", "mpich")
    known = replace(KNOWN, newest={check: [case]}, skipped=frozenset([str(case)]))
    sessions = sessions_of(campaign(Block("b", (check,))), known, None, {}, {})
    found = cost(sessions, known, {}, 1, PLACES)
    assert found.jobs == 0
    assert found.nothing == {check: "its cases were skipped when they came up last"}


def test_a_provisioned_system_lists_its_own_cases() -> None:
    missing = {"Gpu": "no partition has gpu"}
    planned = campaign(Block("b", ("Echo", "Gpu")))
    sessions = sessions_of(planned, KNOWN, CASES[:1], missing, {})
    assert sessions == plan_sessions(planned, CASES[:1], missing)
    assert cost(sessions, KNOWN, {}, 1, PLACES).nothing == missing


def test_records_of_the_campaign_come_first(tmp_path: Path) -> None:
    """Not those of a later run of another campaign; replays tell nothing."""
    other = replace(CASE, case="ImbRing %tuning=x")
    runs = [
        ("1", "ring", CASE, 30.0),
        ("2", "ring", CASE, 50.0),
        ("3", "x", other, 9.0),
    ]
    for day, name, case, elapsed_s in runs:
        run_id = f"2026010{day}T000000Z-{name}"
        node_run(tmp_path, run_id, scattered(3, 2), case=case, elapsed_s=elapsed_s)
    node_run(tmp_path, "20260104T000000Z-ring", scattered(3, 2), replay="r")
    known = recorded(tmp_path, "lab", "ring")
    text = "ImbRing @lab:batch+intelmpi"
    assert [str(case) for case in known.newest["ImbRing"]] == [text]
    assert known.times[text] == [30.0, 30.0, 50.0, 50.0]
    assert (known.nodes[text], known.delivered, known.runs) == (3, 3, 3)
    assert known.between_s == (3600 - 2 * 30) / 2  # the median of three runs
    assert [str(c) for c in recorded(tmp_path, "lab", "x").newest["ImbRing"]] == [
        "ImbRing %tuning=x @lab:batch+intelmpi"
    ]


def one_run(folder: Path, values: np.ndarray) -> list[Run]:
    return [load_run(node_run(folder, "20260101T000000Z-ring", values))]


def asked(
    runs: Sequence[Run],
    *listed: Any,
    repeats: int = 8,
    slowdown: float | None = None,
    units: Mapping[str, int] | None = None,
) -> list[Prospect]:
    return prospects(
        criteria(*listed), ["ImbRing"], runs, units or {}, repeats, slowdown
    )


def test_what_repeats_find(tmp_path: Path) -> None:
    """8 repeats of 8 nodes: Student's t with a scatter of 49 degrees of freedom."""
    runs = one_run(tmp_path, scattered(8, 40, place=0.005, unit=0.01, rest=0.02))
    (found,) = asked(runs, criterion(limit=90.0, zone=0.05))
    assert (found.places, found.recorded, found.what) == (8, 40, "nodes")
    assert found.scatter == pytest.approx(np.hypot(0.01, 0.02), rel=0.15)
    assert found.finds_even is not None
    assert found.finds_sure is not None
    assert found.finds_all is not None
    assert found.finds_even == pytest.approx(0.017, abs=0.003)
    assert found.finds_even < found.finds_sure < found.finds_all
    assert found.passes_if == pytest.approx(0.038, abs=0.003)
    assert found.margin == pytest.approx(100 / 90 - 1, abs=0.02)
    assert found.passes_after == 3
    assert found.needed_sure is None


@pytest.mark.parametrize(
    ("more", "convicts", "passes"),
    [
        ({"model": "lognormal"}, 3, 3),
        ({"model": "normal"}, 3, 3),
        ({"model": "any"}, 6, 5),
        ({"model": "every"}, 1, 2),
    ],
)
def test_the_fewest_repeats_that_decide(
    more: dict[str, Any], convicts: int, passes: int, tmp_path: Path
) -> None:
    runs = one_run(tmp_path, scattered(8, 10))
    (found,) = asked(runs, criterion(limit=90.0, **more))
    assert (found.convicts_from, found.passes_from) == (convicts, passes)


def test_too_few_repeats_find_nothing(tmp_path: Path) -> None:
    runs = one_run(tmp_path, scattered(8, 10))
    (found,) = asked(runs, criterion(limit=90.0), repeats=2)
    assert (found.finds_even, found.finds_sure, found.passes_if) == (None, None, None)


def test_repeats_that_a_slowdown_needs(tmp_path: Path) -> None:
    runs = one_run(tmp_path, scattered(8, 40))
    (found,) = asked(runs, criterion(limit=90.0), slowdown=0.05)
    assert (found.needed_even, found.needed_sure) == (4, 4)
    assert found.needed_all is not None
    assert found.needed_all > 6
    (hopeless,) = asked(runs, criterion(limit=90.0), slowdown=0.0001)
    assert hopeless.needed_sure is None


def test_a_bandwidth_cannot_miss_its_limit_by_more_than_all(tmp_path: Path) -> None:
    runs = one_run(tmp_path, scattered(8, 20, rest=0.6))
    (found,) = asked(runs, criterion(limit=90.0), repeats=5)
    assert found.finds_sure is not None
    assert found.passes_if is not None
    assert 0.5 < found.finds_sure < 1 < found.passes_if


def test_cases_have_as_many_allocations_as_they_are_planned(tmp_path: Path) -> None:
    runs = one_run(tmp_path, scattered(8, 10))
    units = {"ImbRing @lab:batch+intelmpi": 20}
    (many,) = asked(runs, criterion(limit=90.0), units=units)
    (few,) = asked(runs, criterion(limit=90.0))
    assert (many.units, few.units) == (20, 8)
    assert (many.finds_even or inf) < (few.finds_even or 0)


def test_sameness_does_not_mind_what_hits_all_nodes(tmp_path: Path) -> None:
    runs = one_run(tmp_path, scattered(8, 20, unit=0.5, rest=0.01))
    limit, alike = asked(
        runs, criterion(limit=20.0), criterion(limit=None, tolerance=0.1)
    )
    assert limit.scatter is not None
    assert alike.scatter is not None
    assert limit.scatter > 0.3
    assert alike.scatter < 0.02
    assert alike.margin == pytest.approx(0.1, abs=0.03)


def test_the_case_that_scatters_most_is_shown(tmp_path: Path) -> None:
    calm = node_run(tmp_path, "20260101T000000Z-ring", scattered(8, 10))
    case = replace(CASE, environment="wild")
    values = scattered(8, 10, rest=0.2)
    wild = node_run(tmp_path, "20260102T000000Z-ring", values, case=case)
    (found,) = asked([load_run(calm), load_run(wild)], criterion(limit=90.0))
    assert found.case.endswith("+wild")


@pytest.mark.parametrize(
    ("values", "more", "reason"),
    [
        (scattered(8, 1), {}, "1 allocation recorded; its scatter takes 2"),
        (np.full((8, 4), 7.0), {}, "recorded values are all equal"),
        (scattered(8, 5), {"model": "every"}, "each value counts"),
        (scattered(8, 5), {"metric": "latency_8B"}, "no run recorded it"),
    ],
)
def test_criteria_without_scatter_say_so(
    values: np.ndarray, more: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    (found,) = asked(one_run(tmp_path, values), criterion(**{"limit": 50.0, **more}))
    assert found.reason.startswith(reason)
    assert found.scatter is None


def test_without_any_run() -> None:
    (found,) = asked([], criterion())
    assert found.reason == "no run recorded it"


def test_runs_of_another_configuration_are_left_out(tmp_path: Path) -> None:
    old, new = present(NODES[:4], "5.10"), present(NODES[:4], "6.1")
    manifests: list[dict[str, Any]] = [
        {"nodes": old},
        {"nodes": new},
        {"nodes": new},
        {"replay": "r"},
    ]
    for day, more in enumerate(manifests, 1):
        node_run(tmp_path, f"2026010{day}T000000Z-r", scattered(4, 3), **more)
    runs, notes = comparable_runs(closed_runs(tmp_path, "lab"))
    names = [run.manifest["run"] for run in runs]
    assert names == ["20260102T000000Z-r", "20260103T000000Z-r"]
    assert notes == [
        "1 older run of another configuration (kernel, MPI, nodes ...) left out"
    ]


CRITERIA = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c, model: lognormal}
criteria:
  - {check: ImbRing, limits: {bw_4MiB: 90 MB/s, latency_8B: 100 us}}
  - {check: ImbRing, name: often, model: any, statistic: mean, cap: 24,
     limits: {bw_4MiB: 80 MB/s}}
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a home whose system `far` is not provisioned here, with two runs."""
    home = write_home(tmp_path / "home")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(home / "results"))
    write(home / "inventories/far/hosts.yml", "{}")
    write(home / "reference-data/far/criteria.yaml", CRITERIA)
    checks = home / "reframe-checks"
    text = (checks / "checks/fake/fake.py").read_text()
    ring = "\n\n@rfm.simple_test\nclass ImbRing(Base):\n    pass\n"
    write(checks / "checks/fake/fake.py", text + ring)
    blocks = "blocks: [{name: links, checks: [ImbRing]}]\n"
    write(checks / "campaigns/ring.yaml", f"repeats: 8\n{blocks}")
    for day in (1, 2):
        run_id = f"2026010{day}T000000Z-ring"
        values = scattered(8, 6, seed=day)
        node_run(
            home / "results", run_id, values, system="far", ended=ENDED.format(day)
        )
    return home


ENDED = "2026-01-0{}T00:03:12+00:00"


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("plan", *arguments))


def test_the_table(lab: Path) -> None:
    result = seatrial("far", "--campaign", "ring")
    assert result.exit_code == 0, result.output
    text = [line.rstrip() for line in result.stdout.splitlines()]
    assert text[0] == (
        "ring on far, 8 repeats: 8 jobs in 8 sessions, 4 min 16 s, 0.53 node-hours"
    )
    assert "ImbRing                8  30 s  4 min 00 s        0.53  recorded" in text
    assert any(line.startswith("ImbRing bw_4MiB, nodes") for line in text)
    assert "no run recorded it (decides from 3 repeats): ImbRing latency_8B" in text
    assert "a machine inside its limits, by simulation" in result.stdout
    assert "bears the burden of proof, by criteria: seller 3" in text
    assert all(len(line) <= 100 or line.startswith("note: ") for line in text)


def test_the_table_of_repeats_needed(lab: Path) -> None:
    text = seatrial("far", "--campaign", "ring", "--slowdown", "5%").stdout
    assert "5 % needs 50 %" in text
    assert "needs: so many repeats" in text


def test_json_and_csv(lab: Path) -> None:
    arguments = ("far", "--campaign", "ring", "--repeats", "6", "--format")
    found = json.loads(seatrial(*arguments, "json").stdout)
    assert (found["repeats"], found["cost"]["jobs"]) == (6, 6)
    assert found["criteria"][0]["recorded"] == 12
    assert found["bears"] == {"seller": 3}
    assert [each["inside"] for each in found["chances"]] == [0, 0.01, 0.02, 0.05] * 4
    rows = list(csv.DictReader(io.StringIO(seatrial(*arguments, "csv").stdout)))
    assert [row["criterion"] for row in rows] == [
        each["criterion"] for each in found["criteria"]
    ]


def test_a_provisioned_system(lab: Path) -> None:
    """Its cases are listed by ReFrame, and what never ran takes what is stated."""
    criterion = "criteria: [{check: Echo, limits: {latency_8B: 9 us}}]\n"
    text = CRITERIA.partition("criteria:")[0] + criterion
    write(lab / "reference-data/lab/criteria.yaml", text)
    CliRunner().invoke(main, ("run", "lab", "--campaign", "smoke", "--no-judge"))
    result = seatrial("lab", "--campaign", "smoke")
    assert result.exit_code == 0, result.output
    assert "smoke on lab, 1 repeat: 3 jobs in 1 session," in result.stdout
    assert re.search(r"\nEcho .* recorded *\n", result.stdout)
    assert (
        "1 allocation recorded; its scatter takes 2 (decides from 3 repeats): Echo"
        in result.stdout
    )


def test_a_provisioned_system_without_runs(lab: Path) -> None:
    """Two cases with two stacks, of 5 s, on both nodes of the class."""
    result = seatrial("lab", "--campaign", "smoke")
    assert result.exit_code == 0, result.output
    assert re.search(r"\nEcho +4 +5 s +20 s +0.011 +typical *\n", result.stdout)
    assert "note: no run of lab is recorded: times are typical" in result.stdout


@pytest.mark.parametrize(
    ("typical", "text"),
    [(0, "recorded"), (1, "typical in 1 of 3 jobs"), (3, "typical")],
)
def test_the_table_says_which_times_are_typical(typical: int, text: str) -> None:
    costs = Cost(1, 3, 9.0, 0.0, 1.0, (CheckCost("Echo", 3, 3.0, 1.0, typical),), {})
    assert next(iter(cost_table(costs).columns[-1].cells)) == text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nowhere", "--campaign", "ring"), "unknown system 'nowhere'"),
        (("far", "--campaign", "x"), "unknown campaign 'x'"),
        (("far", "--campaign", "ring", "--slowdown", "5"), "expected a share between"),
    ],
)
def test_mistakes(lab: Path, arguments: tuple[str, ...], error: str) -> None:
    result = seatrial(*arguments)
    assert result.exit_code == 2
    assert error in result.stderr
