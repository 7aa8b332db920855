"""The steps of IOR and mdtest, with sizes that keep within a room."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.checks.storage.room import Room, block_bytes, files_of_rank

SIGNATURE = "20261126"
"""Number that IOR's data depends on: a second run knows what the first has written."""


@dataclass(frozen=True)
class Run:
    """A program of a step."""

    name: str
    command: Sequence[str]


@dataclass(frozen=True)
class Tool:
    """A benchmark of file systems, with `nodes` x `ppn` ranks."""

    program: Sequence[str]
    nodes: int
    ppn: int

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return self.nodes * self.ppn

    @abstractmethod
    def runs(self, room: Room, folder: Path) -> tuple[list[Run], dict[str, int]]:
        """Return the runs below `folder`, and what they take of the room.

        Raises SeatrialError if the room is too small.
        """


@dataclass(frozen=True)
class Ior(Tool):
    """IOR: a file of each rank, and one file that all share."""

    node_bytes: int
    transfers: Sequence[int]

    def runs(self, room: Room, folder: Path) -> tuple[list[Run], dict[str, int]]:
        """Return a write and a read for each layout and transfer size, verified after.

        One layout is on the file system at a time: the second run removes its files.
        """
        runs: list[Run] = []
        used = 0
        for transfer in self.transfers:
            wanted = self.nodes * self.node_bytes
            block = block_bytes(room, self.ranks, wanted, transfer)
            used = max(used, self.ranks * block)
            for layout, options in (("file", ("-F",)), ("shared", ())):
                name = f"{layout}-{transfer}"
                common = (
                    *(*self.program, "-a", "POSIX", "-C", "-G", SIGNATURE),
                    *("-b", str(block), "-t", str(transfer), *options),
                    *("-o", str(folder / name), "-O", "summaryFormat=JSON"),
                )
                for step, own in (
                    (name, ("-w", "-r", "-e", "-k")),
                    (f"{name}-verified", ("-r", "-R")),
                ):
                    runs.append(Run(step, (*common, *own)))
        wanted_bytes = self.nodes * self.node_bytes
        return runs, {"wanted_bytes": wanted_bytes, "used_bytes": used}


@dataclass(frozen=True)
class Mdtest(Tool):
    """mdtest: small files and folders, each rank in a folder of its own."""

    node_files: int
    file_bytes: int

    def runs(self, room: Room, folder: Path) -> tuple[list[Run], dict[str, int]]:
        """Return one run; stat, read and removal are of files of the next node."""
        wanted = -(-self.node_files // self.ppn)
        files = files_of_rank(room, self.ranks, wanted, self.file_bytes)
        size = str(self.file_bytes)
        command = (
            *(*self.program, "-n", str(files), "-u", "-i", "1", "-N", str(self.ppn)),
            *("-w", size, "-e", size, "-X", "-d", str(folder / "mdtest")),
        )
        use = {"wanted_files": wanted * self.ranks, "used_files": files * self.ranks}
        return [Run("mdtest", command)], use
