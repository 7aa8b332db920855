"""`seatrial sign`: sign a protocol in a role."""

from pathlib import Path

import click

from seatrial.commands import _options as options
from seatrial.commands._runs import signers_of
from seatrial.errors import SeatrialError
from seatrial.output import echo


@click.command()
@click.argument("protocol", type=options.FOLDER)
@click.option(
    "--role",
    required=True,
    help="Your role: vendor, customer, witness, or another one.",
)
@click.option(
    "--key",
    type=options.FILE,
    required=True,
    help="Private SSH key, or the public half of a key in ssh-agent.",
)
@options.signers
def sign(protocol: Path, role: str, key: Path, signers: Path | None) -> None:
    """Verify a PROTOCOL, then sign all of it with an SSH key.

    PROTOCOL is the folder that `seatrial protocol` wrote. `ssh-keygen -Y sign -n
    seatrial-protocol-ROLE` signs its list of files; the signature is a new file in
    signatures/, and earlier ones stay. The line of the key among the signers must name
    that namespace. A person signs once, and in one role.

    Exit status: 0 signed, 1 the protocol or a signature in it was changed, 2 usage, or
    the key must not sign in this role.

    Example: seatrial sign protocol --role vendor --key ~/.ssh/id_ed25519
    """
    from seatrial.commands._protocols import lines_of
    from seatrial.protocol.signing import sign_protocol
    from seatrial.protocol.verification import require_protocol, system_of

    require_protocol(protocol)
    system = system_of(protocol)
    known = signers_of(system) if signers is None else signers
    if known is None:
        raise SeatrialError(
            f"{protocol}: no known signers; expected reference-data/{system}/"
            "allowed_signers, or --signers FILE"
        )
    verified, signature = sign_protocol(protocol.resolve(), role, key, known)
    echo(f"signed as {role} by {signature.signer}")
    echo(*lines_of(verified))
