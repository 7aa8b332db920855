"""The numbered experiments of the papers behind this suite; each check lists its own.

A paper is a key of reference-data/published/papers.yaml, which has titles and authors.
"""

_OF_PAPERS = {
    "sur2007": (
        "RDMA write latency of 1 to 8 pairs",
        "the same with other PCIe payloads",
        "RDMA read latency of 1 to 8 pairs",
        "RDMA write bandwidth of 1 to 8 pairs",
        "halo exchange of 32 processes, by tiles",
        "halo exchange of 4 to 32 processes",
        "LAMMPS rhodo, loop time",
    ),
    "liu2005": (
        "verbs send and receive latency",
        "RDMA write latency",
        "RDMA read latency",
        "latency of atomics",
        "RDMA write bandwidth, one port",
        "the same in both directions",
        "RDMA write bandwidth, striped over two ports",
        "the same in both directions, and bound to ports",
        "two processes per node, one direction, striped and bound",
        "two processes per node, both directions",
        "MPI latency",
        "MPI bandwidth",
        "MPI bandwidth of both directions",
        "Alltoall, Bcast and Allgather",
        "NPB IS and FT, share of communication",
    ),
    "schoenemeyer2011": (
        "MPI latency",
        "MPI bandwidth",
        "message rate of many pairs, window 512",
        "message rate by clock frequency",
        "message rate by MPI library",
    ),
    "subramoni2009": (
        "bandwidth of one direction, of both, of many pairs",
        "MPI latency",
        "within a node, 64 regions in turn",
        "Alltoall of 32 processes",
        "Scatter of 32 processes",
        "balance of communication within and between nodes",
        "HPCC ping-pong and rings",
        "NPB CG, FT, IS, LU, MG of 32 processes",
    ),
    "rashti2007": (
        "latency below MPI",
        "bandwidth below MPI",
        "cost of registering memory",
        "latency of many connections",
        "throughput of many connections",
        "MPI latency, and what it adds",
        "MPI bandwidth",
        "MPI bandwidth of both directions",
        "parameterised LogP",
        "re-use of buffers",
        "queue of unexpected messages",
        "queue of posted receives",
        "connections per adapter",
    ),
}

_PAIRS = [(paper, title) for paper, items in _OF_PAPERS.items() for title in items]

EXPERIMENTS = {f"E{number:02}": pair for number, pair in enumerate(_PAIRS, 1)}
"""Paper and title of each experiment."""
