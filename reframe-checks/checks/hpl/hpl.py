# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""HPL: the whole class of nodes, each node by itself, each rack by itself."""

from statistics import median

import reframe as rfm
from reframe.core.builtins import run_after, run_before
from reframe.core.exceptions import PerformanceError

from seatrial.checks.base import Tag
from seatrial.checks.hpcc_input import hpl_input, process_grid
from seatrial.checks.hpl_load import HplLoad
from seatrial.checks.job_steps import conduct
from seatrial.checks.time_limits import start_s
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hpl import parse_hpl
from seatrial.parsers.hplsweep import HplSweep, parse_hplsweep

END_S = 60
"""Typical seconds for the end of a sweep; the time limit has four times as many."""


@rfm.simple_test
class Hpl(HplLoad):
    """Which rate does HPL reach on the whole class of nodes, and is its result right?

    All nodes solve one problem. `HPL_Tflops` is HPL's own rate. The scaled residual
    must pass, and HPL must count one test, completed and passed. `hpl_efficiency` is
    the rate over the theoretical peak of the nodes, if their class declares
    `peak_gflops`. Declare a class of all nodes for the rate of the whole machine.

    N = 1000 verifies the result in a second. For the rate, `memory_fraction` is the
    share of the memory of all nodes that the matrix takes: 0.8 leaves room for MPI and
    the system. The grid of ranks is as square as their number allows, with at most as
    many rows as columns. The program is the `xhpl` of the MPI stack: Spack's, the one
    that site.yml builds, or the vendor's, which `programs.hpl` names.
    """

    descr = "HPL on all nodes of the class"
    tool = "HPL (xhpl)"
    tags = {Tag.COMPUTE, Tag.NETWORK}
    experiments = ()
    typical_s = 10
    step_s = 600
    step_s_per_node = 0.5
    judged = ["HPL_Tflops"]
    judged_if_there = ["hpl_efficiency"]

    @run_before("run")
    def write_problem(self):
        """Write HPL.dat for this number of ranks."""
        self.write_input(hpl_input(self.n, self.block, self.num_tasks))

    def extract(self, text):
        """Return rate, efficiency and residual."""
        run = parse_hpl(text, self.n, self.block, process_grid(self.num_tasks))
        samples = [
            Sample("HPL_Tflops", run.gflops / 1e3),
            Sample("hpl_residual", run.residual),
        ]
        efficiency = self.efficiency(run.gflops, self.num_nodes)
        if efficiency is not None:
            samples.append(Sample("hpl_efficiency", efficiency))
            self.judged = [*self.judged, "hpl_efficiency"]
        return samples


class HplSweeps(HplLoad):
    """Base of checks that run HPL on several groups of nodes at once, in one job."""

    output_file = "hplsweep.jsonl"
    tags = {Tag.COMPUTE}
    experiments = ()

    def groups(self):
        """Return the nodes of each group by its name; none: each node is a group."""
        return {}

    def fill(self, room):
        """Choose the order; the job outlasts a group that hangs until its limit."""
        return super().fill(room) + END_S + room.nodes / 4

    def programs_s(self):
        """Return the limit of all groups, which run at the same time."""
        return self.run_limit_s + start_s(self.num_nodes) + self.num_nodes

    @run_before("run")
    def start_sweep(self):
        """Run seatrial.checks.hplsweep, which starts HPL on every group."""
        extras = self.current_partition.extras
        node_bytes = self.memory_fraction * extras.get("memory_mib", 0) * 2**20
        size = f"--node-bytes {node_bytes:.0f} --longest {self.longest_s}"
        options = [
            *(f"--group {name}={','.join(of)}" for name, of in self.groups().items()),
            size if self.memory_fraction else f"--n {self.n}",
            f"--ppn {self.ppn} --cores {self.cores} --block {self.block}",
            f"--limit {self.run_limit_s:.0f}",
        ]
        conduct(self, "seatrial.checks.hplsweep", options)
        self.prerun_cmds = [*self.prerun_cmds, "rm -rf groups"]
        self.keep_files = [*self.keep_files, "groups"]

    def verified(self, text) -> HplSweep:
        """Read the sweep of this case; ParseError if it is another one."""
        sweep = parse_hplsweep(text)
        if (sweep.run.ppn, sweep.run.block) != (self.ppn, self.block):
            found = f"{sweep.run.ppn} ranks per node, NB = {sweep.run.block}"
            raise ParseError(0, f"{found}, expected {self.ppn} and {self.block}")
        return sweep


