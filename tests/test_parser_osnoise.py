"""The parser of osnoise, on captured output."""

import json
from pathlib import Path
from typing import Any

import pytest
from row_damage import with_values, without_key

from seatrial.parsers.errors import ParseError
from seatrial.parsers.osnoise import parse_osnoise

ROW = (Path(__file__).parent / "data/osnoise/0.1.0-node.txt").read_text()
NODES = ["cn01", "cn02", "cn03"]
TEXT = "".join(ROW.replace('"cn01"', f'"{node}"') for node in NODES)


def test_rows_are_those_of_the_nodes_in_their_order() -> None:
    lines = TEXT.splitlines(keepends=True)
    text = "".join(["slurmstepd: hello\n", *reversed(lines)])
    rows = parse_osnoise(text.replace('"cn02"', '"cn02.cluster"'), NODES)
    assert [row.host for row in rows] == ["cn01", "cn02.cluster", "cn03"]
    assert rows[0].cores == 2
    assert rows[0].period_us == pytest.approx(4000, rel=1e-4)


def test_noise_without_a_period() -> None:
    none = dict.fromkeys(("period_us", "period_lost_percent", "period_cpu"))
    (row,) = parse_osnoise(with_values(ROW, 1, **none, periodic_cores=0), ["cn01"])
    assert (row.period_us, row.period_cpu) == (None, None)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"validation": "fail"}, "line 1: cn01: wrong results"),
        ({"host": "cn09"}, "line 1: cn09: not a node of the job"),
        ({"host": "cn02"}, "line 2: cn02: a second row"),
        ({"time_ms": 7}, "line 2: time_ms: 10000, in the first row 7"),
        ({"cores": 0}, "line 1: .* quanta of 0 cores"),
        ({"worst_lost_percent": 1.0}, "worst_lost_percent is of no core"),
        ({"lost_percent": 1.0}, "worst_lost_percent is of no core"),
        ({"p99_9_us": 1e9}, "p99_9_us is above max_us"),
        ({"periodic_cores": 3}, "too many periodic_cores"),
        ({"periodic_cores": 0}, "a part of the period is missing"),
        ({"period_us": None}, "a part of the period is missing"),
        ({"period_us": 0}, "period_us is 0"),
        ({"max_us": None}, "max_us: None is not of type float"),
        ({"more": 1}, "missing or unknown keys: more"),
        ({"program": "fixedwork"}, "program: 'fixedwork' is none of"),
    ],
)
def test_damaged_rows_are_refused(values: dict[str, Any], error: str) -> None:
    with pytest.raises(ParseError, match=error):
        parse_osnoise(with_values(TEXT, 1, **values), NODES)


@pytest.mark.parametrize("key", json.loads(ROW))
def test_missing_keys_are_refused(key: str) -> None:
    with pytest.raises(ParseError):
        parse_osnoise(without_key(TEXT, 2, key), NODES)


def test_missing_nodes_are_named() -> None:
    with pytest.raises(ParseError, match=r"no row of cn04, cn05"):
        parse_osnoise(TEXT, [*NODES, "cn04", "cn05"])
    with pytest.raises(ParseError, match="not a JSON row"):
        parse_osnoise(TEXT[:-20], NODES)
