"""`python -m seatrial.sweep`: see the package."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import seatrial.sweep
from seatrial.errors import SeatrialError
from seatrial.sweep.conductor import Conductor
from seatrial.sweep.file import SweepFile
from seatrial.sweep.preflight import Preflight
from seatrial.sweep.steps import Steps, host_names


def main(arguments: Sequence[str]) -> int:
    """Conduct a sweep; 0 if every pair of the nodes that answer is accounted for."""
    options, launcher, program = _parse(arguments)
    try:
        nodes = host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
        if len(nodes) < 2:
            raise SeatrialError(f"a pair takes two nodes, this job has {len(nodes)}")
        steps = Steps(launcher, options.ppn, options.step_limit)
        Conductor(
            nodes,
            steps,
            Preflight(steps, program, options.ppn, options.step_limit),
            SweepFile(options.output),
            program,
            options.ppn,
            options.stall_limit,
        ).run()
    except SeatrialError as error:
        print(f"seatrial.sweep: {error}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _parse(
    arguments: Sequence[str],
) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Divide the command line at its two `--`."""
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--" and len(parts) < 3:
            parts.append([])
        else:
            parts[-1].append(argument)
    parser = argparse.ArgumentParser(
        prog="seatrial.sweep",
        usage="python -m seatrial.sweep --output FILE [OPTION].. -- LAUNCHER.. -- "
        "PROGRAM..",
        description=seatrial.sweep.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--ppn", type=int, default=1, help="ranks per node: its rails")
    parser.add_argument(
        "--step-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for each test of a group of nodes, and for Slurm to make it "
        "(default %(default)g)",
    )
    parser.add_argument(
        "--stall-limit",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="without a new row, then the sweep is ended (default %(default)g)",
    )
    options = parser.parse_args(parts[0])
    if len(parts) != 3 or not parts[1] or not parts[2]:
        parser.error("expected a launcher and a program, each behind its own --")
    if options.output.exists():
        parser.error(f"{options.output} is there already")
    return options, parts[1], parts[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
