"""Counters in a run: read around each session, kept, measured."""

import gzip
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl
import pytest
from cabled_fabric import planned
from click.testing import CliRunner
from fake_counters import MLX5_IB, MLX5_ROCE, write_ports
from fake_home import CRITERIA, fake_program, write, write_home
from fake_slurm import stand_in
from ibsim_fabric import ibsim
from rich.console import Console
from test_repeat import DIES

from seatrial.campaign import job_watch, session_counters
from seatrial.campaign.campaign_file import load_campaign
from seatrial.campaign.runner import Order, repeat_run, resume_run, run_campaign
from seatrial.campaign.schedule import Planned
from seatrial.campaign.session_counters import SessionCounters, Snapshot
from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.errors import SeatrialError
from seatrial.fabric.counters import Reading, counted
from seatrial.fabric.discover import by_tools
from seatrial.fabric.records import Fabric, write_fabric
from seatrial.judge.judge import judge
from seatrial.model.cases import ListedCase
from seatrial.report.node_heatmap import node_metrics
from seatrial.runs.closed_run import COUNTERS_TABLE, Run, load_run
from seatrial.runs.counters_table import SCHEMA, parse_counters
from seatrial.runs.open_run import RunFolder
from seatrial.system.description import load_system

T = TypeVar("T")
SRUN = """
echo "$*" >> {at}/sruns
for argument; do case $argument in --nodelist=*) nodes=${{argument#*=}};; esac; done
while [ "$1" != sh ]; do shift; done
for node in $(echo "$nodes" | tr , ' '); do
  [ ! -e {at}/$node.silent ] || continue
  SLURMD_NODENAME=$node SLURM_JOB_ID=1 sh -c "$3" node "$5" "$6" "$7/$node"
done
"""
ONCE = """
blocks: [{name: echo, checks: [Echo], variables: {max_pending_time: 10m}}]
"""
TWICE = "repeats: 2\nblocks: [{name: silent, checks: [Silent]}]\n"
HCA = {"name": "mlx5_0", "firmware": "1", "board": "b", "driver": "mlx5_core"}


