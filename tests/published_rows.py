"""Where each row of data/published.csv is in reference-data/published.

The CSV was taken from the papers before the YAML, by other means: its 133 rows say
system, metric, value, unit, kind and place in words of their own.
"""

import csv
from pathlib import Path

from seatrial.criteria.published import Published
from seatrial.criteria.published_numbers import Number

Row = dict[str, str]

CSV = Path(__file__).parent / "data" / "published.csv"

PAPERS = {
    "S0": "sur2007",
    "S1": "liu2005",
    "S2": "schoenemeyer2011",
    "S3": "subramoni2009",
    "S4": "rashti2007",
}

SYSTEMS = {
    "CX": "connectx-ddr",
    "IH3": "infinihost3-ddr",
    "PCIE": "mt25208-pcie",
    "PCIX": "mt23108-pcix",
    "A-MLX": "connectx3-qdr",
    "B-QLG": "qlogic7300-qdr",
    "CT-DDR": "clovertown-ddr",
    "NH-DDR": "nehalem-ddr",
    "NH-QDR": "nehalem-qdr",
    "IB-S4": "memfree-infiniband",
    "IWARP": "ne010e-iwarp",
    "MX": "myri-10g",
    # one of them, with another MPI
    "A-MLX+OMPI": "connectx3-qdr",
    "A OMPI/MVAPICH": "connectx3-qdr",
}

QDR = ("nehalem-qdr", "harpertown-qdr")
DDR = ("nehalem-ddr", "harpertown-ddr", "clovertown-ddr")
PAIRS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "CX/IH3": (("connectx-ddr",), ("infinihost3-ddr",)),
    "PCIE/PCIX": (("mt25208-pcie",), ("mt23108-pcix",)),
    "A/B": (("connectx3-qdr",), ("qlogic7300-qdr",)),
    "B/A": (("qlogic7300-qdr",), ("connectx3-qdr",)),
    "NH-QDR/NH-DDR": (("nehalem-qdr",), ("nehalem-ddr",)),
    "NH-QDR/CT,NH-DDR": (("nehalem-qdr",), ("nehalem-ddr", "clovertown-ddr")),
    "QDR/DDR": (QDR, DDR),
}
"""Comparisons: systems and baselines."""

GENERAL = {"IH3-class", "IB4X", "model", "all"}
"""Names that belong to no single system."""

NAMES: dict[tuple[str, ...], str] = {
    ("S0", "latency claim"): "product_latency",
    ("S0", "uni bw claim"): "product_bw",
    ("S0", "send_recv minus rdma_write latency"): "send_recv_minus_write",
    ("S0", "rdma_write_lat 8 pairs payload256", "128B"): "write_8_pairs_128B",
    ("S0", "rdma_write_lat 8 pairs payload256", "256B"): "write_8_pairs_256B",
    (
        "S0",
        "rdma_write_lat 8 pairs payload128+coalescing",
    ): "write_8_pairs_256B_coalescing",
    ("S0", "rdma_write_lat improvement 8 pairs"): "write_8_pairs_below_256B",
    ("S0", "rdma_write_lat improvement all cores"): "write_all_cores_1B",
    ("S0", "rdma_read_lat improvement all cores"): "read_all_cores_1B",
    ("S0", "rdma_read_lat"): "read",
    ("S0", "rdma_read_lat improvement multi pairs"): "read_several_pairs",
    ("S0", "agg bw 8 pairs / 1 pair"): "write_bw_8_pairs_over_1",
    ("S0", "agg bw 8 pairs"): "write_bw_256B",
    ("S0", "halo 32 procs"): "halo_few_tiles",
    ("S0", "halo 2 tiles 4-32 procs min"): "halo_2_tiles_least",
    ("S0", "halo 2 tiles 4-32 procs max"): "halo_2_tiles_most",
    ("S0", "lammps rhodo", "<=8 procs"): "lammps_up_to_8_processes",
    ("S0", "lammps rhodo", "16 procs"): "lammps_16_processes",
    ("S0", "pcie outstanding reads default"): "outstanding_reads",
    ("S0", "pcie reads effective chipset"): "outstanding_reads_chipset",
    ("S1", "send_recv_lat"): "send_recv",
    ("S1", "rdma_write_lat"): "write",
    ("S1", "rdma_read_lat"): "read",
    ("S1", "mpi_lat"): "mpi_latency",
    ("S1", "latency reduction min"): "latency_least",
    ("S1", "latency reduction max"): "latency_most",
    ("S1", "uni bw 1 port"): "bw_1_port",
    ("S1", "bidir bw 1 port"): "bibw_1_port",
    ("S1", "uni bw 2 port striping"): "bw_striping",
    ("S1", "bidir bw 2 port striping"): "bibw_striping",
    ("S1", "bidir bw 2 port binding"): "bibw_binding",
    ("S1", "2proc uni bw striping or binding"): "bw_2_processes",
    ("S1", "2proc uni bw"): "bw_2_processes",
    ("S1", "2proc bidir binding"): "bibw_2_processes_binding",
    ("S1", "2proc bidir striping"): "bibw_2_processes_striping",
    ("S1", "2proc bidir"): "bibw_2_processes",
    ("S1", "mpi uni bw 1 port"): "mpi_bw_1_port",
    ("S1", "mpi uni bw"): "mpi_bw",
    ("S1", "mpi uni bw 2 port striping"): "mpi_bw_2_ports",
    ("S1", "mpi bidir bw"): "mpi_bibw",
    ("S1", "mpi bidir bw 1 port"): "mpi_bibw_1_port",
    ("S1", "mpi bidir bw 2 port"): "mpi_bibw_2_ports",
    ("S1", "uni 1 port gain"): "bw_1_port",
    ("S1", "PCIX bidir over uni"): "bibw_over_bw_1_port",
    ("S1", "2proc bidir gain"): "bibw_2_processes",
    ("S1", "2port vs PCIX", "E19"): "mpi_bw_2_ports",
    ("S1", "2port vs PCIX", "E20"): "mpi_bibw_2_ports",
    ("S1", "2port vs 1port"): "mpi_bw_2_ports_over_1",
    ("S1", "mpi latency gain"): "mpi_latency",
    ("S1", "alltoall 1 port"): "alltoall",
    ("S1", "bcast 1 port"): "bcast",
    ("S1", "allgather 1 port"): "allgather",
    ("S1", "bcast 2 vs 1 port"): "bcast_2_ports_over_1",
    ("S1", "allgather 2 vs 1 port"): "allgather_2_ports_over_1",
    ("S1", "comm time IS.B"): "communication_is_b",
    ("S1", "comm time FT.A"): "communication_ft_a",
    ("S1", "run time IS.B"): "run_is_b",
    ("S1", "run time FT.A"): "run_ft_a",
    ("S1", "lane bw per dir"): "lane_bw",
    ("S1", "x8 bw per dir"): "bus_bw",
    ("S1", "port bw per dir"): "port_bw",
    ("S1", "64/133 practical bw"): "bus_bw",
    ("S2", "latency"): "latency",
    ("S2", "latency difference"): "latency_256B_to_4KiB",
    ("S2", "mean latency"): "latency_128KiB_to_4MiB",
    ("S2", "bandwidth", "512B"): "bw_512B",
    ("S2", "bandwidth", ">16KB"): "bw_above_16KiB",
    ("S2", "msg rate", "small"): "msg_rate",
    ("S2", "msg rate", "2KB-32KB"): "msg_rate_2KiB_to_32KiB",
    ("S2", "msg rate fastest CPU"): "msg_rate_fastest_processor",
    ("S2", "msg rate cap"): "msg_rate_openmpi",
    ("S2", "msg rate", ">128B"): "msg_rate_openmpi_over_mvapich",
    ("S3", "uni bw"): "bw",
    ("S3", "bidir bw"): "bibw",
    ("S3", "alltoall 32 procs"): "alltoall",
    ("S3", "scatter 32 procs"): "scatter",
    ("S3", "intra/inter bibw small"): "balance_bibw_small",
    ("S3", "hpcc pingpong bw"): "hpcc_ping_pong_bw",
    ("S3", "hpcc random ring bw"): "hpcc_random_ring_bw",
    ("S3", "NPB gain"): "npb",
    **{
        ("S3", f"NPB {name}.{size} time"): f"npb_{name.lower()}_{size.lower()}"
        for name in ("CG", "FT", "IS", "LU", "MG")
        for size in ("B", "C")
    },
    ("S4", "buffer re-use ratio", "eager"): "reuse_eager",
    ("S4", "buffer re-use ratio", "rendezvous"): "reuse_rendezvous",
    **{
        ("S4", "connections per NIC", f"{servers}x2x{cores}"): (
            f"connections_per_nic_{servers}_servers"
        )
        for servers, cores in ((4, 2), (8, 2), (64, 4), (256, 4), (1024, 4))
    },
}
"""Names of the numbers, by paper and metric; where that is not enough, by size too, or
by experiment."""

