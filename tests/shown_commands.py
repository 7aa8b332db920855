"""Commands that the documentation shows: in code blocks, and in running text."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from seatrial.cli import main

HOME = Path(__file__).resolve().parents[1]
PAGES = [
    *(HOME / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((HOME / "docs").glob("*.md")),
    *(HOME / "spack-env" / "README.md", HOME / "reports" / "demo" / "README.md"),
]
PROGRAM = re.compile(r"(\S*/)?seatrial")
INLINE = re.compile(r"`(seatrial [^`]*)`")
LAB_COMMANDS = (
    "accept",
    "audit",
    "build",
    "bundle",
    "doctor",
    "lab",
    "new",
    "nightly",
    "repeat",
    "run",
    "selftest",
)
"""Commands that need a cluster or internet; `run --replay` does not."""

OPERATORS = ("&&", "|", ";", ">")


@dataclass(frozen=True)
class Shown:
    """A command of the suite; `words` without its name, `comment` after #."""

    page: str
    line: int
    words: tuple[str, ...]
    comment: str = ""
    inline: bool = False

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: seatrial {shlex.join(self.words)}"


def shell_lines(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of all code blocks; continued lines are one."""
    begun = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("    ") or begun:
            text = begun + line.strip()
            begun = f"{text[:-1].rstrip()} " if text.endswith("\\") else ""
            if not begun and text:
                yield number, text


def shown_commands() -> list[Shown]:
    """List every command of the suite in the documentation."""
    return [shown for page in PAGES for shown in _of_page(page)]


def _of_page(page: Path) -> Iterator[Shown]:
    name = str(page.relative_to(HOME))
    for number, line in shell_lines(page):
        if name == "docs/commands.md" and "[OPTIONS]" in line:
            continue
        code, _, comment = line.partition(" #")
        for words in _split(code):
            if PROGRAM.fullmatch(words[0]):
                yield Shown(name, number, tuple(words[1:]), comment.strip())
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if not line.startswith("    "):
            for text in INLINE.findall(line):
                words = shlex.split(text)[1:]
                yield Shown(name, number, tuple(words), inline=True)


def _split(line: str) -> Iterator[list[str]]:
    """Split a line at operators of the shell; nothing if it is no shell."""
    try:
        words = shlex.split(line)
    except ValueError:
        return
    command: list[str] = []
    for word in (*words, OPERATORS[0]):
        if word not in OPERATORS:
            command.append(word)
        elif command:
            yield command
            command = []


def parse(shown: Shown) -> None:
    """Parse a command; UsageError if its name, an option or a choice is unknown."""
    command: click.Command = main
    context = click.Context(main, info_name="seatrial")
    words = list(shown.words)
    while isinstance(command, click.Group):
        name = next(iter(words), "")
        if name.startswith("-") or name == "COMMAND" or (shown.inline and not name):
            return
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no command {name!r}")
        command, words = found, words[1:]
        context = click.Context(command, info_name=name, parent=context)
    values, *_ = command.make_parser(context).parse_args(list(words))
    for parameter in command.params:
        value = values.get(str(parameter.name))
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            parameter.type.convert(value, parameter, context)
        if parameter.required and not value and not shown.inline:
            raise click.MissingParameter(ctx=context, param=parameter)
