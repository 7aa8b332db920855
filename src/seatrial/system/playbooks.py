"""Run the project's playbooks; their output goes to a log file."""

import re
import subprocess
import sys
from pathlib import Path

from seatrial.errors import SeatrialError

_TROUBLE = re.compile(r"^(fatal|failed|\[ERROR\]|ERROR!)")
_RECAP = re.compile(r"\bchanged=(\d+)")


def playbook(home: Path, system: str, name: str, log: Path, *options: str) -> int:
    """Run `playbooks/NAME.yml` on a system; return the number of changes.

    `home` is the checkout; all output goes to `log`. SeatrialError quotes the lines of
    the failed tasks and names the log.
    """
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        f"inventories/{system}",
        f"playbooks/{name}.yml",
        *options,
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        done = subprocess.run(
            command,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    lines = log.read_text().splitlines()
    if done.returncode != 0:
        trouble = [line for line in lines if _TROUBLE.match(line)] or lines[-5:]
        raise SeatrialError(
            f"playbooks/{name}.yml failed on system {system}:\n"
            + "\n".join(trouble[:10])
            + f"\nfull output: {log}"
        )
    return sum(map(int, _RECAP.findall("\n".join(lines[-200:]))))
