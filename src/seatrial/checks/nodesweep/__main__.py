"""`python -m seatrial.checks.nodesweep`: see the package."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import seatrial.checks.nodesweep
from seatrial.checks.job_control import host_names
from seatrial.checks.nodesweep.conductor import Conductor
from seatrial.checks.nodesweep.launch import allow_files
from seatrial.checks.nodesweep.place import cpus_given
from seatrial.checks.nodesweep.settings import Settings
from seatrial.checks.step_arguments import divided_parser, parse_divided
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import SeatrialError

_SHORTEST_MS = 2000
"""Least time of fixedwork: two of the longest periods of a CPU quota that Linux has."""


def _sizes(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    if not 0 < int(low) <= int(high):
        raise argparse.ArgumentTypeError(f"{text!r} is not MIN:MAX")
    return int(low), int(high)


_OPTIONS: tuple[tuple[str, Callable[[str], Any], Any, str, str], ...] = (
    ("folder", Path, "nodes", "FOLDER", "of the programs' files, shared by all nodes"),
    ("n", int, 0, "N", "order of HPL's matrix; 0: from the memory"),
    ("memory-percent", float, 10.0, "PERCENT", "of a node's memory for that matrix"),
    ("block", int, 192, "NB", "of HPL"),
    ("memlat", shlex.split, "", "COMMAND", "memlat with its options"),
    ("no-memlat", str, "not asked for", "REASON", "why without"),
    ("memlat-sizes", _sizes, "16384:1073741824", "MIN:MAX", "working sets in bytes"),
    ("fixedwork", shlex.split, "", "COMMAND", "fixedwork with its options"),
    ("no-fixedwork", str, "not asked for", "REASON", "why without"),
    ("fixedwork-ms", int, 20000, "MS", "how long fixedwork takes"),
    ("quiet", float, 5.0, "SECONDS", "to read sensors before any load"),
    ("start-limit", float, 60.0, "SECONDS", "for a node to answer, and for a step"),
    ("memlat-limit", float, 300.0, "SECONDS", "for memlat on a socket, then it hangs"),
    ("hpcc-limit", float, 3600.0, "SECONDS", "for HPCC, then it hangs"),
)


def main(arguments: Sequence[str]) -> int:
    """Conduct a sweep; 0 if every program of every node is accounted for."""
    options, srun, hpcc = _parse(arguments)
    file, folder = options.pop("output"), options.pop("folder").absolute()
    settings = Settings(hpcc, **options)
    try:
        nodes = host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
        given = cpus_given(os.environ.get("SLURM_JOB_CPUS_PER_NODE", ""), len(nodes))
        allow_files(len(nodes))
        Conductor(
            dict(zip(nodes, given, strict=True)),
            Launcher(srun, settings.start_limit),
            file,
            folder,
            settings,
        ).run()
    except SeatrialError as error:
        print(f"seatrial.checks.nodesweep: {error}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _parse(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str], list[str]]:
    parser = divided_parser(
        "seatrial.checks.nodesweep", seatrial.checks.nodesweep.__doc__
    )
    for name, kind, default, metavar, text in _OPTIONS:
        text += "" if default in (0, "") else " (default %(default)s)"
        parser.add_argument(
            f"--{name}", type=kind, default=default, metavar=metavar, help=text
        )
    options, srun, hpcc = parse_divided(parser, arguments)
    if not (0 < options.memory_percent <= 100 and options.n >= 0 and options.block > 0):
        parser.error("expected a memory from 0 to 100 %, N of at least 0, a block")
    if options.fixedwork_ms < _SHORTEST_MS:
        parser.error(f"--fixedwork-ms: expected at least {_SHORTEST_MS}")
    if options.folder.exists():
        parser.error(f"{options.folder} is there already")
    return vars(options), srun, hpcc


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
