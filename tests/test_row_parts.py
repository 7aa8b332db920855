"""Measurements are read by columns and by parts; the size of a run changes nothing."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from samples import sample_criteria, sample_run

from seatrial.judge.judge import judge
from seatrial.runs.measurement_table import SCHEMA, parse_table
from seatrial.runs.row_parts import batches, parts, parts_in_blocks

KEYS = ("check", "metric", "size_bytes")


@pytest.fixture
def stored(tmp_path: Path) -> pl.LazyFrame:
    file = tmp_path / "measurements.parquet"
    sample_run().measurements.collect().cast(pl.Schema(SCHEMA)).write_parquet(file)
    return parse_table(file.read_bytes(), file, few=0)


def test_a_stored_table_is_read_as_one_in_memory(stored: pl.LazyFrame) -> None:
    for table in (stored, stored.filter(metric="bw")):
        memory = table.collect()
        assert_frame_equal(table.head(5).collect(), memory.head(5))
        assert_frame_equal(table.slice(3, 4).collect(), memory.slice(3, 4))
        assert_frame_equal(table.select("value").collect(), memory.select("value"))
    assert stored.select(pl.len()).collect().item() == stored.collect().height


@pytest.mark.parametrize("few", [pytest.param(1, marks=pytest.mark.slow), 50, 1 << 18])
@pytest.mark.parametrize("block", [pytest.param(3, marks=pytest.mark.slow), 1 << 16])
def test_parts_have_all_rows_once(
    monkeypatch: pytest.MonkeyPatch, stored: pl.LazyFrame, few: int, block: int
) -> None:
    monkeypatch.setattr("seatrial.runs.row_parts.FEW_ROWS", few)
    monkeypatch.setattr("seatrial.runs.row_parts.BLOCK_ROWS", block)
    whole = stored.collect()
    expected = whole.partition_by(KEYS, as_dict=True)
    found = {key: load() for key, load in parts(stored, *KEYS)}
    assert list(found) == list(expected)
    for key, rows in found.items():
        assert_frame_equal(rows, expected[key])
    in_blocks = {key: pl.concat(load()) for key, load in parts_in_blocks(stored, *KEYS)}
    for key, rows in in_blocks.items():
        assert_frame_equal(rows, expected[key])
    assert list(in_blocks) == list(expected)
    read = [*batches(stored, *KEYS)]
    assert sum(rows.height for rows in read) == whole.height
    assert all(rows.height <= few or rows.select(KEYS).n_unique() == 1 for rows in read)


def test_a_judgement_does_not_depend_on_the_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, criteria = sample_run(), sample_criteria()
    whole = judge(run, criteria).digest
    for module in ("runs.row_parts", "judge.case_numbers"):
        monkeypatch.setattr(f"seatrial.{module}.FEW_ROWS", 1)
    monkeypatch.setattr("seatrial.runs.row_parts.BLOCK_ROWS", 7)
    monkeypatch.setattr("seatrial.judge.by_rows._ROWS", 3)
    monkeypatch.setattr("seatrial.judge.scatter._CELLS", 2)
    assert judge(run, criteria).digest == whole
