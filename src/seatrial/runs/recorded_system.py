"""The system of a replay: as it was recorded, under settings that need no Slurm."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.errors import SeatrialError
from seatrial.model.yaml_file import YamlFile, yaml_bytes
from seatrial.plain_files import write_exclusively
from seatrial.runs.closed_run import SYSTEM_FOLDER, read_manifest
from seatrial.runs.raw_output import Source, beside, source_of
from seatrial.runs.recorded_settings import replay_settings
from seatrial.runs.run_contents import read_contents
from seatrial.system.description import (
    SETTINGS_FILE,
    SYSTEM_FILE,
    NodeState,
    System,
    is_provisioned,
    load_system,
    lock_files,
    read_system,
)


@contextmanager
def recorded_system(home: Path, name: str, recordings: Path) -> Iterator[System]:
    """Return the system of some recordings, for as long as it is replayed.

    It is that of the run in whose folder they are, else the provisioned one. Raises
    SeatrialError if there is neither, if the run is of another system, or if a file of
    the run is not what its manifest says.
    """
    source = source_of(recordings)
    if source.checksums is not None:
        contents = read_contents(source.root)
        contents.require_whole()
        if contents.sealed is not None:
            contents.sealed.check()
    kept = beside(recordings, f"{SYSTEM_FOLDER}/{SYSTEM_FILE}")
    with TemporaryDirectory(prefix="seatrial-replay-") as folder:
        if kept is not None:
            system = _copied(source, kept.parent, Path(folder, SYSTEM_FOLDER), name)
        elif is_provisioned(home, name):
            system = load_system(home, name)
        else:
            raise SeatrialError(
                f"{recordings} does not say what system {name!r} is like, and it is "
                f"not provisioned here; expected {SYSTEM_FILE} and {SETTINGS_FILE} in "
                f"{recordings / SYSTEM_FOLDER}; copy them from etc/{name} of its login "
                "node"
            )
        if system.name != name:
            raise SeatrialError(
                f"{recordings}: recorded on system {system.name!r}, expected {name!r}"
            )
        settings = Path(folder, "settings.json")
        where = kept.parent if kept is not None else system.folder
        file = YamlFile(where / SETTINGS_FILE, yaml_bytes(system.settings))
        described = replay_settings(file)
        settings.write_text(json.dumps(described), encoding="utf-8")
        yield replace(system, settings=settings, uses_slurm=False, only_slurm=False)


def _copied(source: Source, kept: Path, folder: Path, name: str) -> System:
    """Read the system of a run from a copy of its files, each read once."""
    folder.mkdir()

    def copy(file: str) -> None:
        write_exclusively(folder / file, source.read(kept / file))

    for file in (SYSTEM_FILE, SETTINGS_FILE):
        copy(file)
    try:
        for lock in lock_files(folder):
            copy(lock)
        return read_system(folder, name)
    except SeatrialError as error:
        raise SeatrialError(f"{kept}: {error}") from error


def recorded_states(system: System, recordings: Path) -> tuple[NodeState, ...]:
    """Return the delivered nodes as the recorded run found them, else as present."""
    manifest = beside(recordings, "manifest.json")
    found = read_manifest(manifest.parent)["nodes"] if manifest else []
    absent = {
        node["name"]: node["reason"] for node in found if node["state"] != "present"
    }
    return tuple(
        NodeState(node, node.name not in absent, absent.get(node.name, ""))
        for node in system.nodes
    )
