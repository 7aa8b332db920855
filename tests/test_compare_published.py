"""The comparisons of the five papers, recomputed by hand from what they print."""

from functools import cache

import pytest
from reframe_runs import HOME

from seatrial.compare.compare import compare
from seatrial.compare.formats import as_json
from seatrial.compare.paper_claims import improvement_ratio, rounding
from seatrial.compare.records import Claim, Comparison
from seatrial.compare.sides import open_sides
from seatrial.compare.wording import sentence
from seatrial.criteria.published import Published, load_published
from seatrial.model.derived import improvement
from seatrial.model.metrics import Direction
from seatrial.paths import published_dir


@cache
def published() -> Published:
    return load_published(published_dir(HOME))


@cache
def compared(*systems: str) -> Comparison:
    """Compare published systems; the first is the baseline."""
    texts = [f"published:{name}" for name in systems]
    entrants = open_sides(texts, lambda text: pytest.fail(text), published)
    return compare(entrants, published=published())


PAPERS = {
    "liu2005": ("mt23108-pcix", "mt25208-pcie"),
    "sur2007": ("infinihost3-ddr", "connectx-ddr"),
    "schoenemeyer2011": ("qlogic7300-qdr", "connectx3-qdr"),
    "subramoni2009": ("nehalem-ddr", "nehalem-qdr", "clovertown-ddr"),
    "rashti2007": ("memfree-infiniband", "ne010e-iwarp", "myri-10g"),
}

RATIOS: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
    "liu2005": {
        ("send_latency", "send/receive"): (6.9 / 4.8,),
        ("write_latency", "RDMA write ping-pong"): (4.8 / 3.8,),
        ("read_latency", "RDMA read"): (12.4 / 9.0,),
        ("latency", "MPI"): (5.1 / 4.1,),
        ("bw", "RDMA write, one port"): (972 / 781,),
        ("bw", "RDMA write, striped"): (1486 / 768,),
        ("bw", "MPI, one port"): (971 / 800,),
        ("bibw", "RDMA write, one port"): (1932 / 946,),
    },
    "sur2007": {
        ("latency_difference", "latency of send/receive"): (1.15 / 0.2,),
        ("read_latency", "RDMA read"): (6 / 1.8,),
    },
    "schoenemeyer2011": {("latency", "MPI ping-pong"): (1.7 / 1.6,)},
    "subramoni2009": {
        ("run_time", "NPB CG, class C"): (12.13 / 11.4, 12.13 / 64.5),
        ("run_time", "NPB FT, class C"): (23.6 / 22.2, 23.6 / 55),
        ("run_time", "NPB IS, class C"): (1.75 / 1.6, 1.75 / 4.4),
        ("run_time", "NPB LU, class C"): (86.8 / 86.8, 86.8 / 140),
        ("run_time", "NPB MG, class C"): (8.1 / 8, 8.1 / 31),
        ("run_time", "NPB CG, class B"): (4.8 / 4.5, 4.8 / 26),
        ("run_time", "NPB FT, class B"): (5.5 / 5.1, 5.5 / 13.7),
        ("run_time", "NPB IS, class B"): (0.41 / 0.37, 0.41 / 0.92),
        ("run_time", "NPB LU, class B"): (22.1 / 22.1, 22.1 / 35),
        ("run_time", "NPB MG, class B"): (1.1 / 1.1, 1.1 / 4.8),
    },
    "rashti2007": {
        ("reuse_ratio_eager", "MPI latency"): (1.55 / 1.8, 1.55 / 1.53),
        ("reuse_ratio_rendezvous", "MPI latency"): (4.3 / 2.1, 4.3 / 2.4),
    },
}
"""All that can be paired, by metric and the start of what was measured: the ratios of
the other sides to the baseline, from the numbers as printed; above 1 is better."""

