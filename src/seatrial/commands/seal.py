"""`seatrial seal`: sign a closed run with an SSH key."""

from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import run_path
from seatrial.errors import SeatrialError
from seatrial.output import echo


@click.command()
@click.argument("run", type=options.RUN)
@click.option(
    "--key",
    type=options.FILE,
    required=True,
    help="Private SSH key, or the public half of a key in ssh-agent.",
)
def seal(run: str, key: Path) -> None:
    """Verify a closed run, then sign its manifest with an SSH key.

    RUN is the path of a run, its id, SYSTEM/latest or latest. The manifest holds the
    checksums of all other files. `ssh-keygen -Y sign -n seatrial-run` writes the
    signature to manifest.json.sig beside it. A run can be sealed once.

    Exit status: 0 sealed, 1 the run was changed, 2 usage, or the run cannot be sealed.

    Example: seatrial seal lab/latest --key ~/.ssh/id_ed25519
    """
    from seatrial.runs.seal import key_text
    from seatrial.runs.seal import seal as seal_run

    if Path(run).is_file():
        raise SeatrialError(
            f"{run}: a packed run; expected the run itself: seal it, then pack it"
        )
    sealed = seal_run(run_path(run), key)
    echo(f"sealed with {key_text(sealed.signature)}: {sealed.path}")
    echo(f"manifest SHA-256: {sealed.digest}")
