"""`python -m seatrial.checks.pairsweep`: see the package."""

import argparse
import os
import sys
from collections.abc import Sequence

import seatrial.checks.pairsweep
from seatrial.checks.job_control import host_names
from seatrial.checks.pairsweep.conductor import Conductor
from seatrial.checks.pairsweep.file import SweepFile
from seatrial.checks.pairsweep.preflight import Preflight
from seatrial.checks.pairsweep.steps import Steps
from seatrial.checks.step_arguments import divided_parser, parse_divided
from seatrial.errors import SeatrialError


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
        print(f"seatrial.checks.pairsweep: {error}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _parse(
    arguments: Sequence[str],
) -> tuple[argparse.Namespace, list[str], list[str]]:
    parser = divided_parser(
        "seatrial.checks.pairsweep", seatrial.checks.pairsweep.__doc__
    )
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
    return parse_divided(parser, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
