"""Completeness: what was planned and did not come is never a pass."""

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from closed_runs import close_run, ssh_key
from criteria_samples import criterion
from judge_samples import CASE, LIMIT, NODES, frozen, judged, make_run, repeats, sample

from seatrial.calibration.simulate.draw import draw
from seatrial.calibration.simulate.machine import Machine
from seatrial.calibration.simulate.runs import criteria_for, run_of
from seatrial.judge.allocations import Allocation, allocations
from seatrial.judge.completeness import completed
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.sampling import Sampled
from seatrial.judge.spoiled import Spoiled
from seatrial.model.cases import Case, NodeEvent
from seatrial.runs.closed_run import AGENDA_FILE, Run, load_run
from seatrial.runs.pack import pack, unpack

ANY = replace(LIMIT, model="any")
NPB = criterion("Mops_total", 10.0, check="Npb")
LATENCY = criterion("latency_8B", 100.0)


def noisy(case: Case, level: float = 80.0) -> float:
    """Return a sound number of a session, another one in each."""
    return level + case.repeat * 7 % 5 / 10


def node_rows(cases: Sequence[Case], **levels: float) -> list[Any]:
    """Measure all nodes of each case."""
    return [
        sample(case, noisy(case, levels.get(node, 80.0)), node=node)
        for case in cases
        for node in case.nodes
    ]


def planned(run: Run, nodes: Sequence[str] = NODES, **campaign: Any) -> Run:
    """Return the run with a plan: its sessions, and one class of these nodes."""
    sessions = {case.session: case.repeat for case in run.cases}
    content = {
        "schema": 2,
        **{"run": "r", "system": "lab", "created": "2026-01-01T00:00:00+00:00"},
        "campaign": {"name": "smoke", **campaign},
        "nodes": {"batch": list(nodes)} if nodes else {},
        "sessions": [
            {
                **{"name": name, "block": "pairs", "repeat": repeat},
                **{"checks": [CASE.check], "variables": {}},
                "cases": [
                    {"case": c.case, "partition": c.partition, "environment": stack}
                    for c in [CASE]
                    for stack in sorted({case.environment for case in run.cases})
                ],
            }
            for name, repeat in sessions.items()
        ],
    }
    kept = {**run.kept, AGENDA_FILE: json.dumps(content).encode()}
    return replace(run, kept=kept)


def healthy(count: int = 12) -> Run:
    return make_run(repeats(count), node_rows(repeats(count)))


def skipping(run: Run, sessions: int, environment: str = "intelmpi") -> Run:
    """Return the run; the case was skipped in the first sessions."""
    gone = {case.session for case in run.cases[:sessions]}
    cases = [
        replace(case, result="skip", reason="no license", nodes=())
        if case.session in gone and case.environment == environment
        else case
        for case in run.cases
    ]
    kept = ~pl.col("session").is_in(gone) | (pl.col("environment") != environment)
    return replace(run, cases=tuple(cases), measurements=run.measurements.filter(kept))


def two_stacks() -> Run:
    """A sound run of two MPI stacks."""
    run = healthy()
    others = [replace(case, environment="mpich") for case in run.cases]
    other = run.measurements.with_columns(environment=pl.lit("mpich"))
    table = pl.concat([run.measurements, other])
    return replace(run, cases=(*run.cases, *others), measurements=table)


def unused_node() -> Run:
    run = healthy()
    nodes = [*run.manifest["nodes"], {**run.manifest["nodes"][0], "name": "cn05"}]
    return replace(run, manifest={**run.manifest, "nodes": nodes})


def seldom(sessions: int = 3, *, in_jobs: bool = True) -> Run:
    """Three of twelve allocations have a number of cn04; it may be in all jobs."""
    run = healthy()
    early = pl.col("repeat") <= sessions
    table = run.measurements.filter((pl.col("node") != "cn04") | early)
    cases = [
        case if in_jobs or case.repeat <= sessions else replace(case, nodes=NODES[:3])
        for case in run.cases
    ]
    return replace(run, cases=tuple(cases), measurements=table)


def crashing(crashes: int = 4, **crash: Any) -> Run:
    """Twelve sessions; in some the first try crashed, the second was good."""
    cases: list[Case] = []
    for case in healthy().cases:
        if case.repeat <= crashes:
            first = replace(case, result="fail", phase="sanity", reason="no rows")
            cases.append(replace(first, **crash))
            case = replace(case, attempt=2)
        cases.append(case)
    rows = node_rows([case for case in cases if case.result == "pass"])
    return replace(make_run(cases, rows), cases=tuple(cases))


