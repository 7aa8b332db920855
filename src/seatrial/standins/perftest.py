"""Programs of perftest, in the format of version 4.5: a server, and its client."""

import os
import socket
import time
from collections.abc import Iterator

from seatrial.standins.programs import PERFTEST
from seatrial.standins.run import Run, UsageError
from seatrial.standins.verbs import Nodes, operation_us, two_nodes

_OPTIONS = "-F -U -b -d -c -A -i -x -p -n -s -t -Q -q"
_RULE = "-" * 87
_TIMES = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
    "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
)
_RATES = (
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"
)
_OPERATIONS = {"send": "Send", "write": "RDMA_Write", "read": "RDMA_Read"}
_ATOMICS = ("FETCH_AND_ADD", "CMP_AND_SWAP")
_ATOMIC_BYTES = 8
_LEAST = 5
"""Fewest iterations that perftest takes."""
_MIB = 1 << 20
_BOTH_WAYS = 1.9
"""Bandwidth of both directions, over that of one."""
_LATE = 0.01
"""Share of operations in the tail."""
_POLL_S = 0.02


def perftest(run: Run) -> Iterator[str]:
    """Print the table of the client; the server, without a host, prints nothing."""
    run.expect(*_OPTIONS.split())
    if not run.words:
        _serve(run)
        return
    count = run.number("-n", 1000)
    if count < _LEAST:
        raise UsageError(f"-n {count}, expected {_LEAST} at least")
    nodes = two_nodes(run)
    _, operation, form = run.program.split("_")
    name = _OPERATIONS.get(operation) or _atomic(run)
    if form == "bw":
        both = " Bidirectional" if "-b" in run.options else ""
        title, lines = f"{name}{both} BW", _bandwidth(run, nodes)
    else:
        title, lines = f"{name} Latency", _latency(run, operation, nodes)
    yield _RULE
    yield f"                    {title} Test"
    yield f" Dual-port       : OFF          Device         : {run.options.get('-d')}"
    yield f" Number of qps   : {run.number('-q', 1):<12} Transport type : IB"
    yield " Connection type : RC           Using SRQ      : OFF"
    yield " A model of a machine: nothing was measured"
    yield _RULE
    yield from lines
    yield _RULE
    with open(_mark(run), "w"):
        pass


def _atomic(run: Run) -> str:
    """Return the name of the atomic operation."""
    name = run.options.get("-A", _ATOMICS[0])
    if name not in _ATOMICS:
        raise UsageError(f"-A {name}, expected {' or '.join(_ATOMICS)}")
    return f"Atomic {name}"


def _mark(run: Run) -> str:
    """Return the file of the client that has ended, for the server.

    It is in the folder that both run in: no network leads to a model node by name.
    """
    return f".perftest-{run.number('-p', 18515)}"


def _serve(run: Run) -> None:
    """Listen on the TCP port, as the client's side expects, until the client ends."""
    mark = _mark(run)
    if os.path.exists(mark):
        os.unlink(mark)
    with socket.create_server(("", run.number("-p", 18515))):
        while not os.path.exists(mark):
            time.sleep(_POLL_S)
    os.unlink(mark)


def _latency(run: Run, operation: str, nodes: Nodes) -> Iterator[str]:
    """Return the samples of -U, which are one less than the iterations, and the row."""
    machine, count = run.machine, run.number("-n", 1000)
    size = _ATOMIC_BYTES if operation == "atomic" else run.number("-s", 2)
    middle = operation_us(run, operation, nodes, size)
    run.seconds = 2 * count * middle / 1e6
    samples = [
        middle * (0.99 + machine.jitter(0.5 if machine.jitter(1) < _LATE else 0.02))
        for _ in range(count - 1)
    ]
    if "-U" in run.options:
        yield _TIMES
        yield "#, usec"
        for number, sample in enumerate(samples, start=1):
            yield f"{number}, {sample:g}"
        yield _RULE
    ranked = sorted(samples)
    kept = ranked[:-2]
    mean = sum(kept) / len(kept)
    spread = (sum((sample - mean) ** 2 for sample in kept) / len(kept)) ** 0.5
    late, later = (kept[-1 - len(kept) // part] for part in (100, 1000))
    yield _TIMES
    yield (
        f" {size:<7} {count}          {ranked[0]:<7.2f}        {kept[-1]:<7.2f}      "
        f"{ranked[len(ranked) // 2]:<7.2f}  \t       {mean:<7.2f}     "
        f"\t{spread:<7.2f}\t\t{late:<7.2f} \t\t{later:<7.2f}"
    )


def _bandwidth(run: Run, nodes: Nodes) -> Iterator[str]:
    """Return the row; perftest's MB are 2^20 B."""
    machine, size = run.machine, run.number("-s", 65536)
    pairs = run.number("-q", 1)
    count = pairs * run.number("-n", 1000)
    link = machine.pair(*nodes)[1] / size
    rate = min(pairs * machine.window_rate(*nodes, size), link) * machine.noise()
    rate *= _BOTH_WAYS if "-b" in run.options else 1
    run.seconds = count / rate / 1e6
    average = rate * 1e6 * size / _MIB
    yield _RATES
    yield (
        f" {size:<7}    {count:<10}       {average * 1.002:<7.2f}            "
        f"{average:<7.2f}\t\t   {rate:<7.6f}"
    )


PROGRAMS = dict.fromkeys(PERFTEST, perftest)
