"""References: validation with file and line, and the same lookup as ReFrame's."""

import json
import math
import re
from pathlib import Path

import pytest
from reframe.utility.sanity import reference_bounds
from reframe_runs import CHECKS, FAKE, HOME, Fake, run_rows

from seatrial.errors import SeatrialError
from seatrial.old_limits import Limit, References, known_checks

PROVENANCE = """\
_provenance:
  kind: promised
  document: Contract 4711
  clause: "3.2"
  who: A. Engineer
  date: 2026-11-21
  method: read from the contract
"""
GOOD = (
    PROVENANCE
    + """\
Fake:
  $index: [$partition, $environ, num_nodes]
  sample:batch:
    intelmpi:
      4: {latency_8B: [2, null, 0.05, us], bw_4MiB: [10000, -0.1, null, MB/s]}
"""
)
LEAF = "[2, null, 0.05, us]"


def load(tmp_path: Path, text: str) -> References:
    (tmp_path / "fake.yaml").write_text(text)
    return References.load(tmp_path, known={"Fake"})


def test_limit_is_absolute_and_knows_its_source(tmp_path: Path) -> None:
    references = load(tmp_path, GOOD)
    source = "Contract 4711, 3.2"

    def limit(metric: str, check: str = "Fake") -> Limit | None:
        return references.limit(check, "sample:batch", "intelmpi", {}, 4, metric)

    latency = Limit(2.0, None, 2.1, "us", "promised", source)
    bandwidth = Limit(10000.0, 9000.0, None, "MB/s", "promised", source)
    assert limit("latency_8B") == latency
    assert limit("bw_4MiB") == bandwidth
    assert limit("bw_8B") is None
    assert limit("latency_8B", check="Other") is None


