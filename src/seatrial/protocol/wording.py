"""Words that the Markdown and the PDF of a protocol share."""

from collections.abc import Iterator, Mapping

from seatrial.protocol.record import LIST, NAMESPACE, SIGNATURES_FOLDER

SIGNED = (
    f"A signature is one of {LIST}: the SHA-256 of every file of this folder, with the "
    "packed runs, their ledger, the criteria, the report and this protocol. It "
    "confirms that the signer accepts these files as the result. It does not prove "
    "that the numbers were measured, on which machine, or when."
)


def persons(signatures: Mapping[str, int]) -> Iterator[str]:
    """Yield a heading for each person that signs, by role."""
    for role, count in signatures.items():
        name = role.replace("_", " ").capitalize()
        if count == 0:
            yield f"{name}, if present"
        for number in range(1, count + 1):
            yield f"{name} {number} of {count}" if count > 1 else name


def commands(signatures: Mapping[str, int]) -> tuple[str, ...]:
    """Return the commands that verify a protocol without Seatrial."""
    role = next(role for role, count in signatures.items() if count)
    return (
        f"sha256sum --check --strict --quiet {LIST}",
        f"ssh-keygen -Y verify -f allowed_signers -I SIGNER -n {NAMESPACE}{role} \\",
        f"    -s {SIGNATURES_FOLDER}/{role}-KEY.sig < {LIST}",
    )
