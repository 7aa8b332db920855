# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Every node by itself, in one job: HPCC, memlat, sensors and error counters."""

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError

from seatrial.checks.base import SeatrialCheck, Tag
from seatrial.checks.job_steps import conduct
from seatrial.checks.nodesweep.samples import samples_of, verify_sizes
from seatrial.checks.time_limits import start_s
from seatrial.parsers.errors import ParseError
from seatrial.parsers.nodesweep import NodeSweep as Sweep
from seatrial.parsers.nodesweep import parse_nodesweep


@rfm.simple_test
class NodeSweep(SeatrialCheck):
    """Which node is slow by itself, which is hot, and which has faulty memory?

    All nodes run the same at the same time, each by itself: memlat on one core of
    every socket, HPCC on all cores, fixedwork on all cores, and where there are several
    sockets HPCC on each of them. `mem_bw` (STREAM triad), `dgemm` and `hpl` are sums
    over a node, `latency` and `bw` are MPI's within it; `socket_mem_bw`,
    `socket_dgemm` and `socket_hpl` are of one socket. `mem_latency` is that of memory,
    and over the size of the working set that of the caches. Clocks are read before the
    load and under it, temperatures under it; error counters count what the load added.
    A number that a node does not offer is missing; the output has the reason.

    Small problems end before a CPU quota or heat slows them. So fixedwork repeats the
    same work on all cores for `fixedwork_s` seconds: `fixed_work` is the rate of the
    node, `slowest_core` that of its slowest core, `work_kept` the rate at the end over
    the rate at the start, `cpu_share` the CPU time over the elapsed time, of the core
    with the least. `quota_stops` counts the periods that a CPU quota cut short.

    HPL fills a tenth of the memory: enough to distinguish nodes within minutes. For the
    rate of a contract, set `memory_percent` to 80. A program that hangs, dies or fails
    on a node shows in `programs_passed`, and does not disturb the other nodes.
    """

    n = variable(int, value=0)
    """Order of HPL's matrix; 0: as large as `memory_percent` allows."""
    memory_percent = variable(float, value=10.0)
    block = variable(int, value=192)
    memlat_mib = variable(int, value=1024)
    """Largest working set of memlat: four times any cache, or more."""
    quiet = variable(int, value=5)
    """Seconds of readings before the load."""
    start_limit = variable(int, value=60)
    memlat_limit = variable(int, value=300)
    hpcc_limit = variable(int, value=3600)
    """Seconds for each run of a program, then it hangs."""
    fixedwork_s = variable(int, value=20)
    """Seconds of fixed work; at least 2, since a CPU quota has periods of up to 1 s."""

    descr = "memory, compute, clocks and errors of every node by itself"
    tool = "HPCC, memlat and fixedwork on all nodes at once; sensors and counters"
    experiments = ()
    typical_s = 300
    valid_prog_environs = ["+hpcc"]
    reference_file = "nodesweep.yaml"
    executable = "hpcc"
    output_file = "nodesweep.jsonl"
    env_vars = {"OMP_NUM_THREADS": 1}
    tags = {Tag.COMPUTE}
    judged = ["mem_bw", "dgemm", "hpl", "programs_passed"]
    judged_if_there = [
        "mem_latency",
        "fixed_work",
        "throttle_events",
        "quota_stops",
        "ecc_uncorrected",
    ]

    @run_after("setup")
    def demonstrate(self):
        """Run only a short test if all nodes share one machine."""
        extras = self.current_partition.extras
        self.is_demonstration = bool(extras.get("demonstration"))
        if self.is_demonstration:
            self.n = self.n or 1000
            self.memlat_mib = min(self.memlat_mib, 128)
            self.fixedwork_s = min(self.fixedwork_s, 2)

    def programs_s(self):
        """Add up the limits of the programs, which run one after the other."""
        sockets = self.current_partition.processor.num_sockets or 2
        hpcc_runs = 1 if sockets == 1 else 1 + sockets
        limits = [
            self.start_limit + self.quiet,
            (self.memlat_limit + self.start_limit) * sockets,
            self.hpcc_limit * hpcc_runs,
            60 + 4 * self.fixedwork_s + self.start_limit,
        ]
        starts = 1 + sockets + hpcc_runs + 1
        return sum(limits) + starts * start_s(self.num_nodes)

    @run_before("run")
    def start_sweep(self):
        """Run seatrial.checks.nodesweep, which starts the programs on every node."""
        memlat = "--memlat 'memlat --huge-pages transparent'"
        if "memlat" not in self.current_environ.features:
            memlat = f"--no-memlat '{self.current_environ.name} was built without it'"
        fixedwork = "--fixedwork fixedwork"
        if "fixedwork" not in self.current_environ.features:
            reason = f"{self.current_environ.name} was built without it"
            fixedwork = f"--no-fixedwork '{reason}'"
        options = [
            f"--n {self.n}",
            f"--memory-percent {self.memory_percent}",
            f"--block {self.block}",
            f"--quiet {self.quiet}",
            memlat,
            f"--memlat-sizes {1 << 14}:{self.memlat_mib << 20}",
            f"{fixedwork} --fixedwork-ms {1000 * self.fixedwork_s}",
            f"--start-limit {self.start_limit}",
            f"--memlat-limit {self.memlat_limit}",
            f"--hpcc-limit {self.hpcc_limit}",
        ]
        conduct(self, "seatrial.checks.nodesweep", options)
        self.prerun_cmds = ["rm -rf nodes"]
        self.keep_files = ["nodes"]

    def extract(self, text):
        """Return the numbers of every node, and the count of its passed programs."""
        sweep = parse_nodesweep(text)
        sweep.verify_complete(self.nodes)
        self.verify_run(sweep)
        self.faults = [event.text for event in sweep.events]
        samples = samples_of(sweep, self.nodes)
        metrics = {sample.metric for sample in samples if not sample.parameters}
        offered = [metric for metric in self.judged_if_there if metric in metrics]
        self.judged = [*self.judged, *offered]
        return samples

    def verify_run(self, sweep: Sweep):
        """Raise ParseError if the run has other settings, or is too small."""
        run = sweep.run
        settings = [run.n, run.memory_percent, run.block, run.memlat_max_bytes]
        expected = [self.n, self.memory_percent, self.block, self.memlat_mib << 20]
        if run.no_fixedwork is None:
            settings.append(run.fixedwork_ms)
            expected.append(1000 * self.fixedwork_s)
        if settings != expected:
            raise ParseError(0, f"a run of {settings}, expected {expected}")
        if not self.is_demonstration:
            verify_sizes(sweep)

    @run_before("performance")
    def name_faults(self):
        """Fail with the names of faulty nodes, after their numbers were recorded."""
        if not self.is_dry_run() and self.faults:
            raise PerformanceError("; ".join(self.faults))
