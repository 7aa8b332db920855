"""The command line of a conductor within a job: options, launcher and program."""

import argparse
from collections.abc import Sequence
from pathlib import Path


def divided_parser(module: str, about: str | None) -> argparse.ArgumentParser:
    """Build a parser of `python -m MODULE`, with the option --output."""
    parser = argparse.ArgumentParser(
        prog=module,
        usage=f"python -m {module} --output FILE [OPTION].. -- LAUNCHER.. -- PROGRAM..",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    return parser


def parse_divided(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Return options, launcher and program, divided by the first two `--`.

    Exits with status 2 if one of them is missing, or if the output exists.
    """
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--" and len(parts) < 3:
            parts.append([])
        else:
            parts[-1].append(argument)
    options = parser.parse_args(parts[0])
    if len(parts) != 3 or not parts[1] or not parts[2]:
        parser.error("expected a launcher and a program, each behind its own --")
    if options.output.exists():
        parser.error(f"{options.output} is there already")
    return options, parts[1], parts[2]