class Cluster:
    """A home with two nodes that have HCAs, and stand-ins for Slurm."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = write_home(folder / "home")
        self.at = stand_in(folder, self.home, monkeypatch)
        self.programs, self.trees = folder / "bin", folder / "trees"
        sinfo = (self.programs / "sinfo").read_text().split("\n", 1)[1]
        states = f"case \"$*\" in *'%N|%T') . {self.at}/states; exit;; esac"
        fake_program(self.programs, "sinfo", f"{states}\n{sinfo}")
        scontrol = 'case "$*" in *hostnames*) echo cn01; echo cn02; exit;; esac'
        own = (self.programs / "scontrol").read_text().split("\n", 1)[1]
        fake_program(self.programs, "scontrol", f"{scontrol}\n{own}")
        fake_program(self.programs, "srun", SRUN.format(at=self.at))
        (self.at / "states").write_text("echo 'cn01|idle'; echo 'cn02|idle'\n")
        for name in ("cn01", "cn02"):
            write_ports(self.trees / name, MLX5_IB, MLX5_ROCE)
        for name, text in (("once", ONCE), ("twice", TWICE)):
            write(self.home / f"reframe-checks/campaigns/{name}.yaml", text)
        self.describe(hcas=[HCA])

    def describe(self, hcas: list[dict[str, str]]) -> None:
        file = self.home / "etc/lab/system.json"
        system = json.loads(file.read_text()) | {"audit_root": str(self.trees)}
        for node in system["nodes"]:
            node["facts"]["hcas"] = hcas
        file.write_text(json.dumps(system))

    def after_job(self, number: int, *commands: str) -> None:
        (self.at / f"after.{number}").write_text("\n".join(commands) + "\n")

    def count(self, node: str, name: str, value: int) -> str:
        """Return the command that sets a counter of an InfiniBand port."""
        folder = "sys/class/infiniband/mlx5_0/ports/1/counters"
        return f"echo {value} > {self.trees / node / folder / name}"

    @property
    def readings(self) -> list[str]:
        file = self.at / "sruns"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if "--job-name=seatrial-counters" in line]

    def run(self, campaign: str = "smoke", console: Console | None = None) -> Run:
        order = self.order(campaign)
        return load_run(run_campaign(order, console or Console(quiet=True)))

    def read(
        self, between: str = "", warn: Callable[[str], None] | None = None
    ) -> pl.DataFrame:
        """Read the ports at both ends of a session that runs only a command."""
        system = load_system(self.home, "lab")
        work = self.home.parent / "work"
        counters = SessionCounters(system, work, warn or (lambda text: None))
        case = ListedCase("Echo %x=1", "lab:batch", "openmpi")
        planned = Planned("echo-1", "echo", 1, ("Echo",), {}, (case,))
        start = counters.read(planned, self.home.parent / "raw", "start")
        subprocess.run(["sh", "-c", between], check=True)
        end = counters.read(planned, self.home.parent / "raw", "end")
        assert (start is None) == (end is None)
        if start is None or end is None:
            return pl.DataFrame(schema=SCHEMA)
        return counters.table("echo-1", start, end)

    def order(self, campaign: str) -> Order:
        system, plan = load_system(self.home, "lab"), load_campaign(self.home, campaign)
        return Order(self.home, self.home.parent / "results", system, plan, "r1")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(tmp_path, monkeypatch)


def ports(run: Run) -> dict[tuple[str, str, str], dict[str, Any]]:
    assert run.counters is not None
    return by_port(run.counters)


def by_port(table: pl.DataFrame) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = table.iter_rows(named=True)
    return {(row["session"], row["node"], row["port"]): row for row in rows}


GROWTH = 10**13  # words of 4 octets


@pytest.fixture(scope="module")
def counted_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Cluster, Run]:
    """A run whose ports had data and, at one, errors; and its cluster."""
    data = MLX5_IB.counters["port_rcv_data"]
    assert isinstance(data, int)
    with pytest.MonkeyPatch.context() as patch:
        cluster = Cluster(tmp_path_factory.mktemp("counted"), patch)
        bad_port = cluster.count("cn02", "symbol_error", 7)
        loaded = [
            cluster.count(node, "port_rcv_data", data + GROWTH)
            for node in ("cn01", "cn02")
        ]
        cluster.after_job(1, bad_port, *loaded)
        run = cluster.run()
    return cluster, run


def test_errors_of_a_session_are_kept_and_measured(
    counted_run: tuple[Cluster, Run],
) -> None:
    cluster, run = counted_run
    rows = ports(run)
    assert {key[1:] for key in rows} == {
        *(("cn01", "mlx5_0:1"), ("cn01", "mlx5_2:1")),
        *(("cn02", "mlx5_0:1"), ("cn02", "mlx5_2:1")),
    }
    bad = rows["echo-1", "cn02", "mlx5_0:1"]
    assert (bad["symbol_error"], bad["errors"], bad["bit_errors"]) == (7, 7, 7)
    bits = 32 * GROWTH
    assert bad["bits_received"] == bits
    assert (bad["node_class"], bad["source"], bad["missing"]) == ("batch", "sysfs", "")
    assert bad["bit_error_rate_below"] == pytest.approx(13.148 / bits, rel=1e-3)
    good = rows["echo-1", "cn01", "mlx5_0:1"]
    assert good["bit_error_rate_below"] == pytest.approx(2.9957 / bits, rel=1e-3)
    numbers = run.measurements.filter(pl.col("check") == "PortCounters").collect()
    of_bad = numbers.filter(node="cn02", hca="mlx5_0:1")
    values = dict(zip(of_bad["metric"], of_bad["value"], strict=True))
    assert values["port_errors"] == 7
    assert values["port_bits"] == 32 * GROWTH
    assert values["port_bit_error_rate_bound"] == bad["bit_error_rate_below"]
    assert set(of_bad["partition"]) == {"lab:batch"}
    assert len(cluster.readings) == 2, "one job step at each end"
    assert {COUNTERS_TABLE, "raw/echo-1/counters-start.tar.gz"} < {
        *run.manifest["checksums"]
    }
    with tarfile.open(run.path / "raw/echo-1/counters-end.tar.gz") as archive:
        assert {"cn01.txt", "cn02.txt", "classes.json"} == {*archive.getnames()}


def test_readings_of_queries_exports_and_packs(
    counted_run: tuple[Cluster, Run], tmp_path: Path
) -> None:
    cluster, run = counted_run
    templates = Path(__file__).parents[1] / "reports"
    (cluster.home / "reports").symlink_to(templates)
    invoke = CliRunner(
        env={
            "SEATRIAL_HOME": str(cluster.home),
            "SEATRIAL_RESULTS": str(run.path.parent.parent),
        }
    ).invoke
    for command in (
        ["verify", str(run.path)],
        ["pack", str(run.path), str(tmp_path / "r1.seatrial.tar.xz")],
        ["verify", str(tmp_path / "r1.seatrial.tar.xz")],
        ["compare", f"a={run.path}", f"b={run.path}", "--out", str(tmp_path / "p")],
        ["export", str(run.path), "--format", "openmetrics"],
        ["trend", "lab", "--metric", "port_errors"],
    ):
        done = invoke(main, command)
        assert done.exit_code == 0, done.output
    pages = [file.read_text() for file in (tmp_path / "p").rglob("*.html")]
    assert pages
    assert not any("port_bits" in page for page in pages), "no number to compare"
    sql = "SELECT count(*) AS n FROM measurements WHERE metric = 'port_errors'"
    done = invoke(main, ["query", "--sql", sql, "--format", "json"])
    assert '"n": 4' in done.output, done.output


def test_a_planted_fault_fails_the_run_and_is_reported(
    cluster: Cluster, tmp_path: Path
) -> None:
    limits = "{link_downed: 0 count, bit_errors: 1e-12 1/bit}"
    file = cluster.home / "reference-data/lab/criteria.yaml"
    file.write_text(f"{CRITERIA}  - {{kind: counters, limits: {limits}}}\n")
    cluster.after_job(2, cluster.count("cn02", "link_downed", 2))
    run = cluster.run()
    judgement = judge(run, Criteria.load(file))
    declared = [one for one in judgement.findings if one.kind == "declared"]
    idle = (
        "4 ports (cn01 (mlx5_0:1), cn01 (mlx5_2:1), cn02 (mlx5_0:1), cn02 (mlx5_2:1))"
    )
    assert [(one.verdict, one.place, one.reason) for one in declared] == [
        ("undecided", "", f"{idle}; each: it received nothing"),
        ("pass", "", "3 ports; each: at most 0 in a session, allowed 0"),
        ("fail", "cn02 (mlx5_0:1)", "2 in session echo-1, allowed 0"),
    ]
    assert judgement.convicted == ("cn02",)
    assert node_metrics(run, judgement).metrics == ("latency_8B",)
    templates = Path(__file__).parents[1] / "reports"
    (cluster.home / "reports").symlink_to(templates)
    results = {"SEATRIAL_RESULTS": str(run.path.parent.parent)}
    runner = CliRunner(env={"SEATRIAL_HOME": str(cluster.home), **results})
    out = tmp_path / "report"
    done = runner.invoke(main, ["report", str(run.path), "--out", str(out)])
    assert done.exit_code in (0, 1), done.output
    texts = [file.read_text(errors="replace") for file in out.rglob("*.xml")]
    texts += [file.read_text(errors="replace") for file in out.rglob("*.html")]
    assert len(texts) == 2
    assert all("2 in session echo-1, allowed 0" in text for text in texts)


def test_a_reading_between_sessions_serves_both(cluster: Cluster) -> None:
    run = cluster.run("twice")
    sessions = [session["name"] for session in run.manifest["sessions"]]
    assert len(sessions) == 2
    assert len(cluster.readings) == 3
    assert {key[0] for key in ports(run)} == {*sessions}
    for name in sessions:
        assert (run.path / "raw" / name / "counters-start.tar.gz").is_file()


def test_a_reading_serves_only_a_session_of_the_same_classes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system = load_system(cluster.home, "lab")
    counters = SessionCounters(system, tmp_path / "work", lambda text: None)
    answers = iter((("a",), ("b",), ("b",)))
    monkeypatch.setattr(counters, "_classes", lambda planned: next(answers))
    monkeypatch.setattr(
        counters, "_of_nodes", lambda classes: Snapshot(error=str(classes))
    )
    planned = Planned("echo-1", "echo", 1, (), {}, ())
    errors = []
    for moment in ("end", "start", "start"):
        snapshot = counters.read(planned, tmp_path / "raw", moment)
        assert snapshot is not None
        errors.append(snapshot.error)
    assert errors == ["('a',)", "('b',)", "('b',)"]


def test_without_hcas_nothing_is_started(cluster: Cluster) -> None:
    cluster.describe(hcas=[])
    run = cluster.run()
    assert cluster.readings == []
    assert run.counters is None
    assert not any("counters" in name for name in run.manifest["checksums"])
    assert "PortCounters" not in {*run.columns("check").collect()["check"]}


@pytest.mark.parametrize(
    ("declared", "readings"),
    [
        ("{source: none}", 0),
        ("{interfaces: [eno1]}", 2),
        ("{source: nodes}", 2),
    ],
)
def test_declared_readings(cluster: Cluster, declared: str, readings: int) -> None:
    if readings:
        cluster.describe(hcas=[])
    file = cluster.home / "etc/lab/fabric.yml"
    file.write_text(f"fabric_counters: {declared}\n")
    cluster.read()
    assert len(cluster.readings) == readings
    assert all(("eno1" in line) == ("eno1" in declared) for line in cluster.readings)


def test_a_wrong_declaration_is_an_error(cluster: Cluster) -> None:
    file = cluster.home / "etc/lab/fabric.yml"
    file.write_text("fabric_counters:\n  source: switches\n")
    with pytest.raises(SeatrialError, match=r"fabric\.yml:2: "):
        cluster.run()
    assert not [*cluster.at.glob("[0-9]*")], "no job was submitted"


def test_a_node_that_is_not_read_is_missing_with_the_reason(cluster: Cluster) -> None:
    down = "echo \"echo 'cn01|idle'; echo 'cn02|down*'\" > " + f"{cluster.at}/states"
    said: list[str] = []
    rows = by_port(cluster.read(down, said.append))
    assert rows["echo-1", "cn02", ""]["missing"] == (
        "at the end: not asked, Slurm says down*"
    )
    assert rows["echo-1", "cn01", "mlx5_0:1"]["missing"] == ""
    expected = "counters at the end of session echo-1: not known of cn02: not asked"
    assert any(expected in text for text in said), said


def test_a_half_written_answer_is_missing(cluster: Cluster) -> None:
    cut = "sed -i 's/@.end/@/' \"$5/nodes/cn02\""
    srun = (cluster.programs / "srun").read_text()
    fake_program(cluster.programs, "srun", srun + f'[ "$6" = x ] || {cut}\n')
    rows = by_port(cluster.read())
    reason = rows["echo-1", "cn02", ""]["missing"]
    assert reason == "at the start: output of the node ends early"


def test_a_failed_step_never_fails_the_session(cluster: Cluster) -> None:
    fake_program(cluster.programs, "srun", "echo 'srun: error: no' >&2; exit 1")
    console = Console(record=True, force_terminal=False, width=200)
    run = cluster.run(console=console)
    reasons = {row["missing"] for row in ports(run).values()}
    assert reasons == {"at the start: batch: srun: error: no"}
    assert run.manifest["sessions"][0]["cases"] > 0
    said = console.export_text()
    assert (
        "counters at the start of session echo-1: not known of cn[01-02]: batch: "
        in said
    )


def test_completing_nodes_are_waited_for(cluster: Cluster) -> None:
    states = cluster.at / "states"
    idle = "echo 'cn01|idle'; echo 'cn02|idle'"
    text = f"echo 'cn01|completing'; echo 'cn02|idle'; echo \"{idle}\" > {states}"
    states.write_text(text)
    assert {*cluster.read()["missing"]} == {""}


def test_the_fabric_is_read_where_it_is_declared(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the real ibqueryerrors, on ibsim, of all ports: also those of switches."""
    etc = cluster.home / "etc/lab"
    (etc / "fabric.yml").write_text("fabric_counters: {source: fabric}\n")
    plan = planned(hosts=4, radix=4, prefix="cn0")
    with ibsim(tmp_path / "ibsim", plan.cables, plan.kinds) as fabric:
        fabric.start_manager()

        def with_ibsim(read: Callable[..., T], *arguments: Any) -> T:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(fabric.folder)  # the tools write there
                for name, value in fabric.environment.items():
                    patch.setenv(name, value)
                return read(*arguments)

        def read_then_plant(found: Fabric) -> Reading:
            reading = with_ibsim(counted, found)
            fabric.console(
                'PerformanceSet "leaf01"[1] PortCounters.SymbolErrorCounter=4',
                'PerformanceSet "leaf01"[1] PortCountersExtended.PortRcvData=10000000',
                'PerformanceSet "cn01/mlx5_0"[1] PortCounters.VL15Dropped=1',
            )
            return reading

        write_fabric(etc / "fabric.json", with_ibsim(by_tools))
        monkeypatch.setattr(session_counters, "counted", read_then_plant)
        run = cluster.run()
    assert cluster.readings == []
    rows = ports(run)
    assert len(rows) == 2 * len(plan.cables)
    switch = rows["echo-1", "leaf01", "1"]
    assert (switch["symbol_error"], switch["VL15_dropped"]) == (4, 0)
    assert (switch["link_downed"], switch["node_class"]) == (0, None)
    assert switch["bits_received"] == pytest.approx(32e7, rel=1e-2)
    assert switch["bit_error_rate_below"] == pytest.approx(9.1535 / 32e7, rel=1e-2)
    host = rows["echo-1", "cn01", "mlx5_0:1"]
    assert (host["VL15_dropped"], host["node_class"]) == (1, "batch")
    assert sum(row["errors"] for row in rows.values()) == 5
    file = run.path / "raw/echo-1/counters-end.json.gz"
    kept = msgspec.json.decode(gzip.decompress(file.read_bytes()), type=Reading)
    assert len(kept.ports) == len(rows)


