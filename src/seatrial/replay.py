# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Replay: recorded output in place of the program of a check, plainly marked.

The job script is that of a measurement, except that it begins with the recording and
ends there, and runs where ReFrame runs: neither Slurm nor MPI is needed. Nodes, exit
status, standard error and all files are the recorded ones; sanity, parsers and
references are today's.
"""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SkipTestError

from seatrial.adjustable import Adjustable
from seatrial.errors import SeatrialError
from seatrial.recordings import (
    COMPRESSED,
    ERROR_FILE,
    NO_MEASUREMENT,
    OUTPUT_FILE,
    Recording,
    find_recording,
    kept_file,
)


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
        """Let the job end with the recording, before it does anything else."""
        if self.recording is not None:
            self.prerun_cmds = [*replay_commands(self.recording), *self.prerun_cmds]


def replay_commands(recording: Recording) -> list[str]:
    """Give the shell commands that replay a recording and end the job."""
    folder = recording.folder.resolve()
    output, errors = (kept_file(folder, name) for name in (OUTPUT_FILE, ERROR_FILE))
    assert output is not None, "or it would be no recording"
    return [
        f"# {NO_MEASUREMENT}. What follows `exit` does not run.",
        *map(_copied, (folder / file.name for file in recording.files())),
        _shown(output),
        *([f"{_shown(errors)} >&2"] if errors is not None else []),
        f"exit {recording.status()}",
    ]


def _copied(path: Path) -> str:
    if path.suffix == COMPRESSED:
        return f"{_shown(path)} > {shlex.quote(path.stem)}"
    return f"cp -R {shlex.quote(str(path))} ."


def _shown(path: Path) -> str:
    program = "gzip -dc" if path.suffix == COMPRESSED else "cat"
    return f"{program} {shlex.quote(str(path))}"
