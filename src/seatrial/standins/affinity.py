"""`affinity`: ranks and threads, each where it was asked to be."""

import os
import time
from collections.abc import Iterator

from seatrial.standins.rows import Value, row_text
from seatrial.standins.run import Run


def affinity(run: Run) -> Iterator[str]:
    """Print where ranks and threads run: each node has the cores that they take."""
    run.expect("--time", "--ready", "--json")
    job = run.job
    yield row_text(
        {
            "type": "run",
            "program": "affinity",
            "version": "0.1.0",
            "commit": "model",
            "mpi": "model",
            "np": job.ranks,
            "nodes": len(job.nodes),
            "time_ms": run.number("--time", 200),
            "ready_s": round(time.time(), 6),
        }
    )
    if "--ready" in run.options:
        return
    run.seconds += run.number("--time", 200) / 1e3
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    places: dict[str, int] = {}
    for rank in range(job.ranks):
        node = job.node_of(rank)
        local = places.get(node, 0)
        if local == 0:
            yield row_text(_map(node, job.ppn * threads))
        places[node] = local + 1
        for thread in range(threads):
            yield row_text(_thread(node, rank, local, thread, threads))


def _map(node: str, cores: int) -> dict[str, Value]:
    """Return the map of a node with one socket."""
    every = _list(0, cores)
    return {
        "type": "node",
        "node": node,
        "cores": " ".join(map(str, range(cores))),
        "sockets": every,
        "numa": every,
        "hcas": "model0:0",
    }


def _thread(
    node: str, rank: int, local: int, thread: int, threads: int
) -> dict[str, Value]:
    """Return the row of a thread, which is bound if OpenMP has places."""
    process = _list(local * threads, threads)
    own = str(local * threads + thread)
    return {
        "type": "thread",
        "node": node,
        "rank": rank,
        "thread": thread,
        "process": process,
        "allowed": own if "OMP_PLACES" in os.environ else process,
        "seen": own,
        "moves": 0,
        "numa": "0",
        "hcas": "model0",
    }


def _list(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


PROGRAMS = {"affinity": affinity}
