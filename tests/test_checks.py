"""Every check of the suite: which cases there are, and a whole run of each.

No cluster is needed: `data/replay` stands in for srun and prints the real outputs
of the programs, so that job script, parser, sanity and references are all used.
"""

import json
import os
import re
import shutil
from collections import defaultdict
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from fake_home import write, write_home
from reframe_runs import CHECKS, HOME, OURS, SETTINGS, check_paths, record_of, reframe

from seatrial.campaign.campaign_file import load_campaign
from seatrial.checks.base import Tag
from seatrial.checks.lammps_problems import PROBLEMS
from seatrial.checks.sources import known_checks
from seatrial.fabric.records import Fabric, write_fabric
from seatrial.model.metrics import split_flat_name
from seatrial.parsers.npb_problems import BENCHMARKS

DATA = Path(__file__).parent / "data"
NODES = ["cn01", "cn02", "cn03", "cn04"]
MPI = {"openmpi": "pmix", "mpich": "pmi2", "intelmpi": "pmi2"}
SMALL = (
    *("-S", "Npb.problem_class=S", "-S", "VerbsBandwidth.qps=1"),
    *("-S", "VerbsLatency.iterations=100", "-S", "VerbsLatency.sizes=8,4096"),
    *("-S", "VerbsAtomics.iterations=100"),
)
"""Options of replays: the stand-ins of perftest start less often and print less."""


def dry_run(folder: Path, checks: Path) -> list[str]:
    """Return all cases whose dry run ends well, as in data/cases.txt."""
    result = reframe(
        *("-C", str(SETTINGS), "-c", str(checks), "-R", "--dry-run"),
        *("--prefix", str(folder)),
        folder=folder,
        RFM_REFERENCE_PREFIX=str(HOME / "reference-data" / "lab"),
    )
    found = re.findall(r"\[ +OK \] \([\d /]+\) (.*) /[0-9a-f]{8} (@\S+)", result.stdout)
    return sorted(f"{case} {place}" for case, place in found)


def test_cases_are_the_expected_ones(tmp_path: Path) -> None:
    expected = (DATA / "cases.txt").read_text().splitlines()
    assert dry_run(tmp_path, CHECKS) == expected


def test_check_file_that_does_not_load_is_noticed(tmp_path: Path) -> None:
    """For ReFrame it is a warning, and its cases are gone."""
    for name in ("hpcc", "hpcg"):
        shutil.copytree(CHECKS / name, tmp_path / "checks" / name)
    file = tmp_path / "checks" / "hpcc" / "hpcc.py"
    file.write_text("import no_such_module\n" + file.read_text())
    expected = (DATA / "cases.txt").read_text().splitlines()
    hpcg = [case for case in expected if case.startswith("Hpcg")]
    assert hpcg
    assert dry_run(tmp_path, tmp_path / "checks") == hpcg


def replay(
    folder: Path,
    nodes: list[str] = NODES,
    only: str = "",
    recorded: Path | None = None,
    action: str = "-r",
    **variables: str,
) -> list[dict[str, Any]]:
    """Run every check on a lab of captured outputs; give the rows of the report.

    `action`: `--dry-run` starts no program.
    """
    settings = json.loads(SETTINGS.read_text())
    settings["systems"][0]["name"] = "lab"
    partition = settings["systems"][0]["partitions"][0]
    partition["launcher"] = "srun"
    partition["extras"] |= {"nodes": nodes, "demonstration": True}
    partition["extras"]["file_systems"][0]["path"] = str(folder)
    (folder / "settings.json").write_text(json.dumps(settings))
    result = reframe(
        *(
            "-C",
            "settings.json",
            *check_paths("-n", only),
            action,
            "--keep-stage-files",
        ),
        *("--prefix", str(folder), "--report-file", "report.json"),
        *(("-n", only) if only else ()),
        *SMALL,
        *(("-S", f"replay={recorded}") if recorded else ()),
        folder=folder,
        PATH=f"{DATA / 'replay'}:{os.environ['PATH']}",
        SEATRIAL_HOME=str(HOME),
        SEATRIAL_LAMMPS_BENCH=str(folder),
        SLURM_JOB_NODELIST=",".join(nodes),
        SLURM_JOB_CPUS_PER_NODE=f"2(x{len(nodes)})",
        **variables,
    )
    file = folder / "report.json"
    assert file.is_file(), result.stdout + result.stderr
    rows: list[dict[str, Any]] = json.loads(file.read_text())["runs"][-1]["testcases"]
    return rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    rows = replay(tmp_path_factory.mktemp("replay"))
    skipped = [row for row in rows if row["result"] == "skip"]
    assert {row["display_name"] for row in skipped} == {"Throughput"}
    return [row for row in rows if row not in skipped]


