"""Find and judge the runs that a command line names, packed ones too."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.errors import SeatrialError
from seatrial.paths import criteria_file, home

if TYPE_CHECKING:
    from seatrial.criteria.criteria import Criteria
    from seatrial.judge.judge import Judgement
    from seatrial.runs.closed_run import Run
    from seatrial.runs.ledger_beside import Beside

_PACKS = "seatrial.packs"
"""Key of click's `meta`: the file of each packed run, by the folder of its content."""

KEPT = "kept"
"""Value of --criteria for the criteria that the run kept when it started."""


def run_path(text: str) -> Path:
    """Find a run as `find_run` does; the path of one needs no home of the suite.

    A packed run is unpacked until the command ends.
    """
    from tempfile import TemporaryDirectory

    from seatrial.model.manifest import MANIFEST
    from seatrial.runs.closed_run import find_run
    from seatrial.runs.pack import unpack

    if (Path(text) / MANIFEST).is_file():
        return Path(text).resolve()
    if Path(text).is_file():
        context = click.get_current_context()
        folder = context.with_resource(TemporaryDirectory(prefix="seatrial-run-"))
        context.meta.setdefault(_PACKS, {})[folder] = text
        return unpack(Path(text), Path(folder))
    return find_run(home(), text)


def with_pack_names(text: str) -> str:
    """Replace each folder of an unpacked run in a text by the name of its pack."""
    context = click.get_current_context(silent=True)
    packs: dict[str, str] = context.meta.get(_PACKS, {}) if context else {}
    for folder, file in packs.items():
        run = re.compile(rf"{re.escape(folder)}(?:/[^/\s:;,]+)?")
        text = run.sub(file.replace("\\", r"\\"), text)
    return text


def shown_path(path: Path) -> str:
    """Return the path of a run as the user named it: a packed run by its file."""
    return with_pack_names(str(path))


def signers_of(system: str) -> Path | None:
    """Find the file of known signers of a system; None without one."""
    from seatrial.runs.ssh_signature import known_signers

    try:
        return known_signers(home() / "reference-data", system)
    except SeatrialError:  # a run verifies on a machine without the suite's files
        return None


def run_there(home: Path, system: str, arguments: list[str], task: str) -> None:
    """Run a command of the suite on the login node of a system; print its output."""
    from seatrial.campaign.remote import seatrial_there
    from seatrial.system.login_node import load_remote

    seatrial_there(load_remote(home, system), arguments, system, task)


def is_elsewhere(home: Path, system: str) -> bool:
    """Return True if only the inventory of a system is here: Slurm is elsewhere."""
    from seatrial.system.description import is_provisioned

    inventory = home / "inventories" / system
    return not is_provisioned(home, system) and inventory.is_dir()


@dataclass(frozen=True)
class Judged:
    """A judgement with all that it is of; the named run is the first of the runs."""

    runs: "tuple[Run, ...]"
    judgement: "Judgement"
    criteria: "Criteria"
    beside: "Beside"


def judged(
    home: Path, path: Path, further: Sequence[Path] = (), criteria: str | None = None
) -> "tuple[Run, Judgement]":
    """Judge a closed run as `judged_whole`; return it and its judgement."""
    whole = judged_whole(home, path, further, criteria)
    return whole.runs[0], whole.judgement


def judged_whole(
    home: Path, path: Path, further: Sequence[Path] = (), criteria: str | None = None
) -> Judged:
    """Load a closed run and the criteria of its system, and judge it.

    `further` runs are judged with it, and repeats of its spoiled cases beside it;
    `criteria` is a file instead of the system's, or
    `KEPT`.
    """
    from seatrial.judge.judge import judge
    from seatrial.runs.closed_run import load_run
    from seatrial.runs.ledger_beside import read_beside

    run, others = load_run(path), [*map(load_run, further)]
    beside = read_beside(run)
    known = {str(other.manifest["run"]) for other in others}
    for name in beside.repeats_of(str(run.manifest["run"])):
        if name not in known:
            others.append(load_run(path.parent / name))
    signers = signers_of(run.manifest["system"])
    rules = _criteria(home, run, criteria)
    judgement = judge(run, rules, others, beside=beside, signers=signers)
    return Judged((run, *others), judgement, rules, beside)


def _criteria(home: Path, run: "Run", named: str | None) -> "Criteria":
    from seatrial.criteria.criteria import Criteria, kept_criteria
    from seatrial.criteria.keys import Known

    if named is None:
        return Criteria.load(criteria_file(home, run.manifest["system"]))
    if named != KEPT:
        return Criteria.load(Path(named), Known(metrics=run.metrics))
    kept = kept_criteria(run)
    if kept is None:
        raise SeatrialError(
            f"{run.path}: the run kept no criteria; expected --criteria FILE"
        )
    return kept
