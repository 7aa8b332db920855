"""Contents of a report, before any format of it is written."""

import base64
import gzip
import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from closed_runs import close_run
from criteria_samples import criteria, criterion
from judge_samples import frozen
from samples import sample_criteria, sample_run
from sweep_samples import SWEEP, names, sample_sweep

from seatrial.judge.findings import Finding, Judgement
from seatrial.judge.judge import judge
from seatrial.judge.place_findings import MAX_PASSING
from seatrial.plain_files import sha256_plain
from seatrial.report.chapters import contents
from seatrial.report.content import ActOn, Content
from seatrial.report.front_page import MAX_PLACES, seal_words
from seatrial.report.html_page import MAX_FINDINGS, finding_table
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.seal import seal

HOME = Path(__file__).resolve().parents[1]


def told(run: Run, judgement: Judgement | None = None) -> Content:
    return contents(run, judgement or judge(run, sample_criteria()), HOME)


def tables(content: Content, chapter: str) -> dict[str, list[tuple[str, ...]]]:
    """Return the tables of a chapter by title, without their heads."""
    (found,) = [each for each in content.chapters if each.name == chapter]
    return {title: list(table.rows) for title, table in found.tables}


def test_a_criterion_has_one_row_over_all_cases_and_places() -> None:
    run = sample_run(slow="cn03", absent="cn01", skipped=True)
    content = told(run)
    assert [(row.name, row.verdict, row.places) for row in content.criteria] == [
        ("Delivered nodes are present", "fail", 0),
        ("Hpcc MinPingPongBandwidth_GBytes promised", "fail", 2),
        ("ImbRing bw_4MiB promised", "fail", 3),
        ("LammpsRhodo loop_time promised", "undecided", 1),  # not with mpich
        ("HaloExchange exchange_time_16B promised", "pass", 4),
        ("HaloExchange exchange_time_8KiB promised", "pass", 4),
        ("Hpcc HPL_Tflops promised", "pass", 2),
        ("Hpcc MaxPingPongLatency_usec promised", "pass", 2),
        ("ImbCollective latency_8B promised", "pass", 3),
        ("ImbRing latency_8B promised", "pass", 3),
        ("LammpsRhodo runs and verifies", "skipped", 0),
    ]
    counts = content.front.counts
    assert list(counts.items()) == [
        *(("fail", 3), ("not shown", 0), ("undecided", 1)),
        *(("pass", 6), ("skipped", 1)),
    ]
    ring = content.criteria[2]
    assert (ring.kind, ring.clause) == ("promised", "demonstration limits, lab")
    assert (ring.where, ring.limit) == (
        "benchmark=PingPong intelmpi",
        "at least 60 MB/s",
    )
    assert (ring.estimate, ring.allocations) == ("23.50 MB/s", 4)
    assert ring.reason.startswith("cn03: between ")
    assert " MB/s; 4 of 4 values miss the limit, p = " in ring.reason
    assert ring.worst.place == "cn03"
    assert "between places" in ring.scatter


