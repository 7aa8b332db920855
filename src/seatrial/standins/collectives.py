"""Times of collectives over all ranks of a step: simple models of their algorithms."""

import math

from seatrial.standins.run import Run


def time_us(run: Run, name: str, size: int) -> float:
    """Return the time of one call on the slowest rank, without noise.

    `name` is that of MPI in small letters, `size` the bytes of one message. The worst
    node, leaf and link of the step set the time.
    """
    job, numbers = run.job, run.machine.numbers
    latency, per_byte = numbers["shared_latency_us"], 0.0
    if len(job.nodes) > 1:
        slow = run.machine.worst(job.nodes, "latency")
        latency = (numbers["latency_us"] + numbers["hop_us"]) * slow
        slow = run.machine.worst(job.nodes, "bandwidth")
        per_byte = job.ppn * slow / numbers["bandwidth_mb_per_s"]
    else:
        latency *= run.machine.slowness(job.node, "latency")
        slow = run.machine.slowness(job.node, "bandwidth")
        per_byte = slow / numbers["shared_bandwidth_mb_per_s"]
    steps = max(1, math.ceil(math.log2(job.ranks)))
    others = job.ranks - 1
    transfer = size * per_byte
    return {
        "barrier": steps * latency,
        "bcast": steps * latency + 2 * transfer,
        "allreduce": 2 * steps * latency + 2 * transfer,
        "scatter": steps * latency + others * transfer,
        "allgather": steps * latency + others * transfer,
        "alltoall": steps * latency + others * (numbers["gap_us"] + transfer),
        "sendrecv": 1.2 * latency + transfer,
        "exchange": 2.0 * latency + 2 * transfer,
    }[name]
