"""Classes of nodes that a survey makes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from site_transcripts import stand_in

from seatrial.system.login_node import Remote
from seatrial.system.survey.node_classes import (
    SurveyedClass,
    node_classes,
    unreachable,
)
from seatrial.system.survey.slurm_records import Partition, SlurmNode
from seatrial.system.survey.survey import Survey, survey


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def of(site: str) -> Survey:
        stand_in(site, tmp_path, monkeypatch)
        return survey(Remote("login1", ""))

    return of


def lists(classes: tuple[SurveyedClass, ...]) -> dict[str, tuple[str, str]]:
    return {each.name: (each.host_list, each.partition.name) for each in classes}


def test_one_partition_is_one_class(sites: Any) -> None:
    (only,) = node_classes(sites("rhel8"))
    assert (only.name, only.host_list) == ("compute", "node[9-12]")
    assert only.lost == {"node11": "drained: bad DIMM slot=A3"}
    assert only.accounts == ("physics", "chemistry")


def test_nodes_of_several_partitions_are_in_one_class(sites: Any) -> None:
    site = sites("big")
    classes = node_classes(site)
    assert lists(classes) == {
        "standard-milan": ("cn[0001-0012]", "standard"),
        "standard-rome": ("cn[0900-0901]", "standard"),
        "secret": ("fat[01-02]", "secret"),
        "gpu": ("gpu[01-04]", "gpu"),
    }
    by_name = {each.name: each for each in classes}
    assert by_name["standard-milan"].others == ("all", "debug")
    assert by_name["gpu"].all_qos == ("gpu",)
    assert by_name["standard-rome"].all_qos == ("high", "normal")
    assert unreachable(site) == "login1"


def test_reservation_that_covers_a_class_is_taken(sites: Any) -> None:
    site = sites("slurm25")
    (only,) = node_classes(site)
    assert (only.partition.name, only.reservation) == ("normal", "accept")
    assert [reservation.name for reservation in only.touching] == ["accept", "repair"]
    assert only.lost == {
        "nid000003": "down: Not responding",
        "nid000004": "drained: cable 12=broken",
    }
    other = replace(site, accounts={"elsewhere": ()})
    assert node_classes(other)[0].reservation == ""


PARTITION = Partition(
    *("batch", True, False, False, False, "UNLIMITED", None, (), (), (), ()),
)
NODE = SlurmNode("cn1", "IDLE", "", 64, 2, 256000, "", (), ("batch",))


def classes_of(
    site: Survey, nodes: list[SlurmNode], partitions: list[Partition]
) -> dict[str, tuple[str, str]]:
    changed = replace(site, nodes=tuple(nodes), partitions=tuple(partitions))
    return lists(node_classes(changed))


def test_partition_is_usable_long_and_close(sites: Any) -> None:
    site = replace(sites("lab-like"), accounts={"ours": ()})
    names = ("batch", "wide", "down", "short", "foreign", "groups")
    nodes = [replace(NODE, partitions=names)]
    nodes += [replace(NODE, name="x", gres="x", partitions=("wide",))]
    choices = [
        replace(PARTITION, name="wide"),
        replace(PARTITION, name="down", is_up=False),
        replace(PARTITION, name="short", limit="30", limit_s=1800),
        replace(PARTITION, name="foreign", accounts=("theirs",)),
        replace(PARTITION, name="groups", groups=("admins",)),
    ]
    for index, expected in enumerate(["wide", "short", "groups", "foreign", "down"]):
        order = ["wide", "short", "groups", "foreign", "down"][index:]
        kept = [choice for choice in choices if choice.name in order]
        known = {partition.name for partition in kept}
        (mine, *_) = classes_of(site, nodes[:1], kept).values()
        assert mine == ("cn1", expected), known
    both = classes_of(site, nodes, [*choices, PARTITION])
    assert both["batch"] == ("cn1", "batch")


def test_account_has_a_qos_that_the_partition_permits(sites: Any) -> None:
    accounts = {"ours": ("normal", "acceptance"), "guests": ("normal",), "old": ()}
    closed = replace(PARTITION, qos=("acceptance",))
    site = replace(sites("lab-like"), accounts=accounts, nodes=(NODE,))
    (closed_class,) = node_classes(replace(site, partitions=(closed,)))
    assert (closed_class.accounts, closed_class.all_qos) == (
        ("ours", "old"),
        ("acceptance",),
    )
    (open_class,) = node_classes(replace(site, partitions=(PARTITION,)))
    assert open_class.accounts == ("ours", "guests", "old")


def test_names_of_classes_in_one_partition(sites: Any) -> None:
    site = sites("lab-like")
    nodes = [
        NODE,
        replace(NODE, name="cn2", gres="gpu:a100:4"),
        replace(NODE, name="cn3", cores=128),
        replace(NODE, name="cn4", features=("hdr",)),
        replace(NODE, name="cn5", memory_mib=512000),
        replace(NODE, name="cn6", sockets=1),
        replace(NODE, name="cn7", features=("*odd name!",)),
    ]
    assert [*classes_of(site, nodes, [PARTITION])] == [
        *("batch", "batch-gpu-a100-4", "batch-128-cores", "batch-hdr", "batch-512-gb"),
        *("batch-2", "batch-odd-name"),
    ]