_ONE_SYSTEM = "the paper compares the system with itself, not with the other"
CORRECTIONS: dict[tuple[str, str, str], tuple[str, str, str]] = {
    ("E13", "PCIX bidir over uni", "system"): ("PCIE/PCIX", "PCIX", _ONE_SYSTEM),
    ("E19", "2port vs 1port", "system"): ("PCIE/PCIX", "PCIE", _ONE_SYSTEM),
    ("E21", "bcast 2 vs 1 port", "system"): ("PCIE/PCIX", "PCIE", _ONE_SYSTEM),
    ("E21", "allgather 2 vs 1 port", "system"): ("PCIE/PCIX", "PCIE", _ONE_SYSTEM),
    ("E23", "latency difference", "system"): (
        "A/B",
        "B/A",
        'the paper says "Qlogic shows up to 25% better results", against itself',
    ),
    ("E05", "halo 32 procs", "size_or_procs"): (
        "small tiles",
        "32 procs",
        'the paper says "small number of tiles", and no size of theirs',
    ),
    ("E32", "scatter 32 procs", "size_or_procs"): (
        "all",
        "32 procs",
        "the paper says it of all sizes of Alltoall, and not of Scatter",
    ),
}
"""Where the paper says otherwise: by experiment, metric and column, what the CSV has,
what is right, and why."""


def csv_rows() -> list[Row]:
    """Return the rows of the CSV as they are."""
    with CSV.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def corrected(row: Row) -> Row:
    """Return a row with what the paper says in place of the CSV's mistakes."""
    right = dict(row)
    for (experiment, metric, column), (wrong, value, _) in CORRECTIONS.items():
        if (row["exp"], row["metric"], row[column]) == (experiment, metric, wrong):
            right[column] = value
    return right


def find(published: Published, row: Row) -> Number:
    """Return the number of a corrected row; KeyError if there is none."""
    key = (row["seed"], row["metric"])
    keys = (key, (*key, row["size_or_procs"]), (*key, row["exp"]))
    name = next(NAMES[key] for key in keys if key in NAMES)
    if row["system"] in SYSTEMS:
        return published.system(SYSTEMS[row["system"]]).numbers[name]
    rows = published.general if row["system"] in GENERAL else published.comparisons
    named = {(number.paper, number.name): number for number in rows}
    return named[PAPERS[row["seed"]], name]
