"""`make bench`: how long the parts of `make accept` take, and how true our numbers are.

Prints tables of measured values beside their targets; asserts nothing, as times of a
shared machine differ from run to run. Takes about an hour: the lab and its image are
made anew. Needs root on Debian. `python tools/bench.py PART...` measures some parts:
startup, parsers, results, imports, judge, nights, report, pairs, compare, fabric,
fidelity, schedule, catalogue, lab, provision, audit, accept, campaign, sweep, scale.
OSU_BIN names a folder with OSU's point-to-point programs, built with Open MPI.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compare_speed
import fabric_speed
import fidelity
import import_speed
import judge_speed
import nights_speed
import overhead_speed
import pairs_memory
import parser_speed
import report_speed
import results_speed
import scale_bench
from click import Context
from rich.console import Console
from rich.table import Table

from seatrial import paths
from seatrial.audit.collect import Collected, save
from seatrial.campaign.remote import run_remotely
from seatrial.checks.listing import reframe_command, reframe_environment
from seatrial.cli import main as main_command
from seatrial.commands._runs import judged
from seatrial.commands.lab import require_root_on_debian
from seatrial.report import write_report
from seatrial.runs.closed_run import Run, find_run
from seatrial.runs.open_run import new_run_id
from seatrial.system.login_node import load_remote
from seatrial.system.playbooks import playbook

CACHE = Path("/var/cache/seatrial")
LAB_HOME = Path("/var/lib/seatrial-lab")
LAB_PREFIX = "/home/seatrial/seatrial"


def seconds(action: Callable[[], object]) -> float:
    """Return the wall time of an action."""
    started = time.monotonic()
    action()
    return time.monotonic() - started


def python_s(program: str) -> float:
    """Return the CPU time of a program in Python, the best of 3."""
    command = [sys.executable, "-c", program]
    return min(watched(command, paths.home()).cpu_s for _ in range(3))


class Bench:
    """The measurements, in the order that makes each of them possible."""

    def __init__(self) -> None:
        self.home = paths.home()
        self.table = Table("what", "measured", "target")
        self.tables = [self.table]

    def play(self, name: str, *options: str, nodes: int = 4) -> float:
        """Return the wall time of a playbook on the lab."""
        os.environ["LAB_NODES"] = str(nodes)
        log = self.home / "build" / "log" / f"bench-{name}.log"
        return seconds(lambda: playbook(self.home, "lab", name, log, *options))

    def row(self, subject: str, measured: str, target: str) -> None:
        """Add a row."""
        self.table.add_row(subject, measured, target)

    def lab(self) -> None:
        """Measure image, up and down of labs of 4 and 8 nodes."""
        down = ("-e", "lab_state=absent")
        self.play("lab", *down)
        shutil.rmtree(CACHE, ignore_errors=True)
        with_image = self.play("lab")
        downs = [self.play("lab", *down)]
        up = self.play("lab")
        again = self.play("lab")
        downs.append(self.play("lab", *down))
        self.row("base image", f"{with_image - up:.0f} s", "<= 120 s")
        self.row("lab of 4 up", f"{up:.1f} s", "<= 20 s")
        self.row("lab of 4 up, second time", f"{again:.1f} s", "")
        self.row("lab of 8 up", f"{self.play('lab', nodes=8):.1f} s", "<= 40 s")
        downs.append(self.play("lab", *down, nodes=8))
        self.row("down, slowest of 3", f"{max(downs):.1f} s", "<= 5 s")

    def provision(self) -> None:
        """Measure the first and second run of cluster.yml and site.yml."""
        self.play("lab")
        for which, target in (("first", "<= 150 s"), ("second", "<= 60 s")):
            cluster, site = self.play("cluster"), self.play("site")
            self.row(
                f"cluster + site, {which} run",
                f"{cluster:.0f} s + {site:.0f} s = {cluster + site:.0f} s",
                target,
            )

    def accept(self) -> None:
        """`seatrial accept` on the provisioned lab, and from no lab and no image."""
        command = ["seatrial", "accept"]

        def run() -> None:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

        later = seconds(run)
        self.play("lab", "-e", "lab_state=absent")
        shutil.rmtree(CACHE, ignore_errors=True)
        first = seconds(run)
        self.row("make accept, first (tools installed)", minutes(first), "<= 15 min")
        self.row("make accept, later", minutes(later), "<= 8 min")

    def campaign(self) -> None:
        """Measure overhead and report of the last clean acceptance run."""
        path = clean_run(self.home)
        run, judgement = judged(self.home, path)
        out = self.home / "build" / "bench-report"
        took = seconds(lambda: write_report(run, judgement, out, self.home))
        size = (out / "report.html").stat().st_size
        self.overhead(run)
        self.row("report", f"{size / 1e6:.2f} MB in {took:.1f} s", "<= 2 MB, <= 5 s")

    def startup(self) -> None:
        """Measure the CPU time of the slowest `--help`, and of importing click."""
        click_s = python_s("import click")
        times = {
            name: python_s(f"from seatrial.cli import main; main(['{name}', '--help'])")
            for name in main_command.list_commands(Context(main_command))
        }
        slowest = max(times, key=times.__getitem__)
        self.row(
            f"seatrial {slowest} --help, the slowest of {len(times)}",
            f"{times[slowest] / click_s:.1f} x import of click ({click_s:.2f} s)",
            "<= 5 x",
        )

    def parsers(self) -> None:
        """Measure the speed of the parsers on big outputs."""
        self.tables.append(parser_speed.table())

    def results(self) -> None:
        """Measure the speed of queries and verification, and the size of runs."""
        self.tables.append(results_speed.table())

    def imports(self) -> None:
        """Measure the speed of imports and comparisons of ReFrame's records."""
        self.tables.append(import_speed.table())

    def judge(self) -> None:
        """Measure the speed of the judge, and its share of wrong verdicts."""
        self.tables.append(judge_speed.table())

    def fabric(self) -> None:
        """Measure the comparison of a large fabric with its plan, and localisation."""
        self.tables.append(fabric_speed.table())
        self.tables.append(fabric_speed.located_table())

    def nights(self) -> None:
        """Measure the speed of a decision about a year of nights."""
        self.tables.append(nights_speed.table())

    def report(self) -> None:
        """Measure the speed and size of the report of a large machine."""
        self.tables.append(report_speed.table())

    def pairs(self) -> None:
        """Measure time and memory of a sweep over all pairs of 1,024 nodes."""
        self.tables.append(pairs_memory.table())

    def compare(self) -> None:
        """Measure the speed of a comparison of two runs of many numbers."""
        self.tables.append(compare_speed.table())

    def fidelity(self) -> None:
        """Compare our numbers with those of IMB and OSU."""
        self.tables.append(fidelity.table())

    def schedule(self) -> None:
        """Measure the tournament of 10,000 nodes."""
        program = fidelity.build("openmpi", "bench_tournament") / "bench_tournament"
        done = subprocess.run(
            [program, "10000"], check=True, capture_output=True, text=True
        )
        answer = json.loads(done.stdout)
        self.row(
            f"schedule of 10,000 nodes, {answer['pairs']:,} pairs",
            f"{answer['time_s']:.2f} s, {answer['peak_memory_mib']:.1f} MiB",
            "<= 1 s, <= 100 MiB",
        )

    def audit(self) -> None:
        """Measure an audit of the lab of 4, and one of 1,000 recorded nodes."""
        text = (self.home / "tests/data/hardware/node.txt").read_text("utf-8")
        names = [f"cn{number:04}" for number in range(1, 1001)]
        raw = {name: text.replace("ABC1234", name) for name in names}
        with tempfile.TemporaryDirectory() as folder:
            save(Path(folder), Collected({"cpu": names}, raw))
            command = ["seatrial", "audit", "lab", "--raw", folder]
            recorded = watched(command, self.home).wall_s
        for name in ("lab", "cluster", "site"):
            self.play(name)
        live = watched(["seatrial", "audit", "lab"], self.home).wall_s
        self.row("audit of the lab of 4", f"{live:.1f} s", "<= 5 s")
        self.row("audit of 1,000 recorded nodes", f"{recorded:.1f} s", "<= 5 s")

    def catalogue(self) -> None:
        """Measure listing and dry runs of all checks on 1,000 nodes."""
        with tempfile.TemporaryDirectory() as folder:
            settings = Path(folder, "settings.json")
            settings.write_text(json.dumps(large_system(self.home, 1000)))
            checks = paths.checks_dir(self.home)
            command = reframe_command(settings, "sample", checks)
            spent = [
                watched([*command, *options, "--prefix", folder], self.home)
                for options in (["-lC"], ["--dry-run"])
            ]
        self.row(
            "catalogue of 1,000 nodes listed and dry-run",
            " + ".join(f"{cost.wall_s:.1f}" for cost in spent)
            + f" s ({sum(cost.cpu_s for cost in spent):.1f} s of CPU), "
            f"{max(cost.memory_mib for cost in spent):.0f} MiB",
            "<= 10 s, <= 500 MiB",
        )

    def sweep(self) -> None:
        """Measure the overhead of a round of a sweep of 8 nodes."""
        self.play("lab", "-e", "lab_state=absent")
        for name in ("lab", "cluster", "site"):
            self.play(name, nodes=8)
        remote, run_id = load_remote(self.home, "lab"), new_run_id("smoke")
        results = paths.results_dir(self.home)
        path = run_remotely(
            remote, self.home, "lab", "smoke", ("PairSweep",), run_id, results
        )
        for file in sorted(path.rglob("pairsweep.jsonl")):
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            mpi = next(row["mpi"] for row in rows if row["type"] == "run")
            cost_us = next(row for row in reversed(rows) if row["type"] == "end")[
                "round_overhead_p50_us"
            ]
            self.row(
                f"overhead of a round of 8 nodes, median, {mpi}",
                f"{cost_us / 1e3:.2f} ms",
                "<= 5 ms",
            )
        self.play("lab", "-e", "lab_state=absent", nodes=8)

    def scale(self) -> None:
        """Measure a campaign on 256 model nodes, and one on 1,024."""
        for lab in (
            scale_bench.ScaleLab(256, "functional"),
            scale_bench.ScaleLab(1024),
        ):
            for row in scale_bench.rows(lab):
                self.row(*row)

    def overhead(self, run: Run) -> None:
        """Measure the time that the suite adds to the programs."""
        for row in overhead_speed.rows_of_run(run):
            self.row(*row)
        for row in overhead_speed.rows_of_trivial_cases(LAB_PREFIX, LAB_HOME):
            self.row(*row)


