"""Remove the folder of a run when its conductor ends, however it ends.

    python -m seatrial.checks.storage.keeper FOLDER

The conductor holds the other end of standard input, which the kernel closes when it
dies. A conductor that ended well has ended its steps; those of one that was killed are
cancelled first. Signals that end a job do not end this process: Slurm waits some
seconds before it kills all that is left.
"""

import signal
import sys
from pathlib import Path

from seatrial.checks.job_control import cancel_steps
from seatrial.checks.storage.claim import ENDED_WELL, remove

_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT)
_STEPS = {f"seatrial-{number}" for number in range(1, 100)}
"""Names that `step_launcher` gives to its steps."""


def main(folder: Path) -> int:
    """Wait for the end of standard input, then remove the folder."""
    for name in _IGNORED:
        signal.signal(name, signal.SIG_IGN)
    if sys.stdin.buffer.read() != ENDED_WELL:
        cancel_steps(_STEPS)
    if remove(folder):
        return 0
    print(f"seatrial.checks.storage: {folder} is left over", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
