"""`pairsweep`, and the same over verbs: all pairs of nodes, as JSON Lines."""

import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import nullcontext
from typing import IO

from seatrial.standins.pairsweep_file import Done, Pair, read_done, read_pairs
from seatrial.standins.rows import Value, row_text, validation
from seatrial.standins.run import Run, UsageError
from seatrial.standins.tournament import pairs_of
from seatrial.standins.verbs import OF_MPI

_OPTIONS = (
    "--min-size --max-size --iterations --warmup --time --window --windows --seed"
)
_OPTIONS += " --output --resume --pairs --rounds --retest --suspect --rails --json"
_OPTIONS += " --pair-limit --preflight --validate"
_OWN_OPTIONS = {
    "pairsweep": "--rail-variable",
    "pairsweep_verbs": "--gid-index --rdma-cm",
}
_ROW = (
    '{{"type": "pair", "mode": "{}", "status": "ok", "source": "{}", '
    '"destination": "{}", "hca": {}, "rail": {}, "round": {}, "at_once": {}, '
    '"start_time": {:.15g}, "start_spread_us": {:.15g}, "latency_min_us": {:.15g}, '
    '"latency_p50_us": {:.15g}, "latency_p99_us": {:.15g}, "latency_max_us": {:.15g}, '
    '"latency_n": {}, "bw_mb_per_s": {:.15g}, "bw_back_mb_per_s": {:.15g}, '
    '"bw_n": {}, "validation": "{}"}}\n'
)

Plan = list[tuple[int, list[Pair]]]
"""Rounds, by their numbers from 1, and the pairs of each."""


