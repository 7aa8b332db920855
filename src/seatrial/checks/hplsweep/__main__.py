"""`python -m seatrial.checks.hplsweep`: see the package."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import seatrial.checks.hplsweep
from seatrial.checks.hplsweep.conductor import Conductor, Size
from seatrial.checks.job_control import host_names
from seatrial.checks.nodesweep.launch import allow_files
from seatrial.checks.step_arguments import divided_parser, parse_divided
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import SeatrialError

_PATIENCE_S = 60.0


def _group(text: str) -> tuple[str, list[str]]:
    name, equals, nodes = text.partition("=")
    if not (name and equals and nodes):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NODE,NODE..")
    return name, nodes.split(",")


def main(arguments: Sequence[str]) -> int:
    """Conduct a sweep; 0 if every group is accounted for."""
    parser = divided_parser(
        "seatrial.checks.hplsweep", seatrial.checks.hplsweep.__doc__
    )
    add = parser.add_argument
    add("--folder", type=Path, default="groups", help="of the groups, on shared disk")
    add("--group", type=_group, action="append", help="default: each node is a group")
    add("--ppn", type=int, required=True, metavar="RANKS", help="ranks of a node")
    add("--n", type=int, default=0, help="order of the matrix; 0: by memory")
    add("--node-bytes", type=float, default=0.0, help="of each node for the matrix")
    add("--longest", type=float, default=0.0, metavar="SECONDS", help="of HPL; 0: any")
    add("--cores", type=int, required=True, help="of a node")
    add("--block", type=int, default=192, metavar="NB", help="default %(default)s")
    add("--limit", type=float, required=True, metavar="SECONDS", help="then it hangs")
    options, launcher, program = parse_divided(parser, arguments)
    if not (options.n or options.node_bytes) or options.ppn < 1:
        parser.error("expected --n or --node-bytes, and a rank or more")
    if options.folder.exists():
        parser.error(f"{options.folder} is there already")
    try:
        nodes = host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
        groups = dict(options.group or [(node, [node]) for node in nodes])
        there = {
            name: [node for node in members if node in {*nodes}]
            for name, members in groups.items()
        }
        allow_files(len(groups))
        Conductor(
            {name: members for name, members in there.items() if members},
            Launcher(launcher, _PATIENCE_S),
            program,
            options.output,
            options.folder.absolute(),
            Size(
                options.n,
                options.node_bytes,
                options.longest,
                options.block,
                options.ppn,
                options.cores,
            ),
            options.limit,
        ).run()
    except SeatrialError as error:
        print(f"seatrial.checks.hplsweep: {error}", file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