def dying(level: float) -> Run:
    """Slurm loses cn04 in the first try of four sessions."""
    event = NodeEvent("cn04", "down", "Not responding", "slurm", 0.0)
    run = crashing(4, node_events=(event,), phase="run", reason="lost a node")
    nodes = [dict(node) for node in run.manifest["nodes"]]
    nodes[3] |= {"state": "lost", "reason": "down"}
    table = run.measurements.with_columns(
        value=pl.when(pl.col("node") == "cn04").then(level).otherwise("value")
    )
    return replace(run, manifest={**run.manifest, "nodes": nodes}, measurements=table)


def with_nan() -> Run:
    run = healthy()
    bad = (pl.col("node") == "cn04") & (pl.col("repeat") > 3)
    value = pl.when(bad).then(float("nan")).otherwise("value")
    return replace(run, measurements=run.measurements.with_columns(value=value))


@pytest.mark.parametrize("model", ["any", "lognormal", "normal", "every"])
@pytest.mark.parametrize(
    ("run", "told"),
    [
        (unused_node, "cn05: delivered and present, and no job used it"),
        (seldom, "cn04: *9 of 12 numbers are missing, and count as the worst value"),
        (lambda: seldom(in_jobs=False), "cn04: *9 of 12 numbers are missing*"),
        (lambda: seldom(0), "cn04: *12 of 12 numbers are missing*"),
        (with_nan, "cn04: *9 of 12 numbers are missing*"),
        (lambda: crashing(6), "cn01: *6 of 18 numbers are missing*"),
        (lambda: dying(40.0), "cn04: delivered but lost: down"),
        (
            lambda: skipping(two_stacks(), 12, "mpich"),
            ": not measured: ImbRing mpich: skipped: no license",
        ),
        (
            lambda: skipping(healthy(), 7),
            ": not measured: ImbRing intelmpi: in 7 of 12 repeats: skipped: no license",
        ),
        (
            lambda: replace(planned(healthy()), cases=healthy().cases[:5]),
            ": not measured: ImbRing intelmpi: in 7 of 12 repeats: it did not run",
        ),
    ],
)
def test_what_is_missing_is_no_pass(
    run: Callable[[], Run], told: str, model: Any
) -> None:
    judgement = judged(run(), replace(LIMIT, model=model))
    assert judgement.verdict != "pass"
    start, _, end = told.partition("*")
    words = [
        f"{f.place}: {f.reason}" for f in judgement.findings if f.verdict != "pass"
    ]
    end = end.rstrip("*")
    assert [w for w in words if w.startswith(start) and end in w], words


@pytest.mark.parametrize("model", ["any", "lognormal", "every"])
@pytest.mark.parametrize(
    "run",
    [
        healthy,
        two_stacks,
        lambda: planned(healthy()),
        lambda: planned(healthy(), classes=["batch"]),
        # Another class, which the campaign does not choose.
        lambda: planned(unused_node(), classes=["batch"]),
        # All starts of a program crashed in MPI_Init: nothing was measured yet.
        lambda: crashing(start_crashes=({"try": 3, "dead": [], "nodes": []},)),
        # A job that never got nodes measured nothing, either.
        lambda: crashing(nodes=()),
    ],
)
def test_what_is_complete_passes(run: Callable[[], Run], model: Any) -> None:
    assert judged(run(), replace(LIMIT, model=model)).verdict == "pass"


def test_a_required_check_outside_the_campaign_is_undecided_by_name() -> None:
    judgement = judged(healthy(), LIMIT, NPB)
    assert judgement.verdict == "undecided"
    open_ = [f.criterion for f in judgement.findings if f.verdict == "undecided"]
    assert open_ == ["Npb Mops_total promised"]


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        (healthy(), NPB),
        (skipping(two_stacks(), 12, "mpich"), LIMIT),
        (skipping(healthy(), 3), LIMIT),
    ],
)
def test_optional_counts_if_it_was_frozen_before_the_start(run: Run, rule: Any) -> None:
    free = replace(rule, optional=True)
    rules = {LIMIT.name: LIMIT, rule.name: free}.values()
    assert judged(run, *rules).verdict == "undecided"
    judgement = judged(frozen(run, free), *rules)
    assert judgement.verdict == "pass"
    assert rule.name in {
        f.criterion for f in judgement.findings if f.verdict == "skipped"
    }


