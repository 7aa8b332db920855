"""Start of ranks: by srun, or by the stack's own mpirun; and their binding."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

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
