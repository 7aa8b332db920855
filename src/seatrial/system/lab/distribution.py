"""The systems that the lab's nodes can have, by Debian's names."""

import os

from seatrial.errors import SeatrialError

VARIABLE = "LAB_DISTRIBUTION"
DEFAULT = "bookworm"
SYSTEMS = {DEFAULT: "lab", "trixie": "lab-trixie"}
"""The system under test (its inventory and criteria) by distribution."""


def lab_system() -> str:
    """Return the system that LAB_DISTRIBUTION selects; SeatrialError if unknown."""
    name = os.environ.get(VARIABLE) or DEFAULT
    if name not in SYSTEMS:
        raise SeatrialError(f"{VARIABLE}={name}: expected {' or '.join(SYSTEMS)}")
    return SYSTEMS[name]
