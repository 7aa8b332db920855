"""`python -m seatrial.standins`: see the package."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

import seatrial.standins
from seatrial.standins.draw import COUNTS, draw
from seatrial.standins.install import install
from seatrial.standins.truth import TruthError, load_truth


def main(arguments: Sequence[str]) -> int:
    """Draw a truth, or install the stand-ins of one; 2 if it is no truth."""
    parser = argparse.ArgumentParser(
        prog="seatrial.standins",
        description=seatrial.standins.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for_install = commands.add_parser("install", help="write the programs")
    for_install.add_argument("folder", type=Path)
    for_install.add_argument("--truth", type=Path, required=True, metavar="FILE")
    for_install.add_argument("--python", default="/usr/bin/python3", metavar="PATH")
    for_draw = commands.add_parser("draw", help="print a truth, with faults by a seed")
    for_draw.add_argument("--nodes", required=True, metavar="LIST")
    for_draw.add_argument("--seed", type=int, required=True, metavar="N")
    for_draw.add_argument("--leaf-nodes", type=int, default=32, metavar="N")
    for name, count in COUNTS.items():
        option = f"--{name.replace('_', '-')}"
        for_draw.add_argument(option, type=int, default=count, metavar="N")
    options = vars(parser.parse_args(arguments))
    try:
        if options.pop("command") == "install":
            truth = load_truth(options["truth"])
            install(options["folder"], truth, options["python"])
        else:
            drawn = draw(**options)
            yaml.safe_dump(msgspec.to_builtins(drawn), sys.stdout, sort_keys=False)
    except TruthError as error:
        print(f"seatrial.standins: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
