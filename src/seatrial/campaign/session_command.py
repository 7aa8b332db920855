"""A planned session, and the ReFrame command that runs it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

from seatrial.campaign.schedule import Planned
from seatrial.campaign.stability_phase import mix_of
from seatrial.checks.listing import (
    mix_environment,
    pack_environment,
    reframe_command,
    reframe_environment,
    setvar_options,
)
from seatrial.checks.sources import files_of, own_metrics
from seatrial.model.metrics import METRICS, Metric
from seatrial.paths import checks_dir, criteria_file
from seatrial.system.description import System


@dataclass(frozen=True)
class Session:
    """A planned session, its folders and its conditions.

    `replay` is the folder of the recordings that replace the programs. `inherited` is a
    file descriptor that ReFrame keeps open as long as it runs. `usable_nodes` counts
    the nodes of each class that lacks some. With `pack_s`, the longest time limit of a
    shared job, cases share jobs; 0: each case is a job. After lost nodes a session goes
    on in another `part`, of one partition and environment: `tries` counts the ends of
    each case in earlier parts. `by_place`: so are all of its parts. A round of a
    stability phase lasts `round_s` at least, and keeps a journal of the nodes.
    """

    run_id: str
    system: System
    home: Path
    planned: Planned
    raw: Path
    work: Path
    usable_nodes: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0
    max_jobs: int = 1
    pack_s: float = 0.0
    replay: Path | None = None
    inherited: int | None = None
    by_place: bool = False
    part: int = 1
    round_s: float = 0.0
    tries: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return its name within the run, for example pairs-2."""
        return self.planned.name

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """All metrics that its checks may report, by name."""
        return METRICS | own_metrics(checks_dir(self.home))

    @property
    def is_packed(self) -> bool:
        """Return True if its cases share jobs of Slurm."""
        return self.pack_s > 0 and self.system.only_slurm and self.replay is None

    @property
    def comment(self) -> str:
        """Return the comment of its jobs."""
        return f"{comment_of(self.run_id)}{self.name}"

    @property
    def report(self) -> Path:
        """Return the file of ReFrame's report."""
        part = f"-{self.part}" if self.part > 1 else ""
        return self.raw / f"report{part}.json"


def comment_of(run_id: str) -> str:
    """Return the common prefix of the comments of a run's jobs."""
    return f"seatrial:{run_id}:"


def session_command(session: Session) -> list[str]:
    """Return the ReFrame command of a session."""
    system = session.system
    settings, policy = system.settings, "serial"
    max_jobs = session.max_jobs // len(system.classes)
    if session.is_packed:
        max_jobs = len(session.planned.cases) + 1
    if max_jobs > 1:
        settings, policy = _limited(settings, session.work, max_jobs), "async"
    name, environment = system.name, []
    if session.part > 1 or session.by_place:
        first = session.planned.cases[0]
        name = first.partition
        environment = ["-p", f"^{re.escape(first.environment)}$"]
    # ReFrame joins names and parameters, and takes an @ as the begin of a variant.
    names = (case.case.replace(" ", "") for case in session.planned.cases)
    patterns = dict.fromkeys(re.escape(name).replace("@", ".") for name in names)
    # Half of ReFrame's start would go into checks that this session does not run.
    checks = {case.check for case in session.planned.cases}
    command = [
        *reframe_command(settings, name, *files_of(checks_dir(session.home), checks)),
        *environment,
        "-n",
        f"^({'|'.join(patterns)})$",
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
    has_limits = criteria_file(session.home, system.name).is_file()
    variables: dict[str, object] = {} if has_limits else {"calibrate": True}
    if usable := session.usable_nodes:
        variables["usable_nodes"] = ",".join(f"{n}:{usable[n]}" for n in usable)
    if session.replay is not None:
        variables |= {"replay": session.replay, "replay_session": session.name}
    variables |= session.planned.variables
    return command + setvar_options(variables)


def session_environment(session: Session) -> dict[str, str]:
    """Return the environment of that command."""
    environment = reframe_environment(session.home, session.system.name)
    environment |= mix_environment(mix_of(session.name, session.planned.cases))
    if session.is_packed:
        environment |= pack_environment(session.pack_s, session.max_jobs)
    return environment


def _limited(settings: Path, work: Path, max_jobs: int) -> Path:
    """Write settings with another limit of queued jobs for every partition."""
    content = yaml.safe_load(settings.read_text(encoding="utf-8"))
    for partition in content["systems"][0]["partitions"]:
        partition["max_jobs"] = max_jobs
    work.mkdir(parents=True, exist_ok=True)
    limited = work / "settings.json"
    limited.write_text(json.dumps(content), encoding="utf-8")
    return limited
