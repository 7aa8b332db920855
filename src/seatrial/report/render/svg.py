"""A figure for paper: the specification of the page as SVG."""

import re
from pathlib import Path
from typing import Any

import vl_convert

from seatrial.errors import SeatrialError
from seatrial.report.render import text
from seatrial.report.render.figure import Figure

NARROW, WIDE = 400, 820
"""Widths in px of a figure in one of two columns, and of one across the page."""

_LONGEST = 500
"""Characters of one text in a chart: a text of 10,000 takes seconds to measure."""

_FONT = "Liberation Sans"  # of vl-convert: what it measures does not depend on the host
_PAPER_FONT = "Libertinus Serif"  # of Typst, and narrower
_LACKING = str.maketrans("✕", "\N{MULTIPLICATION SIGN}")
"""Characters that the fonts of Typst lack, and their replacements."""
_DRAWN = "role-mark"  # a specification that fails while it runs gives an empty picture
_VARIABLE = re.compile(r'="var\((--[\w-]+)\)"')
_LIGHT = re.compile(r"^:root \{(.*?)^\}", re.DOTALL | re.MULTILINE)
_COLOUR = re.compile(r"^\s*(--[\w-]+): (#[0-9a-f]{3,8});$", re.MULTILINE)


def colours(home: Path) -> dict[str, str]:
    """Read the colours of the light style: '--fail' -> '#b3201a'.

    Raises SeatrialError if the style is missing or has none.
    """
    path = home / "reports" / "report.css"
    try:
        style = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SeatrialError(
            f"{path}: cannot be read: {error.strerror}; expected a complete checkout "
            "or installation of the suite"
        ) from error
    light = _LIGHT.search(style)
    by_name = dict(_COLOUR.findall(light[1])) if light else {}
    if not by_name:
        raise SeatrialError(
            f"{path}: no colours found; expected lines such as '--fail: #b3201a;' in "
            "its first :root block"
        )
    return by_name


def for_paper(drawn: str, palette: dict[str, str]) -> str:
    """Replace CSS variables by colours, and characters that the fonts lack.

    Raises KeyError if a colour is not in the palette.
    """
    named = _VARIABLE.sub(lambda match: f'="{palette[match[1]]}"', text.clean(drawn))
    return named.translate(_LACKING)


def svg(figure: Figure, palette: dict[str, str]) -> str:
    """Draw a figure, equal on every host; `palette` has the colours of CSS variables.

    Raises SeatrialError if the specification cannot be drawn.
    """
    if figure.drawing:
        return for_paper(figure.drawing, palette)
    try:
        drawn = vl_convert.vegalite_to_svg(_fitted(figure), allowed_base_urls=[])
        if _DRAWN not in drawn:
            raise ValueError("empty picture; see the message of Vega on standard error")
        drawn = for_paper(drawn, palette)
    except (ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:_LONGEST]
        raise SeatrialError(
            f"figure {figure.name}: it cannot be drawn for the PDF: {reason}; this is "
            "a fault of the suite; --form html writes the report without a PDF"
        ) from error
    return drawn.replace(f'font-family="{_FONT}"', f'font-family="{_PAPER_FONT}"')


def _fitted(figure: Figure) -> dict[str, Any]:
    """Set the width, the font and the columns of the legend."""
    spec = _drawable(figure.spec)
    config = spec.get("config", {})
    columns, limit = (3, 250) if figure.wide else (2, 165)
    legend = {**config.get("legend", {}), "columns": columns, "labelLimit": limit}
    return {
        **spec,
        "width": WIDE if figure.wide else NARROW,
        "config": {**config, "font": _FONT, "legend": legend},
    }


def _drawable(value: Any) -> Any:
    """Cut and clean texts: a NUL makes the library end the process."""
    if isinstance(value, str):
        return text.clean(value[:_LONGEST])
    if isinstance(value, dict):
        return {_drawable(key): _drawable(item) for key, item in value.items()}
    return list(map(_drawable, value)) if isinstance(value, list) else value