def test_places_that_share_a_finding_are_counted_as_places() -> None:
    nodes = MAX_PASSING + 1
    run = sample_sweep(names(nodes), repeats=5)
    content = told(run, judge(run, SWEEP))
    (latency,) = [row for row in content.criteria if row.metric == "latency_8B"]
    assert latency.verdict == "pass"
    assert (latency.places, latency.allocations) == (nodes * (nodes - 1) // 2, 5)
    assert latency.estimate.endswith(" us, median of the places")
    # Each direction of a pair has a bandwidth of its own.
    (bandwidth,) = [row for row in content.criteria if row.metric == "bw_1MiB"]
    assert bandwidth.places == nodes * (nodes - 1)


def test_the_worst_place_is_on_the_bad_side_of_its_direction() -> None:
    run = sample_run()
    content = told(run)
    worst = {row.metric: row.worst.value for row in content.criteria if row.metric}
    for metric, choose in (("latency_8B", max), ("bw_4MiB", min)):
        values = [
            finding.value
            for finding in judge(run, sample_criteria()).findings
            if (finding.check, finding.metric) == ("ImbRing", metric)
            and finding.value is not None
        ]
        assert worst[metric] == choose(values)


def test_front_says_what_would_decide() -> None:
    front = told(sample_run(repeats=2)).front
    assert front.verdict == "undecided"
    assert front.counts["undecided"] == 9
    (need,) = front.needs
    assert need.startswith(
        "about 1 more allocation each: HaloExchange exchange_time_16B"
    )
    assert need.endswith(", and 3 more")


def test_what_no_allocation_would_decide_has_its_reason() -> None:
    run = sample_run()
    judgement = judge(run, criteria(criterion("bw_4MiB", 60.0)))
    needs = told(run, judgement).front.needs
    assert any(
        need.startswith("no criterion for this metric: ")
        and "LammpsRhodo loop_time" in need
        for need in needs
    )


def test_front_names_nodes_then_links_then_whole_cases() -> None:
    front = told(sample_run(slow="cn03")).front
    assert [each.place for each in front.act_on] == [
        "cn03",
        "Hpcc, mpich",
        "Hpcc, openmpi",
    ]
    (reason,) = front.act_on[0].reasons
    assert re.match(
        r"ImbRing, intelmpi: bw_4MiB is 23\.50 MB/s, at least 60 MB/s is required: "
        r"between 2[12]\.\d+ and 2[45]\.\d+ MB/s; 4 of 4 values miss the limit, p = ",
        reason,
    ), "the interval once"
    run = sample_sweep(names(6), slow_pairs=[("cn2", "cn5")])
    links = told(run, judge(run, SWEEP)).front.act_on
    assert {each.place for each in links} == {"cn2 - cn5", "cn5 - cn2"}


def test_a_long_list_of_places_is_counted_on_page_one() -> None:
    nodes = [f"cn{number:02}" for number in range(20)]
    run = sample_run(nodes=nodes)
    for node in run.manifest["nodes"][:12]:
        node |= {"state": "absent", "reason": "down"}
    absent = told(run).front.absent
    assert len(absent) == MAX_PLACES + 1
    assert absent[0] == ActOn("cn00", ("down",))
    assert absent[-1].place == "and 4 more"


def test_exclusions_list_all_that_was_left_out() -> None:
    run = sample_run(absent="cn04", failed=True, skipped=True)
    again = replace(run.cases[0], attempt=2, result="pass")
    first = replace(run.cases[0], result="fail", phase="run", reason="MPI died")
    run = replace(run, cases=(first, again, *run.cases[1:]))
    run.manifest["sessions"][1]["interrupted"] = ["halo-1.interrupted-1"]
    judgement = judge(run, sample_criteria(queues=True))
    found = tables(told(run, judgement), "exclusions")
    assert {title: len(rows) for title, rows in found.items()} == {
        "Failed cases": 5,
        "Skipped cases": 1,
        "Passed at a later try": 1,
        "Absent nodes": 1,
        "Sessions that were interrupted and repeated": 1,
        "Criteria of checks that this campaign does not run": 1,
    }
    (retried,) = found["Passed at a later try"]
    assert retried[3:] == ("2", "run: MPI died")
    (skipped,) = found["Skipped cases"]
    assert skipped == (
        "LammpsRhodo",
        "mpich",
        "mpich has no LAMMPS: the distribution builds it with Open MPI",
        "1, 2, 3, 4",
    )
    assert found["Absent nodes"] == [("cn04", "absent", "down: Not responding")]


def test_an_optional_criterion_that_nobody_measured_is_told() -> None:
    optional = criterion("bw_8MiB", 5.0, optional=True)
    run = frozen(sample_run(), optional)
    judgement = judge(run, criteria(*sample_criteria().criteria, optional))
    found = tables(told(run, judgement), "exclusions")
    ((name, reason),) = found["Optional criteria that were not measured"]
    assert name == "ImbRing bw_8MiB promised"
    assert reason == "not measured: no case reported this metric"


def test_configuration_has_the_fingerprint_and_all_software() -> None:
    run = sample_run()
    run.manifest["software"]["dirty"] = True
    run.manifest["software"]["spack"] = {
        "commit": "c" * 40,
        "packages_commit": "d" * 40,
        "environments": [{"name": "mpi", "lock": "mpi.lock", "sha256": "e" * 64}],
    }
    found = tables(told(run), "configuration")
    fingerprint = found["Configuration fingerprint"]
    assert ("nodes", "cn[01-04]") in fingerprint
    assert ("cpu", "1 x AMD EPYC 7B13 with 2 cores") in fingerprint
    software = {name: (version, by) for name, version, by in found["Software"]}
    commit = "b14c586d0f, with changes that are in no commit"
    assert software["git commit"] == (commit, "")
    assert software["spack"] == (f"{'c' * 12}, recipes {'d' * 12}", "")
    assert software["mpi (solved by Spack)"][0] == f"system/mpi.lock, sha256 {'e' * 12}"
    assert software["openmpi (MPI stack)"] == ("4.1.4", "distribution")
    assert len(found["Sessions"]) == len(run.manifest["sessions"])
    assert len(found["Cases"]) == len(run.cases)


@pytest.mark.parametrize("known", [True, False])
def test_front_says_who_sealed_a_run(tmp_path: Path, known: bool) -> None:
    key = tmp_path / "key"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)]
    subprocess.run(made, check=True)
    path = close_run(tmp_path / "results")
    assert seal_words(load_run(path), tmp_path)[0] == "not sealed"
    seal(path, key)
    if known:
        public = key.with_suffix(".pub").read_text()
        folder = tmp_path / "reference-data" / "lab"
        folder.mkdir(parents=True)
        (folder / "allowed_signers").write_text(f"buyer@example.org {public}")
    signer, digest = seal_words(load_run(path), tmp_path)
    who = "buyer@example.org" if known else "an unknown signer"
    assert signer.startswith(f"sealed by {who}: ED25519 SHA256:")
    assert digest == sha256_plain(path / "manifest.json")


