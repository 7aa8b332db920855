"""The console of all commands: colours and tables, no foreign control characters.

Text is printed as it is: no markup, no emoji codes, no guessed highlights. What has a
style is a `Text`.
"""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from seatrial.output import clean, one_line

_WIDE = 160


class Terminal(Console):
    """A console that cleans all text; wide when its stream is not a terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(
            stderr=stderr,
            width=None if stream.isatty() else _WIDE,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a text into what is rendered, cleaned."""
        return super().render_str(clean(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything; only Rich's own control codes reach the terminal."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(clean(text), style)

    def print_line(self, *parts: str | tuple[str, str]) -> None:
        """Print one line: texts, or texts with a style, side by side.

        On a terminal it wraps between words; elsewhere it stays one line.
        """
        self.print(styled(*parts), soft_wrap=not self.is_terminal)

    def print_whole(self, text: str) -> None:
        """Print one line that is never broken: a path, a digest, a command."""
        self.print(styled(text), soft_wrap=True)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Join texts, or texts with a style, to one line without control characters."""
    return Text.assemble(
        *(
            one_line(part) if isinstance(part, str) else (one_line(part[0]), part[1])
            for part in parts
        )
    )


def folding_table(*headings: str) -> Table:
    """Return a table without lines, in columns that fold long cells."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
