"""A part of a system: some of its nodes, and further options of Slurm for its jobs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfile
from typing import Any

import yaml

from seatrial.names import node_set
from seatrial.system.description import (
    SETTINGS_FILE,
    SYSTEM_FILE,
    System,
    read_system,
)

_EXCLUDE = "--exclude="


def part_of(
    system: System,
    chosen: Mapping[str, Sequence[str]],
    options: Sequence[str],
    folder: Path,
) -> System:
    """Describe a system that has only the chosen nodes of each class, in a new folder.

    Its jobs keep off all other nodes and have the `options` of sbatch. A run on it is a
    run of the whole system in everything else: it plans, measures and records these
    nodes only.
    """
    for file in system.files:
        copyfile(file, folder / file.name)
    described: dict[str, Any] = json.loads((folder / SYSTEM_FILE).read_bytes())
    taken = {node for nodes in chosen.values() for node in nodes}
    described["nodes"] = [n for n in described["nodes"] if n["name"] in taken]
    (folder / SYSTEM_FILE).write_text(json.dumps(described), encoding="utf-8")
    settings = yaml.safe_load((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    (whole,) = settings["systems"]
    whole["partitions"] = [p for p in whole["partitions"] if p["name"] in chosen]
    for partition in whole["partitions"]:
        extras, own = partition["extras"], chosen[partition["name"]]
        others = [node for node in extras["nodes"] if node not in own]
        extras["nodes"] = list(own)
        partition["access"] = [*_keeping_off(partition, others), *options]
    (folder / SETTINGS_FILE).write_text(yaml.safe_dump(settings), encoding="utf-8")
    return read_system(folder, system.name)


def _keeping_off(partition: Mapping[str, Any], others: Sequence[str]) -> list[str]:
    """Return the options of a partition with more nodes to exclude.

    The last --exclude counts for Slurm, so there may be only one.
    """
    own = [str(option) for option in partition.get("access", ())]
    excluded = [one.removeprefix(_EXCLUDE) for one in own if one.startswith(_EXCLUDE)]
    nodes = [*excluded, *([node_set(others)] if others else [])]
    kept = [one for one in own if not one.startswith(_EXCLUDE)]
    return [*kept, *([_EXCLUDE + ",".join(nodes)] if nodes else [])]
