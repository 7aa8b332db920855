"""The base class, through real ReFrame: every trap is closed, every record is kept.

Each trap runs twice: guarded it must fail and say why; with the guard's hook
disabled it must pass, which proves that the trap is there and the guard needed.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from reframe_runs import FAKE, Fake, Outcome, references, run_fakes

UNBOUND = "[2, null, null, us]"


@dataclass(frozen=True)
class Trap:
    """A case that plain ReFrame passes: its check, its references, the complaint."""

    reason: str
    source: str = FAKE
    yaml: str = references()


TRAPS = {
    "a metric that cannot be extracted": Trap(
        "latency_8B: declared, but it could not be extracted",
        source=FAKE.replace('"8 1.5"', '"16 1.5"'),
    ),
    "a metric that is not declared": Trap(
        "bw_8B: reported, but not declared",
        source=FAKE
        + """
    @performance_function("MB/s")
    def bw_8B(self):
        return 2.0

    @run_before("performance")
    def add(self):
        self.perf_variables["bw_8B"] = self.bw_8B()
""",
    ),
    "no metric at all": Trap(
        "the check declares no metric",
        source=FAKE.replace('["latency_8B"]', "[]"),
    ),
    "a metric without reference": Trap(
        "latency_8B: no reference in fake.yaml, class Fake",
        yaml=references().replace("latency_8B", "latency_16B"),
    ),
    "a class without references": Trap(
        "latency_8B: no reference in fake.yaml, class Fake",
        yaml=references().replace("Fake", "Fakes"),
    ),
    "a partition without references": Trap(
        "latency_8B: no reference in fake.yaml, class Fake",
        yaml=references().replace("sample:batch", "sample:debug"),
    ),
    "references without $index": Trap(
        "latency_8B: no reference in fake.yaml, class Fake",
        yaml=references().replace("  $index: [$partition]\n", ""),
    ),
    "a reference that nothing can miss": Trap(
        "latency_8B: its reference has no bound", yaml=references(UNBOUND)
    ),
    "a reference in another unit": Trap(
        "latency_8B: its reference is in 'ms', expected 'us'",
        yaml=references("[2, null, 0, ms]"),
    ),
    "a reference without unit": Trap(
        "latency_8B: its reference is in None, expected 'us'",
        yaml=references("[2, null, 0]"),
    ),
    "a metric in another unit": Trap(
        "latency_8B: reported in 'ms', expected 'us'",
        source=FAKE
        + """
    @run_before("performance", always_last=True)
    def add(self):
        self.perf_variables["latency_8B"] = self.in_ms()

    @performance_function("ms")
    def in_ms(self):
        return 1.5
""",
        yaml=references("[2, null, 0, ms]"),
    ),
    "a bad value in a check that is not strict": Trap(
        "latency_8B: does not meet its reference",
        source=FAKE + "    strict_check = False\n",
        yaml=references("[1, null, 0, us]"),
    ),
}


FAKES = {name: Fake(trap.source, trap.yaml) for name, trap in TRAPS.items()}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return run_fakes(tmp_path_factory.mktemp("guarded"), FAKES)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("plain")
    return run_fakes(folder, FAKES, "--disable-hook", "close_traps")


@pytest.mark.parametrize("name", TRAPS)
def test_trap_fails_the_case(guarded: dict[str, Outcome], name: str) -> None:
    outcome = guarded[name]
    assert outcome.verdict == ("fail", "performance")
    assert outcome.reason == f"performance error: {TRAPS[name].reason}"


@pytest.mark.parametrize("name", TRAPS)
def test_trap_is_open_in_plain_reframe(plain: dict[str, Outcome], name: str) -> None:
    assert plain[name].verdict == ("pass", None), plain[name].reason


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Checks that may lack references."""
    fakes = {"no file": Fake(yaml=None), "no class": Fake(yaml="Other: {}\n")}
    folder = tmp_path_factory.mktemp("loose")
    return run_fakes(folder, fakes, "-S", "calibrate=true")


@pytest.mark.parametrize("name", ["no file", "no class"])
def test_calibrate_needs_no_reference(loose: dict[str, Outcome], name: str) -> None:
    assert loose[name].verdict == ("pass", None), loose[name].reason


