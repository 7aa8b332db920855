"""Missing features of a check on a system, and their remedies."""

from typing import Any

import pytest

from seatrial.system.features import needed, reasons_not_built, why_not

OPENMPI = frozenset({"slurm", "mpi", "osu", "pairsweep"})
BARE = frozenset({"slurm", "mpi"})


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (["+npb"], "no MPI stack has the NAS Parallel Benchmarks (feature npb): inst"),
        (["+slurm", "+npb"], "name what was installed in programs.npb of mpi_stacks"),
        (["+mpair"], "no partition with an MPI stack has the feature mpair: our own"),
        (
            ["+mpair", "+rr64"],
            "no partition with an MPI stack has the features mpair, rr64",
        ),
        (["-osu"], "no partition and MPI stack together are -osu"),
        ([], "together are what valid_systems and valid_prog_environs ask for"),
    ],
)
def test_what_is_missing_is_named(needs: list[str], reason: str) -> None:
    assert reason in why_not(needs, [BARE, OPENMPI], {})


def test_the_stack_that_lacks_least_counts() -> None:
    reason = why_not(["+osu", "+pairsweep", "+hpcc"], [BARE, OPENMPI], {})
    assert "hpcc" in reason
    assert "osu" not in reason


def test_a_system_without_stacks_lacks_all() -> None:
    reason = why_not(["+slurm", "+imb"], [], {})
    assert "the feature slurm" in reason
    assert "the Intel MPI Benchmarks (feature imb): install them" in reason


def test_reasons_of_site_yml_replace_the_general_remedy() -> None:
    stacks = [
        {"name": "openmpi", "not_built": {"osu": "no archive; fetch it"}},
        {"name": "mpich", "not_built": {"osu": "no archive; fetch it", "npb": "x"}},
        {"name": "intelmpi"},
    ]
    not_built = reasons_not_built({"stacks": stacks})
    reason = why_not(["+osu", "+hpcc"], [BARE], not_built)
    assert reason.startswith("no archive; fetch it (stack openmpi, mpich); no MPI st")
    assert "feature hpcc" in reason


@pytest.mark.parametrize("programs", [["+mpi"], ["+mp_rdma_lat", "+mp_rdma_bw"]])
def test_without_a_device_all_checks_below_mpi_have_one_reason(
    programs: list[str],
) -> None:
    reason = why_not(["+verbs", *programs], [BARE, OPENMPI], {})
    assert reason.startswith("no class of nodes has an RDMA device (feature verbs): ")
    assert "mp_rdma" not in reason
    device = frozenset({*OPENMPI, "verbs"})
    assert "verbs" not in why_not(["+verbs", "+winbw"], [OPENMPI, device], {})


def test_needs_of_all_cases_count() -> None:
    described: list[dict[str, Any]] = [
        {"@class": "MatchQueue", "needs": ["+slurm", "+mq_unexp"]},
        {"@class": "MatchQueue", "needs": ["+slurm", "+mq_posted"]},
        {"@class": "OfASite"},
    ]
    assert needed(described) == {
        "MatchQueue": ["+slurm", "+mq_unexp", "+mq_posted"],
        "OfASite": [],
    }
