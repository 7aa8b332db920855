"""Sides of a comparison: how they are named, and which cannot be compared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bakeoff_samples import (
    LEVELS,
    WEIGHTS,
    entrant,
    of,
    published,
    run_of,
    side,
    vendor,
    weights_of,
)

from seatrial.compare.compare import compare
from seatrial.compare.sides import Entrant, Named, open_sides, priced
from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError

# ---- bad input


def in_units(system: str) -> Entrant:
    cases, rows = vendor(levels={"OsuLatency": LEVELS["OsuLatency"]})
    return entrant(
        "b", run_of(cases, [replace(row, unit="ms") for row in rows], system)
    )


def weights_in(tmp_path: Path, old: str, new: str) -> Weights:
    return weights_of(tmp_path, WEIGHTS.replace(old, new))


REFUSED: list[tuple[Callable[[Path], Any], str]] = [
    (
        lambda _: compare([side("a")]),
        "compare: expected at least two sides, got one",
    ),
    (
        lambda _: compare(
            [side("a"), entrant("b", run_of(*vendor(), "b", campaign="smoke"))]
        ),
        (
            "a is a run of campaign 'bakeoff', b of 'smoke'; expected one campaign: "
            "only what was asked of all alike can be compared"
        ),
    ),
    (
        lambda _: compare(
            [side("a"), entrant("b", run_of(*vendor(), "b", replay="there"))]
        ),
        "b is a replay of recorded output, a was measured; expected one or the other",
    ),
    (
        lambda _: compare([side("a"), in_units("b")]),
        (
            "the unit of latency of OsuLatency is 'us' in a, 'ms' in b; expected the "
            "same: measure or import one of them again"
        ),
    ),
    (
        lambda _: compare([side("a"), of("b", {"bw_8B": [1, 1]}, check="Npb")]),
        (
            "no number that all sides have: a has LammpsRhodo, OsuBandwidth, "
            "OsuLatency with openmpi on 2 nodes; b has Npb with openmpi on 2 nodes; "
            "expected the same check, parameters, environment, number of nodes, metric "
            "and size; RUN@ENVIRONMENT compares different environments"
        ),
    ),
    (
        lambda folder: compare(
            [side("a"), side("b")],
            weights_of(
                folder,
                "schema: 1\ngroups: [{name: a, weight: 1, numbers: [{check: X}]}]",
            ),
        ),
        (
            "weights bakeoff choose no number that all sides have; a has LammpsRhodo, "
            "OsuBandwidth, OsuLatency with openmpi on 2 nodes; b has LammpsRhodo, "
            "OsuBandwidth, OsuLatency with openmpi on 2 nodes"
        ),
    ),
    (
        lambda folder: compare(
            [side("a"), side("b")],
            weights_in(folder, "margin", "rank_by: price\nmargin"),
        ),
        (
            "the weights rank by price, and that of a is unknown; say --price "
            "a=AMOUNT, or leave that side out"
        ),
    ),
    (
        lambda folder: compare(
            open_sides(
                ["published:mt23108-pcix", "published:mt25208-pcie"],
                pytest.fail,
                published,
            ),
            weights_of(folder),
        ),
        (
            "weights bakeoff choose numbers of checks; published systems have none: "
            "compare them without weights"
        ),
    ),
    (
        lambda _: priced([side("a"), side("b")], {"c": 1.0}, {}),
        "--price: no side 'c'; expected one of a, b",
    ),
    (
        lambda _: entrant("a", run_of(*vendor(), "acme"), "mpich"),
        (
            "run 20260101T000000Z-acme of acme has no environment 'mpich'; expected "
            "one of openmpi"
        ),
    ),
]


@pytest.mark.parametrize(("act", "message"), REFUSED)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, act: Callable[[Path], Any], message: str
) -> None:
    with pytest.raises(SeatrialError) as caught:
        act(tmp_path)
    assert str(caught.value) == message


# ---- sides as they are named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lab/latest", Named("lab/latest")),
        ("acme=lab/latest", Named("lab/latest", "acme")),
        ("acme=lab/latest@mpich", Named("lab/latest", "acme", "mpich")),
        ("latest@mpich", Named("latest", "", "mpich")),
        ("published:liu", Named("published:liu")),
        ("old=published:liu", Named("published:liu", "old")),
        ("/runs/a=b/r1", Named("/runs/a=b/r1")),
        ("/runs/a@b/r1", Named("/runs/a@b/r1")),
    ],
)
def test_side_is_read(text: str, expected: Named) -> None:
    assert Named.read(text) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("=latest", "the name is empty"),
        ("latest@", "the environment is empty"),
        ("a=", "no run and no system"),
        ("published:", "no run and no system"),
    ],
)
def test_half_a_side_is_refused(text: str, what: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        Named.read(text)
    assert str(caught.value) == (
        f"side {text!r}: {what}; expected [NAME=]RUN[@ENVIRONMENT] or "
        "[NAME=]published:SYSTEM"
    )


def test_path_with_signs_in_it_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a=b@c"
    folder.mkdir()
    assert Named.read(str(folder)) == Named(str(folder))
