"""The tags of checks."""

from typing import Final


class Tag:
    """The tags for `reframe --tag`. (ReFrame cannot copy an enum.)"""

    NETWORK: Final = "network"
    COMPUTE: Final = "compute"
    APPLICATION: Final = "application"
    STORAGE: Final = "storage"
