"""Names on charts and in tables, cut where they would take all the room."""

from seatrial.report.render import text

MOST = 48
"""Characters of a name that are shown."""


def short(name: str, most: int = MOST) -> str:
    """Cut a long name in the middle, as its end often tells it from others."""
    name = text.clean(name)
    if len(name) <= most:
        return name
    end = most // 3
    return f"{name[: most - end - 1]}…{name[-end:]}"
