"""A survey of a cluster: what the login nodes of four kinds of sites print."""

from pathlib import Path

import pytest
from site_transcripts import stand_in

from seatrial.errors import SeatrialError
from seatrial.system.login_node import Remote
from seatrial.system.survey import slurm_records
from seatrial.system.survey.slurm_records import parse_fields, parse_limit
from seatrial.system.survey.survey import Survey, survey


def survey_of(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Survey:
    stand_in(site, tmp_path, monkeypatch)
    return survey(Remote("login.example.org", ""))


def test_debian_with_one_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = survey_of("lab-like", tmp_path, monkeypatch)
    assert lab.slurm == "22.05.8"
    assert [node.name for node in lab.nodes] == ["cn01", "cn02", "cn03", "cn04"]
    assert {(node.cores, node.memory_mib) for node in lab.nodes} == {(2, 3900)}
    assert lab.mpi_types == ("pmi2", "cray_shasta", "pmix")
    assert [(stack.name, stack.compiler) for stack in lab.stacks] == [
        ("openmpi", "mpicc.openmpi"),
        ("mpich", "mpicc.mpich"),
    ]
    assert [stack.manager(lab.mpi_types) for stack in lab.stacks] == ["pmix", "pmi2"]
    assert lab.modules == ""
    assert lab.suite_python == str(tmp_path / "bin" / "python3")


def test_red_hat_with_slurm_20(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = survey_of("rhel8", tmp_path, monkeypatch)
    assert {(node.cores, node.sockets) for node in site.nodes} == {(40, 2)}
    (lost,) = (node for node in site.nodes if node.loss)
    assert (lost.name, lost.loss) == ("node11", "drained")
    assert lost.reason == "bad DIMM slot=A3"
    assert [*site.accounts] == ["physics", "chemistry"]
    assert (site.default_account, site.qos) == ("physics", ("normal", "long"))
    assert site.mpi_types == ("cray_shasta", "pmi2")
    assert site.modules == "envmod"
    assert [*site.pythons.values()] == ["3.9.18", "3.6.8"]
    assert site.suite_python == ""
    assert [(stack.name, stack.modules) for stack in site.stacks] == [
        ("mpich", ("mpi/mpich-x86_64",)),
        ("openmpi", ("mpi/openmpi-x86_64",)),
    ]


def test_hidden_partitions_and_hierarchical_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = survey_of("big", tmp_path, monkeypatch)
    partitions = {partition.name: partition for partition in site.partitions}
    assert [name for name, part in partitions.items() if part.is_hidden] == ["secret"]
    assert partitions["gpu"].accounts == ("ml", "accept")
    assert partitions["standard"].qos == ("normal", "high")
    assert partitions["debug"].limit_s == 1800
    nodes = {node.name: node for node in site.nodes}
    assert nodes["gpu01"].gres == "gpu:a100:4"
    assert nodes["gpu01"].partitions == ("all", "gpu")
    assert nodes["cn0001"].features == ("hdr", "milan")
    assert not nodes["cn0013"].is_delivered
    stacks = {stack.name: stack for stack in site.stacks}
    assert [*stacks] == ["intelmpi", "openmpi"]
    assert stacks["openmpi"].modules == ("gcc/13.2.0", "openmpi/4.1.6")
    assert stacks["intelmpi"].modules == ("intel-oneapi-mpi/2021.13.1",)
    assert (stacks["intelmpi"].compiler, stacks["intelmpi"].imb) == (
        *("mpiicx", "IMB-MPI1"),
    )
    assert site.failures == ("gcc/13.2.0 mvapich2/2.3.7|mvapich2/2.3.7",)
    assert "openmpi/4.1.5" in site.mpi_modules
    assert not [name for name in site.mpi_modules if "osu" in name or "gcc" in name]


def test_reservations_and_lost_nodes_of_slurm_25(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = survey_of("slurm25", tmp_path, monkeypatch)
    states = {node.name: node.loss for node in site.nodes if node.loss}
    assert states == {"nid000003": "down", "nid000004": "drained"}
    reasons = {node.name: node.reason for node in site.nodes if node.reason}
    assert reasons["nid000004"] == "cable 12=broken"
    accept, repair = site.reservations
    assert (accept.accounts, len(accept.nodes)) == (("csacc",), 8)
    assert repair.nodes == {"nid000007", "nid000008"}
    assert "MAINT" in repair.flags
    assert site.stacks == ()
    assert [partition.is_up for partition in site.partitions] == [True, False]


def test_survey_submits_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in("lab-like", tmp_path, monkeypatch)
    log = tmp_path / "calls"
    for name in ("srun", "sbatch", "scontrol"):
        program = tmp_path / "bin" / name
        text = program.read_text()
        line = f'#!/bin/sh\necho "{name} $@" >>{log}\n'
        program.write_text(text.replace("#!/bin/sh\n", line))
    survey(Remote("login.example.org", ""))
    calls = log.read_text().splitlines()
    assert {call for call in calls if call.startswith(("srun", "sbatch"))} == {
        "srun --mpi=list"
    }
    assert all(" show " in call for call in calls if call.startswith("scontrol"))


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("srun", "login1: not on PATH: srun; expected a login node that submits jobs"),
        ("", "login1: `scontrol show node` prints no node; expected a cluster with"),
        ("ssh", "ssh login1: Permission denied; expected a login node that you reach"),
    ],
)
def test_site_that_cannot_be_surveyed(
    missing: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("lab-like", tmp_path, monkeypatch)
    if missing == "ssh":
        program = tmp_path / "ssh" / "ssh"
        program.write_text("#!/bin/sh\necho Permission denied >&2; exit 255\n")
    elif missing:
        (tmp_path / "bin" / missing).unlink()
    else:
        program = tmp_path / "bin" / "scontrol"
        program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(SeatrialError, match=problem):
        survey(Remote("login1", ""))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("UNLIMITED", None), ("30", 1800), ("30:15", 1815), ("01:00:00", 3600)],
        *[("2-00:00:00", 172800), ("1-12", 129600), ("INFINITE", None)],
    ],
)
def test_time_limits(text: str, seconds: int | None) -> None:
    assert parse_limit(text) == seconds


def test_free_text_is_no_field() -> None:
    line = (
        "NodeName=a OS=Linux 5.14 #1 SMP Gres=no Comment=Gres=x y State=IDLE "
        "Gres=gpu:2 Reason=bad Gres=gone [root@2026-11-20T10:00:00]"
    )
    fields = parse_fields(line)
    assert (fields["State"], fields["Gres"]) == ("IDLE", "gpu:2")
    assert slurm_records.parse_nodes([line], {})[0].reason == "bad Gres=gone"
