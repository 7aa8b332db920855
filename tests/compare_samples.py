"""Comparisons made by hand: what `compare` would say, of any size."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seatrial.compare.records import (
    Claim,
    Comparison,
    GroupScore,
    PairedNumber,
    Ratio,
    Side,
    Standing,
    Unpaired,
)
from seatrial.compare.serial import Correlation

SIZES = (8, 1024, 65536, 1 << 20, 4 << 20)
SHA = "ab12" * 16
GROUPS = (("latency", 0.5), ("bandwidth", 0.3), ("programs", 0.2))


def side(name: str, **more: Any) -> Side:
    fields: dict[str, Any] = {
        "source": "20260101T000000Z-bakeoff",
        "system": name,
        "campaign": "bakeoff",
        "started": "2026-01-01T00:00:00+00:00",
        "environment": "",
        "repeats": 5,
        "nodes": 16,
        "verdict": "pass",
        "digest": "cd34" * 16,
        "signer": f"{name}@example.org",
        "weights_sha256": SHA,
    }
    return Side(name=name, **{**fields, **more})


def ratio(value: float, share: float = 0.03) -> Ratio:
    return Ratio(value, value * (1 - share), value * (1 + share))


def numbers(sides: int, count: int, seed: int = 1) -> tuple[PairedNumber, ...]:
    """Draw numbers of ten checks, five sizes, and two metrics each."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        size = SIZES[number % 5]
        metric, unit = (("latency", "us"), ("bw", "MB/s"))[number // 5 % 2]
        check = f"Check{number // 10 % 10}"
        base = 1.5 + size / 12_000 if metric == "latency" else 12_000 * size / 70_000
        gains = [rng.lognormvariate(0.02 * at, 0.05) for at in range(1, sides)]
        values = [base] + [base * (1 / g if unit == "us" else g) for g in gains]
        found.append(
            PairedNumber(
                check=check,
                case=f"variant={number // 100}" if number >= 100 else "",
                environment="openmpi",
                partition="",
                num_nodes=4,
                metric=metric,
                size_bytes=size,
                size="",
                unit=unit,
                direction="lower" if unit == "us" else "higher",
                group=metric if number < 50 else "",
                weight=1 / 50 if number < 50 else 0.0,
                values=tuple(values),
                n=(5,) * sides,
                ratios=(None, *map(ratio, gains)),
                marks=(
                    "",
                    *(
                        "better" if g > 1.05 else "worse" if g < 0.95 else ""
                        for g in gains
                    ),
                ),
            )
        )
    return tuple(found)


def comparison(
    names: Sequence[str] = ("A", "B"), count: int = 40, **more: Any
) -> Comparison:
    """Compare sides of which each is 12 % better than the one before; the last wins."""
    sides = tuple(side(name) for name in names)
    scores = [Ratio(1.0)] + [ratio(1.12**at, 0.025) for at in range(1, len(names))]
    ranking = tuple(
        Standing(
            side=names[at],
            rank=rank,
            score=scores[at],
            performance=scores[at],
            selected=0.9915 if rank == 1 else 0.0085 if rank == 2 else 0.0,
        )
        for rank, at in enumerate(reversed(range(len(names))), 1)
    )
    fields: dict[str, Any] = {
        "sides": sides,
        "numbers": numbers(len(names), count),
        "claims": (),
        "unpaired": (
            Unpaired(
                *("ImbAlltoall", "", "", "latency"),
                ("", *("skipped: needs 32 nodes" for _ in names[1:])),
            ),
        ),
        "groups": tuple(
            GroupScore(
                *(name, weight, 20),
                (None, *(ratio(1.1**at) for at in range(1, len(names)))),
            )
            for name, weight in GROUPS
        ),
        "ranking": ranking,
        "ahead": names[-1],
        "winner": names[-1],
        "why": (),
        "weights": "bakeoff.yaml",
        "weights_sha256": SHA,
        "frozen": True,
        "rank_by": "performance",
        "margin": 0.02,
        "confidence": 0.95,
        "resamples": 2000,
        "seed": 1,
        "correlation": Correlation(),
    }
    return Comparison(**{**fields, **more})


def undecided() -> Comparison:
    """Two sides too close to call, and weights that were not frozen."""
    found = comparison()
    close = Ratio(1.021, 0.99, 1.053)
    first, second = found.ranking
    return replace(
        found,
        winner=None,
        frozen=False,
        ranking=(
            replace(first, score=close, performance=close, selected=0.71),
            replace(second, selected=0.29),
        ),
        why=(
            "weights bakeoff.yaml were not frozen: A did not record them",
            "B is ahead of A by 2.1 %, that may be chance",
        ),
        more_repeats=12,
    )


def claim(**more: Any) -> Claim:
    fields: dict[str, Any] = {
        "paper": "sur2007",
        "place": "Figure 3",
        "experiment": "E1",
        "what": "latency of small messages",
        "metric": "latency",
        "size": "1 B",
        "side": "B",
        "baseline": "A",
        "qualifier": "about",
        "stated": 1.25,
        "computed": 1.243,
        "words": "improves the latency by about 25 %",
        "agrees": True,
    }
    return Claim(**{**fields, **more})
