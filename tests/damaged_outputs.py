"""Real outputs of every program that has a parser, and ways to damage them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from test_parser_nodesweep import NODES, sweep_of, text_of

from seatrial.parsers.balance import parse_balance
from seatrial.parsers.bufreuse import parse_bufreuse
from seatrial.parsers.halo2d import parse_halo2d
from seatrial.parsers.hpcc import parse_hpcc
from seatrial.parsers.hpcc_metrics import METRICS
from seatrial.parsers.hpcg import parse_hpcg
from seatrial.parsers.hpl import parse_hpl
from seatrial.parsers.imb import (
    parse_imb,
    parse_imb_barrier,
    parse_imb_each_group,
    parse_imb_groups,
    parse_imb_one_sided,
    parse_imb_pairs,
    parse_imb_rate,
)
from seatrial.parsers.lammps import LammpsRun, parse_lammps
from seatrial.parsers.logp import parse_logp
from seatrial.parsers.match_queue import parse_match_queue
from seatrial.parsers.memlat import parse_memlat
from seatrial.parsers.mp_rdma import parse_mp_rdma_bw, parse_mp_rdma_lat
from seatrial.parsers.mpair import parse_mpair
from seatrial.parsers.mpi_startup import parse_osu_init
from seatrial.parsers.mqp_lat import parse_mqp_lat
from seatrial.parsers.mr_cost import parse_mr_cost
from seatrial.parsers.nodesweep import parse_nodesweep
from seatrial.parsers.npb import parse_npb
from seatrial.parsers.osu import parse_osu
from seatrial.parsers.pairsweep import PairSweep, parse_pairsweep
from seatrial.parsers.perftest import (
    ALL_SIZES,
    parse_perftest_bw,
    parse_perftest_lat,
)
from seatrial.parsers.perftest_json import (
    parse_perftest_json_bw,
    parse_perftest_json_lat,
)
from seatrial.parsers.rr64 import parse_rr64
from seatrial.parsers.winbw import parse_winbw

DATA = Path(__file__).parent / "data"
_IN_COLUMNS = re.compile(r"^ *[0-9.]+ +(\S.*?\S) *$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")


@dataclass(frozen=True, repr=False)
class Output:
    """A captured output and its parser.

    `signed`: a number with another sign may be as right. `twice` finds numbers, in
    group 1, that the program prints a second time, or in columns as wide as their
    header; `rounding` is how far two prints may differ, relative to each.
    """

    text: str
    parse: Callable[[str], Any]
    signed: bool = False
    twice: re.Pattern[str] | None = None
    rounding: float = 1e-3

    @cached_property
    def right(self) -> Any:
        """The numbers that the whole text holds."""
        return self.numbers(self.text)

    def numbers(self, text: str) -> Any:
        """The numbers that the parser gives, without any text."""
        return numbers_of(self.parse(text))

    @cached_property
    def lines(self) -> list[str]:
        """The lines, each with its break."""
        return self.text.splitlines(keepends=True)

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where numbers begin and end, those inside of words left out."""
        return [match.span() for match in NUMBER.finditer(self.text)]

    @cached_property
    def digits_printed_twice(self) -> list[int]:
        """Where the digits are whose loss can be noticed."""
        if self.twice is None:
            return []
        spans = [match.span(1) for match in self.twice.finditer(self.text)]
        return [
            at
            for start, end in spans
            for at in range(start, end)
            if self.text[at].isdigit()
        ]