GROUPS: dict[str, dict[str, float]] = {
    "liu2005": {
        "send_latency": 6.9 / 4.8,
        "write_latency": 4.8 / 3.8,
        "read_latency": 12.4 / 9.0,
        "latency": 5.1 / 4.1,
        "bw": (972 / 781 * 1486 / 768 * 971 / 800) ** (1 / 3),
        "bibw": 1932 / 946,
    },
    "sur2007": {"latency_difference": 1.15 / 0.2, "read_latency": 6 / 1.8},
    "schoenemeyer2011": {"latency": 1.7 / 1.6},
    "subramoni2009": {
        "run_time": (
            (12.13 / 11.4)
            * (23.6 / 22.2)
            * (1.75 / 1.6)
            * (8.1 / 8)
            * (4.8 / 4.5)
            * (5.5 / 5.1)
            * (0.41 / 0.37)
        )
        ** (1 / 10)
    },
    "rashti2007": {
        "reuse_ratio_eager": 1.55 / 1.8,
        "reuse_ratio_rendezvous": 4.3 / 2.1,
    },
}
"""Geometric means of those ratios by metric, of the second side."""


@pytest.mark.parametrize("paper", PAPERS)
def test_ratios_are_those_of_the_printed_numbers(paper: str) -> None:
    numbers = list(compared(*PAPERS[paper]).numbers)
    for (metric, what), expected in RATIOS[paper].items():
        found = [
            number
            for number in numbers
            if number.metric == metric and number.case.startswith(what)
        ]
        assert len(found) == 1, (metric, what)
        numbers.remove(found[0])
        first, *others = found[0].ratios
        assert first is None
        for ratio, value in zip(others, expected, strict=True):
            assert ratio is not None
            assert ratio.value == pytest.approx(value, rel=1e-12)
            assert (ratio.lower, ratio.upper) == (None, None)
    assert not numbers


@pytest.mark.parametrize("paper", PAPERS)
def test_groups_are_geometric_means(paper: str) -> None:
    groups = compared(*PAPERS[paper]).groups
    found = {each.name: each.ratios[1] and each.ratios[1].value for each in groups}
    assert found == pytest.approx(GROUPS[paper], rel=1e-12)


AHEAD = {
    "liu2005": "mt25208-pcie",
    "sur2007": "connectx-ddr",
    "schoenemeyer2011": "connectx3-qdr",
    "subramoni2009": "nehalem-qdr",
    "rashti2007": "myri-10g",
}


@pytest.mark.parametrize("paper", PAPERS)
def test_history_has_no_winner(paper: str) -> None:
    comparison = compared(*PAPERS[paper])
    assert comparison.ahead == AHEAD[paper]
    assert comparison.winner is None
    assert comparison.why == (
        "these are published systems, which are history: no winner",
    )
    assert comparison.more_repeats is None
    assert {each.selected for each in comparison.ranking} == {None}


def test_the_sentence_of_a_paper() -> None:
    assert sentence(compared(*PAPERS["schoenemeyer2011"])) == (
        "No winner: connectx3-qdr is 6.2 % better than qlogic7300-qdr. Why: these "
        "are published systems, which are history: no winner."
    )
    assert sentence(compared(*PAPERS["sur2007"])).startswith(
        "No winner: connectx-ddr is better than infinihost3-ddr by a factor of 4.378. "
    )


# ---- what the papers state

Expected = tuple[float | None, float | None, bool | None]

