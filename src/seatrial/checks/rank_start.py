"""Start of ranks: by srun, or by the stack's own mpirun; and their binding."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

from seatrial.parsers.errors import ParseError

SCRIPT = "mpirun.sh"
"""Translates options of srun to those of mpirun, in the folder of a job."""

AFFINITY_FILE = "affinity.txt"
"""The CPUs that each rank may use, as it reads them itself: `NODE RANK CPUS`."""

ALL_END = "--kill-on-bad-exit=1"
"""The option of srun that ends all ranks if one dies; mpirun always does."""

_CPU_BIND = {"cores": "cores", "numa": "ldoms", "none": "none"}
_RANK = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}"
_PRINT_CPUS = (
    f'sed -n "s/^Cpus_allowed_list:[[:space:]]*/$(hostname -s) {_RANK} /p" '
    "/proc/self/status"
)

_SAID = re.compile(r"^# rank (\d+) (\S+)\n", re.MULTILINE)


@register_launcher("stack-mpirun")
class StackMpirun(JobLauncher):  # type: ignore[misc]
    """The mpirun of a stack; `kind` is `openmpi` or `hydra`."""

    def __init__(self, kind: str, program: str) -> None:
        super().__init__()
        self._command = ["bash", SCRIPT, kind, program]

    def command(self, job: Any) -> list[str]:
        """Return the command, which takes the options of srun."""
        return self._command


def choose_start(check: Any) -> None:
    """Set the launcher of a check's job and its options, and record the binding.

    A stack with `launcher: mpirun` replaces srun. The binding of a stack precedes that
    of the class of nodes; without one the launcher's own holds.
    """
    job, stack = check.job, check.current_environ.extras
    values = {"distribution": check.placement, "mpi": stack.get("srun_mpi")}
    if "mpirun" in stack:
        job.launcher = StackMpirun(**stack["mpirun"])
        del values["mpi"]
        script = files("seatrial.checks").joinpath(SCRIPT).read_text(encoding="utf-8")
        Path(check.stagedir, SCRIPT).write_text(script, encoding="utf-8")
    of_class = check.current_partition.extras.get("binding")
    binding = stack.get("binding") or of_class
    if binding:
        values["cpu-bind"] = _CPU_BIND[binding]
    options = [f"--{name}={value}" for name, value in values.items() if value]
    job.launcher.options += [*options, ALL_END]
    if binding:
        launch = job.launcher.run_command(job)
        record = f"{launch} sh -c '{_PRINT_CPUS}' >{AFFINITY_FILE}"
        check.prerun_cmds = [*check.prerun_cmds, record]
        check.keep_files = [*check.keep_files, AFFINITY_FILE]


def rank_line(*, by_mpirun: bool) -> str:
    """Return the prefix of a command whose ranks print `# rank RANK NODE` first."""
    name = "$SLURM_PROCID ${SLURMD_NODENAME:-$(hostname -s)}"
    if by_mpirun:  # its daemons have Slurm's variables, which ranks inherit
        name = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(hostname -s)"
    return f"""sh -c 'echo "# rank {name}"; exec "$@"' sh"""


def verify_rank_lines(text: str, nodes: Sequence[str]) -> None:
    """Raise ParseError unless there is one rank on each of the nodes, in this order."""
    said = sorted((int(rank), node) for rank, node in _SAID.findall(text))
    if len(said) != len(nodes):
        raise ParseError(0, f"{len(said)} of {len(nodes)} ranks print their node")
    for (rank, node), expected in zip(said, enumerate(nodes), strict=True):
        if (rank, node) != expected:
            wanted = "rank {} on {}".format(*expected)
            raise ParseError(0, f"rank {rank} on {node}, expected {wanted}")
