"""Lines of YAML for Ansible, from texts of a foreign system."""

from textwrap import wrap
from typing import Any

import yaml

from seatrial.errors import SeatrialError
from seatrial.output import one_line

TO_DECIDE = "To decide:"
"""Begin of a comment that asks the user for an answer."""

_WIDTH = 150
"""Characters of a comment; ansible-lint allows 160 in a line."""

_TEMPLATES = ("{{", "{%", "{#")


def value(content: Any) -> str:
    """Return a value in one line; SeatrialError if Ansible would run it as a template.

    Names come from another machine, and templates run commands on this one.
    """
    text: str = yaml.safe_dump(
        content, default_flow_style=True, sort_keys=False, width=10**9
    )
    if any(mark in str(content) for mark in _TEMPLATES):
        raise SeatrialError(
            f"{one_line(str(content))}: expected a name, got a template of Ansible; "
            "rename it on the system"
        )
    return text.removesuffix("\n").removesuffix("\n...")


def comment(text: str, indent: int = 0) -> str:
    """Return a comment, in several lines if it is long."""
    lead = f"{' ' * indent}# "
    lines = wrap(one_line(text), _WIDTH - len(lead), break_long_words=False)
    return "\n".join(lead + line for line in lines)