SHELL = "\"sh -c '{}'\""
OLD_OUTPUT = """
    output_file = "numbers.txt"
    prerun_cmds = ["echo 8 1.5 >numbers.txt"]
"""
BROKEN = {
    "reference file absent": ("setup", "No such file", Fake(yaml=None)),
    "reference file empty": (
        "setup",
        "'NoneType' object is not subscriptable",
        Fake(yaml=""),
    ),
    "reference file no YAML": (
        "setup",
        "while parsing a flow node",
        Fake(yaml="Fake: [\n"),
    ),
    "reference too short": (
        "setup",
        "does not match type",
        Fake(yaml=references("[1]")),
    ),
    "exit status": (
        "sanity",
        "exit status 3",
        Fake(FAKE.replace('"echo"', SHELL.format("echo 8 1.5; exit 3"))),
    ),
    "last error line": (
        "sanity",
        "standard error ends: 'no device'",
        Fake(FAKE.replace('"echo"', SHELL.format("echo no device >&2; exit 3"))),
    ),
    "task that died": (
        "sanity",
        "standard error says: 'cn03: task 4: Segmentation fault'",
        Fake(
            FAKE.replace(
                '"echo"',
                SHELL.format(
                    "echo srun: error: cn03: task 4: Segmentation fault >&2; "
                    "echo srun: error: cn01: tasks 0-1: Killed >&2; exit 139"
                ),
            )
        ),
    ),
    "killed": ("sanity", "no end", Fake(FAKE.replace('"echo"', '"exec echo"'))),
    "nan": (
        "sanity",
        "not a valid number: Sample(metric='latency', value=nan",
        Fake(FAKE.replace('"8 1.5"', '"8 nan"')),
    ),
    "unknown metric": (
        "sanity",
        "not a valid number: Sample(metric='speed'",
        Fake(FAKE.replace('"latency", float', '"speed", float')),
    ),
    "parser": (
        "sanity",
        "rfm_job.out: line 7: bad row",
        Fake(FAKE.replace("size, time = ", 'raise ParseError(7, "bad row")  # ')),
    ),
    "output file absent": (
        "sanity",
        "echo wrote no numbers.txt",
        Fake(FAKE + '    output_file = "numbers.txt"\n'),
    ),
    "output file of an earlier run": (
        "sanity",
        "echo wrote no numbers.txt",
        Fake(FAKE + OLD_OUTPUT),
    ),
    "a bad value": (
        "performance",
        "latency_8B=1.5 us, expected 1",
        Fake(yaml=references("[1, null, 0, us]")),
    ),
    "a bad value among good ones": (
        "performance",
        "latency_8B=9.0 us, expected 2",
        Fake(FAKE.replace("[Sample", '[Sample("latency", 9.0, 8), Sample')),
    ),
}
SKIP = """
    @run_after("setup")
    def need(self):
        self.skip_if(self.num_tasks < 2, "needs 2 ranks")
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    fakes = {name: fake for name, (_, _, fake) in BROKEN.items()}
    fakes |= {"good": Fake(), "skipped": Fake(FAKE + SKIP)}
    return run_fakes(tmp_path_factory.mktemp("broken"), fakes)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_case_fails_with_its_reason(
    outcomes: dict[str, Outcome], name: str
) -> None:
    phase, reason, _ = BROKEN[name]
    outcome = outcomes[name]
    assert outcome.verdict == ("fail", phase)
    assert reason in outcome.reason
    if phase == "sanity":
        assert outcome.record is not None
        assert outcome.record["samples"] == []


def test_bad_value_is_recorded(outcomes: dict[str, Outcome]) -> None:
    record = outcomes["a bad value"].record
    assert record is not None
    assert [sample["value"] for sample in record["samples"]] == [1.5]


def test_good_case_passes_and_is_recorded(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["good"]
    assert outcome.verdict == ("pass", None), outcome.reason
    record = outcome.record
    assert record is not None
    assert len(record.pop("nodes")) == 1
    assert 0 < record.pop("payload_s") < 60
    assert record.pop("job_id") == outcome.row["jobid"]
    assert record.pop("check") == record.pop("case")
    assert record == {
        "partition": "sample:batch",
        "environment": "intelmpi",
        "parameters": {},
        "num_nodes": 1,
        "whole_class": False,
        "draws_pairs": False,
        "declared": ["latency_8B"],
        "replay": None,
        "command": "echo 8 1.5",
        "samples": [
            {
                "metric": "latency",
                "value": 1.5,
                "size_bytes": 8,
                "statistic": "mean",
                "n": 1,
                "node": None,
                "socket": None,
                "source": None,
                "destination": None,
                "hca": None,
                "parameters": {},
                "round": None,
                "start_time": None,
            }
        ],
    }
    kept = {file.name for file in Path(outcome.row["outputdir"]).iterdir()}
    assert {"seatrial.json", "seatrial.job", "rfm_job.out"} <= kept


def test_skip_keeps_the_case(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["skipped"].verdict == ("skip", None)


def test_too_few_nodes_fail_the_case(tmp_path: Path) -> None:
    outcome = run_fakes(tmp_path, {"fake": Fake()}, num_nodes=0)["fake"]
    assert outcome.verdict == ("fail", "sanity")
    assert outcome.reason.endswith(", expected 4")
