# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Checks with millions of samples: a table on disk in place of objects in memory."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import reframe as rfm
from reframe.core.builtins import run_before

from seatrial.model.metrics import judged_statistic, split_flat_name
from seatrial.model.records import Sample
from seatrial.runs.raw_output import SAMPLES_FILE

if TYPE_CHECKING:
    import polars as pl

Lines = Callable[[], Iterable[str]]
"""Opens the output of the program, to read it line by line."""


class TabledCheck(rfm.RegressionTestPlugin):
    """A check that writes its samples to `seatrial.parquet`, block by block.

    They have no parameters. It comes before `SeatrialCheck` among the base classes.
    """

    output_file: str
    stagedir: str

    @abstractmethod
    def blocks(self, lines: Lines) -> Iterator["pl.DataFrame"]:
        """Convert the program's output to samples in blocks, or raise ParseError."""

    @run_before("run")
    def keep_table(self) -> None:
        """Keep the table beside the record."""
        self.keep_files: list[Any] = [*self.keep_files, SAMPLES_FILE]

    def read_samples(self, file: Path) -> list[Sample]:
        """Write the table; there are no samples in memory."""
        from seatrial.runs.sample_table import write_samples

        def lines() -> Iterator[str]:
            with file.open(encoding="utf-8", errors="replace") as stream:
                yield from stream

        try:
            write_samples(self._table, self.blocks(lines))
        except BaseException:
            self._table.unlink(missing_ok=True)
            raise
        return []

    def worst(self, flat: str) -> float:
        """Return the worst sample of a judged metric; ValueError without a sample."""
        import polars as pl

        from seatrial.runs.row_groups import blocks_of

        metric, size = split_flat_name(flat)
        own = (pl.col("metric") == metric.name) & pl.col("size_bytes").eq_missing(size)
        kept = (
            pl.col("value").min()
            if metric.direction == "higher"
            else pl.col("value").max()
        )
        parts = [
            block.filter(own).group_by("statistic").agg(kept)
            for block in blocks_of(
                self._table, "metric", "size_bytes", "statistic", "value"
            )
        ]
        worst = dict(pl.concat(parts).group_by("statistic").agg(kept).iter_rows())
        return float(worst[judged_statistic(worst)])

    @property
    def _table(self) -> Path:
        return Path(self.stagedir, SAMPLES_FILE)
