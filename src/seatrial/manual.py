"""Write man pages and shell completion of all commands below an install prefix.

Usage: python -m seatrial.manual PREFIX. Prints the files that changed.
"""

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
from click.shell_completion import get_completion_class

import seatrial
from seatrial.cli import main
from seatrial.output import echo
from seatrial.paths import restrict_umask

_COMPLETION = {
    "bash": "bash-completion/completions/seatrial",
    "zsh": "zsh/site-functions/_seatrial",
    "fish": "fish/vendor_completions.d/seatrial.fish",
}
_PAGES = "man/man1"
_ESCAPES = str.maketrans(
    {
        "\\": r"\e",
        "-": r"\-",
        "~": r"\(ti",
        "^": r"\(ha",
        "`": r"\(ga",
        "'": r"\(aq",
        "|": r"|\:",  # a long list of choices may break here
    }
)


def shared_files() -> dict[str, str]:
    """Return the content of all files by their paths below share/."""
    root = click.Context(main, info_name="seatrial", **main.context_settings)
    pages = {
        f"{_PAGES}/{_title(context)}.1": _man_page(context)
        for context in _contexts(root)
    }
    return pages | {path: _completion(shell) for shell, path in _COMPLETION.items()}


def write_shared_files(share: Path) -> list[str]:
    """Write the files that differ, remove pages of former commands; return them."""
    files = shared_files()
    old = {str(page.relative_to(share)) for page in share.glob(f"{_PAGES}/seatrial*.1")}
    changed = sorted(old - files.keys())
    for name in changed:
        (share / name).unlink()
    for name, content in files.items():
        file = share / name
        if not file.is_file() or file.read_text(encoding="utf-8") != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
            changed.append(name)
    return changed


def _completion(shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None, shell
    return kind(main, {}, "seatrial", "_SEATRIAL_COMPLETE").source()


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """Iterate over a command and all that are below it."""
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None, name
            yield from _contexts(click.Context(command, info_name=name, parent=context))


def _title(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _man_page(context: click.Context) -> str:
    """Format the help of a command as a man page, see man(7)."""
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    summary, *paragraphs = cleandoc(command.help or "").split("\n\n")
    sections: dict[str, list[str]] = {
        "NAME": [f"{_title(context)} \\- {_roff(summary.rstrip('.'))}"],
        "SYNOPSIS": [f".B {_roff(context.command_path)}", _roff(usage)],
        "DESCRIPTION": [_roff(summary)],
        "OPTIONS": [
            _item(*record)
            for option in command.get_params(context)
            if isinstance(option, click.Option)
            and (record := option.get_help_record(context))
        ],
        "COMMANDS": [
            _item(f"{_title(below)}(1)", below.command.get_short_help_str(200))
            for below in _contexts(context)
            if below.parent is context
        ],
        "EXIT STATUS": [],
        "EXAMPLE": [],
    }
    for paragraph in paragraphs:
        heading = re.match("(Exit status|Example): ", paragraph)
        if heading:
            sections[heading[1].upper()].append(_roff(paragraph[heading.end() :]))
        else:
            sections["DESCRIPTION"] += [".PP", _roff(paragraph)]
    title = f'.TH "{_title(context).upper()}" 1 "" "Seatrial {seatrial.__version__}"'
    page = [title, ".nh", ".ad l"]  # neither hyphens in names nor stretched lines
    for name, lines in sections.items():
        page += [f".SH {name}", *lines] if lines else []
    return "\n".join(page) + "\n"


def _item(name: str, text: str) -> str:
    return f".TP\n.B {_roff(name)}\n{_roff(text)}"


def _roff(text: str) -> str:
    """Escape the characters that roff would change."""
    return re.sub("^[.]", r"\\&.", text.translate(_ESCAPES), flags=re.MULTILINE)


if __name__ == "__main__":
    restrict_umask()
    echo(*write_shared_files(Path(sys.argv[1], "share")))