def script_of(row: dict[str, Any]) -> str:
    return Path(row["stagedir"], "rfm_job.sh").read_text()


def test_every_case_passes_on_captured_outputs(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == len((DATA / "cases.txt").read_text().splitlines())
    for row in rows:
        assert row["result"] == "pass", (row["display_name"], row["fail_reason"])
        nodes = row["num_tasks"] // row["num_tasks_per_node"]
        assert record_of(row)["nodes"] == NODES[:nodes]


def test_every_case_reports_what_it_declares(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        record = record_of(row)
        reported = {key.split(":")[-1] for key in row["perfvalues"]}
        needs_criteria = record["check"] != "StabilityJob"
        assert set(record["declared"]) == (reported if needs_criteria else set())
        sampled = {(s["metric"], s["size_bytes"]) for s in record["samples"]}
        for flat in reported:
            metric, size_bytes = split_flat_name(flat)
            assert (metric.name, size_bytes) in sampled


def test_every_check_is_a_fact_sheet(rows: list[dict[str, Any]]) -> None:
    tags = {value for name, value in vars(Tag).items() if name.isupper()}
    for row in rows:
        name = row["display_name"]
        features = [*row["valid_systems"], *row["valid_prog_environs"]]
        assert all(feature.startswith("+") for feature in features), name
        assert row["tags"], name
        assert set(row["tags"]) <= tags, name
        assert row["time_limit"], name
        assert row["max_pending_time"], name
        assert row["descr"] != name


def test_ranks_start_by_the_stack_s_own_process_manager(
    rows: list[dict[str, Any]],
) -> None:
    for row in rows:
        if row["display_name"] == "Throughput":  # it starts no ranks
            continue
        assert re.search(rf"srun .*--mpi={MPI[row['environ']]} ", script_of(row))


def test_registration_cache_is_set_by_the_stack_s_own_variables(
    rows: list[dict[str, Any]],
) -> None:
    expected = {
        ("openmpi", "on"): {"OMPI_MCA_mpi_leave_pinned=1"},
        ("openmpi", "off"): {"OMPI_MCA_mpi_leave_pinned=0"},
        ("mpich", "on"): {"UCX_RCACHE_ENABLE=y"},
        ("mpich", "off"): {"UCX_RCACHE_ENABLE=n", "UCX_IB_REG_METHODS=direct"},
    }
    found = {}
    for row in rows:
        if row["display_name"].startswith("BufferReuse "):
            key = (row["environ"], row["registration_cache"])
            exports = re.findall(r"^export (\S+)$", script_of(row), re.MULTILINE)
            found[key] = {line for line in exports if re.match("OMPI|UCX", line)}
    assert found == expected


def test_stack_without_a_registration_cache_is_skipped(tmp_path: Path) -> None:
    settings = json.loads(SETTINGS.read_text())
    for environment in settings["environments"]:
        environment["extras"].pop("registration_cache", None)
    (tmp_path / "without.json").write_text(json.dumps(settings))
    result = reframe(
        *("-C", "without.json", *check_paths("-n", "BufferReuse"), "--dry-run"),
        *("-n", "BufferReuse", "--prefix", str(tmp_path)),
        folder=tmp_path,
        RFM_REFERENCE_PREFIX=str(HOME / "reference-data" / "lab"),
    )
    reasons = re.findall(r"(mpi_stacks names no way [^]]*)", result.stdout)
    assert sorted(set(reasons)) == [
        f"mpi_stacks names no way to set the registration cache of {mpi} {state}"
        for mpi in ("mpich", "openmpi")
        for state in ("off", "on")
    ]


def test_ring_places_every_pair_of_neighbours(rows: list[dict[str, Any]]) -> None:
    (row,) = (row for row in rows if row["display_name"] == "ImbRing")
    samples = record_of(row)["samples"]
    pairs = [("cn01", "cn02"), ("cn02", "cn03"), ("cn03", "cn04"), ("cn04", "cn01")]
    for metric, sizes in {"latency": 24, "bw": 23}.items():
        placed = [
            (sample["source"], sample["destination"])
            for sample in samples
            if sample["metric"] == metric
        ]
        assert placed == [pair for pair in pairs for _ in range(sizes)]


def slow_pairs(row: dict[str, Any], size_bytes: int) -> set[tuple[str, str]]:
    """The pairs whose bandwidth a link of 200 Mbit/s explains."""
    return {
        (sample["source"], sample["destination"])
        for sample in record_of(row)["samples"]
        if (sample["metric"], sample["size_bytes"]) == ("bw", size_bytes)
        and sample["value"] < 40
    }


@pytest.mark.parametrize(
    "only", ["ImbRing|PairSweep|ImbUniband", pytest.param("", marks=pytest.mark.slow)]
)
def test_slow_link_fails_ring_and_sweep_and_shows_in_its_pairs(
    tmp_path: Path, only: str
) -> None:
    """The link and the limits are those of the time when the output was recorded."""
    limits = shutil.copytree(HOME / "reference-data" / "lab", tmp_path / "limits")
    for name, now, then in (
        ("pairsweep", "bw_1MiB: [16,", "bw_1MiB: [40,"),
        ("imb", "bw_4MiB: [20,", "bw_4MiB: [60,"),
    ):
        file = limits / f"{name}.yaml"
        assert now in file.read_text()
        file.write_text(file.read_text().replace(now, then))
    rows = replay(
        tmp_path, only=only, SLOW_NODE="cn03", RFM_REFERENCE_PREFIX=str(limits)
    )
    failed = {row["display_name"]: row for row in rows if row["result"] == "fail"}
    assert set(failed) == {"ImbRing", "PairSweep"}
    assert "bw_4MiB=25.0 MB/s, expected 60" in failed["ImbRing"]["fail_reason"]
    assert slow_pairs(failed["ImbRing"], 1 << 22) == {
        ("cn02", "cn03"),
        ("cn03", "cn04"),
    }
    others = ("cn01", "cn02", "cn04")
    pairs = {pair for node in others for pair in (("cn03", node), (node, "cn03"))}
    assert slow_pairs(failed["PairSweep"], 1 << 20) == pairs


def test_sweep_reports_every_pair_in_both_directions(
    rows: list[dict[str, Any]],
) -> None:
    everything = set(permutations(NODES, 2))
    for row in (row for row in rows if row["display_name"] == "PairSweep"):
        samples = record_of(row)["samples"]
        measured: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for sample in samples:
            key = (sample["metric"], sample["statistic"])
            measured[key].append((sample["source"], sample["destination"]))
            of_a_pair = sample["metric"] != "pairs_answered"
            assert (sample["hca"] == "host0") == of_a_pair
            assert (sample["round"] in (1, 2, 3)) == of_a_pair
            assert ((sample["start_time"] or 0) > 1e9) == of_a_pair
        assert sorted(measured["bw", "mean"]) == sorted(everything)
        once = sorted(map(sorted, combinations(NODES, 2)))
        for key in (("latency", "p50"), ("latency", "p99"), ("start_spread", "max")):
            assert sorted(map(sorted, measured[key])) == once
        # Three pairs were tested again alone: those numbers count.
        again = set(measured["crowded_bw", "mean"])
        assert len(again) == 2 * len(measured["crowded_latency", "p50"]) == 6
        values = {
            (sample["metric"], sample["source"], sample["destination"]): sample["value"]
            for sample in samples
            if sample["metric"] in ("bw", "crowded_bw")
        }
        assert all(values["bw", *pair] != values["crowded_bw", *pair] for pair in again)


def sweep_scripts(
    folder: Path, settings: dict[str, Any], *options: str, **environment: str
) -> dict[str, str]:
    """Return the scripts of PairSweep by MPI stack."""
    (folder / "settings.json").write_text(json.dumps(settings))
    reframe(
        *("-C", "settings.json", *check_paths("-n", "PairSweep"), "--dry-run"),
        *("-n", "PairSweep", "--prefix", str(folder), "--keep-stage-files", *options),
        folder=folder,
        RFM_REFERENCE_PREFIX=str(HOME / "reference-data" / "lab"),
        **environment,
    )
    return {path.parts[-3]: path.read_text() for path in folder.rglob("rfm_job.sh")}


def test_adaptive_sweep_takes_the_leafs_of_the_class(tmp_path: Path) -> None:
    settings = json.loads(SETTINGS.read_text())
    leafs = {"leaf 1": "cn[01-02]", "leaf2": "cn[03-04]"}
    settings["systems"][0]["partitions"][0]["extras"]["leafs"] = leafs
    chosen = ("-S", "PairSweep.adaptive=yes", "-S", "PairSweep.rounds=2")
    scripts = sweep_scripts(tmp_path, settings, *chosen)
    expected = " --adaptive --leaf 'leaf 1=cn[01-02]' --leaf 'leaf2=cn[03-04]' "
    assert expected in scripts["openmpi"]


def test_adaptive_sweep_takes_the_leafs_of_the_kept_fabric(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    leafs = {"cn02": ("s1",), "cn01": ("s1",), "cn03": ("r0", "r1"), "login": ("s9",)}
    write_fabric(home / "etc/sample/fabric.json", Fabric((), (), leafs=leafs))
    chosen = ("-S", "PairSweep.adaptive=yes", "-S", "PairSweep.rounds=2")
    settings = json.loads(SETTINGS.read_text())
    scripts = sweep_scripts(tmp_path, settings, *chosen, SEATRIAL_HOME=str(home))
    expected = " --adaptive --leaf r0+r1=cn03 --leaf 's1=cn[01-02]' "
    assert expected in scripts["openmpi"]


def test_sweep_takes_the_pairs_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("cn01 cn02 1\ncn03 cn04 1\n")
    chosen = ("-S", f"PairSweep.pairs={tmp_path / 'pairs'}")
    scripts = sweep_scripts(tmp_path, json.loads(SETTINGS.read_text()), *chosen)
    assert f" --pairs {tmp_path / 'pairs'} -- " in scripts["openmpi"]


def test_sweep_of_two_rails_has_a_rank_for_each(tmp_path: Path) -> None:
    """Where a stack cannot be told which rail to take, it has the choice."""
    settings = json.loads(SETTINGS.read_text())
    settings["systems"][0]["partitions"][0]["extras"]["rails"] = ["a0", "a1"]
    del settings["environments"][1]["extras"]["rail_variable"]
    scripts = sweep_scripts(tmp_path, settings)
    assert "--adaptive" not in scripts["openmpi"]
    rails = " --rails a0,a1 --rail-variable OMPI_MCA_btl_tcp_if_include"
    assert " --ppn 2 " in scripts["openmpi"]
    assert rails in scripts["openmpi"]
    assert " --ppn 1 " in scripts["mpich"]
    assert "--rails" not in scripts["mpich"]


def test_node_lost_in_mid_sweep_fails_and_the_numbers_stay(tmp_path: Path) -> None:
    rows = replay(tmp_path, only="PairSweep", LOST_NODE="cn03")
    failed = [row for row in rows if row["result"] != "pass"]
    assert [row["display_name"] for row in failed] == ["PairSweep", "PairSweep"]
    for row in failed:
        assert row["fail_phase"] == "performance"
        assert "pairs_answered=0.0 %, expected 100" in row["fail_reason"]
        samples = record_of(row)["samples"]
        answered = {
            sample["node"]: sample["value"]
            for sample in samples
            if sample["metric"] == "pairs_answered"
        }
        assert answered == {"cn01": 100, "cn02": 100, "cn03": 0, "cn04": 100}
        pairs = {
            frozenset((sample["source"], sample["destination"]))
            for sample in samples
            if sample["metric"] == "latency"
        }
        assert {frozenset(pair) for pair in combinations(answered, 2)} >= pairs
        assert pairs >= {
            frozenset(pair) for pair in combinations(("cn01", "cn02", "cn04"), 2)
        }


@pytest.mark.parametrize(
    "lost",
    [
        "StarSTREAM_Triad",
        pytest.param("MaxPingPongLatency_usec", marks=pytest.mark.slow),
    ],
)
def test_number_that_hpcc_lacks_is_named_and_the_others_stay(
    tmp_path: Path, rows: list[dict[str, Any]], lost: str
) -> None:
    (row,) = replay(tmp_path, only="Hpcc", LOST_NUMBER=lost)
    assert (row["result"], row["fail_phase"]) == ("fail", "performance")
    assert f"{lost}: declared, but it could not be extracted" in row["fail_reason"]
    record = record_of(row)
    assert lost in record["declared"]
    (whole,) = (each for each in rows if each["display_name"] == "Hpcc")
    samples = record_of(whole)["samples"]
    assert len(samples) == 22
    assert record["samples"] == [each for each in samples if each["metric"] != lost]


def test_node_without_hpcc_is_named_and_the_numbers_of_the_others_stay(
    tmp_path: Path,
) -> None:
    (row,) = replay(tmp_path, only="NodeSweep", TIRED_NODE="cn03")
    assert (row["result"], row["fail_phase"]) == ("fail", "performance")
    reason = "cn03: hpcc: exit status 1; srun: error: Task launch failed on node cn03"
    assert reason in row["fail_reason"]
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in record_of(row)["samples"]:
        if not sample["parameters"]:
            values[sample["metric"]][sample["node"]] = sample["value"]
    assert set(values["mem_bw"]) == {"cn01", "cn02", "cn04"}
    assert set(values["mem_latency"]) == set(NODES)
    assert values["programs_passed"]["cn03"] == 75
    assert values["programs_passed"]["cn04"] == 100
    kept = Path(row["stagedir"], "nodes")
    assert [str(path.relative_to(kept)) for path in kept.glob("*/*/err")] == [
        "cn03/hpcc/err"
    ]


def test_recording_from_before_fixedwork_replays(tmp_path: Path) -> None:
    old = tmp_path / "recorded"
    told = {"check": "NodeSweep", "parameters": {}, "environment": "openmpi"}
    write(old / "seatrial.json", json.dumps(told))
    write(old / "rfm_job.out", "")
    job = f"nodes={' '.join(NODES)}\nstart=1.0\nend=7.0\nstatus=0\n"
    write(old / "seatrial.job", job)
    file = DATA / "nodesweep" / "before-fixedwork.jsonl"
    write(old / "nodesweep.jsonl", file.read_text())
    (row,) = replay(tmp_path, only="NodeSweep", recorded=old)
    assert row["result"] == "pass", row["fail_reason"]
    found = {each["metric"] for each in record_of(row)["samples"]}
    assert {"hpl", "mem_latency", "programs_passed"} <= found
    assert found.isdisjoint({"fixed_work", "quota_stops"})


def test_two_nodes_are_one_pair_and_one_node_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    two = replay(tmp_path / "two", nodes=["cn01", "cn02"], only="ImbRing")
    (ring,) = (row for row in two if row["display_name"] == "ImbRing")
    samples = record_of(ring)["samples"]
    assert ring["result"] == "pass", ring["fail_reason"]
    assert {(s["source"], s["destination"]) for s in samples} == {("cn01", "cn02")}
    one = replay(tmp_path / "one", nodes=["cn01"], action="--dry-run")
    skipped = {row["display_name"] for row in one if row["result"] == "skip"}
    assert {row["display_name"] for row in one} - skipped == {
        "FullLaunch",
        "Hpcg",
        "Hpl",
        "HplNodes",
        "HplRacks",
        "HybridAffinity",
        "ImbWithin",
        *(f"LammpsFixed %problem={name}" for name in PROBLEMS if name != "rhodo"),
        *(f"LammpsScaled %problem={name}" for name in PROBLEMS),
        "LammpsRhodo",
        "ManyRegions",
        "NodeSweep",
        *(f"Npb %benchmark={name}" for name in BENCHMARKS),
        "OsNoise",
        "OsuBandwidth %between=cores %buffers=multiple",
        "OsuBandwidth %between=cores %buffers=single",
        "OsuLatency %between=cores",
        "StabilityJob %mix=1x4-1",
        "Startup",
    }


def test_every_case_is_replayed_from_what_it_left(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Its stage folder is a recording; the machine needs nothing but a shell."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "cp"):
        (programs / name).symlink_to(shutil.which(name) or "missing")
    *_, stage, lab = Path(rows[0]["stagedir"]).parents[:5]
    result = reframe(
        *("-C", str(lab / "settings.json"), "-c", str(CHECKS), "-R", "-r"),
        *("--prefix", str(tmp_path), "--report-file", "report.json"),
        *("--keep-stage-files", "-S", f"replay={stage}", *SMALL),
        folder=tmp_path,
        PATH=str(programs),
        SEATRIAL_HOME=str(HOME),
    )
    report = json.loads((tmp_path / "report.json").read_text())
    cases = report["runs"][-1]["testcases"]
    again = [row for row in cases if row["result"] != "skip"]
    assert len(again) == len(rows), result.stdout
    first = {(row["display_name"], row["environ"]): row for row in rows}
    for row in again:
        recorded = first[row["display_name"], row["environ"]]
        assert row["result"] == recorded["result"], row["fail_reason"]
        assert row["perfvalues"] == recorded["perfvalues"]
        mine, its = record_of(row), record_of(recorded)
        assert mine.pop("replay") == recorded["stagedir"]
        assert its.pop("replay") is None
        assert mine == its
        *_, launch = script_of(recorded).partition("srun ")
        assert script_of(row).endswith(launch)


@pytest.mark.parametrize("name", ["smoke", "acceptance", "scaling"])
def test_campaign_names_checks_that_exist(name: str) -> None:
    campaign = load_campaign(HOME, name)
    assert set(campaign.checks) <= known_checks(CHECKS)


def test_every_check_is_in_the_acceptance_or_in_a_campaign_of_its_own() -> None:
    """The sweep over verbs repeats `PairSweep` below MPI: it is an option."""
    acceptance, scaling, stability, verbs = (
        set(load_campaign(HOME, name).checks)
        for name in ("acceptance", "scaling", "stability", "verbs")
    )
    assert acceptance | scaling | stability | verbs == OURS
    assert stability == {"StabilityJob"}
    assert scaling - acceptance == {"LammpsScaled"}
    assert verbs - acceptance == {"VerbsPairSweep"}
