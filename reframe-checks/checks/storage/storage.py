# ruff: noqa: RUF012  (ReFrame keeps the defaults of its variables as class attributes)
"""File systems that the inventory declares: IOR for data, mdtest for metadata."""

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, variable

from seatrial.checks.base import Tag
from seatrial.checks.file_systems import FileSystemCheck, declared_file_systems
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.ior import parse_ior
from seatrial.parsers.mdtest import parse_mdtest

LAYOUTS = ("file", "shared")
RATES = {
    "file_creates": "File creation",
    "file_stats": "File stat",
    "file_reads": "File read",
    "file_removes": "File removal",
    "folder_creates": "Directory creation",
    "folder_stats": "Directory stat",
    "folder_removes": "Directory removal",
}
"""Metrics, and the operations of mdtest."""


@rfm.simple_test
class Ior(FileSystemCheck):
    """How fast do all nodes write to a file system and read from it, without an error?

    `file_write_bw` and `file_read_bw` use a file for each rank, `shared_write_bw` and
    `shared_read_bw` one file for all. A write ends with fsync. A rank reads the data of
    another node, so that no node reads its own memory. The size in a metric's name is
    that of a transfer. A second run reads all data again and compares every byte; its
    time does not count.

    Every node writes `mib_per_node`, or `memory_percent` of its memory if that is more:
    servers with large caches need several times their memory. A run never takes more
    than the declared share of the free space. It writes less (`file_data` is the size)
    or fails with the reason. All data are removed, also after a failure.
    """

    file_system = parameter(declared_file_systems())
    mib_per_node = variable(int, value=16384)
    """Data that each node writes at a time."""
    memory_percent = variable(float, value=0.0)
    """The same as a share of a node's memory; the larger counts."""
    transfers = variable(typ.List[int], value=[1 << 20])
    """Sizes of transfers in bytes."""

    descr = "IOR, data verified, a file for each rank and one for all"
    tool = "IOR 3.3 to 4.1"
    experiments = ()
    typical_s = 60
    executable = "ior"
    tool_name = "ior"
    tags = {Tag.STORAGE}
    judged = [
        "file_write_bw_1MiB",
        "file_read_bw_1MiB",
        "shared_write_bw_1MiB",
        "shared_read_bw_1MiB",
    ]

    @property
    def runs(self):
        """Count a measured and a verified run for each layout and transfer size."""
        return 2 * len(LAYOUTS) * len(self.transfers)

    def sizes(self):
        """Return the data of a node, and the sizes of transfers."""
        memory_mib = self.current_partition.extras.get("memory_mib") or 0
        by_memory = int(self.memory_percent / 100 * memory_mib)
        return {
            "node-mib": max(self.mib_per_node, by_memory),
            "transfers": ",".join(map(str, self.transfers)),
        }

    def extract(self, text):
        """Return the bandwidths of all layouts and sizes of transfers."""
        steps = [(layout, size) for size in self.transfers for layout in LAYOUTS]
        names = [
            f"{layout}-{size}{suffix}"
            for layout, size in steps
            for suffix in ("", "-verified")
        ]
        outputs = iter(self.outputs(text, names))
        samples = []
        for layout, size in steps:
            for verified in (False, True):
                output = next(outputs)
                with output.located():
                    run = self.read(output, layout, size, verified)
                if not verified:
                    rates = {"write": run.write_mb_per_s, "read": run.read_mb_per_s}
                    samples += [
                        Sample(f"{layout}_{way}_bw", rate, size)
                        for way, rate in rates.items()
                    ]
                    data = run.ranks * run.block_bytes / 1e9
                    place = {"layout": layout, "transfer_bytes": size}
                    samples.append(Sample("file_data", data, parameters=place))
        return samples

    def read(self, output, layout, size, verified):
        """Return the results of a run; ParseError if it is another than was asked."""
        run = parse_ior(output.text)
        found = {
            "ranks": run.ranks,
            "transfer": run.transfer_bytes,
            "file of each rank": run.file_per_process,
            "reordered": run.reordered,
            "verified": run.verified,
            "written": run.write_mb_per_s is not None,
        }
        wanted = dict(
            zip(
                found,
                (self.num_tasks, size, layout == "file", True, verified, not verified),
                strict=True,
            )
        )
        if found != wanted or run.read_mb_per_s is None:
            raise ParseError(0, f"a run of {found}, expected {wanted}")
        return run


@rfm.simple_test
class Mdtest(FileSystemCheck):
    """How many small files can all nodes create, look up, read and remove in a second?

    `files_per_node` files and as many folders are divided among the ranks of a node.
    Each rank works in a folder of its own. It then looks up, reads and removes those of
    the next node, so that no node asks its own memory. Contents are verified. A rate is
    that of all ranks together, by the time of the slowest one.

    A run never takes more than the declared share of the free space and of the free
    files. It creates fewer files, or fails with the reason. All files are removed, also
    after a failure.
    """

    file_system = parameter(declared_file_systems())
    files_per_node = variable(int, value=10000)
    file_bytes = variable(int, value=3901)
    """Size of a file; 3,901 B is that of mdtest-hard in IO500."""

    descr = "mdtest, small files and folders"
    tool = "mdtest 3.3 to 4.1"
    experiments = ()
    typical_s = 60
    executable = "mdtest"
    tool_name = "mdtest"
    runs = 1
    tags = {Tag.STORAGE}
    judged = [*RATES]

    def sizes(self):
        """Return the files of a node, and their size."""
        return {"node-files": self.files_per_node, "file-bytes": self.file_bytes}

    def extract(self, text):
        """Return the rates of all operations."""
        (output,) = self.outputs(text, ["mdtest"])
        with output.located():
            run = parse_mdtest(output.text)
            if run.tasks != self.num_tasks:
                raise ParseError(0, f"{run.tasks} tasks, expected {self.num_tasks}")
        count = run.items
        return [
            Sample(metric, run.rates[operation], n=count)
            for metric, operation in RATES.items()
        ]
