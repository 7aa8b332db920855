"""`ior` and `mdtest` on the file system of the model machine; nothing is written."""

import json
from collections.abc import Iterator

from seatrial.standins.run import Run, UsageError

_MIB = 1 << 20
_NODE_SHARE = 0.8
"""Share of a node's bandwidth that the node can write or read."""
_MB_PER_S = 100_000.0
"""Bandwidth of the servers for all nodes together."""
_SPEEDS = {"write": 1.0, "read": 1.2}
_OPERATIONS = {
    "Directory creation": 20_000.0,
    "Directory stat": 90_000.0,
    "Directory rename": 8_000.0,
    "Directory removal": 18_000.0,
    "File creation": 15_000.0,
    "File stat": 100_000.0,
    "File read": 40_000.0,
    "File removal": 22_000.0,
    "Tree creation": 1_500.0,
    "Tree removal": 1_200.0,
}
"""Operations of all nodes per second."""
_SUMMARY = """\
-- started at 11/26/2026 12:00:00 --

mdtest-4.0.0 was launched with {ranks} total task(s) on {nodes} node(s)
Command line used: mdtest of a model of a machine: nothing was measured
{ranks} tasks, {items} files/directories

SUMMARY rate: (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
"""


def ior(run: Run) -> Iterator[str]:
    """Print the results of a run with one repetition, as JSON of IOR 4.0."""
    run.expect(*"-a -C -G -b -t -F -o -O -w -r -e -k -R".split())  # noqa: SIM905
    if run.options.get("-O") != "summaryFormat=JSON":
        raise UsageError("expected -O summaryFormat=JSON")
    job, block, transfer = run.job, run.number("-b", _MIB), run.number("-t", _MIB)
    settings = {
        "nodes": len(job.nodes),
        "tasksPerNode": job.ppn,
        "repetitions": 1,
        "fsync": int("-e" in run.options),
        "readFile": int("-r" in run.options),
        "writeFile": int("-w" in run.options),
        "filePerProc": int("-F" in run.options),
        "reorderTasks": int("-C" in run.options),
        "checkRead": int("-R" in run.options),
        "keepFile": int("-k" in run.options),
        "segmentCount": 1,
        "transferSize": transfer,
        "blockSize": block,
    }
    summary = []
    for way in _SPEEDS:
        if settings[f"{way}File"]:
            mib = job.ranks * block / _MIB
            rate = _rate(run, way, is_shared="-F" not in run.options)
            run.seconds += mib / rate
            common = ("transferSize", "blockSize", "filePerProc", "reorderTasks")
            summary.append(
                {
                    "operation": way,
                    "API": "POSIX",
                    "numTasks": job.ranks,
                    **{name: settings[name] for name in common},
                    "bwMeanMIB": round(rate, 4),
                    "MeanTime": round(mib / rate, 4),
                    "xsizeMiB": mib,
                }
            )
    whole = {
        "Version": "4.0.0",
        "Machine": "model of a machine: nothing was measured",
        "tests": [{"Parameters": settings, "Options": {"tasks": job.ranks}}],
        "summary": summary,
        "Finished": "Thu Nov 26 12:00:00 2026",
    }
    yield from json.dumps(whole, indent=2).splitlines()


def _rate(run: Run, way: str, *, is_shared: bool) -> float:
    """Return the MiB/s of all ranks: that of the nodes, or what the servers give."""
    nodes, machine = run.job.nodes, run.machine
    slow = max(machine.slowness(node, "bandwidth") for node in nodes)
    of_nodes = len(nodes) * _NODE_SHARE * machine.numbers["bandwidth_mb_per_s"] / slow
    most = min(of_nodes, _MB_PER_S) * _SPEEDS[way] * (0.6 if is_shared else 1.0)
    return most * machine.noise() * 1e6 / _MIB


def mdtest(run: Run) -> Iterator[str]:
    """Print the rates of all operations, as mdtest 4.0."""
    run.expect(*["-n", "-u", "-i", "-N", "-w", "-e", "-X", "-d"])
    job = run.job
    items = run.number("-n", 0) * job.ranks
    head = _SUMMARY.format(ranks=job.ranks, nodes=len(job.nodes), items=items)
    yield from head.splitlines()
    for name, usual in _OPERATIONS.items():
        rate = usual * run.machine.noise()
        run.seconds += items / rate
        cells = "".join(f"{value:>15.3f}" for value in (rate, rate, rate, 0.0))
        yield f"   {name:<18}{cells}"
    yield "-- finished at 11/26/2026 12:00:01 --"


PROGRAMS = {"ior": ior, "mdtest": mdtest}
