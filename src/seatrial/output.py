"""Standard output and standard error: no foreign control characters, no broken pipes.

Names in data come from vendors. An escape sequence in one could erase a verdict on the
terminal and write another, so everything that is printed is cleaned here, or in
`seatrial.console`, which prints with colours. No other module prints.
"""

import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

DEBUG = "SEATRIAL_DEBUG"
"""Environment variable: show the traceback of an unexpected error."""

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ONE_LINE = (
    dict.fromkeys((*range(0x80, 0xA0), *_DIRECTIONS, 0x2028, 0x2029), 0xFFFD)
    | _PICTURES
)
"""Visible characters for C0, DEL, C1, marks of writing direction and line ends."""

_FURTHER_LINE = re.compile(r"(?<=\n)(?=\S)")
_LINES = {code: to for code, to in _ONE_LINE.items() if chr(code) not in "\n\t"}


def clean(text: str) -> str:
    """Replace each control character but newline and tab by one visible character."""
    return text.translate(_LINES)


def one_line(text: str) -> str:
    """Replace each control character, newline and tab too, by one visible character."""
    return text.translate(_ONE_LINE)


def echo(*lines: str, err: bool = False) -> None:
    """Print lines of text, each cleaned."""
    for line in lines:
        click.echo(one_line(line), err=err)


def complain(text: str) -> None:
    """Print an error or a warning on standard error; indent its further lines."""
    echo(*_FURTHER_LINE.sub("  ", f"seatrial: {clean(text)}").split("\n"), err=True)


def write_data(text: str) -> None:
    """Write CSV, JSON or YAML as it is, but cleaned on a terminal."""
    click.echo(clean(text) if sys.stdout.isatty() else text, nl=False)


def write_bytes(content: bytes) -> None:
    """Write a file's content to standard output as it is."""
    sys.stdout.buffer.write(content)


def reader_is_gone() -> bool:
    """Return True if the reader of standard output closed the pipe."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Outlet) and raw.gone


class _Outlet(io.FileIO):
    """A standard stream that drops what is written once its reader is gone.

    The command goes on: its exit status is the verdict, not that of the pipe.
    """

    gone = False

    def write(self, data: "ReadableBuffer", /) -> int:
        if not self.gone:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.gone = True
        return memoryview(data).nbytes


def guard_streams() -> None:
    """Make both streams survive a closed pipe and characters they cannot encode."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None or stream is not getattr(sys, f"__{name}__"):
            continue  # closed, or replaced by a caller
        stream.flush()
        raw = _Outlet(stream.fileno(), "wb", closefd=False)
        guarded = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
        )
        setattr(sys, name, guarded)


def is_debugging() -> bool:
    """Return True if the user wants tracebacks."""
    return bool(os.environ.get(DEBUG))
