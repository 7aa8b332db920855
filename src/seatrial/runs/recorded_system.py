"""The system of a replay, as it was recorded, with settings that need no Slurm."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.errors import SeatrialError
from seatrial.model.manifest import MANIFEST, read_manifest
from seatrial.plain_files import write_exclusively
from seatrial.runs.closed_run import SYSTEM_FOLDER
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
    read_yaml,
)


@contextmanager
def recorded_system(home: Path, name: str, recordings: Path) -> Iterator[System]:
    """Return the system of some recordings for the time of a replay.

    It is that of their run, else the provisioned one. Raises SeatrialError if there is
    neither, if the run is of another system, or differs from its manifest.
    """
    source = source_of(recordings)
    if source.checksums is not None:
        read_contents(source.root).require_whole()
    kept = beside(recordings, f"{SYSTEM_FOLDER}/{SYSTEM_FILE}")
    with TemporaryDirectory(prefix="seatrial-replay-") as folder:
        if kept is not None:
            origin = kept.parent
            system = _copy_system(source, origin, Path(folder, SYSTEM_FOLDER), name)
        elif is_provisioned(home, name):
            system = load_system(home, name)
            origin = system.folder
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
        try:
            described = replay_settings(read_yaml(system.settings))
        except ValueError as error:
            raise SeatrialError(
                f"{origin / SETTINGS_FILE}: cannot be replayed: {error}; expected "
                "settings as the role `suite` writes them"
            ) from error
        settings.write_text(json.dumps(described), encoding="utf-8")
        yield replace(system, settings=settings, uses_slurm=False, only_slurm=False)


def _copy_system(source: Source, kept: Path, folder: Path, name: str) -> System:
    """Read the system of a run from a copy of its files, each read once."""
    folder.mkdir()
    for file in (SYSTEM_FILE, SETTINGS_FILE):
        write_exclusively(folder / file, source.read(kept / file))
    try:
        for lock in lock_files(folder):
            write_exclusively(folder / lock, source.read(kept / lock))
        return read_system(folder, name)
    except SeatrialError as error:
        raise SeatrialError(f"{kept}: {error}") from error


def recorded_states(system: System, recordings: Path) -> tuple[NodeState, ...]:
    """Return the states of the delivered nodes in the recorded run, else present."""
    manifest = beside(recordings, MANIFEST)
    nodes = read_manifest(manifest.parent)["nodes"] if manifest else []
    absent = {
        node["name"]: node["reason"] for node in nodes if node["state"] != "present"
    }
    return tuple(
        NodeState(node, node.name not in absent, absent.get(node.name, ""))
        for node in system.nodes
    )
