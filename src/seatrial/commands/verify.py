"""`seatrial verify`: check the files and signatures of a closed run, or a protocol."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.commands import _options as options
from seatrial.commands._rows import write_json, write_rows
from seatrial.commands._runs import run_path, shown_path, signers_of
from seatrial.errors import Exit, SeatrialError
from seatrial.output import echo

if TYPE_CHECKING:
    from seatrial.runs.seal import Verification


@click.command()
@click.argument("run", type=options.RUN)
@options.signers
@click.option(
    "--at",
    type=options.Moment(),
    metavar="TIME",
    help="Accept keys that were valid at this time, for example that of the seal "
    "(default: now).",
)
@click.option("--sealed", is_flag=True, help="Fail for a run without a seal.")
@options.form(
    "Format of the output; csv has the first changed file, or a row for each role, "
    "json has all."
)
@click.pass_context
def verify(
    ctx: click.Context,
    run: str,
    signers: Path | None,
    at: datetime | None,
    sealed: bool,
    form: str,
) -> None:
    """Verify the seal of a closed run, and every file against its manifest.

    RUN is the path of a run, its id, SYSTEM/latest or latest. A sealed run needs
    ssh-keygen, but neither network nor inventory. Without a seal, a person who changes
    a file can change the manifest too: seal the run, or keep the printed SHA-256 of the
    manifest.

    RUN may also be the folder of a protocol. Then every file is verified against
    SHA256SUMS, and the signatures by role: complete, incomplete or broken.

    A line of the signers may limit a key in time (valid-after, valid-before). The file
    revoked_keys beside the signers lists keys that are never accepted.

    Exit status: 0 whole, 1 changed (or not sealed, with --sealed), 2 usage or not
    readable, 3 sealed by an unknown signer or with an expired key. Of a protocol: 0
    complete, 1 broken, 3 incomplete.

    Example: seatrial verify lab/latest --signers reference-data/lab/allowed_signers
    """
    from seatrial.commands._protocols import show_protocol
    from seatrial.protocol.verification import is_protocol
    from seatrial.runs.run_contents import read_contents
    from seatrial.runs.seal import not_sealed, verification

    if is_protocol(Path(run)):
        if sealed:
            raise SeatrialError("--sealed: of a run; a protocol has signatures by role")
        ctx.exit(show_protocol(Path(run).resolve(), signers, at, form))
    path = run_path(run)
    contents = read_contents(path)
    if signers is None:
        signers = signers_of(contents.manifest["system"])
    result = verification(contents, signers, at)
    if form == "table":
        echo(*_lines(result))
    elif form == "json":
        write_json(_record(result))
    else:
        _print_first(_record(result))
    if not result.whole:
        ctx.exit(Exit.FAILED)
    if sealed and result.seal == "none":
        raise not_sealed(path)
    ctx.exit(Exit.UNDECIDED if result.seal == "unknown" else Exit.PASS)


def _lines(result: "Verification") -> list[str]:
    word = "WHOLE" if result.whole else "CHANGED"
    size = f"{result.files} files, {result.size_bytes / 1e6:.1f} MB"
    lines = [f"{word}  {result.system}, run {result.run}: {size}"]
    if result.differences:
        first = result.differences[0]
        more = len(result.differences) - 1
        lines.append(f"first: {first.file}: {first.problem}")
        lines += [f"and {more} more, see --format json"] if more else []
    return [
        *lines,
        f"manifest SHA-256: {result.digest}",
        f"seal: {_seal_words(result)}",
        f"run: {shown_path(result.path)}",
    ]


def _seal_words(result: "Verification") -> str:
    from seatrial.runs.seal import key_text

    key = key_text(result.signature)
    if result.signature and result.seal == "known":
        return f"{result.signature.signer} ({key}), by {result.signature.signers}"
    if result.signature and result.signature.problem:
        return f"right, but its key does not count: {result.signature.problem}; --at"
    words = {"none": "none", "wrong": "broken"}
    unknown = (
        f"right, but of an unknown signer: {key}; expected a line in allowed_signers "
        "that lets this key sign runs (--signers)"
    )
    return words.get(result.seal, unknown)


def _record(result: "Verification") -> dict[str, Any]:
    signature = result.signature
    return {
        "path": shown_path(result.path),
        "system": result.system,
        "run": result.run,
        "whole": result.whole,
        "manifest_sha256": result.digest,
        "files": result.files,
        "size_bytes": result.size_bytes,
        "seal": result.seal,
        "signer": signature.signer if signature else None,
        "key_type": signature.key_type if signature else None,
        "fingerprint": signature.fingerprint if signature else None,
        "key_problem": signature.problem if signature else "",
        "differences": [vars(difference) for difference in result.differences],
    }


def _print_first(record: dict[str, Any]) -> None:
    """Write a record as CSV, with its first difference only."""
    differences = record.pop("differences")
    first = differences[0] if differences else {}
    record |= {key: first.get(key) for key in ("file", "problem", "expected", "found")}
    write_rows([record], "csv", [*record])