class Sweep:
    """One start of the program; `stream` takes its rows."""

    def __init__(self, run: Run, stream: IO[str]) -> None:
        run.expect(*f"{_OPTIONS} {_OWN_OPTIONS[run.program]}".split())
        self.is_verbs = run.program == "pairsweep_verbs"
        self.share = OF_MPI["write"] if self.is_verbs else 1.0
        self.run = run
        self.machine = run.machine
        self.nodes = sorted(run.job.nodes)
        if len(self.nodes) < 2:
            raise UsageError(f"{len(self.nodes)} node: pairs need at least 2")
        names = run.options.get("--rails", "")
        self.rails: list[str | None] = [*names.split(",")] if names else [None]
        self.sizes = (run.number("--min-size", 8), run.number("--max-size", 1 << 20))
        self.seed = run.number("--seed", 1)
        self.windows = run.number("--windows", 10)
        self.iterations = run.number("--iterations", 1000)
        self.validated = str(validation(run)["validation"])
        self.stream = stream
        self.all_rounds = 0
        self.measured = self.retested = self.suspects = self.rounds = 0

    def run_row(self, pairs: int, resumed: int) -> dict[str, Value]:
        """Return the row of settings, with which a run begins."""
        run = self.run
        variable = None
        if "--rails" in run.options and not self.is_verbs:
            variable = run.options.get("--rail-variable", "UCX_NET_DEVICES")
        return {
            "type": "run",
            "program": run.program,
            "version": "0.1.0",
            "commit": "model",
            "mpi": "model",
            "np": run.job.ranks,
            "nodes": len(self.nodes),
            "rounds": self.all_rounds,
            "rails": run.options.get("--rails"),
            "rail_variable": variable,
            "seed": self.seed,
            "latency_bytes": self.sizes[0],
            "bandwidth_bytes": self.sizes[1],
            "iterations": self.iterations,
            "warmup": run.number("--warmup", 20),
            "window": run.number("--window", 16),
            "windows": self.windows,
            "time_ms": run.number("--time", 200),
            "suspect_percent": run.number("--suspect", 20),
            "pairs": pairs,
            "resumed": resumed,
            "start_time": time.time(),
        }

    def plan(self) -> Plan:
        """Return the rounds that were asked for, with their numbers and pairs."""
        first, _, last = self.run.options.get("--rounds", "1:").rpartition(":")
        low, high = int(first or 1), int(last or 1 << 24)
        name = self.run.options.get("--pairs")
        wanted = None if name is None else read_pairs(name, self.nodes)
        if wanted and max(wanted.values()) > 0:
            plan: Plan = [(number, []) for number in range(1, max(wanted.values()) + 1)]
            for pair, number in wanted.items():
                plan[number - 1][1].append(pair)
        else:
            plan = [
                (number, [pair for pair in pairs if wanted is None or pair in wanted])
                for number, pairs in enumerate(pairs_of(len(self.nodes), self.seed), 1)
            ]
        self.all_rounds = len(plan)
        return [(number, pairs) for number, pairs in plan if low <= number <= high]

    def sweep_rail(self, rail: int, done: Done, plan: Plan) -> None:
        """Measure the rounds of a rail, then its suspects alone."""
        latencies, bandwidths = array("d"), array("d")
        keys: list[tuple[int, int, int]] = []
        for number, pairs in plan:
            pending = [pair for pair in pairs if (*pair, rail) not in done.numbers]
            slowest_s = 0.0
            for pair in pending:
                latency, bandwidth, seconds = self.measure(
                    "sweep", *pair, rail, number, len(pending)
                )
                latencies.append(latency)
                bandwidths.append(bandwidth)
                keys.append((*pair, number))
                slowest_s = max(slowest_s, seconds)
            self.measured += len(pending)
            self.rounds += bool(pending)
            self.run.seconds += slowest_s
            if self.machine.time_scale:
                self.stream.flush()
                self.run.wait(slowest_s)
        for pair, number in self.choose_suspects(
            latencies, bandwidths, keys, rail, done
        ):
            self.run.seconds += self.measure("quiet", *pair, rail, number, 1)[2]
            self.retested += 1

    def choose_suspects(
        self,
        latencies: "array[float]",
        bandwidths: "array[float]",
        keys: list[tuple[int, int, int]],
        rail: int,
        done: Done,
    ) -> list[tuple[tuple[int, int], int]]:
        """Return the worst pairs beyond the limit, with their rounds, worst first."""
        for (first, second, of), numbers in done.numbers.items():
            if of == rail and numbers is not None:
                latencies.append(numbers[0])
                bandwidths.append(numbers[1])
                keys.append((first, second, numbers[2]))
        if not keys:
            return []
        share = self.run.number("--suspect", 20) / 100
        usual_latency = sorted(latencies)[len(latencies) // 2]
        usual_bandwidth = sorted(bandwidths)[len(bandwidths) // 2]
        suspects = []
        for latency, bandwidth, key in zip(latencies, bandwidths, keys, strict=True):
            by_latency, by_bandwidth = (
                latency / usual_latency,
                usual_bandwidth / bandwidth,
            )
            if by_latency > 1 + share or bandwidth < usual_bandwidth * (1 - share):
                suspects.append((max(by_latency, by_bandwidth), key))
        self.suspects += len(suspects)
        suspects.sort(reverse=True)
        most = self.run.number("--retest", 1000)
        again = [key for _, key in suspects[:most]]
        return [
            ((first, second), number)
            for first, second, number in again
            if (first, second, rail) not in done.retested
        ]

    def measure(
        self, mode: str, first: int, second: int, rail: int, number: int, at_once: int
    ) -> tuple[float, float, float]:
        """Write the row of a pair; return latency, bandwidth and time in s."""
        machine, (small, large) = self.machine, self.sizes
        source, destination = self.nodes[first], self.nodes[second]
        latency, bandwidth = machine.pair(source, destination)
        latency = (self.share * latency + (small - 8) / bandwidth) * machine.noise()
        there, back = bandwidth * machine.noise(), bandwidth * machine.noise()
        late = latency * (1.1 + machine.jitter(0.1))
        name = self.rails[rail]
        self.stream.write(
            _ROW.format(
                mode,
                source,
                destination,
                "null" if name is None else f'"{name}"',
                rail,
                number,
                at_once,
                time.time(),
                machine.jitter(5),
                latency * 0.97,
                latency,
                late,
                late * (1 + machine.jitter(2)),
                self.iterations,
                there,
                back,
                self.windows,
                self.validated,
            )
        )
        window = self.run.number("--window", 16)
        stream_us = self.windows * window * large * (1 / there + 1 / back)
        return (
            latency,
            min(there, back),
            (2 * self.iterations * latency + stream_us) / 1e6,
        )


def sweep(run: Run) -> Iterator[str]:
    """Write a sweep to its file, or to standard output."""
    resume, output = run.options.get("--resume"), run.options.get("--output")
    name = resume or output
    opened = open(name, "a", encoding="utf-8") if name else nullcontext(sys.stdout)
    with opened as stream:
        this = Sweep(run, stream)
        done = read_done(resume, this.nodes) if resume else Done()
        plan = this.plan()
        keys = (
            (*pair, rail)
            for rail in range(len(this.rails))
            for _, pairs in plan
            for pair in pairs
        )
        resumed = total = 0
        for key in keys:
            total += 1
            resumed += key in done.numbers
        stream.write(f"{row_text(this.run_row(total - resumed, resumed))}\n")
        for rail in range(len(this.rails)):
            this.sweep_rail(rail, done, plan[: len(plan) // 2] if run.dying else plan)
        if not run.dying:
            end: dict[str, Value] = {
                "type": "end",
                "measured": this.measured,
                "suspects": this.suspects,
                "retested": this.retested,
                "rounds_made": this.rounds,
                "round_overhead_p50_us": 1e3 if this.rounds else None,
                "elapsed_s": run.seconds,
            }
            stream.write(f"{row_text(end)}\n")
    run.seconds = 0.0  # it has waited already
    return iter(())


PROGRAMS = dict.fromkeys(_OWN_OPTIONS, sweep)
