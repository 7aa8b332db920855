"""The system of a replay: as it was recorded, under settings that need no Slurm."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from seatrial.errors import SeatrialError
from seatrial.recordings import beside
from seatrial.results import SYSTEM_FOLDER, read_manifest
from seatrial.system import (
    SETTINGS_FILE,
    SYSTEM_FILE,
    NodeState,
    System,
    is_provisioned,
    load_system,
    read_system,
)

_PARTITION = (
    *("name", "descr", "launcher", "environs", "features", "extras"),
    *("processor", "devices"),
)
_ENVIRONMENT = ("name", "features", "extras", "target_systems")


@contextmanager
def recorded_system(home: Path, name: str, recordings: Path) -> Iterator[System]:
    """Give the system of some recordings, for as long as it is replayed.

    It is that of the run in whose folder they are, else the provisioned one. Raises
    SeatrialError if there is neither, or if the run is of another system.
    """
    kept = beside(recordings, f"{SYSTEM_FOLDER}/{SYSTEM_FILE}")
    if kept is not None:
        system = read_system(kept.parent, name)
    elif is_provisioned(home, name):
        system = load_system(home, name)
    else:
        raise SeatrialError(
            f"{recordings} does not say what system {name!r} is like, and it is not "
            f"provisioned here; expected {SYSTEM_FILE} and {SETTINGS_FILE} in "
            f"{recordings / SYSTEM_FOLDER}; copy them from etc/{name} of its login node"
        )
    if system.name != name:
        raise SeatrialError(
            f"{recordings}: recorded on system {system.name!r}, expected {name!r}"
        )
    with TemporaryDirectory(prefix="seatrial-replay-") as folder:
        settings = Path(folder, "settings.json")
        described = yaml.safe_load(system.settings.read_text(encoding="utf-8"))
        settings.write_text(json.dumps(_without_slurm(described)), encoding="utf-8")
        yield replace(system, settings=settings, uses_slurm=False, only_slurm=False)


def recorded_states(system: System, recordings: Path) -> tuple[NodeState, ...]:
    """Give the delivered nodes as the recorded run found them, else as present."""
    manifest = beside(recordings, "manifest.json")
    found = read_manifest(manifest.parent)["nodes"] if manifest else []
    absent = {
        node["name"]: node["reason"] for node in found if node["state"] != "present"
    }
    return tuple(
        NodeState(node, node.name not in absent, absent.get(node.name, ""))
        for node in system.nodes
    )


def _without_slurm(settings: dict[str, Any]) -> dict[str, Any]:
    """Keep of ReFrame's settings what tells cases apart, not how jobs are run.

    Left out are scheduler and modules, which may not be there, and folders, which may
    not be writable. The launcher is only written into job scripts.
    """
    system = settings["systems"][0]
    return {
        "systems": [
            {
                "name": system["name"],
                "hostnames": [".*"],
                "partitions": [
                    {**_only(_PARTITION, partition), "scheduler": "local"}
                    for partition in system["partitions"]
                ],
            }
        ],
        "environments": [
            _only(_ENVIRONMENT, environment) for environment in settings["environments"]
        ],
    }


def _only(names: tuple[str, ...], values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}
