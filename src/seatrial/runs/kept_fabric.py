"""The fabric that a run kept, with its declaration and plan."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.fabric.compare import compare
from seatrial.fabric.declaration import Declaration, parse_declaration
from seatrial.fabric.findings import Finding
from seatrial.fabric.plan import Plan, read_plan
from seatrial.fabric.records import Fabric, parse_fabric
from seatrial.limits import RAW_SIZE
from seatrial.paths import ROUTES_FILE
from seatrial.plain_files import read_plain
from seatrial.runs.closed_run import (
    KEPT_DECLARATION,
    KEPT_FABRIC,
    KEPT_PLAN,
    SYSTEM_FOLDER,
    Run,
)


@dataclass(frozen=True)
class KeptFabric:
    """A discovered fabric as it was at the start of a run.

    `plan` is None if the run kept none; `nodes` are the delivered ones. `routes` is the
    file with the forwarding tables, None without one; `routes_sha256` is its checksum
    in the manifest.
    """

    fabric: Fabric
    declaration: Declaration
    plan: Plan | None
    nodes: frozenset[str]
    routes: Path | None
    routes_sha256: str = ""

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Differences from plan and declaration; SeatrialError as `compare`.

        A large fabric takes seconds, so judge and report share one comparison.
        """
        found = compare(self.fabric, self.plan, self.declaration, lambda: self.nodes)
        return tuple(found)

    def routes_text(self) -> str:
        """Return the forwarding tables as dump_fts printed them; '' without any.

        Large fabrics have some 100 MB of them, so they are read only here. Raises
        SeatrialError if they cannot be read, or changed after the run was closed.
        """
        if self.routes is None:
            return ""
        content = read_plain(self.routes, RAW_SIZE)
        if hashlib.sha256(content).hexdigest() != self.routes_sha256:
            raise SeatrialError(
                f"{self.routes}: not as the manifest lists it; expected the file that "
                "the run kept. Run `seatrial verify`."
            )
        return content.decode("utf-8", errors="replace")


def kept_fabric(run: Run) -> KeptFabric | None:
    """Parse the fabric of a run, as `Run.fabric`; None if it kept none.

    Raises SeatrialError with file and line if one of its files is damaged.
    """
    content = run.kept.get(KEPT_FABRIC)
    if content is None:
        return None
    declared, plan = run.kept.get(KEPT_DECLARATION), run.kept.get(KEPT_PLAN)
    declaration = Declaration()
    if declared is not None:
        declaration = parse_declaration(run.path / KEPT_DECLARATION, declared)
    routes = f"{SYSTEM_FOLDER}/{ROUTES_FILE}"
    routes_sha256 = run.manifest.get("checksums", {}).get(routes, "")
    return KeptFabric(
        parse_fabric(content, run.path / KEPT_FABRIC),
        declaration,
        None if plan is None else _plan(plan, run.path / KEPT_PLAN),
        frozenset(str(node["name"]) for node in run.manifest["nodes"]),
        run.path / routes if routes_sha256 else None,
        routes_sha256,
    )


def _plan(content: bytes, file: Path) -> Plan:
    try:
        return read_plan(content.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise SeatrialError(f"{file}: no UTF-8; save the plan as CSV UTF-8") from error
