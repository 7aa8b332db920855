"""Lines of an inventory that depend on a survey."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from site_transcripts import stand_in

from seatrial.errors import SeatrialError
from seatrial.system.login_node import Remote
from seatrial.system.survey.inventory import Order, inventory_files, stack_names
from seatrial.system.survey.node_classes import node_classes
from seatrial.system.survey.survey import Folder, Survey, survey
from seatrial.system.survey.yaml_lines import comment, value


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Survey:
    stand_in("lab-like", tmp_path, monkeypatch)
    return survey(Remote("login1", ""))


def texts(site: Survey, name: str) -> str:
    files = inventory_files(Order("hulk", "login1"), site, node_classes(site))
    for text in files.values():
        yaml.safe_load(text)
    return next(text for path, text in files.items() if path.endswith(name))


HOME = Folder("HOME", "/home/me", "nfs", 9000)
WORK = Folder("WORK", "/work/me", "lustre", 90000)
SCRATCH = Folder("SCRATCH", "/scratch/me", "lustre", 900000)


@pytest.mark.parametrize(
    ("folders", "line"),
    [
        ((HOME, WORK), "/home/me/seatrial # HOME, on nfs"),
        ((SCRATCH, WORK), "/work/me/seatrial # WORK, on lustre"),
        ((SCRATCH,), "/scratch/me/seatrial # SCRATCH, on lustre"),
        ((replace(HOME, free_mib=5), WORK), "/work/me/seatrial # WORK, on lustre"),
        ((replace(HOME, kind="xfs"), WORK), "/work/me/seatrial # WORK, on lustre"),
        ((replace(HOME, kind="xfs"),), "/home/me/seatrial # To decide: a folder that"),
        ((), "/shared/seatrial # To decide: a folder that all nodes share"),
    ],
)
def test_prefix_is_a_shared_folder(
    folders: tuple[Folder, ...], line: str, site: Survey
) -> None:
    text = texts(replace(site, folders=folders), "main.yml")
    assert f"\nseatrial_prefix: {line}" in text


def test_adapters_of_the_login_node_are_a_hint(site: Survey) -> None:
    assert "rails" not in texts(site, "main.yml")
    adapters = ("mlx5_0:1 InfiniBand 200 Gb/sec (4X HDR)", "mlx5_1:1 InfiniBand")
    text = texts(replace(site, adapters=adapters), "main.yml")
    assert "    # rails: ['mlx5_0:1', 'mlx5_1:1'] # of the login node" in text


def test_account_that_nothing_permits_is_to_decide(site: Survey) -> None:
    closed = replace(site.partitions[0], accounts=("theirs",))
    site = replace(site, partitions=(closed,), accounts={"ours": ()})
    text = texts(site, "main.yml")
    assert "# account: # To decide: batch permits theirs, and " in text


def test_intel_mpi_takes_the_library_of_slurm(site: Survey) -> None:
    intel = replace(site.stacks[0], name="intelmpi", family="intelmpi")
    text = texts(replace(site, stacks=(intel,)), "mpi.yml")
    assert "srun_mpi: pmi2 # To decide: I_MPI_PMI_LIBRARY: no libpmi2.so" in text
    with_library = replace(intel, pmi2="/usr/lib64/libpmi2.so")
    text = texts(replace(site, stacks=(with_library,)), "mpi.yml")
    assert "environment: {I_MPI_PMI_LIBRARY: /usr/lib64/libpmi2.so}" in text


def test_manager_that_slurm_lacks_is_to_decide(site: Survey) -> None:
    text = texts(replace(site, mpi_types=("cray_shasta",)), "mpi.yml")
    assert "srun_mpi: pmi2 # To decide: `srun --mpi=list` offers none" in text


@pytest.mark.parametrize(
    ("machine", "names"), [("x86_64", ("intelmpi",)), ("aarch64", ())]
)
def test_site_without_mpi(machine: str, names: tuple[str, ...], site: Survey) -> None:
    bare = replace(site, stacks=(), architecture=machine)
    assert stack_names(bare) == names
    assert "To decide: no MPI compiler" in texts(bare, "mpi.yml")


def test_login_host_is_not_called_like_its_group(site: Survey) -> None:
    text = texts(replace(site, host="login"), "hosts.yml")
    group = yaml.safe_load(text)["all"]["children"]["login"]
    assert [*group["hosts"]] == ["login-node"]


def test_text_of_a_site_stays_in_its_line() -> None:
    assert comment("bad\nnode\x85seatrial_prefix: /etc", 2).count("\n") == 0
    assert "\x85" not in comment("bad\x85")
    assert {line[:4] for line in comment("word " * 99, 2).split("\n")} == {"  # "}
    assert value("a: b") == "'a: b'"
    assert value("007") == "'007'"
    with pytest.raises(SeatrialError, match="template of Ansible"):
        value(["x", "{% set a %}"])