@rfm.simple_test
class HplNodes(HplSweeps):
    """Which node is slow, or computes wrong, while all nodes run HPL by themselves?

    Every node solves a problem of its own, all at the same time. So heat and power are
    those of the full machine, and the network takes no part. Nodes of a class are
    alike: compare them by sameness. `hpl` is the rate of a node, `hpl_efficiency` the
    rate over the peak that its class declares. `programs_passed` is 0 for a node whose
    residual failed, or where HPL crashed or hung; such a node does not disturb others.

    Size and program are those of `Hpl`, for the memory of one node. `NodeSweep` runs
    HPCC's HPL with a tenth of the memory in minutes. `HplNodes` runs the program of the
    contract, for as long as the memory takes.
    """

    descr = "HPL on every node by itself, all at once"
    tool = "HPL (xhpl), one for each node"
    typical_s = 15
    judged = ["hpl", "programs_passed"]
    judged_if_there = ["hpl_efficiency"]

    def nodes_of_matrix(self, room):
        """Each node has a matrix of its own."""
        return 1

    def extract(self, text):
        """Return the rate of every node; failures are named after the numbers."""
        sweep = self.verified(text)
        sweep.verify_groups({node: [node] for node in self.nodes})
        if wrong := [row.group for row in sweep.results if row.n != self.n]:
            raise ParseError(0, f"{wrong[0]}: expected N = {self.n}")
        self.faults = [row.text for row in sweep.failures]
        samples = []
        for row in sweep.results:
            place = {"node": row.group, "start_time": row.start_time}
            samples += [
                Sample("hpl", row.gflops, **place),
                Sample("hpl_residual", row.residual, **place),
                Sample("programs_passed", 100.0, **place),
            ]
            efficiency = self.efficiency(row.gflops, 1)
            if efficiency is not None:
                samples.append(Sample("hpl_efficiency", efficiency, **place))
        if not samples:
            raise ParseError(0, f"HPL passed on no node; {self.faults[0]}")
        if any(sample.metric == "hpl_efficiency" for sample in samples):
            self.judged = [*self.judged, "hpl_efficiency"]
        failed = {row.group for row in sweep.failures}
        return samples + [Sample("programs_passed", 0.0, node=name) for name in failed]

    @run_before("performance")
    def name_faults(self):
        """Fail with the names of faulty nodes, after their numbers were recorded."""
        if not self.is_dry_run() and self.faults:
            raise PerformanceError("; ".join(self.faults))


@rfm.simple_test
class HplRacks(HplSweeps):
    """Which rack is slower than the others while each runs HPL by itself?

    The nodes of each rack solve one problem, all racks at the same time. So cooling and
    power of each rack are under full load. Racks are those that the class names, or its
    leaf switches if it names none. A class needs two racks or more. `slowest_rack` is
    the rate of the slowest rack, divided by its nodes; `rack_evenness` is that over the
    median of all racks. So racks of different sizes can be compared. `HPL_Tflops` and
    `hpl_efficiency` of each rack have the parameter `rack`; they have no limits. A rack
    without a result fails the case.

    Size and program are those of `Hpl`, for the memory of one rack.
    """

    descr = "HPL on every rack by itself, all at once"
    tool = "HPL (xhpl), one for each rack"
    tags = {Tag.COMPUTE, Tag.NETWORK}
    typical_s = 15
    judged = ["slowest_rack", "rack_evenness"]

    def groups(self):
        """Return the racks of the class, or its leafs."""
        return self.current_partition.extras.get("racks", {})

    @run_after("setup")
    def need_racks(self):
        """Skip a class without two racks."""
        count = len(self.groups())
        self.skip_if(
            count < 2 and self.recording is None,
            f"class {self.current_partition.name} names {count} racks, expected two or "
            "more: add racks (or leafs) to node_classes",
        )

    def nodes_of_matrix(self, room):
        """Return the nodes of the largest rack."""
        return max([1, *map(len, self.groups().values())])

    def extract(self, text):
        """Return the rates of all racks, and how the slowest compares."""
        sweep = self.verified(text)
        if sweep.failures:
            raise ParseError(0, "; ".join(row.text for row in sweep.failures))
        racks = {row.group: row for row in sweep.results}
        strangers = {*" ".join(row.nodes for row in racks.values()).split()}
        if others := sorted(strangers.difference(self.nodes)):
            raise ParseError(0, f"{others[0]} is none of the nodes of the job")
        if len(racks) < 2:
            raise ParseError(0, f"{len(racks)} rack with nodes, expected two or more")
        rates = {
            name: row.gflops / len(row.nodes.split()) for name, row in racks.items()
        }
        slowest = min(rates, key=lambda name: rates[name])
        evenness = 100 * rates[slowest] / median(rates.values())
        return [
            Sample("slowest_rack", rates[slowest], statistic="min", n=len(racks)),
            Sample("rack_evenness", evenness, statistic="min", n=len(racks)),
            *(sample for row in racks.values() for sample in self.of_rack(row)),
        ]

    def of_rack(self, row):
        """Return the numbers of one rack."""
        place = {"parameters": {"rack": row.group}, "start_time": row.start_time}
        yield Sample("HPL_Tflops", row.gflops / 1e3, **place)
        yield Sample("hpl_residual", row.residual, **place)
        efficiency = self.efficiency(row.gflops, len(row.nodes.split()))
        if efficiency is not None:
            yield Sample("hpl_efficiency", efficiency, **place)
