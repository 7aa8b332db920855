"""Stand-ins of srun, IOR and mdtest that write real files, for tests of storage."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.checks.storage.claim import FOLDER

REPLAY = Path(__file__).parent / "data" / "replay"

_SRUN = r"""#!/bin/bash
while [[ $1 == -* ]]; do
    case $1 in --ntasks=*) export FAKE_RANKS=${1#*=} ;; esac
    shift
done
echo "$$" >"$FAKE_FOLDER/srun.pid"
exec "$@"
"""
_SQUEUE = r"""#!/bin/bash
case "$*" in
    *--steps*) [ ! -e "$FAKE_FOLDER/srun.pid" ] || echo "7.0 seatrial-1" ;;
    *--jobs=8*) echo RUNNING ;;
    *) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
esac
"""
_SCANCEL = r"""#!/bin/bash
kill "$(cat "$FAKE_FOLDER/srun.pid")"
rm "$FAKE_FOLDER/srun.pid"
"""
_PROGRAM = r"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, os.environ["FAKE_SOURCES"])
from seatrial.standins.storage import PROGRAMS
from seatrial.standins.run import Run

name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
ranks, fault = int(os.environ["FAKE_RANKS"]), os.environ.get("FAKE_FAULT", "")
os.environ |= {"SLURM_STEP_NUM_TASKS": str(ranks), "SLURM_STEP_NODELIST": "cn[01-02]"}
os.environ["SLURMD_NODENAME"] = "cn01"
truth = {
    "machine": {"bandwidth_mb_per_s": 12000.0}, "time_scale": 0, "clocks_khz": [1],
    "seed": 1, "nodes": "cn[01-02]", "leaf_nodes": 2, "noise_percent": 1,
    "node_spread_percent": 0, "pair_spread_percent": 0,
    "faults": {"slow_nodes": [], "slow_links": [], "slow_leaves": []},
}
run = Run(truth, name, arguments)
if name == "ior":
    target, block = Path(run.options["-o"]), int(run.options["-b"])
    own = "-F" in run.options
    names = [f"{target}.{rank:08}" for rank in range(ranks if own else 1)]
    if "-w" in run.options:
        for file in names:
            with open(file, "wb") as out:
                for _ in range(block * ranks // len(names) >> 12):
                    out.write(b"x" * 4096)
else:
    folder = Path(run.options["-d"])
    folder.mkdir()
    for number in range(ranks * int(run.options["-n"])):
        (folder / f"file{number}").write_bytes(b"x" * int(run.options["-w"]))
        (folder / f"folder{number}").mkdir()
    time.sleep(0.1)
Path(os.environ["FAKE_FOLDER"], "written").touch()
if fault == "hang":
    time.sleep(60)
if fault == "fail" or (fault == "damage" and "-R" in run.options):
    print("WARNING: Incorrect data on read (1 errors found).", file=sys.stderr)
    sys.exit(2)
print("\n".join(PROGRAMS[name](run)))
if name == "ior" and "-k" not in run.options:
    for file in names:
        os.unlink(file)
"""


@dataclass
class Use:
    """The greatest use of a folder, while it is watched."""

    bytes: int = 0
    files: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self, folder: Path) -> None:
        """Look at the folder a hundred times a second."""
        while not self.done.wait(0.01):
            sizes = [
                _size(Path(root, name))
                for root, folders, files in os.walk(folder)
                for name in (*folders, *files)
            ]
            self.bytes = max(self.bytes, sum(sizes))
            self.files = max(self.files, len(sizes))


def _size(file: Path) -> int:
    try:
        return file.stat().st_blocks * 512
    except OSError:
        return 0


@dataclass(frozen=True)
class FakeStorage:
    """A folder with programs, and a file system to use them on."""

    folder: Path
    disk: Path

    @property
    def data(self) -> Path:
        """The folder that a run makes."""
        return self.disk / FOLDER

    def share_of(self, size_bytes: int) -> float:
        """Return the share of the free space that is about this size."""
        found = os.statvfs(self.disk)
        return size_bytes / (found.f_bavail * found.f_frsize)

    def command(self, tool: str, share: float, *options: str) -> list[str]:
        """Return the command of the conductor, for two nodes with two ranks each."""
        sizes = ("--node-mib=4", "--transfers=1048576", "--node-files=100")
        return [
            *(sys.executable, "-m", "seatrial.checks.storage", "--output=storage.txt"),
            *(f"--tool={tool}", "--name=scratch", f"--path={self.disk}"),
            *(f"--share={share!r}", "--ppn=2", "--patience=0", "--file-bytes=3901"),
            *(*sizes, *options, "--", "srun", "--mpi=pmix", "--", tool),
        ]

    def start(
        self, tool: str, share: float, *options: str, fault: str = ""
    ) -> "subprocess.Popen[str]":
        """Start the conductor in a job of two nodes."""
        (self.folder / "storage.txt").unlink(missing_ok=True)
        (self.folder / "written").unlink(missing_ok=True)
        path = f"{self.folder / 'bin'}:{REPLAY}:{os.environ['PATH']}"
        return subprocess.Popen(
            self.command(tool, share, *options),
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": path,
                "FAKE_FOLDER": str(self.folder),
                "FAKE_FAULT": fault,
                "FAKE_SOURCES": str(Path(__file__).parents[1] / "src"),
                "SLURM_JOB_ID": "7",
                "SLURM_JOB_NODELIST": "cn[01-02]",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, tool: str, share: float, *options: str, fault: str = ""
    ) -> tuple[int, str]:
        """Run the conductor to its end; return its status and its errors."""
        process = self.start(tool, share, *options, fault=fault)
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors

    def wait_until_written(self) -> None:
        """Wait until a program has written its files."""
        limit = time.monotonic() + 30
        while not (self.folder / "written").exists():
            assert time.monotonic() < limit
            time.sleep(0.01)

    def wait_until_gone(self) -> bool:
        """Wait until nothing is left on the file system."""
        limit = time.monotonic() + 30
        while left := [*self.disk.iterdir()]:
            if time.monotonic() > limit:
                print(left)
                return False
            time.sleep(0.02)
        return True

    @contextmanager
    def watched(self) -> Iterator[Use]:
        """Watch the use of the file system."""
        use = Use()
        thread = threading.Thread(target=use.watch, args=(self.disk,))
        thread.start()
        try:
            yield use
        finally:
            use.done.set()
            thread.join()

    def own(self, **owner: object) -> None:
        """Make the folder of another job."""
        self.data.mkdir()
        (self.data / "file").write_text("data")
        if owner:
            (self.data / "owner.json").write_text(json.dumps(owner))


def fake_storage(folder: Path, disk: Path | None = None) -> FakeStorage:
    """Write the programs; the file system is a folder beside them, if none is given."""
    disk = disk or folder / "disk"
    (folder / "bin").mkdir(parents=True)
    disk.mkdir(exist_ok=True)
    program = f"#!{sys.executable} -IS\n{_PROGRAM}"
    for name, text in {
        "srun": _SRUN,
        "squeue": _SQUEUE,
        "scancel": _SCANCEL,
        "ior": program,
        "mdtest": program,
    }.items():
        file = folder / "bin" / name
        file.write_text(text)
        file.chmod(0o755)
    return FakeStorage(folder, disk)
