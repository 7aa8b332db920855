"""The parsers of osu_init and osu_hello, on captured outputs of 6.2 and 7.4."""

import re
from pathlib import Path

import pytest

from seatrial.parsers.errors import ParseError
from seatrial.parsers.mpi_startup import OsuInit, parse_osu_init, verify_osu_hello

DATA = Path(__file__).parent / "data" / "osu"


def read(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


@pytest.mark.parametrize("version", ["6.2", "7.4"])
def test_init(version: str) -> None:
    text = read(f"init-{version}")
    found = parse_osu_init(text, 4)
    assert f"min: {found.min_ms} ms, max: {found.max_ms} ms" in text
    assert f"avg: {found.avg_ms} ms" in text


INIT = "# OSU MPI Init Test v7.4\nnprocs: 4, min: 5 ms, max: 20 ms, avg: 9 ms\n"


def test_init_is_read_whole() -> None:
    assert parse_osu_init(f"3 nodes\n{INIT}\n", 4) == OsuInit(5, 20, 9)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 0, "0 titles 'OSU MPI Init Test' and 0 lines"),
        (INIT[:24], 1, "1 titles 'OSU MPI Init Test' and 0"),
        (INIT[:-1], 2, "expected a whole line below"),
        (INIT + INIT, 4, "2 titles 'OSU MPI Init Test' and 2 lines"),
        (INIT.split("\n")[1] + "\n", 1, "expected a whole line below"),
        (INIT.replace("nprocs: 4", "nprocs: 2"), 2, "2 processes, expected 4"),
        (INIT.replace("max: 20", "max: 8"), 2, "min, avg and max are out of order"),
        (
            INIT.replace("min: 5", "min: -5"),
            2,
            "1 titles 'OSU MPI Init Test' and 0",
        ),
        (INIT.replace("20 ms", "20000000 ms"), 2, "no time that MPI_Init can take"),
        (re.sub("[0-9]+ ms", "0 ms", INIT), 2, "no time that MPI_Init can take"),
        (
            INIT.replace("20 ms", "9" * 5000 + " ms"),
            2,
            "1 titles 'OSU MPI Init Test' and 0",
        ),
        (INIT.replace("Init", "Hello World"), 1, "output of 'OSU MPI Hello World"),
        (
            read("latency-7.4"),
            2,
            "output of 'OSU MPI Latency Test', expected 'OSU MPI Init Test'",
        ),
    ],
)
def test_broken_init_is_refused(text: str, line: int, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_osu_init(text, 4)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_hello() -> None:
    for version in ("6.2", "7.4"):
        verify_osu_hello(read(f"hello-{version}"), 4)
    with pytest.raises(ParseError, match="line 2: 4 processes, expected 8"):
        verify_osu_hello(read("hello-7.4"), 8)
    with pytest.raises(ParseError, match="0 titles 'OSU MPI Hello World Test' and"):
        verify_osu_hello("", 4)