def test_a_retry_counts_from_the_first_crash_on() -> None:
    """Of one crash among twelve sessions more numbers are needed, not many."""
    (finding, *_) = [f for f in judged(crashing(1), ANY).findings if f.metric]
    assert (finding.n, finding.verdict) == (13, "pass")
    judgement = judged(crashing(6), ANY)
    assert (judgement.verdict, judgement.convicted) == ("undecided", ())


def test_jobs_that_all_crash_convict_no_node() -> None:
    """The cause may be any of them: the case fails, and nobody is named."""
    run = crashing(8)
    cases = [c for c in run.cases if c.result == "fail" or c.repeat > 8]
    table = run.measurements.filter(pl.col("repeat") > 8)
    for model in ("any", "every"):
        judgement = judged(
            replace(run, cases=tuple(cases), measurements=table),
            replace(LIMIT, model=model),
        )
        assert judgement.verdict == "fail"
        assert judgement.convicted == ()


def test_a_missing_number_of_one_node_convicts_it() -> None:
    assert judged(seldom(0), ANY).convicted == ("cn04",)


def test_a_dead_node_costs_its_partners_nothing_but_the_number() -> None:
    judgement = judged(dying(80.0), ANY)
    assert judgement.verdict == "fail"
    counts = {f.place: (f.n, f.verdict) for f in judgement.findings if f.metric}
    assert counts == {
        **dict.fromkeys(NODES[:3], (12, "pass")),
        "cn04": (16, "undecided"),
    }


def pair_run(cases: Sequence[Case], missing: str = "") -> Run:
    rows = [
        sample(case, noisy(case), pair=f"{source} {destination}")
        for case in cases
        for source in case.nodes
        for destination in case.nodes
        if source < destination and f"{source} {destination}" != missing
    ]
    return replace(make_run(cases, rows), cases=tuple(cases))


def test_a_pair_is_planned_where_both_its_nodes_were() -> None:
    cases = repeats(12)
    whole, part = pair_run(cases), pair_run(cases[:9], "cn01 cn02")
    late = pl.col("repeat") > 9
    table = pl.concat([part.measurements, whole.measurements.filter(late)])
    judgement = judged(replace(whole, measurements=table), ANY)
    (finding,) = [f for f in judgement.findings if f.verdict == "undecided"]
    assert (finding.place, finding.n) == ("cn01 - cn02", 12)
    assert "9 of 12 numbers are missing" in finding.reason
    fewer = [*cases[:9], *(replace(c, nodes=NODES[:3]) for c in cases[9:])]
    run = pair_run(fewer)
    run.manifest["nodes"][3] |= {"state": "absent", "reason": "drained"}
    assert {f.verdict for f in judged(run, ANY).findings if f.metric} == {"pass"}


REASONS = """schema: 1
run: {run}
manifest: {manifest}
reasons:
  - {{case: ImbRing, node: cn04, reason: "DIMM replaced, minutes of day 3"}}
"""


def signed_run(folder: Path, text: str = REASONS) -> tuple[Run, Path, Path]:
    """Close a run that lacks numbers of cn04; write and sign a reason."""
    run = seldom()
    rows = [
        row for row in node_rows(run.cases) if row.node != "cn04" or row.repeat <= 3
    ]
    path = close_run(folder / "results", rows=rows, cases=list(run.cases))
    closed = load_run(path)
    file = path / "reasons.yaml"
    values = {"run": closed.manifest["run"], "manifest": closed.digest}
    file.write_text(text.format(**values))
    key = ssh_key(folder / "keys", "buyer")
    signers = folder / "allowed_signers"
    signers.write_text(f"buyer@example.org {key.with_suffix('.pub').read_text()}")
    sign(file, key)
    return load_run(path), signers, key


def sign(file: Path, key: Path, namespace: str = "seatrial-reasons") -> None:
    file.with_suffix(".yaml.sig").unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace]
    subprocess.run([*command, str(file)], check=True, capture_output=True)


def by(run: Run, signers: Path | None) -> Judgement:
    from criteria_samples import criteria

    return judge(run, criteria(ANY), signers=signers)


