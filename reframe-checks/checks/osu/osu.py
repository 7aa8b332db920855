# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""OSU Micro-Benchmarks between two nodes, and within one."""

import re
from dataclasses import replace

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, variable

from seatrial.checks.base import Tag, cores_of
from seatrial.checks.node_numbers import doubled
from seatrial.checks.osu import OsuCheck, OsuRun
from seatrial.parsers.errors import ParseError

MIB = 1 << 20
KIB = 1 << 10
CLOCK_FILE = "/sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_cur_freq"
"""The kernel's clock of a CPU in kHz, unless the inventory names another file."""


class OsuPair(OsuCheck):
    """Two ranks, on two nodes or on one."""

    tags = {Tag.NETWORK}
    step_s = 300
    needs_nodes = 1
    most_nodes = 2

    @run_after("init")
    def choose_nodes(self):
        """Choose two nodes, or one for both ranks."""
        if self.between == "nodes":
            self.needs_nodes = 2
        else:
            self.most_nodes, self.ppn = 1, 2

    def pair(self, program, largest, **more):
        """Return a run on the two ranks."""
        return OsuRun(program, largest, self.num_nodes, self.ppn, **more)


@rfm.simple_test
class OsuLatency(OsuPair):
    """What does one message cost, between nodes and between cores of a node?

    `latency` is half a round trip of osu_latency: 8 B shows the cost of a message, 4
    MiB that of a transfer. Two ranks on one node, between cores, measure shared memory.
    """

    between = parameter(["nodes", "cores"])

    descr = "osu_latency of two ranks"
    tool = "osu_latency"
    experiments = ("E18", "E23", "E29", "E30", "E41")
    typical_s = 15
    judged = ["latency_8B", "latency_4MiB"]

    def runs(self):
        """Return the run up to 4 MiB."""
        return [self.pair("osu_latency", 4 * MIB)]


@rfm.simple_test
class OsuBandwidth(OsuPair):
    """What does a link carry in one direction, and in both at once?

    Windows of 64 messages; `bibw` counts the bytes of both directions. 4 MiB is far
    beyond every protocol's switch, 64 KiB near it. With `buffers` multiple every
    message of a window has a separate buffer (-b multiple), so messages beyond the size
    of the caches come from memory.
    """

    between = parameter(["nodes", "cores"])
    buffers = parameter(["single", "multiple"])

    descr = "osu_bw and osu_bibw of two ranks"
    tool = "osu_bw, osu_bibw"
    experiments = ("E19", "E20", "E24", "E28", "E30", "E42", "E43")
    typical_s = 30
    judged = ["bw_64KiB", "bw_4MiB", "bibw_4MiB"]

    def runs(self):
        """Return the runs of both up to 4 MiB."""
        options = {"window": 64}
        if self.buffers == "multiple":
            options["options"] = "-b multiple"
        return [
            self.pair("osu_bw", 4 * MIB, **options),
            self.pair("osu_bibw", 4 * MIB, bandwidth="bibw", **options),
        ]


@rfm.simple_test
class OsuOneSided(OsuPair):
    """What does MPI_Put and MPI_Get cost between two nodes, and what does Put carry?

    Windows of MPI_Win_allocate, completed by MPI_Win_flush, as OSU does by default. A
    Get waits for its data, so its latency is a whole round trip. OSU cannot validate
    these benchmarks.
    """

    between = "nodes"

    descr = "osu_put_latency, osu_get_latency and osu_put_bw between two nodes"
    tool = "osu_put_latency, osu_get_latency, osu_put_bw"
    experiments = ()
    typical_s = 15
    judged = ["put_latency_8B", "get_latency_8B", "put_bw_4MiB"]

    def runs(self):
        """Return the runs: latency up to 64 KiB, bandwidth up to 4 MiB."""
        return [
            self.pair("osu_put_latency", 64 * KIB, latency="put_latency"),
            self.pair("osu_get_latency", 64 * KIB, latency="get_latency"),
            self.pair("osu_put_bw", 4 * MIB, bandwidth="put_bw", window=64),
        ]


class OsuPairs(OsuCheck):
    """Pairs of ranks between two nodes: one on every core, and fewer.

    OSU pairs the ranks of the first node with those of the second, so ranks must fill
    a node before the next: placement is block. Numbers of all cores are judged; those
    of 1, 2, 4 and so on pairs have the parameter `pairs`.
    """

    most_ranks = variable(int, value=256)
    """Maximum of ranks per node."""

    tags = {Tag.NETWORK}
    needs_nodes = 2
    most_nodes = 2
    placement = "block"

    @run_after("setup")
    def place(self):
        """Place a rank on every core, as in ReFrame's settings."""
        cores = cores_of(self.current_partition)
        self.ppn = min(cores, self.most_ranks)
        super().place()

    def pairs(self, program, **more):
        """Return the runs with 1, 2, 4 and so on pairs up to all cores."""
        return [
            OsuRun(
                program,
                64 * KIB,
                2,
                pairs,
                parameters={} if pairs == self.ppn else {"pairs": pairs},
                **more,
            )
            for pairs in doubled(self.ppn)
        ]


