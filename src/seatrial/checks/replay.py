# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Replay of recorded output in place of the program of a check.

The job script is that of a measurement, but prints the recording first and ends there.
It runs beside ReFrame, without Slurm and MPI. Nodes, exit status, standard error and
all files are the recorded ones; sanity, parsers and references are the current ones.
"""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SkipTestError

from seatrial.errors import SeatrialError
from seatrial.plain_files import write_exclusively
from seatrial.runs.raw_output import (
    ERROR_FILE,
    NO_MEASUREMENT,
    OUTPUT_FILE,
    Recording,
    find_recording,
)

_PRINTED = "seatrial.recorded"
"""Folder in the stage folder with what the job printed."""


class Replayable(rfm.RunOnlyRegressionTest):
    """A check that can take recorded output: `reframe -S replay=FOLDER -n NAME -r`."""

    replay = variable(str, value="", loggable=True)
    """Folder of recordings, for example a run's; '': run the program."""
    replay_session = variable(str, value="")
    """Selects one of several recordings of a case: see `find_recording`."""

    recording: Recording | None = None

    @run_after("init")
    def stay_here(self) -> None:
        """Run replays without a job of Slurm."""
        self.local = self.local or bool(self.replay)

    @run_after("setup")
    def take_recording(self) -> None:
        """Find the recording of this case; skip the case without one."""
        if not self.replay:
            return
        environment = self.current_environ.name
        case = (type(self).__name__, self.case_parameters(), environment)
        folder, session = Path(self.replay), self.replay_session
        try:
            self.recording = find_recording(folder, *case, session)
        except SeatrialError as error:
            raise ReframeError(f"replay: {error}") from None
        if self.recording is None:
            name = f"{self.display_name} with {environment}"
            raise SkipTestError(f"no recording of {name} in {folder}")
        self.num_nodes = self.recording.num_nodes or self.num_nodes
        # Local jobs have no launcher; the script is that of a measurement.
        self.job.launcher = self.current_partition.launcher_type()

    @run_before("run", always_last=True)
    def replay_first(self) -> None:
        """End the job after the recording, without variables and modules."""
        if self.recording is None:
            return
        try:
            commands = staged(self.recording, Path(self.stagedir))
        except SeatrialError as error:
            raise ReframeError(f"replay: {error}") from None
        self.prerun_cmds = [*commands, *self.prerun_cmds]
        self.env_vars: dict[str, str] = {}
        self.modules: list[str] = []


def staged(recording: Recording, stage: Path) -> list[str]:
    """Write the files of a recording into a stage folder.

    Returns the shell commands that replay it and end the job, without any text of the
    recording. Raises SeatrialError if a file differs from its record or is too large.
    """
    for place, content in recording.files():
        target = stage / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # an input that the check wrote a moment ago
        write_exclusively(target, content)
    printed = stage / _PRINTED
    printed.mkdir()
    for name in (OUTPUT_FILE, ERROR_FILE):
        write_exclusively(printed / name, [recording.printed(name)])
    return [
        f"# {NO_MEASUREMENT}. What follows `exit` does not run.",
        f"cat {_PRINTED}/{OUTPUT_FILE}",
        f"cat {_PRINTED}/{ERROR_FILE} >&2",
        f"exit {recording.status()}",
    ]
