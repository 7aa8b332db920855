"""The settings of the nodes: read before the first and after the last session."""

from collections.abc import Callable
from pathlib import Path

from seatrial.audit.audit import audit
from seatrial.audit.collect import Collected, collect, login_script
from seatrial.audit.expected import sysctls
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.raw_archive import packed, unpacked
from seatrial.audit.rows import Row
from seatrial.errors import SeatrialError
from seatrial.paths import HARDWARE_FILE
from seatrial.runs.closed_run import SETTINGS_TABLE, SYSTEM_FOLDER
from seatrial.runs.open_run import WORK_FOLDER, write_file
from seatrial.runs.settings_table import (
    FOLDER,
    MOMENTS,
    Moment,
    settings_parquet,
    summary,
)
from seatrial.system.description import System


def keep_settings(
    system: System, run: Path, moment: Moment, warn: Callable[[str], None]
) -> None:
    """Read the settings of all nodes that Slurm has free; once for each moment.

    A node that cannot be read causes a warning, and never ends the run.
    """
    archive = run / FOLDER / f"{moment}.tar.gz"
    classes = {
        name: (described.nodes, described.access)
        for name, described in system.classes.items()
        if described.access is not None
    }
    if archive.is_file() or not classes:
        return
    work = run / WORK_FOLDER
    work.mkdir(exist_ok=True)
    script, token = login_script(
        str(work),
        [(name, ",".join(nodes), of or ()) for name, (nodes, of) in classes.items()],
        " ".join(sysctls(_declaration(system.folder, system))),
        system.audit_root,
    )
    try:
        collected = collect(["bash", "-s"], script, token)
    except SeatrialError as error:
        collected = Collected(errors=[str(error)])
    for name, (nodes, _) in classes.items():
        collected.classes[name] = [*nodes]
    if silence := collected.silence():
        warn(f"settings at the {moment} of the run: {silence}")
    archive.parent.mkdir(exist_ok=True)
    write_file(archive, packed(collected))


def close_settings(system: System, run: Path) -> dict[str, dict[str, str]]:
    """Write the rows of both moments to the run; return their summary."""
    rows: dict[Moment, list[Row]] = {}
    for moment in MOMENTS:
        archive = run / FOLDER / f"{moment}.tar.gz"
        if archive.is_file():
            collected = unpacked(archive)
            declaration = _declaration(run / SYSTEM_FOLDER, system)
            rows[moment] = audit(collected, declaration)
    if not rows:
        return {}
    write_file(run / SETTINGS_TABLE, settings_parquet(rows))
    return summary(rows)


def _declaration(folder: Path, system: System) -> HardwareFile:
    return HardwareFile(folder / HARDWARE_FILE, [*system.classes])
