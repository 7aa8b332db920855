"""`seatrial protocol`: write the files that the parties of an acceptance sign."""

from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import judged_whole, run_path
from seatrial.output import echo
from seatrial.paths import home


@click.command()
@click.argument("run", type=options.RUN)
@options.repeated(
    "--with",
    "further",
    metavar="RUN",
    help="Judge this run of the same campaign together with it; may be repeated.",
)
@options.criteria
@options.out(
    help="New folder for the protocol (default: reports/out/SYSTEM/RUN-protocol below "
    "SEATRIAL_HOME)."
)
def protocol(
    run: str, further: tuple[str, ...], criteria: str | None, out: Path | None
) -> None:
    """Write the protocol of an acceptance, clause by clause of the contract.

    RUN is the path of a run or the file of a packed one, its id, SYSTEM/latest or
    latest. The protocol is a folder: protocol.pdf and protocol.md, the packed runs
    (its repeats, too), criteria, ledger and report. SHA256SUMS lists all of them; the
    parties sign this list with `seatrial sign`. The run does not change.

    Exit status: 0 written, for every verdict; 1 a run was changed; 2 usage, or the
    folder exists.

    Example: seatrial protocol lab/latest --out protocol
    """
    from seatrial.protocol.write import write_protocol

    suite = home()
    of_all = judged_whole(suite, run_path(run), [*map(run_path, further)], criteria)
    judgement = of_all.judgement
    name = f"{judgement.run}-protocol"
    folder = out or suite / "reports" / "out" / judgement.system / name
    write_protocol(
        folder, of_all.runs, judgement, of_all.criteria, of_all.beside, suite
    )
    echo(f"verdict: {judgement.verdict}")
    needed = (
        f"{count} {role}" for role, count in of_all.criteria.signatures.items() if count
    )
    echo(f"to be signed by: {', '.join(needed)}")
    echo(f"protocol: {folder}")
