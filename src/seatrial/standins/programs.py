"""The programs that have a stand-in, and the modules that print for them."""

_OSU = "latency bw bibw put_latency get_latency put_bw mbw_mr multi_lat"
_OSU += " alltoall bcast allgather scatter allreduce barrier init"
PERFTEST = (
    *("ib_send_lat", "ib_write_lat", "ib_read_lat"),
    *("ib_atomic_lat", "ib_write_bw"),
)
"""Programs of perftest: rank 1 runs the server, rank 0 the client."""
_MODULES = {
    "pairsweep": "pairsweep",
    "pairsweep_verbs": "pairsweep",
    "memlat": "node_programs",
    "fixedwork": "node_programs",
    "osnoise": "node_programs",
    "hpcc": "hpcc",
    "xhpl": "hpl",
    "xhpcg": "hpcg",
    **{f"osu_{name}": "osu" for name in _OSU.split()},
    "IMB-MPI1": "imb",
    "IMB-RMA": "imb",
    "halo2d": "halo2d",
    "mpair": "pairs",
    "balance": "pairs",
    "rr64": "pairs",
    "bufreuse": "messages",
    "mq_unexp": "messages",
    "mq_posted": "messages",
    "logp": "logp",
    "congestion": "congestion",
    "affinity": "affinity",
    **{
        f"{name}.{of_class}.x": "npb"
        for name in ("bt", "cg", "ep", "ft", "is", "lu", "mg", "sp")
        for of_class in "SWABCD"
    },
    "lmp": "lammps",
    "ior": "storage",
    "mdtest": "storage",
    "mp_rdma_lat": "mp_rdma",
    "mp_rdma_bw": "mp_rdma",
    "mqp_lat": "mqp_lat",
    "mr_cost": "mr_cost",
    "winbw": "winbw",
    **dict.fromkeys(PERFTEST, "perftest"),
}


def names() -> list[str]:
    """Return the names of all programs."""
    return [*_MODULES]


def module_of(program: str) -> str:
    """Return the module of this package that prints for a program."""
    return _MODULES[program]
