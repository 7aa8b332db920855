"""Numbers of all pairs of nodes go to disk block by block, never as a whole."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from criteria_samples import criteria
from judge_samples import CASE, LATENCY
from test_parser_pairsweep import CLEAN, SLOW
from test_results import MANIFEST

from seatrial.campaign.collected import CaseTable, Collected
from seatrial.checks.pair_samples import pair_blocks
from seatrial.judge.judge import judge
from seatrial.memory import return_large_arrays
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairsweep import SweepReader, parse_pairsweep
from seatrial.parsers.pairsweep_rows import PairRow, read_quiet
from seatrial.report.chapters import contents
from seatrial.runs.closed_run import load_run
from seatrial.runs.closed_sessions import close_session, session_blocks
from seatrial.runs.open_run import RunFolder
from seatrial.runs.row_groups import BLOCK_ROWS, FEW_ROWS, write_blocks
from seatrial.runs.sample_table import SCHEMA, read_samples, sample_block, write_samples

HOME = Path(__file__).resolve().parents[1]
TOOLS = HOME / "tools"
MOST_GROWTH_MIB = 80
"""Growth from 1,000 to 37,000 pairs; as objects in memory, 65,000 take 400 MiB."""

MOST_BYTES_PER_ROW = 320
"""Growth of judge and report to 510,000 numbers; as one table they take 460 bytes."""


def blocks_of_text(text: str) -> Iterator[pl.DataFrame]:
    lines = text.splitlines(keepends=True)
    return pair_blocks(SweepReader().pairs(lines), read_quiet(lines))


def expected(row: PairRow, prefix: str = "") -> list[Sample]:
    """Return latency, and bandwidth of both directions, one by one."""
    place: dict[str, Any] = {
        "hca": row.hca,
        "round": row.round,
        "start_time": row.start_time,
    }
    there = {"source": row.source, "destination": row.destination} | place
    back = {"source": row.destination, "destination": row.source} | place
    latency, bw = f"{prefix}latency", f"{prefix}bw"
    return [
        Sample(latency, row.latency_p50_us, 8, "p50", row.latency_n, **there),
        Sample(latency, row.latency_p99_us, 8, "p99", row.latency_n, **there),
        Sample(bw, row.bw_mb_per_s, 1 << 20, "mean", row.bw_n, **there),
        Sample(bw, row.bw_back_mb_per_s, 1 << 20, "mean", row.bw_n, **back),
    ]


@pytest.mark.parametrize("text", [CLEAN, SLOW])
def test_samples_of_pairs(text: str) -> None:
    sweep = parse_pairsweep(text)
    samples: list[Sample] = []
    for row in sweep.pairs:
        alone = sweep.quiet.get(row.key)
        samples += expected(row, "crowded_" if alone else "")
        samples += expected(alone) if alone else []
        spread = Sample("start_spread", row.start_spread_us, None, "max")
        place: dict[str, Any] = {
            name: getattr(row, name) for name in ("hca", "round", "start_time")
        }
        place |= {"source": row.source, "destination": row.destination}
        samples.append(replace(spread, **place))
    table = pl.concat(blocks_of_text(text))
    assert table.rows(named=True) == sample_block(samples).rows(named=True)


def test_a_pair_that_was_not_verified_is_an_error() -> None:
    text = SLOW.replace('"validation": "pass"', '"validation": "off"', 1)
    with pytest.raises(ParseError, match="cn01 cn04: not verified"):
        list(blocks_of_text(text))


@pytest.mark.parametrize(
    ("sample", "problem"),
    [
        (Sample("no_metric", 1.0), "not a valid number: Sample.metric='no_metric'"),
        (Sample("latency", float("nan")), "not a valid number: .*value=nan"),
    ],
)
def test_a_table_has_valid_numbers_only(
    tmp_path: Path, sample: Sample, problem: str
) -> None:
    with pytest.raises(ParseError, match=problem):
        write_samples(tmp_path / "refused.parquet", [sample_block([sample])])
    file = tmp_path / "written.parquet"
    with file.open("wb") as stream:
        write_blocks(stream, [sample_block([sample])], SCHEMA)
    with pytest.raises(ParseError, match=problem):
        list(read_samples(file))


@pytest.mark.parametrize("content", [b"", b"PAR1 nothing"])
def test_a_damaged_table_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "seatrial.parquet"
    file.write_bytes(content)
    with pytest.raises(ParseError):
        list(read_samples(file))
    pl.DataFrame({"value": [1.0]}).write_parquet(file)
    with pytest.raises(ParseError, match="columns value"):
        list(read_samples(file))


def test_a_full_disk_is_an_error_of_the_system() -> None:
    block = pl.DataFrame({"value": range(BLOCK_ROWS)})
    full = pytest.raises(OSError, match="No space left on device")
    with Path("/dev/full").open("wb") as stream, full:
        write_blocks(stream, 99 * [block], {"value": pl.Int64})


def test_memory_does_not_grow_with_the_number_of_pairs(tmp_path: Path) -> None:
    small, large = (measured(tmp_path, nodes) for nodes in (32, 192))
    assert (small["rows"], large["rows"]) == (5 * 992 + 4, 5 * 36_672 + 4)
    assert large["groups"] > 1 == small["groups"]
    assert large["mib"] - small["mib"] <= MOST_GROWTH_MIB


@pytest.mark.slow
def test_judge_and_report_hold_one_metric_at_a_time(tmp_path: Path) -> None:
    small, large = (close_sweep(tmp_path / str(nodes), nodes) for nodes in (32, 320))
    base, peak = (in_a_process("judge", run) for run in (small, large))
    assert peak["rows"] > FEW_ROWS
    growth = (peak["mib"] - base["mib"]) * 2**20
    assert growth / peak["rows"] <= MOST_BYTES_PER_ROW


def measured(folder: Path, nodes: int) -> dict[str, int]:
    """Read, collect and close a sweep of two rails in a process of its own."""
    return in_a_process("close", folder / str(nodes), nodes)


def in_a_process(*arguments: object) -> dict[str, int]:
    """Return the answer of `main` in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, int] = json.loads(done.stdout)
    return answer