STATED: dict[str, dict[tuple[str, str, str], Expected]] = {
    "liu2005": {
        ("latency", "verbs operations, the smallest", "small"): (1 / 0.8, None, None),
        ("latency", "verbs operations, the largest", "small"): (1 / 0.7, None, None),
        ("bw", "RDMA write, one port", "large"): (1.24, 972 / 781, True),
        ("bibw", "RDMA write, one port", "large"): (2.0, 1932 / 946, True),
        ("bibw", "two processes together", "large"): (2.9, 2745 / 946, True),
        ("latency", "MPI", "small"): (1 / 0.8, 5.1 / 4.1, True),
        ("bw", "MPI, two ports against", "large"): (1.86, 1497 / 800, True),
        ("bibw", "MPI, two ports", "large"): (2.9, 2721 / 940, True),
        ("latency", "MPI_Alltoall", ""): (None, None, None),
        ("latency", "MPI_Bcast", ""): (None, None, None),
        ("latency", "MPI_Allgather", ""): (None, None, None),
        ("communication_time", "NPB IS", ""): (2.0, None, None),
        ("communication_time", "NPB FT", ""): (1 / 0.52, None, None),
        ("run_time", "NPB IS", ""): (1 / 0.74, None, None),
        ("run_time", "NPB FT", ""): (1 / 0.94, None, None),
    },
    "sur2007": {
        ("write_latency", "RDMA write", "below 256 B"): (6, None, None),
        ("write_latency_1B", "RDMA write", ""): (6, None, None),
        ("read_latency_1B", "RDMA read", ""): (3, None, None),
        ("read_latency", "RDMA read, several", "1 B to 512 B"): (3, None, None),
        ("bw_256B", "all pairs", ""): (10, None, None),
        ("bw", "all pairs", "small and medium"): (10, None, None),
        ("exchange_time", "Halo (A. J.", "small"): (5, None, None),
        ("exchange_time", "Halo, the smallest", ""): (2, None, None),
        ("exchange_time", "Halo, the largest", ""): (5, None, None),
    },
    "schoenemeyer2011": {
        ("latency", "MPI ping-pong", "above 256 B"): (None, None, None),
        ("latency", "MPI ping-pong", "256 B to 4 KiB"): (None, None, None),
        ("latency", "MPI ping-pong", "128 KiB to 4 MiB"): (None, None, None),
        ("bw_512B", "MPI", ""): (1.8, None, None),
        ("bw", "MPI", "128 B to 4 KiB"): (None, None, None),
        ("bw", "MPI", "above 4 KiB"): (None, None, None),
        ("bw", "MPI", "above 16 KiB"): (1.04, None, None),
        ("msg_rate", "osu_mbw_mr", "2 KiB to 32 KiB"): (1.15, None, None),
    },
    "subramoni2009": {
        ("run_time", "NPB, the largest gain", ""): (1 / 0.9, 0.41 / 0.37, True),
        ("bw", "HPCC ping-pong", ""): (1.28, None, None),
        ("RandomlyOrderedRingBandwidth_GBytes", "HPCC", ""): (1.25, None, None),
        ("latency", "MPI_Scatter", ""): (None, None, None),
    },
    "rashti2007": {
        ("latency", "ping-pong over many", ""): (None, None, None),
        ("latency", "MPI queues", ""): (None, None, None),
    },
}
"""Ratio stated (from a factor, or from % by the definition of its paper), ratio that
follows from the printed numbers, and whether they agree; the second side over the
baseline, or the other way round."""

LAMMPS = "LAMMPS in.rhodo"


def claims_of(paper: str, metric: str, what: str, size: str) -> list[Claim]:
    first, second = PAPERS[paper][:2]
    return [
        claim
        for claim in compared(*PAPERS[paper]).claims
        if {claim.side, claim.baseline} == {first, second}
        and (claim.metric, claim.size) == (metric, size)
        and claim.what.startswith(what)
    ]


@pytest.mark.parametrize(
    ("paper", "claim"),
    [(paper, claim) for paper, claims in STATED.items() for claim in claims],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:40],
)
def test_claim_is_beside_what_follows(paper: str, claim: tuple[str, str, str]) -> None:
    found = claims_of(paper, *claim)
    if claim[1] == "MPI, two ports":
        found = [each for each in found if "against" not in each.what]
    assert len(found) == 1
    stated, computed, agrees = STATED[paper][claim]
    assert found[0].stated == pytest.approx(stated)
    assert found[0].computed == pytest.approx(computed)
    assert found[0].agrees is agrees
    assert found[0].words
    assert found[0].paper == paper


def test_no_statement_of_a_pair_is_missing() -> None:
    """Both orders of all pairs; of lammps there are two, of which one contradicts."""
    counts = {paper: len(compared(*names).claims) for paper, names in PAPERS.items()}
    assert counts == {
        "liu2005": 15,
        "sur2007": 11,
        "schoenemeyer2011": 8,
        "subramoni2009": 16,
        "rashti2007": 6,
    }
    less, more = claims_of("sur2007", "loop_time", LAMMPS, "")
    assert (less.stated, less.conflict) == (1.0, "")
    assert more.stated == pytest.approx(1 / 0.9)
    assert more.conflict


