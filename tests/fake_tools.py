"""Nodes whose programs print what a test wants, and their readings."""

from pathlib import Path

from fake_hardware import Hca, raw_of, write_node
from fake_home import fake_program

from seatrial.audit.reading import Reading
from seatrial.audit.readings import readings

HARDWARE = Path(__file__).parent / "data" / "hardware"


def of_tools(
    tmp_path: Path, hca: Hca | None = None, /, **programs: str
) -> dict[tuple[str, str], Reading]:
    """Return readings by subject and key, with programs that run a shell command."""
    root = write_node(tmp_path / "node", hca or Hca())
    (root / "tools").mkdir()
    for name, command in programs.items():
        fake_program(root / "tools", name, command)
    found: dict[tuple[str, str], Reading] = {}
    for one in readings(raw_of(root)):
        if one.value is not None or (one.subject, one.key) not in found:
            found[one.subject, one.key] = one
    return found


def printing(name: str) -> str:
    return f"cat {HARDWARE / name}"