BROKEN = [
    (GOOD.replace("Fake:", "Fake: ["), 10, "not valid YAML: expected ',' or"),
    ("", 1, "expected a mapping of a class of checks, and _provenance"),
    (GOOD.removeprefix(PROVENANCE), 1, "no _provenance"),
    (GOOD.replace("  who: A. Engineer\n", ""), 2, "_provenance has no who"),
    (GOOD.replace("who:", "whom: B\n  who:"), 5, "_provenance has no entry 'whom'"),
    (GOOD.replace("promised", "guessed"), 2, "kind is 'guessed'; expected one of pro"),
    (GOOD.replace("promised", "published"), 2, "numbers that papers published are hi"),
    (GOOD + "published: system\n", 13, "numbers that papers published are history to"),
    (GOOD.replace("  kind: promised", "  <<: 3"), 2, "not valid YAML: while constru"),
    (GOOD + "? !!set {a}\n: 1\n", 13, "key {'a'}; expected a text that is not yet t"),
    (GOOD.replace("2026-11-21", "today"), 6, "date is 'today'; expected a date"),
    (GOOD.replace("Fake", "Fakes"), 8, "unknown class 'Fakes'; expected one of Fake"),
    (GOOD.replace("  $index", "  index"), 8, "class Fake has no $index"),
    (GOOD.replace("num_nodes]", "$nodes]"), 9, "$index holds '$nodes'; expected"),
    (GOOD.replace("      4:", "      '4':"), 12, "'4' is no number of nodes"),
    (GOOD.replace("intelmpi", "12"), 11, "12 is no name for $environ"),
    (GOOD.replace("intelmpi", "'*mpi'"), 11, "'*mpi' is no regular expression"),
    (GOOD.replace("latency_8B", "speed_8B"), 12, "unknown metric 'speed_8B'"),
    (GOOD.replace("latency_8B", "latency_8KB"), 12, "not a message size: '8KB'"),
    (GOOD.replace(LEAF, "2"), 12, "latency_8B is 2; expected [value, lower, upper, "),
    (GOOD.replace(LEAF, "[2, null, 0.05]"), 12, "expected [value, lower, upper, unit]"),
    (GOOD.replace("[2,", "[fast,"), 12, "value 'fast'; expected a number >= 0"),
    (GOOD.replace("[2,", "[1e6,"), 12, "value '1e6'; expected a number >= 0; YAML wan"),
    (GOOD.replace("[2,", "[.nan,"), 12, "value nan; expected a number"),
    (GOOD.replace("[2,", "[true,"), 12, "value True; expected a number"),
    (GOOD.replace("[2,", "[-2,"), 12, "value -2; expected a number >= 0"),
    (GOOD.replace("-0.1", "0.1"), 12, "lower 0.1; expected null or a fraction from -1"),
    (GOOD.replace("-0.1", "-10"), 12, "lower -10; expected null or a fraction from -1"),
    (GOOD.replace("0.05", "-0.05"), 12, "upper -0.05; expected null or a fraction >="),
    (GOOD.replace("0.05", "null"), 12, "is better lower; expected an upper bound"),
    (GOOD.replace("-0.1", "null"), 12, "is better higher; expected a lower bound"),
    (GOOD.replace("us]", "ms]"), 12, "latency_8B is in 'ms'; expected 'us'"),
    (GOOD.replace("    intelmpi", "\tintelmpi"), 11, "not valid YAML: found char"),
    (GOOD + "Fake: {}\n", 13, "key 'Fake'; expected a text that is not yet there"),
    (GOOD.replace("4: {", "4: [").replace("}", "]"), 12, "expected a mapping of metri"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_broken_file_names_line_and_reason(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    with pytest.raises(SeatrialError) as caught:
        load(tmp_path, text)
    expected = (
        re.escape(f"{tmp_path / 'fake.yaml'}:{line}: ") + ".*" + re.escape(reason)
    )
    assert re.match(expected, str(caught.value)), caught.value


def test_broken_characters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match=r"fake\.yaml: not valid YAML: unaccep"):
        load(tmp_path, GOOD + "\0")


def test_class_has_one_file(tmp_path: Path) -> None:
    (tmp_path / "also.yaml").write_text(GOOD)
    with pytest.raises(SeatrialError, match=r"fake\.yaml:8: class Fake has .*also\."):
        load(tmp_path, GOOD)


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match="no references there"):
        References.load(tmp_path)


def test_references_of_the_lab_are_valid() -> None:
    references = References.load(HOME / "reference-data" / "lab")
    assert set(references.checks) == known_checks(CHECKS)


TREE = """\
Fake:
  $index: [$partition, $environ, num_nodes, protocol]
  sample:debug: {intelmpi: {4: {.*: {latency_8B: [1, null, 0, us]}}}}
  sample:.*:
    open.*: {4: {.*: {latency_8B: [2, null, 0.5, us]}}}
    intelmpi:
      4: {eager: {latency_8B: [3, null, 0.1, us]}, rndv: {latency_8B: [9, 0, 0, us]}}
      1: {rndv: {latency_8B: [5, -0.5, 0.5, us]}, .*_get: {latency_8B: [6, 0, 1, us]}}
    .*:
      1: {put: {latency_8B: [0, null, 7, us]}}
"""
EXPECTED = {2.0, 3.0, 9.0, 5.0, 6.0, 0.0, None}
PARAMETRISED = (
    FAKE.replace(
        "    executable =",
        '    protocol = parameter(["eager", "rndv", "rndv_get", "put"])\n'
        "    count = parameter([1, 4])\n"
        "    executable =",
    ).replace("+imb", "+mpi")
    + """
    @run_before("performance")
    def pretend(self):
        self.num_nodes = self.count
"""
)


def test_lookup_agrees_with_reframe(tmp_path: Path) -> None:
    """Hold every case of a real session against ReFrame's own reference."""
    (tmp_path / "reference").mkdir()
    references = load(tmp_path / "reference", PROVENANCE + TREE)
    rows = run_rows(tmp_path / "run", {"fake": Fake(PARAMETRISED, PROVENANCE + TREE)})
    assert len(rows) == 3 * 4 * 2
    values = set()
    for _, row in rows:
        _, value, lower, upper, _, _ = row["perfvalues"]["sample:batch:latency_8B"]
        bounds = reference_bounds(value, lower, upper)
        record = json.loads(Path(row["stagedir"], "seatrial.json").read_text())
        parameters = record["parameters"]
        limit = references.limit(
            record["check"].rstrip("0"),
            record["partition"],
            record["environment"],
            parameters,
            parameters["count"],
            "latency_8B",
        )
        found: tuple[float | None, ...] = (0, None, None)
        if limit is not None:
            found = (limit.value, limit.lower, limit.upper)
        bounds = [None if math.isinf(bound) else bound for bound in bounds]
        assert found == (value, *bounds), parameters
        values.add(limit and limit.value)
    assert values == EXPECTED
