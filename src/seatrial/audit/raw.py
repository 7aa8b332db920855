"""Raw output of `node.sh`: one block for each source."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from seatrial.errors import SeatrialError

NEEDS_ROOT = 126
NO_PROGRAM = 127
_NO_END = 124
_REASONS = {
    NEEDS_ROOT: "needs root",
    NO_PROGRAM: "is not installed",
    _NO_END: "no end within 10 s",
    125: "not in a job",
}


@dataclass(frozen=True)
class Block:
    """Output of one source; `subject` is what it was asked about, '' if everything."""

    name: str
    tool: str
    version: str
    status: int
    subject: str
    text: str

    @cached_property
    def sha256(self) -> str:
        """Checksum of the output."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def trouble(self) -> str:
        """Why this source says nothing, '' if it does."""
        if self.status == 0:
            return ""
        reason = _REASONS.get(self.status)
        if reason is None:
            lines = [line.strip() for line in self.text.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit status {self.status}"
        return f"{self.tool}: {reason}"

    def fields(self) -> Iterator[list[str]]:
        """Yield the fields of each line: those of sysfs and procfs are path, value."""
        for line in self.text.splitlines():
            if "\t" in line:
                yield line.split("\t")

    def values(self) -> dict[str, str]:
        """Return the first line of each file; inner tabs become spaces."""
        found: dict[str, str] = {}
        for path, *value in self.fields():
            found.setdefault(path, " ".join(value).strip())
        return found


class Raw:
    """All blocks of a node."""

    def __init__(self, text: str) -> None:
        """Split the text; SeatrialError if it is not complete or not of node.sh."""
        self.blocks: dict[tuple[str, str], Block] = {}
        lines = text.split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        if not lines or lines.pop() != "@\tend":
            raise SeatrialError("output of the node ends early")
        head: list[str] = []
        content: list[str] = []
        for line in [*lines, "@"]:
            if not line.startswith("@"):
                content.append(line[1:])
                continue
            if head:
                self._add(head, content)
            head, content = line.split("\t"), []

    def _add(self, head: list[str], content: list[str]) -> None:
        if len(head) != 6 or not head[4].isdecimal():
            raise SeatrialError(f"output of the audit: not a head of a block: {head!r}")
        _, name, tool, version, status, subject = head
        text = "".join(f"{line}\n" for line in content)
        block = Block(name, tool, version, int(status), subject, text)
        self.blocks[name, subject] = block

    def get(self, name: str, subject: str = "") -> Block | None:
        """Return a block, None if that source was not asked."""
        return self.blocks.get((name, subject))

    def of(self, name: str) -> list[Block]:
        """Return the blocks of a source, one for each subject."""
        return [block for (key, _), block in self.blocks.items() if key == name]
