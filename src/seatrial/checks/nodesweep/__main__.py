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
from seatrial.checks.nodesweep.settings import SHORTEST_MS, Settings
from seatrial.checks.step_arguments import divided_parser, parse_divided
from seatrial.checks.step_launcher import Launcher
from seatrial.errors import SeatrialError


def _sizes(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    if not 0 < int(low) <= int(high):
        raise argparse.ArgumentTypeError(f"{text!r} is not MIN:MAX")
    return int(low), int(high)


_OPTIONS: tuple[tuple[str, Callable[[str], Any], Any, str, str], ...] = (
    ("n", int, 0, "N", "order of HPL's matrix; 0: from the memory"),
    ("memory-percent", float, 10.0, "PERCENT", "of a node's memory for that matrix"),
    ("block", int, 192, "NB", "of HPL"),
    ("memlat", str, "", "COMMAND", "memlat with its options"),
    ("no-memlat", str, "not asked for", "REASON", "why without"),
    ("memlat-sizes", _sizes, "16384:1073741824", "MIN:MAX", "working sets in bytes"),
    ("fixedwork", str, "", "COMMAND", "fixedwork with its options"),
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
    try:
        nodes = host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
        given = cpus_given(os.environ.get("SLURM_JOB_CPUS_PER_NODE", ""), len(nodes))
        allow_files(len(nodes))
        Conductor(
            dict(zip(nodes, given, strict=True)),
            Launcher(srun, options.start_limit),
            options.output,
            options.folder.absolute(),
            _settings(options, hpcc),
        ).run()
    except SeatrialError as error:
        print(f"seatrial.checks.nodesweep: {error}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _settings(options: argparse.Namespace, hpcc: Sequence[str]) -> Settings:
    low, high = options.memlat_sizes
    memlat = [*shlex.split(options.memlat), "--validate", "--json"]
    memlat += ["--sizes", f"{low}:{high}"]
    fixedwork = [*shlex.split(options.fixedwork), "--validate", "--json"]
    fixedwork += ["--time", str(options.fixedwork_ms)]
    return Settings(
        hpcc=hpcc,
        n=options.n,
        memory_percent=options.memory_percent,
        block=options.block,
        memlat=memlat if options.memlat else (),
        no_memlat=None if options.memlat else options.no_memlat,
        memlat_sizes=(low, high),
        fixedwork=fixedwork if options.fixedwork else (),
        no_fixedwork=None if options.fixedwork else options.no_fixedwork,
        fixedwork_ms=options.fixedwork_ms,
        quiet_s=options.quiet,
        start_s=options.start_limit,
        memlat_s=options.memlat_limit,
        hpcc_s=options.hpcc_limit,
    )


def _parse(
    arguments: Sequence[str],
) -> tuple[argparse.Namespace, list[str], list[str]]:
    parser = divided_parser(
        "seatrial.checks.nodesweep", seatrial.checks.nodesweep.__doc__
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("nodes"),
        help="for the files of the programs, shared by all nodes (default %(default)s)",
    )
    for name, kind, default, metavar, what in _OPTIONS:
        shown = "" if default in (0, "") else " (default %(default)s)"
        parser.add_argument(
            f"--{name}", type=kind, default=default, metavar=metavar, help=what + shown
        )
    options, srun, hpcc = parse_divided(parser, arguments)
    if not (0 < options.memory_percent <= 100 and options.n >= 0 and options.block > 0):
        parser.error("expected a memory from 0 to 100 %, N of at least 0, a block")
    if options.fixedwork_ms < SHORTEST_MS:
        parser.error(f"--fixedwork-ms: expected at least {SHORTEST_MS}")
    if options.folder.exists():
        parser.error(f"{options.folder} is there already")
    return options, srun, hpcc


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