def numbers_of(value: Any) -> Any:
    """Take all numbers out of a result, in their order and nesting, without texts."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [numbers_of(item) for item in value]
    if isinstance(value, dict):
        return [[key, numbers_of(value[key])] for key in sorted(value)]
    if is_dataclass(value):
        return [numbers_of(getattr(value, field.name)) for field in fields(value)]
    return None


def are_near(found: Any, right: Any, rounding: float) -> bool:
    """Return True if all numbers differ by no more than a relative rounding."""
    if isinstance(found, list) and isinstance(right, list):
        return len(found) == len(right) and all(
            are_near(one, other, rounding)
            for one, other in zip(found, right, strict=True)
        )
    if not (isinstance(found, (int, float)) and isinstance(right, (int, float))):
        return bool(found == right)
    return abs(found - right) <= rounding * max(abs(found), abs(right))


def _read(name: str) -> str:
    return (DATA / name).read_text()


def _rows(parse: Callable[[str], Any], name: str, twice: str | None = None) -> Output:
    return Output(_read(name), parse, twice=re.compile(twice) if twice else None)


def _hpcc(name: str, ranks: int, names: Sequence[str]) -> Output:
    return Output(
        _read(f"hpcc/{name}.txt"),
        lambda text: parse_hpcc(text, names, ranks, 1000, 80),
        twice=re.compile(
            r"\n(?:HPL_Tflops|HPL_time|PTRANS_GBs|\w+_GUPs|\w+_Gflops|\w+STREAM_(?:Copy"
            r"|Scale|Add|Triad)|\w+_usec|\w+_GBytes|MPIRandomAccess_time)=(\S+)"
        ),
    )


def _lammps(
    name: str, ranks: int, steps: Sequence[int], atoms: int = 32000, threads: int = 1
) -> Output:
    def parse(text: str) -> LammpsRun:
        run = parse_lammps(text, ranks, atoms, steps, threads)
        return replace(run, warnings=())  # foreign lines may add some

    return Output(
        _read(f"lammps/{name}.txt"),
        parse,
        signed=True,
        twice=re.compile(r"(?:Loop time of |, )([\d.]+)(?= on | timesteps/s)"),
        rounding=1e-4,
    )


def _npb(name: str, ranks: int, timers: bool) -> Output:
    benchmark = name[:2].upper()
    return Output(
        _read(f"npb/{name}.txt"),
        lambda text: parse_npb(text, benchmark, "S", ranks, timers=timers),
        twice=re.compile(r"Mop/s(?: total|/process) *= *(\S+)"),
    )


def _osu(name: str, sizes: Sequence[int], **options: Any) -> Output:
    benchmark = "osu_" + name.partition("-")[0]
    return Output(
        _read(f"osu/{name}.txt"),
        lambda text: parse_osu(text, benchmark, sizes, **options),
        twice=_IN_COLUMNS,
        rounding=0,
    )


def _imb(name: str, parse: Callable[[str], Any]) -> Output:
    return Output(_read(f"imb/{name}-2021.11.txt"), parse, False, _IN_COLUMNS, 0)


def _sorted_pairs(text: str) -> PairSweep:
    """Read a sweep, whose pairs may come in any order, after any number of starts."""
    sweep = parse_pairsweep(text)
    sweep.verify_complete(["cn01", "cn02", "cn03", "cn04"])
    pairs = tuple(sorted(sweep.pairs, key=lambda row: row.key))
    quiet = {key: sweep.quiet[key] for key in sorted(sweep.quiet)}
    return replace(sweep, runs=(), pairs=pairs, quiet=quiet)


def _sorted_nodes(text: str) -> list[Any]:
    """Read a complete sweep over nodes, whose rows may come in any order."""
    sweep = parse_nodesweep(text)
    sweep.verify_complete(NODES)
    return [
        *(
            sorted(map(numbers_of, rows), key=repr)
            for rows in (sweep.sensors, sweep.hpcc, sweep.memlat)
        ),
        [sweep.nodes[node] for node in NODES],
        [sweep.counters[node] for node in NODES],
    ]


_OSU_SIZES = [1 << k for k in range(9)]
_IMB_SIZES = [0, *(1 << k for k in range(23))]
_POWERS = [1 << k for k in range(3, 17)]
_UNIBAND_SIZES = [0, *_OSU_SIZES]
_PERFTEST = "perftest/connectx3"
_RATES = re.compile(r"^ \d+ +\d+ +\S+ +(\S+)\s+\S+\s*$", re.MULTILINE)

OUTPUTS: dict[str, Output] = {
    "hpcc": _hpcc("debian-1.5.0-np4", 4, list(METRICS)),
    "hpcg": _rows(
        lambda text: parse_hpcg(text, 2, (16, 16, 16)),
        "hpcg/3.1-np2.txt",
        r"\n(?:Final Summary::HPCG result is VALID with a GFLOP/s rating of"
        r"|GFLOP/s Summary::Total with convergence(?: and optimization phase)? overhead"
        r"|Benchmark Time Summary::Total)=(\S+)",
    ),
    "hpl 2.0": _rows(
        lambda text: parse_hpl(text, 1000, 80, (1, 2)), "hpl/hpcc-2.0-np2.txt"
    ),
    "hpl 2.3": _rows(
        lambda text: parse_hpl(text, 1500, 64, (2, 2)), "hpl/hpl-2.3-np4.txt"
    ),
    "lammps multi": _lammps("2025.7-np4", 4, (0, 50, 100)),
    "lammps multi 2021": _lammps("debian-2021.9-np2", 2, (0, 50, 100)),
    "lammps one": _lammps("2024.8-eam-np2", 2, (0, 10, 20)),
    "lammps one 2021": _lammps("2021.9-lj-np2", 2, (0, 20)),
    "lammps custom": _lammps("2023.8-eam-np1-custom", 1, (0, 10, 20)),
    "lammps yaml": _lammps("2024.8-eam-np1-yaml", 1, (0, 10, 20)),
    "lammps threads": _lammps("2025.7-lj-np1-omp2-full", 1, (0, 20), threads=2),
    "npb fortran": _npb("ep-S-np1-3.3.1", 1, timers=False),
    "npb timers": _npb("cg-S-np4-timers-3.4.1", 4, timers=True),
    "npb c": _npb("is-S-np2-3.4.1", 2, timers=False),
    "perftest bw": Output(
        _read(f"{_PERFTEST}-send-bw.txt"),
        lambda text: parse_perftest_bw(text, "Send BW", ALL_SIZES, 20000),
        twice=_RATES,
        rounding=1e-2,
    ),
    "perftest lat": Output(
        _read(f"{_PERFTEST}-send-lat.txt"),
        lambda text: parse_perftest_lat(text, "Send Latency", ALL_SIZES, 20000),
    ),
    "perftest json": Output(
        _read("perftest/write-bw.json"),
        lambda text: parse_perftest_json_bw(
            text, "RDMA_Write BW", 65536, "MiB/s", 5000
        ),
        twice=re.compile(r'"BW_average": (\S+?),'),
    ),
    "perftest before json": Output(
        _read("perftest/write-lat-before-2024.json"),
        lambda text: parse_perftest_json_lat(text, "RDMA_Write Latency", 128, 5000),
    ),
    "osu latency 5.6": _osu("latency-5.6.1", [0, *_OSU_SIZES]),
    "osu bw": _osu("bw-6.2", _OSU_SIZES),
    "osu mbw_mr": _osu("mbw_mr-7.4", _OSU_SIZES, pairs=2, window=64),
    "osu alltoall -f -c -z": _osu(
        *("alltoall-f-c-z-7.4", _OSU_SIZES),
        full=True,
        validated=True,
        percentiles=(50, 90, 99),
    ),
    "osu barrier": _osu("barrier-f-6.2", (), full=True),
    "osu put_latency": _osu("put_latency-7.4", _OSU_SIZES),
    "osu init": Output(_read("osu/init-7.4.txt"), lambda text: parse_osu_init(text, 4)),
    "imb pingpong": _imb(
        "pingpong", lambda text: parse_imb(text, "PingPong", 2, _IMB_SIZES)
    ),
    "imb alltoall": _imb(
        "alltoall", lambda text: parse_imb(text, "Alltoall", 4, _POWERS)
    ),
    "imb uniband": _imb(
        "uniband", lambda text: parse_imb_rate(text, "Uniband", 4, _UNIBAND_SIZES)
    ),
    "imb barrier": _imb("barrier", lambda text: parse_imb_barrier(text, 4)),
    "imb put": _imb(
        "unidir_put-aggregate",
        lambda text: parse_imb_one_sided(
            text, "Unidir_put", _IMB_SIZES, aggregate=True
        ),
    ),
    "imb get": _imb(
        "unidir_get",
        lambda text: parse_imb_one_sided(
            text, "Unidir_get", _UNIBAND_SIZES, aggregate=False
        ),
    ),
    "imb groups": _imb(
        "groups-map",
        lambda text: parse_imb_groups(
            text, "PingPong", [(0, 2), (1, 3)], _UNIBAND_SIZES[1:]
        ),
    ),
    "imb each group": _imb(
        "groups-1",
        lambda text: parse_imb_each_group(
            text, "PingPong", [(0, 1), (2, 3)], [0, 8, 16, 32, 64]
        ),
    ),
    "imb pairs": Output(
        f"# pair cn01 cn02\n{_read('imb/pingpong-2021.11.txt')}"
        f"# pair cn02 cn03\n{_read('imb/pingpong-2021.11.txt')}",
        lambda text: parse_imb_pairs(
            text, [("cn01", "cn02"), ("cn02", "cn03")], _IMB_SIZES
        ),
        twice=_IN_COLUMNS,
        rounding=0,
    ),
    "balance": _rows(
        parse_balance, "balance/openmpi-4.1.4-off.txt", r'"latency_ratio": (\S+?),'
    ),
    "bufreuse": _rows(parse_bufreuse, "bufreuse/openmpi-4.1.4.txt"),
    "halo2d": _rows(parse_halo2d, "halo2d/mpich-4.0.2-np2.txt"),
    "logp": Output(_read("logp/mpich-4.0.2-send-irecv.txt"), parse_logp, signed=True),
    "match_queue": _rows(
        lambda text: parse_match_queue(text, "mq_unexp"),
        "match_queue/mq_unexp-openmpi-4.1.4.txt",
        r'"slope_ns": (\S+?),',
    ),
    "memlat": _rows(parse_memlat, "memlat/0.1.0-off.txt"),
    "mpair": _rows(parse_mpair, "mpair/openmpi-4.1.4-within-off.txt"),
    "pairsweep": _rows(_sorted_pairs, "pairsweep/openmpi-4.1.4-np4.jsonl"),
    "rr64": _rows(parse_rr64, "rr64/openmpi-4.1.4-off.txt"),
    "mp_rdma_lat": _rows(parse_mp_rdma_lat, "verbs/mp_rdma_lat.txt"),
    "mp_rdma_bw": _rows(parse_mp_rdma_bw, "verbs/mp_rdma_bw.txt"),
    "winbw": _rows(parse_winbw, "verbs/winbw-2.txt"),
    "mqp_lat": _rows(parse_mqp_lat, "verbs/mqp_lat.txt"),
    "mr_cost": Output(_read("verbs/mr_cost.txt"), parse_mr_cost, signed=True),
    "nodesweep": Output(text_of(sweep_of()), _sorted_nodes),
}
