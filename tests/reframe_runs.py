"""Run real ReFrame on small check files, with the local scheduler."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from seatrial.checks.sources import files_of, known_checks
from seatrial.paths import SITE

HOME = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).parent / "data" / "settings.json"
CHECKS = HOME / "reframe-checks" / "checks"
OURS = known_checks(CHECKS) - known_checks(CHECKS / SITE)
"""The checks of Seatrial: a site may have more."""

FAKE = """\
import reframe as rfm
from reframe.core.builtins import *
from seatrial.checks.base import SeatrialCheck
from seatrial.parsers.errors import ParseError
from seatrial.model.records import Sample


@rfm.simple_test
class Fake(SeatrialCheck):
    valid_prog_environs = ["+imb"]
    reference_file = "fake.yaml"
    executable = "echo"
    executable_opts = ["8 1.5"]
    judged = ["latency_8B"]

    def extract(self, text):
        size, time = text.split()
        return [Sample("latency", float(time), int(size))]
"""
"""A check that measures 1.5 us at 8 B."""


def references(leaf: str = "[2, null, 0, us]") -> str:
    """The YAML file of references for FAKE."""
    return f"Fake:\n  $index: [$partition]\n  sample:batch:\n    latency_8B: {leaf}\n"


@dataclass(frozen=True)
class Fake:
    """A check and its references (None: no reference file)."""

    source: str = FAKE
    yaml: str | None = field(default_factory=references)


@dataclass(frozen=True)
class Outcome:
    """One check's row in the run report, and its record."""

    row: dict[str, Any]
    record: dict[str, Any] | None

    @property
    def verdict(self) -> tuple[str, str | None]:
        """Result, and the phase that failed."""
        return self.row["result"], self.row["fail_phase"]

    @property
    def reason(self) -> str:
        """Why it failed, without the number of the fake."""
        return re.sub(r"([Ff]ake)\d+", r"\1", str(self.row["fail_reason"]))


def reframe(
    *options: str, folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run ReFrame in a folder, free of the caller's own RFM_ variables."""
    return reframe_within(120, options, folder, variables)


def reframe_within(
    timeout_s: int, options: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run ReFrame with another time limit than that of most tests."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RFM_")}
    return subprocess.run(
        [str(Path(sys.executable).with_name("reframe")), *options],
        cwd=folder,
        env={**environment, "RFM_COLORIZE": "0", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


def check_paths(*options: str) -> list[str]:
    """Return options with the files of the checks that `-n` selects, or with all.

    ReFrame takes half of its time to load the others.
    """
    patterns = [value for option, value in pairwise(options) if option == "-n"]
    words = tuple(re.findall(r"[A-Z]\w*", " ".join(patterns)))
    chosen = {name for name in OURS if name.startswith(words)}
    places = files_of(CHECKS, chosen) or [CHECKS]
    return ["-R", *(f"--checkpath={place}" for place in places)]


def run_rows(
    folder: Path, fakes: Mapping[str, Fake], *options: str, num_nodes: int = 1
) -> list[tuple[str, dict[str, Any]]]:
    """Run all fakes in one ReFrame session; the rows of its report by fake.

    Each has its own class, check file and reference file.
    """
    (folder / "checks").mkdir(parents=True)
    for number, fake in enumerate(fakes.values()):
        source = _rename(fake.source, number)
        (folder / "checks" / f"fake{number}.py").write_text(source)
        if fake.yaml is not None:
            yaml = _rename(fake.yaml, number)
            (folder / f"fake{number}.yaml").write_text(yaml)
    result = reframe(
        *("-C", str(SETTINGS), "-c", "checks", "-r", "--keep-stage-files"),
        *("--prefix", str(folder), "--report-file", "report.json"),
        *("-S", f"num_nodes={num_nodes}", *options),
        folder=folder,
        RFM_REFERENCE_PREFIX=str(folder),
    )
    file = folder / "report.json"
    assert file.is_file(), result.stdout + result.stderr
    names = list(fakes)
    rows = [
        (names[int(Path(row["filename"]).stem.removeprefix("fake"))], row)
        for row in json.loads(file.read_text())["runs"][-1]["testcases"]
    ]
    assert {name for name, _ in rows} == set(fakes), result.stdout + result.stderr
    return rows


def run_fakes(
    folder: Path, fakes: Mapping[str, Fake], *options: str, num_nodes: int = 1
) -> dict[str, Outcome]:
    """Run fakes of one case each in one ReFrame session; their outcomes by name."""
    outcomes = {}
    for name, row in run_rows(folder, fakes, *options, num_nodes=num_nodes):
        record = Path(row["stagedir"], "seatrial.json")
        outcomes[name] = Outcome(
            row, json.loads(record.read_text()) if record.is_file() else None
        )
    return outcomes


def record_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a case, with the samples of its table if it has one."""
    stage = Path(row["stagedir"])
    record: dict[str, Any] = json.loads((stage / "seatrial.json").read_text())
    table = stage / "seatrial.parquet"
    if table.is_file():
        record["samples"] += pl.read_parquet(table).rows(named=True)
    return record


def _rename(text: str, number: int) -> str:
    return re.sub(r"\b([Ff]ake)\b", rf"\g<1>{number}", text)
