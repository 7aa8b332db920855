"""Parse the headers of IMB tables."""

import re
from dataclasses import dataclass

from seatrial.parsers.errors import ParseError
from seatrial.parsers.imb_rows import ImbColumns

_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(.*)")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]+)")
_GROUPS = re.compile(r"#\s*\(\s*([0-9]+ groups of [0-9]+ processes)\b.*")
_GROUP = re.compile(r"#\s*Group\s+([0-9]+):((?:\s+[0-9]+)+)")
_MODE = re.compile(r"#\s*MODE:\s*(.*)")
_COLUMNS = re.compile(r"\s*(?:#bytes\s+)?#repetitions\s.*")


@dataclass(frozen=True)
class ImbTable:
    """The one table that was asked for.

    `processes` are those of a group. `groups` are the ranks of all groups that run at
    the same time (-multi 0), in IMB's order; () for a run that has none. `mode` is that
    of a one-sided benchmark, '' for any other.
    """

    benchmark: str
    processes: int
    groups: tuple[tuple[int, ...], ...] = ()
    mode: str = ""

    @property
    def title(self) -> str:
        """The benchmark as IMB calls it above its rows."""
        return f"Multi-{self.benchmark}" if self.is_multiple else self.benchmark

    @property
    def is_multiple(self) -> bool:
        """Whether IMB lists its groups, which it does not if there is but one."""
        return len(self.groups) > 1

    @property
    def together(self) -> str:
        """All groups, in IMB's words; '' if it does not list them."""
        if not self.is_multiple:
            return ""
        return f"{len(self.groups)} groups of {self.processes} processes"


class ImbHeaders:
    """The headers of a table, which must prove that it is the one expected."""

    def __init__(self, table: ImbTable) -> None:
        self.columns: ImbColumns | None = None
        self._table = table
        self._has_title = False
        self._has_processes = False
        self._has_mode = not table.mode
        self._groups = 0

    def add(self, number: int, line: str) -> None:
        """Read a line that begins with #; ParseError if it is not as expected."""
        if match := _BENCHMARK.fullmatch(line):
            self._add_title(number, match[1])
        elif match := _PROCESSES.fullmatch(line):
            if self._table.is_multiple or match[1] != str(self._table.processes):
                wanted = self._table.together or f"{self._table.processes}"
                raise ParseError(number, f"{match[1]} processes, expected {wanted}")
            self._has_processes = True
        elif match := _GROUPS.fullmatch(line):
            if match[1] != self._table.together:
                wanted = self._table.together or "one group"
                raise ParseError(
                    number, f"{match[1]} at the same time, expected {wanted}"
                )
            self._has_processes = True
        elif match := _GROUP.fullmatch(line):
            self._add_group(number, match[1], match[2].split())
        elif match := _MODE.fullmatch(line):
            if match[1] != self._table.mode:
                wanted = self._table.mode or "none"
                raise ParseError(number, f"mode {match[1]}, expected {wanted}")
            self._has_mode = True
        elif _COLUMNS.fullmatch(line):
            if self.columns is not None:
                raise ParseError(number, "columns of a second table")
            self.columns = ImbColumns(number, line)

    def _add_title(self, number: int, title: str) -> None:
        if self._has_title:
            raise ParseError(
                number, f"a second table, {title}, after that of {self._table.title}"
            )
        if title != self._table.title:
            raise ParseError(number, f"table of {title}, expected {self._table.title}")
        self._has_title = True

    def _add_group(self, number: int, which: str, ranks: list[str]) -> None:
        groups = self._table.groups if self._table.is_multiple else ()
        found = f"group {which} of the ranks {' '.join(ranks)}"
        if self._groups == len(groups):
            raise ParseError(number, f"{found}, expected no further group")
        wanted = [*map(str, groups[self._groups])]
        if (which, ranks) != (str(self._groups), wanted):
            raise ParseError(
                number, f"{found}, expected group {self._groups} of {' '.join(wanted)}"
            )
        self._groups += 1

    def verify(self, last: int) -> None:
        """Raise ParseError if the table says not which one it is."""
        table = self._table
        if not self._has_title:
            raise ParseError(last, f"no title of {table.title} above its rows")
        if not self._has_processes:
            raise ParseError(last, f"no number of processes of {table.title}")
        if table.is_multiple and self._groups < len(table.groups):
            raise ParseError(last, f"{self._groups} of {table.together} have ranks")
        if not self._has_mode:
            raise ParseError(last, f"no mode of {table.title}, expected {table.mode}")
