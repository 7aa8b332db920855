"""A protocol as PDF, to sign by hand and to keep."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial import __version__
from seatrial.protocol.content import Protocol
from seatrial.protocol.wording import SIGNED, commands, persons
from seatrial.report.render import svg, text
from seatrial.report.render.paper import fitted, typeset

TEMPLATE = "protocol.typ"


def protocol_pdf(protocol: Protocol, home: Path, when: datetime) -> bytes:
    """Convert the protocol to PDF; the same protocol gives the same bytes.

    `home` has the template. Raises SeatrialError if it is missing.
    """
    return typeset(home, TEMPLATE, document(protocol, svg.colours(home)), when)


def document(protocol: Protocol, palette: dict[str, str]) -> dict[str, Any]:
    """Return the data of the template; every text is printable."""
    front = protocol.front
    data: dict[str, Any] = {
        "version": __version__,
        "title": f"Acceptance protocol: {front.title}",
        "description": "Acceptance protocol",
        "run": text.shortened(protocol.run, 60),
        "system": text.shortened(protocol.system, 60),
        "campaign": text.shortened(protocol.campaign, 60),
        "is_model": protocol.is_model,
        "verdict": front.verdict,
        "digest": front.digest,
        "colours": {name.removeprefix("--"): hue for name, hue in palette.items()},
        "meaning": front.meaning,
        "notes": front.notices,
        "counts": front.counts,
        "signer": front.signer,
        "manifest_sha256": front.manifest_sha256,
        "written": protocol.written,
        "clauses": [asdict(clause) for clause in protocol.clauses],
        "parts": [asdict(part) for part in protocol.parts],
        "runs": protocol.runs,
        "files": [{"name": name, "sha256": digest} for name, digest in protocol.files],
        "signed": {"note": SIGNED, "commands": commands(protocol.signatures)},
        "persons": [*persons(protocol.signatures)],
    }
    return fitted(data)