def test_contradictions_of_the_papers_are_told() -> None:
    told = {
        (paper, claim.metric, claim.size)
        for paper, names in PAPERS.items()
        for claim in compared(*names).claims
        if claim.conflict
    }
    assert told == {
        ("sur2007", "loop_time", ""),
        ("schoenemeyer2011", "latency", "256 B to 4 KiB"),
        ("schoenemeyer2011", "bw_512B", ""),
        ("schoenemeyer2011", "bw", "128 B to 4 KiB"),
        ("schoenemeyer2011", "bw", "above 4 KiB"),
        ("schoenemeyer2011", "bw", "above 16 KiB"),
        ("subramoni2009", "latency", "small"),
    }


def gains(paper: str, *starts: str) -> list[float]:
    """Return by how many percent the times of the second side are shorter."""
    return [
        100 * (1 - 1 / number.ratios[1].value)
        for number in compared(*PAPERS[paper]).numbers
        if number.case.startswith(starts) and number.ratios[1]
    ]


def test_claims_over_several_numbers_hold() -> None:
    """Verbs latencies gain "20 to 30 %", CG and FT "similar" to the 10 % of IS."""
    verbs = gains("liu2005", "send/receive", "RDMA write ping-pong", "RDMA read")
    assert sorted(verbs) == pytest.approx([20.8, 27.4, 30.4], abs=0.05)
    npb = gains("subramoni2009", "NPB CG", "NPB FT")
    assert sorted(npb) == pytest.approx([5.9, 6.0, 6.3, 7.3], abs=0.05)


def test_what_contradicts_its_paper_is_left_out_and_told() -> None:
    (note,) = compared(*PAPERS["schoenemeyer2011"]).notes
    assert note.startswith(
        "connectx3-qdr: msg_rate of 6.8e+07 msg/s (osu_mbw_mr -w 512"
    )
    assert "is left out" in note
    alone = compared(*PAPERS["schoenemeyer2011"]).unpaired
    assert alone[0].metric == "msg_rate (small)"
    assert alone[0].reasons == ("", "the paper has no such number")


def test_direction_of_a_comparison_turns_its_ratios() -> None:
    there = compared("mt23108-pcix", "mt25208-pcie").numbers
    back = compared("mt25208-pcie", "mt23108-pcix").numbers
    turned = {
        (number.metric, number.case): 1 / number.ratios[1].value
        for number in back
        if number.ratios[1]
    }
    assert len(turned) == 8
    for number in there:
        assert number.ratios[1]
        assert number.ratios[1].value == pytest.approx(
            turned[number.metric, number.case]
        )


@pytest.mark.parametrize(
    ("percent", "direction", "ratio"),
    [(20, "lower", 1.25), (50, "lower", 2.0), (0, "lower", 1.0), (24, "higher", 1.24)],
)
def test_improvements_become_ratios(
    percent: float, direction: Direction, ratio: float
) -> None:
    found = improvement_ratio(percent, direction)
    assert found == pytest.approx(ratio)
    new = 1 / found if direction == "lower" else found
    assert improvement(new, 1, direction) == pytest.approx(percent)


def test_no_time_is_shorter_by_all_of_it() -> None:
    with pytest.raises(
        ValueError, match=r"a time cannot be 100 % shorter, expected be"
    ):
        improvement_ratio(100, "lower")


@pytest.mark.parametrize(("value", "half"), [(24, 0.5), (2.9, 0.05), (1.04, 0.005)])
def test_last_digit_may_be_rounded(value: float, half: float) -> None:
    assert rounding(value) == pytest.approx(half)


def test_same_sides_give_the_same_record() -> None:
    again = compare(
        open_sides(
            [f"published:{name}" for name in PAPERS["liu2005"]], pytest.fail, published
        ),
        published=published(),
    )
    assert as_json(again) == as_json(compared(*PAPERS["liu2005"]))
