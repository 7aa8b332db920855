"""`python -m seatrial.checks.storage`: see the package."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import seatrial.checks.storage
from seatrial.checks import job_control
from seatrial.checks.job_control import Limit, host_names
from seatrial.checks.srun_steps import Step
from seatrial.checks.step_arguments import divided_parser, parse_divided
from seatrial.checks.step_launcher import Launcher
from seatrial.checks.storage.claim import claimed
from seatrial.checks.storage.programs import Ior, Mdtest, Run, Tool
from seatrial.checks.storage.room import room_of
from seatrial.errors import Exit, SeatrialError

say = partial(job_control.say, "storage")


def main(arguments: Sequence[str]) -> int:
    """Run all steps; 0 if each ended well, and all data is removed."""
    parser = divided_parser("seatrial.checks.storage", seatrial.checks.storage.__doc__)
    _add_options(parser)
    options, srun, program = parse_divided(parser, arguments)
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, _stop)
    try:
        nodes = host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
        tool = _tool(options, program, len(nodes))
        launcher = Launcher(srun, options.start_limit)
        with claimed(options.path, options.patience) as folder:
            _conduct(options, tool, nodes, launcher, folder)
    except SeatrialError as error:
        print(f"seatrial.checks.storage: {error}", file=sys.stderr)
        return int(error.exit_code)
    say("done; all data is removed")
    return 0


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tool", choices=("ior", "mdtest"), required=True)
    add("--name", required=True, metavar="NAME", help="of the file system")
    add("--path", type=Path, required=True, metavar="FOLDER", help="on it")
    add("--share", type=float, required=True, help="of the free space, at most")
    add("--stripe-count", type=int, metavar="N", help="of Lustre, for the folder")
    add("--ppn", type=int, required=True, metavar="RANKS", help="on each node")
    add("--node-mib", type=int, default=0, help="that a node writes (ior)")
    add("--transfers", default="1048576", help="sizes of transfers in bytes (ior)")
    add("--node-files", type=int, default=0, help="that a node creates (mdtest)")
    add("--file-bytes", type=int, default=0, help="of each file (mdtest)")
    add("--start-limit", type=float, default=60, help="seconds for the start of a step")
    add("--step-limit", type=float, default=1800, help="seconds for a step")
    add("--patience", type=float, default=600, help="seconds for another job to end")


def _tool(options: argparse.Namespace, program: Sequence[str], nodes: int) -> Tool:
    if options.tool == "ior":
        transfers = [int(text) for text in options.transfers.split(",")]
        size = options.node_mib << 20
        return Ior(program, nodes, options.ppn, size, transfers)
    sizes = (options.node_files, options.file_bytes)
    return Mdtest(program, nodes, options.ppn, *sizes)


def _stop(number: int, _frame: Any) -> None:
    """End by an exception, so that steps are ended and data is removed."""
    raise SeatrialError(f"ended by {signal.Signals(number).name}", Exit.FAILED)


def _conduct(
    options: argparse.Namespace,
    tool: Tool,
    nodes: Sequence[str],
    launcher: Launcher,
    folder: Path,
) -> None:
    """Run the steps one after the other, each with its output in the file."""
    began = time.time()
    room = room_of(options.name, options.path, options.share)
    runs, use = tool.runs(room, folder)
    if options.stripe_count is not None:
        _stripe(folder, options.stripe_count)
    with options.output.open("w") as file:
        _write(file, "space", json.dumps(room.row(**use)) + "\n", began, time.time())
        for run in runs:
            say(run.name)
            _write(file, run.name, *_outcome(options, nodes, launcher, run))


def _outcome(
    options: argparse.Namespace, nodes: Sequence[str], launcher: Launcher, run: Run
) -> tuple[str, float, float]:
    """Run a step; return its results, start and end. SeatrialError if it failed."""
    limit = Limit(options.start_limit + options.step_limit)
    folder = Path("steps", run.name)
    step = Step(nodes, run.command, folder, limit, name=run.name, ranks=options.ppn)
    ended = launcher.run(step)
    if ended.status != 0:
        lines = [*ended.output[-3:], *ended.errors[-3:]]
        print("\n".join(lines), file=sys.stderr)
        raise SeatrialError(f"{run.name}: {ended.reason}", Exit.FAILED)
    return step.output(), step.start_time, step.start_time + step.elapsed_s


def _write(file: TextIO, name: str, text: str, start: float, end: float) -> None:
    newline = "" if text.endswith("\n") else "\n"
    file.write(f"# step {name}\n{text}{newline}# done {name} {start:.6f} {end:.6f}\n")
    file.flush()


def _stripe(folder: Path, count: int) -> None:
    """Spread new files below a folder over this many targets of Lustre; -1: all."""
    lfs = shutil.which("lfs")
    if lfs is None:
        raise SeatrialError(
            "stripe_count: no program lfs; install the client tools of Lustre, or "
            "leave stripe_count out of suite_file_systems"
        )
    command = (lfs, "setstripe", "--stripe-count", str(count), str(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        text = " ".join((done.stderr or done.stdout).split())
        raise SeatrialError(f"stripe_count: {' '.join(command)}: {text}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
