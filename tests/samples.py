"""Sample runs for tests: a lab of four nodes, three MPI stacks, four topics.

`sample_run()` is a clean acceptance run; its options spoil it: a slow link at a
node, a node that was delivered but is absent, a case that failed, a case that was
skipped. Numbers are deterministic and look like those of the lab.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from criteria_samples import criteria, criterion

from seatrial.criteria.criteria import Criteria
from seatrial.model.cases import Case, parameters_text
from seatrial.model.metrics import METRICS
from seatrial.runs.closed_run import Run
from seatrial.runs.measurement_table import SCHEMA

NODES = ("cn01", "cn02", "cn03", "cn04")
STACKS = ("openmpi", "mpich", "intelmpi")
STARTED = 1795242615.0  # 2026-11-21T06:30:15Z
SIZES = [2**power for power in range(23)]

LIMITS: dict[str, dict[str, float]] = {
    "HaloExchange": {"exchange_time_16B": 5000, "exchange_time_8KiB": 20000},
    "ImbRing": {"latency_8B": 2000, "bw_4MiB": 60},
    "ImbCollective": {"latency_8B": 20000},
    "Hpcc": {
        "MaxPingPongLatency_usec": 2000,
        "MinPingPongBandwidth_GBytes": 0.05,
        "HPL_Tflops": 0.0005,
    },
    "LammpsRhodo": {"loop_time": 120},
    "MatchQueue": {"match_time": 5000},
}
"""Wide fixed limits, as in reference-data/lab; a link of 200 Mbit/s misses them."""


def sample_criteria(*, queues: bool = False) -> Criteria:
    """Return `LIMITS` as criteria that the lab promises to meet.

    `queues`: for a run with MatchQueue.
    """
    return criteria(
        *(
            criterion(metric, limit, check=check, source="demonstration limits, lab")
            for check, limits in LIMITS.items()
            if queues or check != "MatchQueue"
            for metric, limit in limits.items()
        ),
        sha256="5ea7" * 16,
    )


def sample_run(
    *,
    nodes: Sequence[str] = NODES,
    slow: str | None = None,
    absent: str | None = None,
    failed: bool = False,
    skipped: bool = False,
    queues: bool = False,
    repeats: int = 4,
    scatter: float = 2e-4,
    system: str = "lab",
    demonstration: bool = True,
    model: bool = False,
    replay: bool = False,
) -> Run:
    """Build a closed run in memory; no file is written.

    `slow`: the node whose link is limited to 200 Mbit/s in both directions.
    `queues`: with a check whose numbers have parameters of their own.
    Fewer than 3 `repeats` leave every number undecided. They `scatter` by this share
    (standard deviation) around the number, which is their median. `replay`: all of it
    is recorded output.
    """
    present = [name for name in nodes if name != absent]
    cases: list[Case] = []
    rows: list[dict[str, Any]] = []
    for repeat in range(1, repeats + 1):
        for block, case, numbers in _cases(present, slow, queues):
            case = _placed(case, f"{block}-{repeat}", repeat, len(cases), present)
            if failed and case["check"] == "LammpsRhodo":
                case |= {
                    "result": "fail",
                    "phase": "sanity",
                    "reason": "energy at step 100 is -25101.2, expected "
                    "-25290.73 +- 0.5",
                }
                numbers = []
            cases.append(Case(**case))
            rows += [_row(case, number, system) for number in numbers]
        if skipped:
            cases.append(Case(**_skipped(repeat)))
    manifest = sample_manifest(nodes, absent, cases, system)
    manifest |= {"demonstration": demonstration, "model": model}
    frame = pl.DataFrame(rows, schema=SCHEMA)
    noise = _noise(repeats, frame.height // repeats)
    frame = frame.with_columns(value=pl.col("value") * (1 + scatter * pl.Series(noise)))
    if replay:
        manifest["replay"] = "results/lab/earlier"
        cases = [dataclasses.replace(case, replay=True) for case in cases]
        frame = frame.with_columns(replay=pl.lit(True))
    path = Path("results") / system / manifest["run"]
    return Run(path, manifest, tuple(cases), frame.lazy())


Number = dict[str, Any]


def _cases(
    nodes: Sequence[str], slow: str | None, queues: bool
) -> Iterator[tuple[str, dict[str, Any], list[Number]]]:
    """Yield block, case and numbers of everything that one repeat runs."""
    for number, stack in enumerate(STACKS):
        worse = 1 + 0.25 * number
        if stack != "intelmpi":
            for protocol in ("sendrecv", "isend_irecv"):
                worse += 0.1
                yield (
                    "halo",
                    _case("HaloExchange", stack, {"protocol": protocol}, 6.0),
                    _halo(worse, slow is not None),
                )
        else:
            yield (
                "pairs",
                _case("ImbRing", stack, {"benchmark": "PingPong"}, 3.0),
                _ring(nodes, slow),
            )
            for benchmark in ("Alltoall", "Bcast", "Allgather"):
                worse += 0.3
                yield (
                    "collectives",
                    _case("ImbCollective", stack, {"benchmark": benchmark}, 5.0),
                    _collective(worse, slow is not None),
                )
    for stack in STACKS[:2]:
        yield "hpcc", _case("Hpcc", stack, {}, 7.0), _hpcc(slow is not None)
    yield (
        "lammps",
        _case("LammpsRhodo", "openmpi", {}, 12.4),
        [_number("loop_time", 11.83, n=1)],
    )
    if queues:
        for stack in STACKS[:2]:
            case = _case("MatchQueue", stack, {"queue": "posted"}, 2.0)
            yield "queues", case, _queues()


def _case(
    check: str, environment: str, parameters: dict[str, Any], payload_s: float
) -> dict[str, Any]:
    names = "".join(f" %{key}={value}" for key, value in parameters.items())
    return {
        "check": check,
        "case": f"{check}{names}",
        "partition": "lab:batch",
        "environment": environment,
        "parameters": parameters,
        "payload_s": payload_s,
        "declared": tuple(LIMITS[check]),
    }


def _placed(
    case: dict[str, Any], session: str, repeat: int, index: int, nodes: Sequence[str]
) -> dict[str, Any]:
    name = f"{case['case']} {case['environment']}".replace(" ", "_").replace("%", "")
    return case | {
        "session": session,
        "repeat": repeat,
        "result": "pass",
        "job_id": str(12 + index),
        "nodes": tuple(nodes),
        "start_time": STARTED + 15 * index,
        "elapsed_s": case["payload_s"] + 1.6,
        "raw": f"raw/{session}/{name}",
    }


def _skipped(repeat: int) -> dict[str, Any]:
    case = _case("LammpsRhodo", "mpich", {}, 0.0)
    return case | {
        "session": f"lammps-{repeat}",
        "repeat": repeat,
        "result": "skip",
        "reason": "mpich has no LAMMPS: the distribution builds it with Open MPI",
        "payload_s": None,
    }


def _number(metric: str, value: float, **more: Any) -> Number:
    known = METRICS[metric]
    number = {
        "metric": metric,
        "value": value,
        "unit": known.unit,
        "direction": known.direction,
        "size_bytes": None,
        "statistic": "mean",
        "n": 1000,
        "node": None,
        "source": None,
        "destination": None,
        "parameters": {},
    }
    return number | more


def _halo(worse: float, limited: bool) -> list[Number]:
    rate = 20.0 if limited else 900.0
    return [
        _number(
            "exchange_time",
            round(worse * (28 + size / rate * (3 if size > 512 else 1)), 2),
            size_bytes=size,
            statistic="p50",
            n=5,
        )
        for size in [8 * 2**power for power in range(1, 11)]
    ]


def _ring(nodes: Sequence[str], slow: str | None) -> list[Number]:
    numbers = []
    for index, source in enumerate(nodes):
        destination = nodes[(index + 1) % len(nodes)]
        place = {"source": source, "destination": destination}
        rate = 23.5 if slow in (source, destination) else 1450 + 40 * (index % 5)
        for size in [0, *SIZES]:
            n = 1000 if size < 65536 else max(10, 41943040 // size)
            time = 6.1 + 0.2 * (index % 7) + size / rate
            more = {"size_bytes": size, "n": n, **place}
            numbers.append(_number("latency", round(time, 2), **more))
            if size:
                numbers.append(_number("bw", round(size / time, 2), **more))
    return numbers


def _collective(worse: float, limited: bool) -> list[Number]:
    rate = 22.0 if limited else 800.0
    return [
        _number("latency", round(worse * (14 + 2.5 * size / rate), 2), size_bytes=size)
        for size in [0, *SIZES[:21]]
    ]


def _hpcc(limited: bool) -> list[Number]:
    rate = 0.0234 if limited else 1.512
    return [
        _number("MaxPingPongLatency_usec", 9.412, n=8, statistic="max"),
        _number("MinPingPongBandwidth_GBytes", rate, n=8, statistic="min"),
        _number("RandomlyOrderedRingLatency_usec", 17.93, n=1),
        _number("HPL_Tflops", 0.004318, n=1),
    ]


def _queues() -> list[Number]:
    numbers = [_number("match_time", 4.1), _number("latency", 1.9, size_bytes=8)]
    for depth in [0, *(2**power for power in range(0, 14, 2)), 8192]:
        for order in ("first", "last"):
            added = 0.004 * depth if order == "last" else 0
            own = {"parameters": {"depth": depth, "order": order}, "size_bytes": 8}
            numbers.append(_number("latency", 1.9 + added, **own))
    for reuse in range(0, 101, 25):
        numbers += [
            _number(
                "bw", 9000 + size + reuse, size_bytes=size, parameters={"reuse": reuse}
            )
            for size in SIZES[::2]
        ]
    return numbers


def _noise(repeats: int, numbers: int) -> np.ndarray:
    """Draw what repeats add to each number, repeat by repeat; the median is 0."""
    drawn = np.random.default_rng(1).standard_normal((repeats, numbers))
    return (drawn - np.median(drawn, axis=0)).ravel()


def _row(case: dict[str, Any], number: Number, system: str) -> Number:
    """Build a row of measurements.parquet."""
    taken = {
        key: case[key]
        for key in ("session", "repeat", "partition", "environment", "check", "case")
    }
    return (
        taken
        | {
            "run": "20261121T063015Z-acceptance",
            "system": system,
            "parameters": parameters_text(
                {**case["parameters"], **number["parameters"]}
            ),
            "job_id": case["job_id"],
            "nodes": " ".join(case["nodes"]),
            "start_time": case["start_time"],
        }
        | {key: value for key, value in number.items() if key != "parameters"}
    )


_FACTS = {
    "cpus": 2,
    "sockets": 1,
    "cores_per_socket": 2,
    "threads_per_core": 1,
    "memory_mib": 24000,
    "cpu_model": "AMD EPYC 7B13",
    "os": "Debian 12.11",
    "kernel": "6.18.5",
}

_SOFTWARE = {
    "seatrial": "0.1.0",
    "git_commit": "b14c586d0f",
    "dirty": False,
    "reframe": "4.10.4",
    "python": "3.11.2",
    "slurm": "22.05.8",
    "stacks": [
        {"name": "openmpi", "version": "4.1.4", "provider": "distribution"},
        {"name": "mpich", "version": "4.0.2", "provider": "distribution"},
        {"name": "intelmpi", "version": "2021.16", "provider": "wheels"},
    ],
}


def sample_manifest(
    nodes: Sequence[str],
    absent: str | None,
    cases: Sequence[Case],
    system: str,
) -> dict[str, Any]:
    """Build the manifest of a run of these cases."""
    sessions = list(dict.fromkeys((case.session, case.repeat) for case in cases))
    return {
        "schema": 1,
        "run": "20261121T063015Z-acceptance",
        "system": system,
        "description": "4 nodes in containers on one machine",
        "campaign": "acceptance",
        "partial": False,
        "started": "2026-11-21T06:30:15+00:00",
        "ended": "2026-11-21T06:34:52+00:00",
        "demonstration": True,
        "software": _SOFTWARE,
        "nodes": [
            {
                "name": name,
                "facts": {} if name == absent else _FACTS,
                "state": "absent" if name == absent else "present",
                "reason": "down: Not responding" if name == absent else "",
            }
            for name in nodes
        ],
        "sessions": [
            {
                "name": session,
                "repeat": repeat,
                "started": f"2026-11-21T06:3{index % 5}:15+00:00",
                "ended": f"2026-11-21T06:3{index % 5}:52+00:00",
                "cases": sum(case.session == session for case in cases),
            }
            for index, (session, repeat) in enumerate(sessions)
        ],
        "checksums": {},
    }