@dataclass(frozen=True)
class Spent:
    """Cost of a command and its children; `memory_mib` of the largest process."""

    wall_s: float
    cpu_s: float
    memory_mib: float


def watched(command: list[str], home: Path) -> Spent:
    """Run a command, which must succeed, in the environment of ReFrame."""
    environment = reframe_environment(home, "lab")
    started = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"status {status}: {' '.join(command)}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Spent(time.monotonic() - started, cpu_s, usage.ru_maxrss / 1024)


def large_system(home: Path, nodes: int) -> dict[str, Any]:
    """Return settings of a system of many nodes, with all features of checks."""
    file = home / "tests" / "data" / "settings.json"
    settings: dict[str, Any] = json.loads(file.read_text())
    (partition,) = settings["systems"][0]["partitions"]
    partition["extras"]["nodes"] = [f"cn{i:04}" for i in range(nodes)]
    return settings


def minutes(value: float) -> str:
    """Format a duration for people."""
    return f"{int(value // 60)} min {int(value % 60)} s"


def clean_run(home: Path) -> Path:
    """Return the last acceptance run of the lab that passed."""
    folder = paths.results_dir(home) / "lab"
    for path in sorted(folder.glob("*-acceptance"), reverse=True):
        if judged(home, path)[1].verdict == "pass":
            return path
    return find_run(home, "lab/latest")


PARTS = (
    *("startup", "parsers", "results", "imports", "judge", "nights", "report", "pairs"),
    *(
        "fabric",
        "compare",
        "fidelity",
        "schedule",
        "catalogue",
        "lab",
        "provision",
        "audit",
    ),
    *("accept", "campaign", "sweep", "scale"),
)


def main() -> None:
    """Measure the requested parts, or all, and print the tables."""
    require_root_on_debian()
    bench = Bench()
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"no part {part!r}; parts: {', '.join(PARTS)}")
        getattr(bench, part)()
    for table in bench.tables:
        Console().print(table)


if __name__ == "__main__":
    main()
