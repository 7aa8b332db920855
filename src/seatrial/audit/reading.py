"""What a source says about one key of a node."""

from dataclasses import dataclass

from seatrial.audit.raw import Block


@dataclass(frozen=True)
class Reading:
    """One key of a subject; an HCA's subject is its PCI address.

    `value` is None if the source cannot tell; `reason` says why, or where a value was
    seen. `pending` is the value after the next boot, if it is another one. `able` is
    the value that the machine itself is made for.
    """

    kind: str
    subject: str
    key: str
    value: str | None
    block: Block
    pending: str | None = None
    able: str | None = None
    reason: str = ""
