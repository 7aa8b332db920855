# mypy: disable-error-code="misc,untyped-decorator,has-type"
# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""The base class of all checks."""

import inspect
import json
import math
from abc import abstractmethod
from pathlib import Path
from typing import Any

import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from seatrial.checks.judged_metrics import JudgedMetrics
from seatrial.checks.load_sensed import LoadSensed
from seatrial.checks.mpi_start import FILE as CRASHES_FILE
from seatrial.checks.mpi_start import SCRIPT, recorded, write_script
from seatrial.checks.rank_start import choose_start
from seatrial.checks.reframe_patches import patch_reframe
from seatrial.checks.replay import Replayable
from seatrial.checks.tags import Tag
from seatrial.checks.time_limits import TimeLimited
from seatrial.model.cases import TOO_FEW
from seatrial.model.records import Sample, as_dict
from seatrial.parsers.errors import ParseError
from seatrial.parsers.load_sensors import LOAD_FILE
from seatrial.parsers.mpi_start import GAVE_UP, TRIES, without_crashed_tries
from seatrial.runs.raw_output import JOB_FILE, RECORD_FILE, read_job
from seatrial.system.description import SLURM
from seatrial.system.slurm import first_death

__all__ = ["SeatrialCheck", "Tag", "cores_of"]

patch_reframe()


