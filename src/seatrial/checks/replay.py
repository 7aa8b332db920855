# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Replay: recorded output in place of the program of a check, plainly marked.

The job script is that of a measurement, except that it begins with the recording and
ends there, and runs where ReFrame runs: neither Slurm nor MPI is needed. Nodes, exit
status, standard error and all files are the recorded ones; sanity, parsers and
references are today's.
"""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SkipTestError

from seatrial.checks.tunable import Adjustable
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


class Replayable(rfm.RunOnlyRegressionTest, Adjustable):
    """A check that can take recorded output: `reframe -S replay=FOLDER -n NAME -r`."""

    replay = variable(str, value="", loggable=True)
    """Folder of recordings, for example a run's; '': run the program."""
    replay_session = variable(str, value="")
    """Which of several recordings of a case: see `find_recording`."""

    recording: Recording | None = None

    @run_after("init")
    def stay_here(self) -> None:
        """Start no job for what is recorded."""
        self.local = self.local or bool(self.replay)

    @run_after("setup")
    def take_recording(self) -> None:
        """Find the recording of this case; without one it is skipped."""
        if not self.replay:
            return
        check, environment = type(self).__name__, self.current_environ.name
        parameters = self.case_parameters()
        try:
            recording = find_recording(
                Path(self.replay), check, parameters, environment, self.replay_session
            )
        except SeatrialError as error:
            raise ReframeError(f"replay: {error}") from None
        if recording is None:
            raise SkipTestError(
                f"no recording of {self.display_name} with {environment} "
                f"in {self.replay}"
            )
        self.recording = recording
        if recording.num_nodes:
            self.num_nodes = recording.num_nodes
        # Local jobs have no launcher; the script is to be that of a measurement.
        self.job.launcher = self.current_partition.launcher_type()

    @run_before("run", always_last=True)
    def replay_first(self) -> None:
        """Let the job end with the recording, before it does anything else.

        Nothing of the recorded system is set for the job: no variable, no module.
        """
        if self.recording is None:
            return
        try:
            commands = staged(self.recording, Path(self.stagedir))
        except SeatrialError as error:
            raise ReframeError(f"replay: {error}") from None
        self.prerun_cmds = [*commands, *self.prerun_cmds]
        self.env_vars = {}
        self.modules: list[str] = []


def staged(recording: Recording, stage: Path) -> list[str]:
    """Write the files of a recording into a stage folder.

    Returns the shell commands that replay it and end the job; no text of the recording
    is in them. Raises SeatrialError if a file is not what was recorded or is too large.
    """
    for place, content in recording.files():
        target = stage / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # an input that the check wrote a moment ago
        write_exclusively(target, content)
    printed = stage / _PRINTED
    printed.mkdir()
    for name in (OUTPUT_FILE, ERROR_FILE):
        write_exclusively(printed / name, recording.printed(name))
    return [
        f"# {NO_MEASUREMENT}. What follows `exit` does not run.",
        f"cat {_PRINTED}/{OUTPUT_FILE}",
        f"cat {_PRINTED}/{ERROR_FILE} >&2",
        f"exit {recording.status()}",
    ]
