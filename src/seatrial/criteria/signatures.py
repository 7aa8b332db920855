"""Signatures that an acceptance needs: the key `signatures` of criteria.yaml."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from seatrial.model.yaml_file import YamlFile

ROLE = r"[a-z][a-z0-9_]{0,30}"
"""A role: a part of the name of a file, and of a namespace of OpenSSH."""

Role = Annotated[
    str, Meta(pattern=f"^{ROLE}$", description="a role such as vendor or witness")
]
Signatures = Annotated[
    dict[
        Role,
        Annotated[int, Meta(ge=0, le=99, description="a number of persons, 0 to 99")],
    ],
    Meta(min_length=1, description="roles and numbers of persons"),
]
"""The number of persons that must sign in each role; 0: they may sign."""

USUAL: Mapping[str, int] = {"vendor": 1, "customer": 1, "witness": 0}
"""Roles of a criteria.yaml without the key."""


def required_signatures(file: YamlFile) -> Mapping[str, int]:
    """Return the roles of a criteria.yaml that has the right types.

    Raises SeatrialError if no role needs a signature.
    """
    roles: Mapping[str, int] = file.data.get("signatures", USUAL)
    if not any(roles.values()):
        file.expected("a role that must sign", dict(roles), ("signatures",))
    return dict(roles)
