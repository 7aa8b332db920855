"""Measure the comparison of a large fabric with its plan, and localisation.

The comparison runs in a process of its own; its memory is measured. The outputs are as
ibnetdiscover and iblinkinfo would print them, with one swap of cables.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from seatrial.calibration.simulate.fabric_rates import (
    fabric_rows,
    fabrics_table,
    heading,
    legend,
)
from seatrial.fabric.compare import compare
from seatrial.fabric.declaration import Declaration
from seatrial.fabric.discover import from_files
from seatrial.fabric.generate import Shape, generate
from seatrial.fabric.plan import Cable, load_plan, plan_csv
from seatrial.fabric.records import End

FABRICS = 20
"""Model fabrics of each kind, in about 5 minutes of a core; 200: `simulate`."""

SHAPES = {
    1_000: (Shape("fat-tree-3", 1_000, 36), "<= 3 s"),
    10_000: (Shape("fat-tree-3", 10_000, 40), "<= 30 s, <= 1024 MiB"),
}


def table() -> Table:
    """Measure, and return the results as a table."""
    rows = Table("fabric", "measured", "target")
    for hosts, (shape, target) in SHAPES.items():
        command = [sys.executable, str(Path(__file__)), str(hosts)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        answer = json.loads(done.stdout)
        rows.add_row(
            f"{hosts:,} hosts, {shape.kind}, {answer['links']:,} links",
            f"read {answer['read_s']:.1f} s, plan {answer['plan_s']:.1f} s, compare "
            f"{answer['compare_s']:.1f} s, {answer['memory_mib']:.0f} MiB, "
            f"{answer['findings']} finding",
            target,
        )
    return rows


def located_table() -> Table:
    """Locate the bad parts of model fabrics; return how often that is right."""
    rows = [*fabric_rows(1_000, fabrics=FABRICS, seed=1)]
    rates = fabrics_table(rows)
    rates.title, rates.caption = heading(rows), legend()
    return rates


def write_outputs(folder: Path, cables: Iterable[Cable]) -> None:
    """Write ibnetdiscover.txt and iblinkinfo.txt of a fabric."""
    ports: dict[str, dict[str, End]] = defaultdict(dict)
    for cable in cables:
        ports[cable.a.device][cable.a.port] = cable.b
        ports[cable.b.device][cable.b.port] = cable.a
    number = {name: index for index, name in enumerate(ports, 1)}

    def identity(name: str) -> tuple[str, str, str]:
        host = name.startswith("cn")
        digits = f"{number[name] * 256:016x}"
        return digits, "H" if host else "S", f"{name} mlx5_0" if host else name

    blocks = ["# Topology file: generated on Thu Nov 26 02:19:41 2026\n#\n"]
    rows = []
    for name, own in ports.items():
        digits, letter, text = identity(name)
        kind = "Ca" if letter == "H" else "Switch"
        block = [f'{kind}\t{max(40, len(own))} "{letter}-{digits}"\t\t# "{text}" lid 1']
        for port, far in own.items():
            at, to = port.rpartition(":")[2], far.port.rpartition(":")[2]
            other, far_letter, far_text = identity(far.device)
            about = f'# "{far_text}" lid 2 4xHDR'
            block.append(f'[{at}]\t"{far_letter}-{other}"[{to}]\t\t{about}')
            rows.append(
                f'0x{digits} "{text}" 1 {at}[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>'
                f'  0x{other} 2 {to}[  ] "{far_text}" ( )'
            )
        blocks.append("\n".join(block) + "\n")
    (folder / "ibnetdiscover.txt").write_text("\n".join(blocks))
    (folder / "iblinkinfo.txt").write_text("\n".join(rows) + "\n")


def main() -> None:
    """Print times, memory and the number of findings as JSON."""
    cables = [*generate(SHAPES[int(sys.argv[1])][0])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.csv").write_text(plan_csv(cables))
        one, other = cables[7], cables[500]
        swapped = [Cable(one.a, other.b), Cable(other.a, one.b)]
        rest = [cable for cable in cables if cable not in (one, other)]
        write_outputs(folder, [*rest, *swapped])
        del cables, rest
        times = [time.monotonic()]
        fabric = from_files([folder])
        times.append(time.monotonic())
        plan = load_plan(folder / "plan.csv")
        times.append(time.monotonic())
        findings = compare(fabric, plan, Declaration())
        times.append(time.monotonic())
    names = ("read_s", "plan_s", "compare_s")
    pairs = zip(names, times[1:], times, strict=False)
    answer = {name: end - start for name, end, start in pairs}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer |= {"memory_mib": memory, "links": len(fabric.links)}
    print(json.dumps(answer | {"findings": len(findings)}))


if __name__ == "__main__":
    main()