def test_a_signed_reason_excuses_a_missing_number(tmp_path: Path) -> None:
    run, signers, _ = signed_run(tmp_path)
    judgement = by(run, signers)
    name = run.manifest["run"]
    told = "DIMM replaced, minutes of day 3 (signed by buyer@example.org)"
    assert judgement.reasons == (f"ImbRing, cn04, run {name}: {told}",)
    (finding,) = [f for f in judgement.findings if f.place == "cn04"]
    assert (finding.n, finding.verdict) == (3, "undecided"), "three are no five"
    assert "missing" not in finding.reason
    packed = tmp_path / "run.tar.xz"
    pack(run.path, packed)
    again = load_run(unpack(packed, tmp_path))
    assert by(again, signers).digest == judgement.digest


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda file, key: file.with_suffix(".yaml.sig").unlink(), "not signed"),
        (lambda file, key: file.write_text(file.read_text() + "\n"), "not what was"),
        (lambda file, key: sign(file, key, "seatrial-run"), "not what was signed"),
        (
            lambda file, key: sign(file, ssh_key(file.parents[3], "other")),
            "allowed_signers does not name its key",
        ),
    ],
)
def test_reasons_that_are_not_well_signed_do_not_count(
    spoil: Callable[[Path, Path], None], told: str, tmp_path: Path
) -> None:
    run, signers, key = signed_run(tmp_path)
    spoil(run.path / "reasons.yaml", key)
    judgement = by(load_run(run.path), signers)
    assert judgement.reasons == ()
    assert told in judgement.notes[0]
    (finding,) = [f for f in judgement.findings if f.place == "cn04"]
    assert "9 of 12 numbers are missing" in finding.reason


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (REASONS.replace("{manifest}", "0" * 64), "manifest: expected"),
        (REASONS.replace("case: ImbRing, node: cn04, ", ""), "expected a case, node"),
        (REASONS.replace("node:", "nodes:"), "Did you mean 'node'?"),
    ],
)
def test_reasons_name_their_run_and_what_they_excuse(
    text: str, told: str, tmp_path: Path
) -> None:
    run, signers, _ = signed_run(tmp_path, text)
    assert told in by(run, signers).notes[0]
    assert "no known signers" in by(run, None).notes[0]


def test_old_runs_say_what_they_cannot_show() -> None:
    (note,) = judged(healthy(), LIMIT).notes
    assert note.startswith("the run does not record its plan")
    (note,) = judged(planned(healthy(), nodes=()), LIMIT).notes
    assert note.startswith("the plan does not record the delivered nodes")
    assert judged(planned(healthy()), LIMIT).notes == ()


def big(places: pl.DataFrame, count: int, seed: int = 1) -> Sampled:
    values = np.random.default_rng(seed).random((places.height, count))
    values[::7, 0] = np.nan
    units = pl.DataFrame(
        [("r", f"s{number}", 1, str(number)) for number in range(count)],
        schema=["run", "session", "attempt", "job_id"],
        orient="row",
    )
    return Sampled(places, units, values, np.zeros(values.shape, bool), higher=True)


def test_large_machines_are_completed_at_once() -> None:
    """10,000 nodes x 20 x 5, and 499,500 pairs x 3."""
    names = [f"cn{number:05}" for number in range(10_000)]
    empty = dict.fromkeys(("source", "destination", "hca", "socket"))
    nodes = pl.DataFrame({"node": names}).with_columns(
        **{name: pl.lit(value, pl.String) for name, value in empty.items()}
    )
    every = [
        replace(CASE, session=f"s{number}", nodes=tuple(names)) for number in range(5)
    ]
    delivered = [{"name": name, "state": "present"} for name in names]
    run = Run(Path("r"), {"run": "r", "nodes": delivered}, tuple(every), pl.LazyFrame())
    data = [big(nodes, 5, seed) for seed in range(20)]
    (own,) = allocations([run], delivered, [], {}, Spoiled()).values()
    for of_case in data:
        whole = completed(of_case, own, "bw_4MiB", optional=False)
        assert np.isneginf(whole.values).sum() == 1429
    ends = np.triu_indices(1000, 1)
    text = pl.Series(names[:1000])
    pairs = (
        nodes.head(1)
        .drop("source", "destination", "node")
        .join(
            pl.DataFrame(
                {"source": text.gather(ends[0]), "destination": text.gather(ends[1])}
            ),
            how="cross",
        )
        .with_columns(node=pl.lit(None, pl.String))
    )
    few = frozenset(names[:1000])
    units = [
        Allocation(("r", f"s{n}", None, 1), few, few, few, whole=True) for n in range(3)
    ]
    whole = completed(big(pairs, 3), units, "bw_1MiB", optional=False)
    assert np.isneginf(whole.values).sum() == -(-499_500 // 7)


def test_a_sound_machine_of_the_simulation_passes() -> None:
    machine = Machine(nodes=4, repeats=12)
    drawn = draw(machine, np.random.default_rng(1))
    judgement = judge(run_of(drawn), criteria_for(machine))
    assert judgement.verdict == "pass"