def test_a_fabric_that_is_not_read_is_missing(cluster: Cluster) -> None:
    (cluster.home / "etc/lab/fabric.yml").write_text(
        "fabric_counters: {source: fabric}\n"
    )
    (reason,) = cluster.read()["missing"]
    expected = "fabric.json: missing; write it by `seatrial fabric discover lab --keep`"
    assert expected in reason


def test_a_repeat_has_counters_of_its_own(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that dies is missing in the run; its repeat has it."""
    monkeypatch.setattr(job_watch, "_FIRST_LOOK_S", 0.5)
    states = f"echo \"echo 'cn01|idle'; echo 'cn02|down*'\" > {cluster.at}/states"
    cluster.after_job(2, DIES.format(at=cluster.at), f'[ "$n" != 2 ] || {states}')
    run = cluster.run("once")
    assert ports(run)["echo-1", "cn02", ""]["missing"].startswith("at the end: not ")
    (cluster.at / "cn02.lost").unlink()
    (cluster.at / "states").write_text("echo 'cn01|idle'; echo 'cn02|idle'\n")
    order = cluster.order("once")
    again = repeat_run(order.home, order.system, run, "again", Console(quiet=True))
    rows = ports(load_run(again))
    assert {key[0] for key in rows} == {"echo-1"}
    assert {row["missing"] for row in rows.values()} == {""}


@pytest.mark.slow
def test_a_resumed_run_reads_only_what_it_runs(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatrial.campaign import open_run_sessions
    from seatrial.runs.closed_sessions import close_session

    def broken(*_: object, **__: object) -> None:
        raise SeatrialError("stopped")

    calls = []

    def second(*arguments: Any, **more: Any) -> None:
        calls.append(arguments)
        (close_session if len(calls) == 1 else broken)(*arguments, **more)

    monkeypatch.setattr(open_run_sessions, "close_session", second)
    order = cluster.order("two")
    with pytest.raises(SeatrialError, match="stopped"):
        run_campaign(order, Console(quiet=True))
    monkeypatch.setattr(open_run_sessions, "close_session", close_session)
    before = len(cluster.readings)
    folder = RunFolder(order.results, "lab", "r1")
    path = resume_run(order.home, order.system, folder, Console(quiet=True))
    run = load_run(path)
    assert before == 3
    assert len(cluster.readings) == before + 4
    assert len({key[0] for key in ports(run)}) == 4
    interrupted = [*path.glob("raw/*.interrupted-1/counters-end.tar.gz")]
    assert len(interrupted) == 1


@pytest.mark.slow
def test_counters_of_another_version_are_read(cluster: Cluster) -> None:
    """Columns that it lacks are null; a row without a node is damaged."""
    run = cluster.run()
    file = run.path / COUNTERS_TABLE
    table = pl.read_parquet(file)
    assert table.schema == pl.Schema(SCHEMA)
    table.drop("pause_frames").write_parquet(file)
    parsed = parse_counters(file.read_bytes(), file)
    assert parsed["pause_frames"].null_count() == parsed.height
    table.with_columns(node=pl.lit(None, pl.String)).write_parquet(file)
    with pytest.raises(SeatrialError, match="a row lacks a value"):
        parse_counters(file.read_bytes(), file)
    with pytest.raises(SeatrialError, match=r"counters\.parquet: not readable"):
        parse_counters(b"PAR1", file)