@rfm.simple_test
class OsuMessageRate(OsuPairs):
    """How many messages per second do two nodes exchange, by the number of pairs?

    `msg_rate` and `bw` are those of all pairs together, in one direction. A window of
    64 messages is OSU's default; with 512, adapter and library have more messages than
    their queues hold. Many pairs must not be slower than one.
    """

    window = parameter([64, 512])

    descr = "osu_mbw_mr of 1, 2, 4 and so on pairs up to all cores"
    tool = "osu_mbw_mr"
    experiments = ("E25", "E27", "E28")
    typical_s = 60
    judged = ["msg_rate_8B", "bw_64KiB"]

    def runs(self):
        """Return the runs with this window."""
        return self.pairs("osu_mbw_mr", window=self.window)


@rfm.simple_test
class OsuMultiLatency(OsuPairs):
    """What does a message cost when all cores of a node send theirs at once?

    `latency` is half a round trip, the mean over all pairs. Its ratio to the
    latency of one pair shows the sharing of adapters.
    """

    descr = "osu_multi_lat of 1, 2, 4 and so on pairs up to all cores"
    tool = "osu_multi_lat"
    experiments = ()
    typical_s = 60
    judged = ["latency_8B", "latency_64KiB"]

    def runs(self):
        """Return the runs up to 64 KiB."""
        return self.pairs("osu_multi_lat")


@rfm.simple_test
class OsuClock(OsuPairs):
    """Does the message rate follow the clock of the CPU?

    osu_mbw_mr with all cores and windows of 512, at each of the partition's
    `cpu_frequencies`, set by `srun --cpu-freq`. Every rank prints its clock at its
    start: a deviation of more than `tolerance_percent` fails the case, so no rate has a
    wrong clock. The rate at the highest clock is judged; the others have the parameter
    `clock_khz`. The case is skipped if the partition names no frequencies, because its
    nodes do not let Slurm set them.
    """

    tolerance_percent = variable(float, value=3.0)
    frequencies = variable(typ.List[int], value=[])
    """In kHz; by default those of the partition."""

    descr = "osu_mbw_mr at several clock frequencies"
    tool = "osu_mbw_mr, srun --cpu-freq"
    experiments = ("E26",)
    typical_s = 60
    judged = ["msg_rate_8B"]

    @run_after("setup")
    def take_frequencies(self):
        """Read the frequencies that Slurm may set from the inventory."""
        extras = self.current_partition.extras
        self.clock_file = extras.get("cpu_clock_file", CLOCK_FILE)
        named = extras.get("cpu_frequencies", [])
        self.frequencies = sorted(self.frequencies or named)
        self.skip_if(
            not self.frequencies,
            "node_classes names no cpu_frequencies of the class "
            f"{self.current_partition.name}: Slurm may not set the clock of its nodes",
        )
        self.skip_if(
            "mpirun" in self.current_environ.extras,
            f"{self.current_environ.name} is started by mpirun, which cannot set the "
            "clock as `srun --cpu-freq` does",
        )

    def runs(self):
        """Return a run with messages of up to 16 B for every clock."""
        return [
            OsuRun(
                "osu_mbw_mr",
                16,
                2,
                self.ppn,
                window=512,
                parameters={} if khz == self.frequencies[-1] else {"clock_khz": khz},
            )
            for khz in self.frequencies
        ]

    def clock_of(self, run):
        """Return the clock of a run in kHz."""
        return run.parameters.get("clock_khz", self.frequencies[-1])

    def timed_step(self, run):
        """Set the clock by Slurm; every rank prints its clock before it starts OSU."""
        step = super().timed_step(run)
        print_clock = (
            "cpu=$(ps -o psr= -p $$); cpu=${cpu// }; "
            f'read -r clock <"{self.clock_file}"; '
            'echo "# clock ${SLURMD_NODENAME:-$(hostname -s)} $clock"; exec'
        )
        return replace(
            step,
            command=f"bash -c '{print_clock} {step.command}'",
            options=f"--cpu-freq={self.clock_of(run)}",
        )

    def read(self, run, output):
        """Return the numbers of a step, after a check of the clock of each rank."""
        clocks = re.findall(r"^# clock (\S+) (\d+)\n", output.text, re.MULTILINE)
        ranks = run.num_nodes * run.ppn
        if len(clocks) != ranks:
            raise ParseError(0, f"{len(clocks)} of {ranks} ranks print their clock")
        wanted = self.clock_of(run)
        for node, clock in clocks:
            if abs(int(clock) / wanted - 1) * 100 > self.tolerance_percent:
                raise ParseError(0, f"{node}: clock {clock} kHz, asked for {wanted}")
        return super().read(run, output)
