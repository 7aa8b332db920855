"""Record the runs of `make demo` again: campaigns on the lab, packed into reports/demo.

Needs root on Debian, and a quiet machine for about an hour. `python
tools/record_demo.py PART...` records some parts: accept, nights, bakeoff. The runs of
the bake-off are sealed with a key that is thrown away; its public half is kept beside
them.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial import paths
from seatrial.runs.closed_run import closed_runs
from seatrial.runs.pack import SUFFIX, pack
from seatrial.system.playbooks import playbook

HOME = paths.home()
FOLDER = HOME / "reports" / "demo"
RESULTS = paths.results_dir(HOME)
SIDES = {"delivered": "", "slow-links": "1gbit", "busy-1": "", "busy-2": ""}
"""Limit of the links of all nodes on each side of the bake-off, if any."""


def seatrial(*arguments: str, may_fail: bool = False) -> None:
    """Run a command of the suite; its output is shown."""
    subprocess.run([sys.argv[0], *arguments], check=not may_fail)


def lab(nodes: int) -> None:
    """Start a lab with a number of nodes, and provision it."""
    seatrial("lab", "down")
    os.environ["LAB_NODES"] = str(nodes)
    for name in ("lab", "cluster", "site"):
        playbook(HOME, "lab", name, HOME / "build" / "log" / f"demo-{name}.log")


def newest() -> Path:
    """Find the run that was closed last."""
    return closed_runs(RESULTS, "lab")[-1]


def keep(run: Path, name: str) -> None:
    """Pack a run, and replace the file of that name."""
    file = FOLDER / f"{name}{SUFFIX}"
    file.unlink(missing_ok=True)
    pack(run, file)
    print(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB")


def campaign(name: str, repeats: int) -> Path:
    """Run a campaign; return its run."""
    seatrial("run", "lab", "--campaign", name, "--repeats", str(repeats), "--no-judge")
    return newest()


@contextmanager
def busy(processors: int) -> Iterator[None]:
    """Keep a number of processors busy."""
    command = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(command) for _ in range(processors)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def accept() -> None:
    """Record a clean acceptance, and a slow link."""
    lab(4)
    seatrial("accept")
    clean, slow = closed_runs(RESULTS, "lab")[-2:]
    keep(clean, "acceptance")
    keep(slow, "slow-link")


def nights() -> None:
    """Record eight runs: a slow link in the fifth, a new node from the seventh."""
    lab(4)
    for night in range(1, 9):
        if night == 7:
            lab(5)
        if night == 5:
            seatrial("lab", "slow-link", "cn02", "--rate", "400mbit")
        keep(campaign("smoke", 2), f"night-{night}")
        if night == 5:
            seatrial("lab", "slow-link", "cn02", "--off")


def bakeoff() -> None:
    """Record the plain machine, slower links, and twice a busy one; seal them."""
    lab(4)
    nodes = [f"cn{number:02}" for number in range(1, 5)]
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]
        subprocess.run([*command, str(key)], check=True)
        public = key.with_suffix(".pub").read_text()
        (FOLDER / "allowed_signers").write_text(f"demo@example.org {public}")
        for side, rate in SIDES.items():
            for node in nodes:
                limit = ["--rate", rate] if rate else ["--off"]
                seatrial("lab", "slow-link", node, *limit)
            with busy(os.cpu_count() or 1 if side.startswith("busy") else 0):
                run = campaign("bakeoff", 3)
            seatrial("seal", str(run), "--key", str(key))
            keep(run, f"bakeoff-{side}")
        for node in nodes:
            seatrial("lab", "slow-link", node, "--off")


PARTS = {"accept": accept, "nights": nights, "bakeoff": bakeoff}


def main() -> None:
    """Record the named parts, or all."""
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        raise SystemExit(f"unknown parts {unknown}; expected some of {list(PARTS)}")
    sys.argv[0] = str(Path(sys.executable).with_name("seatrial"))
    FOLDER.mkdir(exist_ok=True)
    for name in wanted:
        PARTS[name]()


if __name__ == "__main__":
    main()
