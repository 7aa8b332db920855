"""Start of a stand-in on rank 0: `python -I -S FOLDER/start.py PROGRAM ARGUMENTS`."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator

from seatrial.standins.job import Job
from seatrial.standins.machine import Machine, UnknownNodeError
from seatrial.standins.programs import module_of

_HANG_S = 86_400


class UsageError(Exception):
    """Arguments that the model of a program does not know."""


class Run:
    """A program with its arguments, the step it runs in, and the machine.

    `seconds` is the time that the program would have taken, which it sets itself.
    `dying` is true if a node of the step dies in the middle.
    """

    def __init__(
        self,
        truth: dict,
        program: str,
        arguments: list[str],
    ) -> None:
        self.program = program
        self.arguments = arguments
        self.job = Job(os.environ)
        step = (self.job.key, self.job.node, program, *arguments)
        self.machine = Machine(truth, " ".join(step))
        self.words, self.options = _divide(arguments)
        self.seconds = 0.0
        self.dying = False

    def number(self, name: str, default: int) -> int:
        """Return the whole number of an option; UsageError if it is none."""
        text = self.options.get(name, str(default))
        if not text.isdecimal():
            raise UsageError(f"{name} {text}, expected a whole number")
        return int(text)

    def span(self, name: str, default: str) -> list[int]:
        """Return the numbers from MIN to MAX of an option, each twice the last.

        0 comes before 2, or before 1 if `default` begins with 0 and MIN is 0:1.
        """
        low, _, high = self.options.get(name, default).partition(":")
        if not (low.isdecimal() and (high or low).isdecimal()):
            raise UsageError(f"{name} {low}:{high}, expected MIN:MAX")
        sizes, most = [int(low)], int(high or low)
        while sizes[-1] < most:
            sizes.append(2 * sizes[-1] or 2)
        return sizes

    def expect(self, *known: str) -> None:
        """Raise UsageError for an option that is none of `known`."""
        if unknown := self.options.keys() - {*known}:
            raise UsageError(f"unknown option {min(unknown)}")

    def wait(self, seconds: float) -> None:
        """Wait the truth's share of a modelled time."""
        if self.machine.time_scale > 0:
            sys.stdout.flush()
            time.sleep(self.machine.time_scale * seconds)


Program = Callable[[Run], Iterable[str]]
"""Returns the lines that a program prints, without their ends."""


def main(truth: dict, folder: str, arguments: list[str]) -> int:
    """Print what a program prints on rank 0; 2 for arguments that it does not know.

    If a node of the step is dead, or dies now, the output ends in the middle, and the
    program hangs: that is what MPI does until Slurm ends the step.
    """
    program, *rest = arguments
    try:
        run = Run(truth, program, rest)
        dead = _dead_nodes(truth, folder, run)
        run.dying = bool(dead)
        if "before" not in dead:
            printer = _printer(program)
            for line in _first_half(printer(run)) if dead else printer(run):
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            run.wait(run.seconds)
    except (UsageError, UnknownNodeError, ValueError, OSError) as error:
        print(f"{program}: model: {error}", file=sys.stderr)
        return 2
    if dead:
        time.sleep(_HANG_S)
    return 0


def _printer(program: str) -> Program:
    """Return the function of a program; importlib would take as long as all else."""
    name = f"seatrial.standins.{module_of(program)}"
    printer: Program = __import__(name, fromlist=["PROGRAMS"]).PROGRAMS[program]
    return printer


def _dead_nodes(truth: dict, folder: str, run: Run) -> set[str]:
    """Return when nodes of the step died: `before` it, or `now`."""
    when = set()
    there = {*run.job.nodes}
    for fault in truth["faults"]["dead_nodes"]:
        node = fault["node"]
        if node not in there:
            continue
        if run.program == fault["program"]:
            when.add("now")
        elif os.path.exists(f"{folder}/dead/{node}"):
            when.add("before")
    return when


def _first_half(lines: Iterable[str]) -> Iterator[str]:
    """Return the first half of some lines."""
    kept = [*lines]
    yield from kept[: len(kept) // 2]


def _divide(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words before any option, and the options with their values."""
    words: list[str] = []
    options: dict[str, str] = {}
    name = ""
    for argument in arguments:
        if argument.startswith("-") and not argument[1:2].isdecimal():
            name, equals, value = argument.partition("=")
            options[name] = value
            name = "" if equals else name
        elif name:
            options[name] = argument
            name = ""
        else:
            words.append(argument)
    return words, options
