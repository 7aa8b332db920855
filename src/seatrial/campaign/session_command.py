"""A planned ReFrame session on its way, and the command that runs it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from seatrial.campaign.schedule import Planned
from seatrial.checks.listing import reframe_command
from seatrial.model.cases import ListedCase
from seatrial.system.description import System


@dataclass(frozen=True)
class Session:
    """A planned session on its way: where it writes, and under which conditions.

    `replay` is the folder of the recordings that are to stand in for the programs.
    `inherited` is a file descriptor that ReFrame keeps open as long as it lives.
    Where nodes are lost a session goes on in another `part`, of one partition and
    environment: `tries` counts by case how often it ended in those before. Unless it
    `may_cut` the session, a job waits for lost nodes.
    """

    run_id: str
    planned: Planned
    raw: Path
    work: Path
    num_nodes: int | None = None
    retries: int = 0
    max_jobs: int = 1
    replay: Path | None = None
    inherited: int | None = None
    part: int = 1
    tries: Mapping[str, int] = field(default_factory=dict)
    may_cut: bool = True

    @property
    def name(self) -> str:
        """Its name within the run, for example pairs-2."""
        return self.planned.name

    @property
    def comment(self) -> str:
        """The comment of its jobs."""
        return f"{comment_of(self.run_id)}{self.name}"

    @property
    def report(self) -> Path:
        """The file of ReFrame's own report."""
        part = f"-{self.part}" if self.part > 1 else ""
        return self.raw / f"report{part}.json"


def comment_of(run_id: str) -> str:
    """Return how the comments of all jobs of a run begin."""
    return f"seatrial:{run_id}:"


def session_command(session: Session, system: System, checks: Path) -> list[str]:
    """Return the ReFrame command of a session; anyone can run it by hand."""
    settings = system.settings
    policy = "serial"
    most = session.max_jobs // len(system.partitions)
    if most > 1:
        policy = "async"
        settings = _limited(system.settings, session.work, most)
    name, chosen = system.name, []
    if session.part > 1:
        first = session.planned.cases[0]
        name, chosen = first.partition, ["-p", f"^{re.escape(first.environment)}$"]
    command = [
        *reframe_command(settings, name, checks),
        *chosen,
        "-n",
        f"^({'|'.join(dict.fromkeys(map(_pattern, session.planned.cases)))})$",
        "-r",
        f"--exec-policy={policy}",
        f"--max-retries={session.retries}",
        "--keep-stage-files",
        f"--prefix={session.work}",
        f"--perflogdir={session.raw / 'perflogs'}",
        f"--report-file={session.report}",
    ]
    if system.uses_slurm:
        command += ["-J", f"comment={session.comment}"]
    if session.num_nodes is not None:
        command += ["-S", f"num_nodes={session.num_nodes}"]
    if session.replay is not None:
        command += ["-S", f"replay={session.replay}"]
        command += ["-S", f"replay_session={session.name}"]
    for name, value in session.planned.variables.items():
        command += ["-S", f"{name}={value}"]
    return command


def _pattern(case: ListedCase) -> str:
    """Match a check with its parameters alone; an @ means something else to ReFrame."""
    return re.escape(case.case.replace(" ", "")).replace("@", ".")


def _limited(settings: Path, work: Path, max_jobs: int) -> Path:
    """Write settings with another limit of jobs in the queue, for every partition."""
    content = yaml.safe_load(settings.read_text(encoding="utf-8"))
    for partition in content["systems"][0]["partitions"]:
        partition["max_jobs"] = max_jobs
    work.mkdir(parents=True, exist_ok=True)
    limited = work / "settings.json"
    limited.write_text(json.dumps(content), encoding="utf-8")
    return limited
