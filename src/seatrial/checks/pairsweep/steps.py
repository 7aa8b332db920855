"""The steps of a sweep over pairs: one program, as many ranks on every node."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.checks.job_control import controller_answers, wait_for_controller
from seatrial.checks.srun_steps import Ended, Step, Watch
from seatrial.checks.step_launcher import Launcher


class Steps:
    """Runs steps of this job, with `ppn` ranks on every node; see `Launcher`."""

    def __init__(self, srun: Sequence[str], ppn: int, patience_s: float) -> None:
        self._launcher = Launcher(srun, patience_s)
        self._ppn = ppn

    def run(
        self,
        nodes: Sequence[str],
        program: Sequence[str],
        watch: Watch,
        echo: bool = False,
    ) -> Ended:
        """Run a program on these nodes until it ends, or until `watch` ends it.

        `echo` copies its standard error at once. Raises SeatrialError if srun is
        missing, or the controller stays away.
        """
        name = "preflight" if "--preflight" in program else program[0]
        with TemporaryDirectory(prefix="seatrial-") as folder:
            step = Step(
                nodes,
                program,
                Path(folder),
                watch,
                name=name,
                ranks=self._ppn,
                echo=echo,
            )
            while True:
                try:
                    self._launcher.start([step])
                    ended = self._launcher.wait([step])[step]
                finally:
                    self._launcher.end([step])
                if ended.status is not None or ended.output or controller_answers():
                    return ended
                wait_for_controller()
