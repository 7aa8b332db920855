"""The chapter on what lies below MPI: each table from numbers that are known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_samples import CASE, judged, make_run, sample

from seatrial.model.cases import parameters_text
from seatrial.model.records import Measurement
from seatrial.report.below_mpi import below_mpi_chapter
from seatrial.report.chapters import chapters
from seatrial.report.render.figure import Table
from seatrial.runs.closed_run import Run

PAIR = "cn01 cn02"
HOME = Path(__file__).resolve().parents[1]


def row(
    check: str, metric: str, size: int, value: float, hca: str = "", **more: Any
) -> Measurement:
    case = replace(CASE, check=check, case=check, declared=())
    taken = sample(case, value, metric=metric, size=size, pair=more.pop("pair", PAIR))
    return replace(taken, hca=hca or None, parameters=parameters_text(more))


def run_of(*rows: Measurement, cores: int = 1) -> Run:
    run = make_run([CASE], rows)
    for node in run.manifest["nodes"]:
        node["facts"]["cores"] = cores
    return run


def table(run: Run, title: str) -> Table:
    (chapter,) = below_mpi_chapter(run)
    (found,) = (found for name, found in chapter.tables if name.startswith(title))
    return found


def titles(run: Run) -> list[str]:
    return [title for chapter in below_mpi_chapter(run) for title, _ in chapter.tables]


def verbs(metric: str, size: int, value: float, **more: Any) -> Measurement:
    check = "VerbsLatency" if "latency" in metric else "VerbsBandwidth"
    return row(check, metric, size, value, "mlx5_0:1", **more)


def test_without_verbs_there_is_no_chapter() -> None:
    run = run_of(row("OsuLatency", "latency", 8, 2.0))
    assert below_mpi_chapter(run) == ()
    assert "below-mpi" not in {each.name for each in chapters(run, judged(run), HOME)}


def test_chapter_stands_in_the_report() -> None:
    run = run_of(verbs("write_latency", 8, 1.0))
    assert "below-mpi" in {each.name for each in chapters(run, judged(run), HOME)}


def test_mpi_adds_what_its_latency_is_above_a_write() -> None:
    """A latency within a node, and sizes that one side lacks, do not count."""
    run = run_of(
        *(row("OsuLatency", "latency", 8, value) for value in (1.4, 1.5, 9.0)),
        row("OsuLatency", "latency", 8, 0.2, pair="cn01 cn01"),
        row("OsuLatency", "latency", 16, 7.0),
        row("PairSweep", "latency", 8, 5.0),
        verbs("write_latency", 8, 1.0, operation="write"),
        verbs("write_latency", 32, 1.1, operation="write"),
    )
    (found,) = table(run, "What MPI adds").rows
    assert found[1:] == (
        "mlx5_0:1",
        "8 B",
        "1.500",
        "1.000",
        "0.500 us",
        "50 % of verbs",
    )


def test_sweep_stands_in_where_osu_is_not_installed() -> None:
    run = run_of(row("PairSweep", "latency", 8, 3.0), verbs("write_latency", 8, 1.0))
    (found,) = table(run, "What MPI adds").rows
    assert found[3:6] == ("3.000", "1.000", "2.00 us")


def test_share_is_that_of_one_queue_pair_and_one_buffer() -> None:
    run = run_of(
        row("OsuBandwidth", "bw", 1 << 20, 9000.0, buffers="single", between="nodes"),
        row("OsuBandwidth", "bw", 1 << 20, 1000.0, buffers="multiple"),
        verbs("bw", 1 << 20, 12_000.0),
        verbs("bw", 1 << 20, 24_000.0, qps=2),
        row("OsuBandwidth", "bibw", 1 << 20, 30_000.0, buffers="single"),
        verbs("bibw", 1 << 20, 20_000.0),
    )
    one, both = table(run, "Bandwidth of MPI").rows
    assert one[1:] == ("mlx5_0:1", "one way", "1 MiB", "9,000", "12,000", "75 %")
    assert both[2:] == ("both ways", "1 MiB", "30,000", "20,000", "150 %")


def test_striping_gains_over_the_better_port() -> None:
    def window(value: float, hca: str, **more: Any) -> Measurement:
        return row("WindowBandwidth", "bw", 1 << 20, value, hca, processes=1, **more)

    run = run_of(
        window(1000.0, "a:1"),
        window(800.0, "b:1"),
        window(1900.0, "a:1,b:1", policy="striped"),
        window(900.0, "a:1,b:1", policy="bound"),
    )
    striped, bound = table(run, "Two ports").rows
    assert striped[1:] == ("striped", "one way", "1 MiB", "1,900", "1,000", "+90 %")
    assert bound[1:] == ("bound", "one way", "1 MiB", "900.0", "1,000", "-10 %")


def test_jump_is_found_by_number_of_pairs() -> None:
    """As published: 1.86 us at 128 B, 5.87 us at 256 B with 8 pairs."""
    latencies = {64: 1.8, 128: 1.86, 256: 5.87, 512: 6.0, 8192: 60.0}
    run = run_of(
        *(
            row("MultiPairVerbs", "write_latency", size, value, "a:1")
            for size, value in latencies.items()
        ),
        *(
            row("MultiPairVerbs", "write_latency", size, value, "a:1", pairs=1)
            for size, value in ((64, 1.0), (128, 1.0), (256, 1.5))
        ),
    )
    one, every = table(run, "Largest step").rows
    assert one[2:] == ("1", "128 B", "256 B", "1.000", "1.500", "1.5")
    assert every[2:] == ("all cores", "128 B", "256 B", "1.860", "5.870", "3.16")


@pytest.mark.parametrize("ports", [("a:1", "a:2"), ("a:1", "b:1")])
def test_connections_are_shared_by_the_adapters(ports: tuple[str, str]) -> None:
    """4 nodes of 12 cores: 3 x 12^2 = 432 connections for one adapter."""
    rows = (row("VerbsLatency", "read_latency", 8, 2.0, port) for port in ports)
    found = table(run_of(*rows, cores=12), "Connections")
    adapters = len({port[0] for port in ports})
    assert [each[1:3] for each in found.rows] == [
        (f"{ranks}", f"{-(-3 * ranks**2 // adapters)}") for ranks in (1, 2, 4, 8, 12)
    ]
    assert found.rows[-1][3] == {1: "6.75 MiB", 2: "3.38 MiB"}[adapters]


def test_tables_need_both_sides() -> None:
    assert titles(run_of(verbs("write_latency", 8, 1.0))) == [
        "Connections if all ranks talk to all"
    ]
