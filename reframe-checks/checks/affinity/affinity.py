# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""Placement of ranks and threads, reported from inside, by our own program."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable

from seatrial.checks.base import Tag, cores_of
from seatrial.checks.job_steps import Step, SteppedCheck
from seatrial.checks.placed_threads import Shape, violations
from seatrial.model.records import Sample
from seatrial.parsers.affinity import groups, parse_affinity
from seatrial.parsers.errors import ParseError

VIOLATIONS_FILE = "violations.txt"
"""Each violation: node, rank, thread, expected and seen CPUs."""

_NUMA = "seatrial_numa"
_COUNT_NUMA = "cat /sys/devices/system/node/node*/cpulist 2>/dev/null | grep -c ."


@dataclass(frozen=True)
class HybridStep(Step):
    """A step whose ranks have `cores` cores each; both may be words of the shell."""

    ranks: str = ""
    cores: str = ""

    def srun_options(self):
        """Return the options of srun."""
        tasks = f"--ntasks=$(({self.num_nodes} * {self.ranks}))"
        per_node = f"--ntasks-per-node=$(({self.ranks}))"
        return f"--nodes={self.num_nodes} {tasks} {per_node} {self.options}"


@rfm.simple_test
class HybridAffinity(SteppedCheck):
    """Do ranks and their threads run on the cores that were asked for?

    If two threads share a core, or the threads of a rank are spread over sockets, a
    program runs at a fraction of its speed, without an error. The check runs our
    program affinity with one rank per node, per socket, per NUMA node and per core, and
    with threads on the other cores (`srun --cpus-per-task --cpu-bind=cores`,
    OMP_PLACES=cores, OMP_PROC_BIND=close). Each thread reads the CPUs that it may use,
    and notes the CPUs on which it runs for `milliseconds`.

    `threads_placed` is the share of the threads of a node that have a core of their
    own, among the cores of their rank. `violations.txt` of the case names the others.
    Without a binding (`binding: none`, or nodes that share one machine) the check only
    measures `threads_there`: the share of threads that run on CPUs that they may use.
    """

    milliseconds = variable(int, value=200)

    descr = "placement of ranks and threads, seen from inside"
    tool = "affinity, srun --cpu-bind"
    experiments = ()
    typical_s = 5
    step_s = 60
    ppn = 0
    valid_prog_environs = ["+affinity"]
    reference_file = "affinity.yaml"
    tags = {Tag.COMPUTE}
    judged = ["threads_there"]
    judged_if_there = ["threads_placed"]

    @run_after("setup")
    def choose_binding(self):
        """Find out whether a binding is asked for; skip stacks that use mpirun."""
        stack, node_class = self.current_environ, self.current_partition
        self.skip_if(
            "mpirun" in stack.extras,
            f"ranks of {stack.name} are started by mpirun: bind them by srun_mpi",
        )
        binding = stack.extras.get("binding") or node_class.extras.get("binding")
        self.unbound = ""
        if binding == "none":
            self.unbound = "the inventory says binding: none"
        elif not binding and node_class.extras.get("demonstration"):
            self.unbound = "nodes share one machine, and the inventory has no binding"
        if not self.unbound:
            self.judged = [*self.judged, *self.judged_if_there]

    @run_before("run")
    def count_numa_nodes(self):
        """Count the NUMA nodes in the job; print a note if no binding is asked for."""
        said = f"no binding is asked for: {self.unbound}"
        self.prerun_cmds = [
            *self.prerun_cmds,
            *([f"echo '# {said}'"] if self.unbound else []),
            f"export {_NUMA}=$({_COUNT_NUMA})",
            f"[ ${_NUMA} -gt 0 ] || {_NUMA}=1",
        ]
        self.keep_files = [*self.keep_files, VIOLATIONS_FILE]

    def steps(self):
        """Return a step for one rank per node, socket, NUMA node and core."""
        cores = cores_of(self.current_partition)
        sockets = self.current_partition.processor.num_sockets or 1
        numbers = {"node": 1, "socket": sockets, "numa": f"${_NUMA}", "core": cores}
        return [self.step(name, ranks, cores) for name, ranks in numbers.items()]

    def step(self, name, ranks, cores):
        """Return the step of a shape; `ranks` of each node may be a shell variable."""
        threads = f"$(({cores} / {ranks}))"
        per_core = self.current_partition.processor.num_cpus_per_core or 1
        binding = variables = ""
        if not self.unbound:
            cpus = f"--cpus-per-task=$(({cores} / {ranks} * {per_core}))"
            binding = f"{cpus} --cpu-bind=cores --distribution=block:block"
            variables = " OMP_PLACES=cores OMP_PROC_BIND=close"
        return HybridStep(
            name,
            f"affinity --time {self.milliseconds} --json",
            self.num_nodes,
            1,
            partial(self.read, name, cores),
            options=binding,
            prefix=f"env OMP_NUM_THREADS={threads}{variables}",
            ranks=str(ranks),
            cores=threads,
        )

    def read(self, name, cores, output):
        """Return the share of threads in place on each node, of one shape."""
        seen = parse_affinity(output.text)
        if seen.run.nodes != self.num_nodes:
            raise ParseError(0, f"{seen.run.nodes} nodes, expected {self.num_nodes}")
        sockets = self.current_partition.processor.num_sockets or 1
        numa = max(len(groups(node.numa)) for node in seen.nodes.values()) or 1
        ranks = {"node": 1, "socket": sockets, "numa": numa, "core": cores}[name]
        shape = Shape(ranks, cores // ranks, not self.unbound)
        faults = violations(seen, shape)
        with Path(self.stagedir, VIOLATIONS_FILE).open("a") as file:
            file.writelines(f"{name}: {fault}\n" for fault in faults)
        return _samples(seen, faults, shape)

    def extract(self, text):
        """Return the share of each node, over all shapes."""
        Path(self.stagedir, VIOLATIONS_FILE).write_text("")
        threads = {}
        for sample in super().extract(text):
            of_node = threads.setdefault((sample.metric, sample.node), Counter())
            of_node["good"] += sample.value
            of_node["all"] += sample.n
        return [
            Sample(metric, 100 * of["good"] / of["all"], node=node, n=of["all"])
            for (metric, node), of in threads.items()
        ]


def _samples(seen, faults, shape):
    """Return the number of threads of each node that are in place, of all."""
    expected = shape.ranks * shape.threads
    rows = Counter(row.node for row in seen.threads)
    bad = {node: set() for node in seen.nodes}
    for fault in faults:
        threads = range(shape.threads) if fault.thread is None else [fault.thread]
        bad[fault.node].update((fault.rank, thread) for thread in threads)
    for node in seen.nodes:
        every = max(expected, rows[node])
        there = min(expected, rows[node])
        good = max(0, every - len(bad[node]))
        if shape.is_bound:
            yield Sample("threads_placed", min(there, good), node=node, n=every)
            yield Sample("threads_there", there, node=node, n=every)
        else:
            yield Sample("threads_there", min(there, good), node=node, n=every)