class SeatrialCheck(Replayable, JudgedMetrics, LoadSensed, TimeLimited):
    """A check of all nodes, or of the first `num_nodes` that Slurm allocates.

    A check returns its numbers once, in `extract`; `judged` names the few that have
    references. The stage folder receives `seatrial.json` with all samples and their
    origin, even if the job or the performance stage fails.
    """

    tool = variable(str)
    """The measuring program, and how it is used, in a few words."""
    experiments = variable(typ.Tuple[str], typ.List[str])
    """Numbers of `seatrial.checks.experiments` that it repeats; () for none."""
    typical_s = variable(int, float)
    """Seconds that a case takes on a few nodes, before any was recorded."""
    question = variable(str, value="")
    """First line of the docstring."""
    needs = variable(typ.List[str], value=[])
    """Features that system and MPI stack must have, even if the case is skipped."""
    extent = variable(str, value="")
    """Nodes that a case takes: `one node`, `two nodes`, or all usable ones of
    `one class`. A class of all nodes makes that the whole machine."""
    tuning = variable(str, value="")
    """Set of variables of the MPI stack, by its name in `mpi_stacks`; '': none."""
    placement = variable(typ.Str[r"|block|cyclic"], value="")
    """`srun --distribution`: fill each node, or alternate; '': Slurm's own choice."""
    num_nodes = variable(int, value=0)
    """Nodes to run on; 0: all that are up."""
    usable_nodes = variable(typ.Dict[str, int], value={})
    """Nodes that are up, by class of nodes; without an entry all of the class."""
    ppn = variable(int, value=1)
    """Ranks per node; 0: one on every core that ReFrame's settings name."""
    min_tasks = variable(int, value=1)
    """Ranks that the program needs; with fewer, the case is skipped."""
    needs_nodes = 1
    """Nodes that the program needs; with fewer, the case is skipped."""
    most_nodes = 0
    """Nodes that it uses at most; 0: all."""
    draws_pairs = False  # it measured some pairs of its nodes: see model/cases.py
    output_file = variable(str, value="")
    """File in the stage folder with the numbers; '': standard output."""
    preamble = ""
    """Regular expression for the lines that the program prints after MPI_Init and
    before its first timed loop: see parsers/mpi_start.py."""

    valid_systems = ["+slurm"]
    exclusive_access = True
    max_pending_time = "10m"

    @abstractmethod
    def extract(self, text: str) -> list[Sample]:
        """Convert the program's output to samples, or raise ParseError."""

    @run_after("init", always_last=True)
    def describe_check(self) -> None:
        """Copy docstring, features and extent: `--describe` shows only variables."""
        self.question = inspect.cleandoc(type(self).__doc__ or "").partition("\n")[0]
        self.needs = " ".join(self.valid_systems + self.valid_prog_environs).split()
        counts = {1: "one node", 2: "two nodes"}
        self.extent = counts.get(self.num_nodes or self.most_nodes, "one class")

    @run_after("setup")
    def take_tuning(self) -> None:
        """Set the variables of a tuning; skip a stack that has none of this name."""
        if not self.tuning:
            return
        known = self.current_environ.extras.get("tuning", {})
        self.skip_if(
            self.tuning not in known,
            f"mpi_stacks names no tuning {self.tuning!r} for "
            f"{self.current_environ.name}; it has {', '.join(known) or 'none'}",
        )
        variables = {name: str(value) for name, value in known[self.tuning].items()}
        self.env_vars = {**self.env_vars, **variables}

    @run_after("setup")
    def place(self) -> None:
        """Spread the ranks over the nodes; skip if nodes or ranks are too few."""
        self.whole_class: bool | None = not (self.num_nodes or self.most_nodes)
        if self.recording is not None:
            self.whole_class = self.recording.whole_class
        partition = self.current_partition
        delivered = len(partition.extras.get("nodes", []))
        if not (self.num_nodes or delivered):
            raise ReframeError(
                f"partition {partition.fullname} names no nodes in its extras: set "
                "num_nodes"
            )
        usable = self.usable_nodes.get(partition.name, delivered or self.num_nodes)
        self.num_nodes = self.num_nodes or usable
        needed = max(self.num_nodes, self.needs_nodes)
        available = min(self.num_nodes, usable)
        self.skip_if(available < needed, f"{TOO_FEW}{needed}, available: {available}")
        if self.most_nodes:
            self.num_nodes = min(self.num_nodes, self.most_nodes)
        self.ppn = self.ppn or cores_of(partition)
        self.num_tasks = self.num_nodes * self.ppn
        self.num_tasks_per_node = self.ppn
        self.skip_if(
            self.num_tasks < self.min_tasks,
            f"it takes {self.min_tasks} ranks, there is room for {self.num_tasks}",
        )

    @run_before("run")
    def set_slurm_options(self) -> None:
        """Set the start of ranks, their placement and binding.

        A job that lost a node fails: a requeue would hide the loss.
        """
        if self.job.launcher.registered_name == "srun":
            choose_start(self)
        if self.current_partition.scheduler.registered_name in SLURM:
            self.job.options += ["--no-requeue"]

    @run_before("run", always_last=True)
    def record_job(self) -> None:
        """Repeat crashes at start, and record nodes, times and exit status in the job.

        Scripts and modules of this suite that start programs repeat crashes themselves.
        Accounting names the nodes late and sometimes wrong; the job knows them. A job
        without an end leaves a record without numbers.
        """
        write_script(Path(self.stagedir), self.preamble, self.output_file)
        if self.job.launcher.registered_name != "local":
            self.job.launcher.modifier = f"bash {SCRIPT}"
        self.nodes: list[str] = []
        self.samples: list[Sample] = []
        self._write_record(None)
        if self.output_file:
            self.prerun_cmds += [f"rm -f {self.output_file}"]
        self.prerun_cmds += [
            'if [ -n "$SLURM_JOB_NODELIST" ]; then',
            "    # srun fails at once if the controller is away for a moment.",
            "    until scontrol ping >/dev/null 2>&1; do sleep 1; done",
            '    seatrial_nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")',
            "else",
            "    seatrial_nodes=$(hostname -s)",
            "fi",
            f'echo "nodes="$seatrial_nodes >{JOB_FILE}',
            *self.sensors_begin(),
            f'echo "start=$(date +%s.%N)" >>{JOB_FILE}',
        ]
        self.postrun_cmds = [
            "seatrial_status=$?",
            f'echo "end=$(date +%s.%N)" >>{JOB_FILE}',
            f'echo "status=$seatrial_status" >>{JOB_FILE}',
            *self.sensors_end(),
            *self.postrun_cmds,
            "exit $seatrial_status",
        ]
        kept = [JOB_FILE, RECORD_FILE, CRASHES_FILE, LOAD_FILE, self.output_file]
        self.keep_files = [*self.keep_files, *filter(None, kept)]

    def case_parameters(self) -> dict[str, Any]:
        """Return the values that identify a case: parameters, tuning and placement."""
        values = {name: getattr(self, name) for name in type(self).raw_params}
        chosen = {"tuning": self.tuning, "placement": self.placement}
        return values | {name: value for name, value in chosen.items() if value}

    @sanity_function
    def validate(self) -> bool:
        """Check that the program succeeded and that every number is there."""
        job = read_job(Path(self.stagedir))
        self.nodes = job.get("nodes", "").split()
        try:
            self._verify_job(job)
            self.samples = self._verified_samples()
            self.samples += self.sensed(self.nodes, self.samples)
        finally:
            self._write_record(job)
        return True

    @property
    def _job_id(self) -> str | None:
        if self.recording is not None:
            return self.recording.job_id
        return None if self.job.jobid is None else str(self.job.jobid)

    def _verify_job(self, job: dict[str, str]) -> None:
        """Raise SanityError if the program failed, or had too few nodes."""
        if job.get("status") != "0":
            crashes = recorded(Path(self.stagedir))
            if crashes and crashes[-1]["try"] == TRIES:
                mpi = self.current_environ.extras.get("mpi", self.current_environ.name)
                nodes = ", ".join(crashes[-1]["dead"])
                raise SanityError(
                    f"{GAVE_UP} ({mpi.replace('@', ' ')}); the last one"
                    f"{f' on {nodes}' if nodes else ''}: {crashes[-1]['reason']}"
                )
            state = f"exit status {job['status']}" if "status" in job else "no end"
            raise SanityError(
                f"{self.executable}: {state} (job {self._job_id}, state "
                f"{self.job.state or 'unknown'}, time limit {self.time_limit}); "
                f"standard error {self._cause()}"
            )
        if len(self.nodes) != self.num_nodes:
            raise SanityError(
                f"ran on {len(self.nodes)} nodes ({' '.join(self.nodes)}), "
                f"expected {self.num_nodes}"
            )

    def _cause(self) -> str:
        """Quote the error of the first dead task, or the last line."""
        text = Path(self.stagedir, self.job.stderr).read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        died = first_death(lines)
        return f"says: {died!r}" if died else f"ends: {lines[-1] if lines else ''!r}"

    def _verified_samples(self) -> list[Sample]:
        """Extract the samples; SanityError if one of them is no valid number."""
        name = self.output_file or self.job.stdout
        file = Path(self.stagedir, name)
        if not file.is_file():
            raise SanityError(f"{self.executable} wrote no {name}")
        try:
            return self.read_samples(file)
        except ParseError as error:
            raise SanityError(f"{name}: {error}") from None

    def read_samples(self, file: Path) -> list[Sample]:
        """Read the program's output; ParseError if a sample is no valid number."""
        samples = self.extract(without_crashed_tries(file.read_text(errors="replace")))
        known = self.known_metrics
        for sample in samples:
            if sample.metric not in known or not math.isfinite(sample.value):
                raise ParseError(0, f"not a valid number: {sample}")
        return samples

    def _write_record(self, job: dict[str, str] | None) -> None:
        payload = None
        if job and "end" in job:
            payload = float(job["end"]) - float(job["start"])
        record = {
            "check": type(self).__name__,
            "case": self.display_name,
            "partition": self.current_partition.fullname,
            "environment": self.current_environ.name,
            "parameters": self.case_parameters(),
            "num_nodes": self.num_nodes,
            "whole_class": self.whole_class,
            "draws_pairs": self.draws_pairs,
            "declared": self.judged if self.needs_criteria else [],
            "replay": None if self.recording is None else str(self.recording.folder),
            "job_id": self._job_id,
            "nodes": None if job is None else self.nodes,
            "payload_s": payload,
            "command": " ".join([self.executable, *self.executable_opts]),
            **self.sensors_record(),
        }
        samples = ",\n".join(json.dumps(as_dict(sample)) for sample in self.samples)
        text = f'{json.dumps(record)[:-1]}, "samples": [\n{samples}\n]}}\n'
        Path(self.stagedir, RECORD_FILE).write_text(text)


def cores_of(partition: Any) -> int:
    """Return the cores of a node; ReframeError if the settings name none."""
    processor = partition.processor
    if not processor.num_cpus:
        raise ReframeError(
            f"class {partition.name} has no facts of its nodes; run site.yml again, or "
            "declare its cores and memory_mib in node_classes"
        )
    return int(processor.num_cpus) // (processor.num_cpus_per_core or 1)