def close_sweep(folder: Path, nodes: int) -> Path:
    """Close a run of one session, a sweep of a model machine of two rails."""
    sys.path.insert(0, str(TOOLS))
    from pairs_memory import Machine

    machine = Machine(nodes, rails=2)
    samples = folder / "seatrial.parquet"
    folder.mkdir()
    quiet = read_quiet(machine.output())
    write_samples(samples, pair_blocks(SweepReader().pairs(machine.output()), quiet))
    names = ("check", "case", "partition", "environment", "session", "repeat", "job_id")
    same = {name: getattr(CASE, name) for name in names}
    same |= {"run": "r", "block": "pairs", "system": "model", "parameters": "{}"}
    same |= {"nodes": " ".join(machine.names), "start_time": 1.0}
    same |= {"replay": False, "attempt": 1}
    run = RunFolder(folder, "model", "r")
    run.create()
    record = {"name": CASE.session, "interrupted": []}
    results = Collected(tables=[CaseTable(samples, same)])
    close_session(run.path, record, [CASE], results.blocks())
    manifest = {**MANIFEST, "run": "r", "system": "model", "nodes": []}
    return run.close(manifest, [CASE], session_blocks(run.path, CASE.session))


def main(task: str, folder: str, nodes: str = "") -> None:
    """Print the rows and row groups of a sweep, and the peak of memory of a task."""
    run = Path(folder)
    if task == "close":
        run = close_sweep(run, int(nodes))
    else:
        return_large_arrays()
        sweep = load_run(run)
        contents(sweep, judge(sweep, criteria(LATENCY)), HOME)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    file = run / "measurements.parquet"
    rows = pl.scan_parquet(file).select(pl.len()).collect().item()
    print(json.dumps({"rows": rows, "mib": peak, "groups": -(-rows // BLOCK_ROWS)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
