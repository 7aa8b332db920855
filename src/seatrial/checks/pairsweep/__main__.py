"""Conducts `pairsweep` inside a batch job: the sweep goes on without bad nodes.

    python -m seatrial.checks.pairsweep --output FILE -- srun -- pairsweep --validate

A sweep over all pairs is one job step; a node that cannot start it, or a pair that
hangs, would end it without a number. So the nodes are tested before, between and after
(`preflight`), the step is watched and ended if it stalls, and repeated for the pairs
that are left (`conductor`). The file records which nodes and pairs were left out, and
the reasons; parsers/pairsweep.py reads it. With --rounds, `adaptive` draws the pairs;
--pairs lists them.

The node that runs the batch script is part of the sweep. If it dies, so does the job:
then the case fails with Slurm's reason.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from seatrial.checks.job_control import host_names
from seatrial.checks.pairsweep.adaptive import Adaptive
from seatrial.checks.pairsweep.conductor import Conductor
from seatrial.checks.pairsweep.file import SweepFile
from seatrial.checks.pairsweep.pair_list import read_pair_list
from seatrial.checks.pairsweep.preflight import Preflight
from seatrial.checks.step_arguments import divided_parser, parse_divided
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import SeatrialError
from seatrial.system.slurm_topology import node_leafs


def main(arguments: Sequence[str]) -> int:
    """Conduct a sweep; 0 if every pair of the nodes that answer is accounted for."""
    parser = divided_parser("seatrial.checks.pairsweep", __doc__)
    parser.add_argument("--ppn", type=int, default=1, help="ranks per node: its rails")
    for name, seconds, meaning in (
        ("--step-limit", 60.0, "for a test of nodes, and for Slurm to start it"),
        ("--stall-limit", 300.0, "without a new row, then the sweep is ended"),
    ):
        text = f"{meaning} (default %(default)g)"
        parser.add_argument(
            name, type=float, default=seconds, metavar="SECONDS", help=text
        )
    parser.add_argument(
        "--rounds", type=int, default=0, help="pairs of each node (default: all)"
    )
    parser.add_argument(
        "--adaptive", action="store_true", help="then so many more of suspects"
    )
    parser.add_argument(
        "--pairs", type=Path, help="only these: a file of lines NODE NODE ROUND"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of these pairs (default %(default)s)"
    )
    parser.add_argument(
        "--leaf",
        action="append",
        default=[],
        metavar="NAME=NODES",
        help="a leaf switch; may be repeated (default: those of Slurm's topology)",
    )
    options, srun, program = parse_divided(parser, arguments)
    try:
        nodes = host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
        if len(nodes) < 2:
            raise SeatrialError(f"a pair takes two nodes, this job has {len(nodes)}")
        launcher = Launcher(srun, options.step_limit)
        preflight = Preflight(launcher, program, options.ppn, options.step_limit)
        file = SweepFile(options.output)
        drawn = listed = None
        if options.pairs is not None:
            listed = read_pair_list(options.pairs, nodes).rounds
        elif 0 < options.rounds < len(nodes) - 1:
            drawn = Adaptive(nodes, options.rounds, options.seed)
            if options.adaptive:
                drawn.leafs = _declared_leafs(options.leaf) or node_leafs(nodes)
            else:
                drawn.further_phases = 0
        Conductor(
            nodes, launcher, preflight, file, options.stall_limit, drawn, listed
        ).run()
    except SeatrialError as error:
        print(f"seatrial.checks.pairsweep: {error}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _declared_leafs(leafs: Iterable[str]) -> dict[str, str]:
    """Return the leaf of each node from `NAME=NODES` of each leaf."""
    named = (leaf.partition("=") for leaf in leafs)
    return {node: name for name, _, nodes in named for node in host_names(nodes)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
