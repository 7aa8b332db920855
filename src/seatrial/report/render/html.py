"""A page as one HTML file that loads nothing: styles, scripts and data inside."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from seatrial import __version__
from seatrial.errors import SeatrialError
from seatrial.report.render import text
from seatrial.report.render.figure import Table
from seatrial.report.render.text import few, short, shortened

FILTERED_TABLE, LONG_TABLE = 15, 40
"""Rows above which a table has a filter, and above which it is collapsed."""

_MAX_NAME, _MAX_TEXT = 80, 1000
_NUMBER = re.compile(r"[-\N{MINUS SIGN}<>\N{EN DASH}]?\d.{0,24}|[\N{EN DASH}-]|")


def _cut(
    words: str, most: int = _MAX_TEXT, shorten: Callable[[str, int], str] = shortened
) -> Markup | str:
    """Shorten a long text, by default between two words; its title is the whole."""
    if len(words) <= most:
        return words
    whole = text.clean(words)
    return Markup('<span title="{}">{}</span>').format(whole, shorten(whole, most))


def _number_columns(table: Table) -> frozenset[int]:
    """Return the columns that have only numbers."""
    return frozenset(
        number
        for number, cells in enumerate(zip(*table.rows, strict=True))
        if any(cells) and all(map(_NUMBER.fullmatch, cells))
    )


FILTERS: dict[str, Any] = {
    "zip": zip,
    "drawn": Markup,
    "cut": _cut,
    "name": lambda words: _cut(words, _MAX_NAME, short),
    "shortened": lambda words, most=_MAX_NAME: short(words, most),
    "number_columns": _number_columns,
}
_COMMON: dict[str, Any] = {
    "breakable": text.breakable,
    "measured": text.measured,
    "moment": text.day_and_time,
    "few": lambda names: ", ".join(few(names, 8)),
    "exact": text.exact,
}
SIZES: Any = {"filtered_table": FILTERED_TABLE, "long_table": LONG_TABLE}


def render(
    home: Path,
    template: str,
    filters: dict[str, Any],
    *,
    charts: bool = True,
    **context: Any,
) -> str:
    """Render a template of `home`/reports that extends base.html.j2.

    Without `charts` the page has no library that draws them.
    Raises SeatrialError if a template, the style or the script is missing.
    """
    folder = home / "reports"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= _COMMON | filters
    try:
        script = (folder / "report.js").read_text(encoding="utf-8")
        style = (folder / "report.css").read_text(encoding="utf-8")
        page = environment.get_template(template)
    except (OSError, jinja2.TemplateNotFound) as error:
        raise SeatrialError(
            f"{folder}: a template of the report is missing: {error}; "
            "expected a complete checkout or installation of the suite"
        ) from error
    scripts = (*([_chart_library()] if charts else []), _inline(script))
    return page.render(
        policy=_policy(scripts),
        scripts=list(map(Markup, scripts)),
        style=Markup(style),
        version=__version__,
        **context,
    )


def _finalize(value: Any) -> Any:
    """Remove control characters from every text before it is escaped."""
    return text.clean(value) if type(value) is str else value


@cache
def _chart_library() -> str:
    """Bundle Vega, Vega-Lite and Vega-Embed in a script for all charts."""
    return _inline(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _inline(script: str) -> str:
    """Escape a script: no text in it may end its element."""
    return script.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(scripts: tuple[str, ...]) -> str:
    """Forbid all requests and all scripts except those with our hashes."""
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