def test_a_run_that_is_nowhere_is_not_sealed() -> None:
    front = told(sample_run()).front
    assert (front.signer, front.manifest_sha256) == ("not sealed", "")


def many(count: int, **changes: Any) -> list[Finding]:
    """Build undecided findings of as many nodes, after one that passes."""
    plain = judge(sample_run(), sample_criteria()).findings[0]
    findings = [
        replace(
            plain,
            kind="limit",
            check=f"Check{number % 3}",
            place=f"cn{number}",
            verdict="undecided",
            **changes,
        )
        for number in range(count)
    ]
    return [replace(plain, verdict="pass"), *findings]


def test_every_finding_is_a_row_or_packed() -> None:
    findings = many(2 * MAX_FINDINGS, n=1, value=1.5, unit="us", reason="<too> few\x08")
    findings = [  # reasons with a number of their own are not folded
        replace(each, reason=f"{each.reason} {number}")
        for number, each in enumerate(findings)
    ]
    table = finding_table(findings, {})
    assert len(table.rows) == MAX_FINDINGS
    assert table.total == len(findings)
    assert table.checks == ("Check0", "Check1", "Check2", "inventory")
    rest = json.loads(gzip.decompress(base64.b64decode(table.packed)))
    places = [row.cells[3][0] for row in table.rows]
    places += [cells[3][0] for _, _, cells, _ in rest]
    assert Counter(places) == Counter(finding.place for finding in findings)
    # What passes comes last.
    assert [verdict for verdict, *_ in rest][-1] == "pass"
    assert rest[0][1] == ["Check2"]
    assert rest[0][2][4:] == [["1.500 us"], [""], ["<too> few 501"]]
    assert finding_table(findings, {}).packed == table.packed
    assert finding_table(findings[:10], {}).packed == ""
