"""A verified protocol on the terminal, and as data."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.commands._rows import write_json, write_rows
from seatrial.commands._runs import signers_of
from seatrial.errors import Exit
from seatrial.output import echo

if TYPE_CHECKING:
    from seatrial.protocol.verification import Verified

_STATUS = {
    "complete": Exit.PASS,
    "incomplete": Exit.UNDECIDED,
    "broken": Exit.FAILED,
}


_COLUMNS = ("state", "role", "required", "signed", "signers")


def show_protocol(
    path: Path, signers: Path | None, at: datetime | None, form: str
) -> Exit:
    """Verify a protocol and print the result; return the exit status."""
    from seatrial.protocol.verification import system_of, verify_protocol

    if signers is None:
        signers = signers_of(system_of(path))
    verified = verify_protocol(path, signers, at)
    if form == "table":
        echo(*lines_of(verified))
    elif form == "json":
        write_json(_record(verified))
    else:
        write_rows(_rows(verified), form, _COLUMNS)
    return _STATUS[verified.state]


def lines_of(verified: "Verified") -> list[str]:
    """Describe a protocol: its state, who signed in which role, and what is wrong."""
    record = verified.record
    size = f"{verified.files} files, {verified.size_bytes / 1e6:.1f} MB"
    subject = f"{record.system}, protocol of run {record.run}"
    lines = [
        f"{verified.state.upper()}  {subject}: {size}",
        f"verdict: {record.verdict}",
    ]
    for first in verified.differences[:1]:
        lines.append(f"first: {first.file}: {first.problem}")
    if more := len(verified.differences[1:]):
        lines.append(f"and {more} more, see --format json")
    for role, persons in verified.signers.items():
        names = ", ".join(persons) or "none"
        lines.append(f"{role}: {len(persons)} of {verified.required[role]}: {names}")
    lines += [
        f"does not count: {one.file} ({one.key_type} {one.fingerprint}): {one.problem}"
        for one in verified.signatures
        if one.signer is None
    ]
    lines.append(f"SHA-256 of SHA256SUMS: {verified.digest}")
    return [*lines, f"protocol: {verified.path}"]


def _record(verified: "Verified") -> dict[str, Any]:
    record = verified.record
    return {
        "path": str(verified.path),
        "system": record.system,
        "run": record.run,
        "state": verified.state,
        "verdict": record.verdict,
        "sha256": verified.digest,
        "files": verified.files,
        "size_bytes": verified.size_bytes,
        "roles": {
            role: {"required": verified.required[role], "signers": [*persons]}
            for role, persons in verified.signers.items()
        },
        "signatures": [vars(one) for one in verified.signatures],
        "differences": [vars(one) for one in verified.differences],
    }


def _rows(verified: "Verified") -> list[dict[str, Any]]:
    """Return a row for each role."""
    return [
        {
            "state": verified.state,
            "role": role,
            "required": verified.required[role],
            "signed": len(persons),
            "signers": "; ".join(persons),
        }
        for role, persons in verified.signers.items()
    ]
