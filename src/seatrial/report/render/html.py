"""A page as one HTML file that loads nothing: styles, scripts and data inside."""

import hashlib
import re
from base64 import b64encode
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
from seatrial.report.render.text import few, short

FILTERED_TABLE, LONG_TABLE = 15, 40
"""Rows above which a table has a filter, and above which it is closed at first."""

_MAX_NAME, _MAX_TEXT = 80, 1000
_NUMBER = re.compile(r"[-\N{MINUS SIGN}<>\N{EN DASH}]?\d.{0,24}|[\N{EN DASH}-]|")


def _cut(words: str, most: int = _MAX_TEXT) -> Markup | str:
    """Shorten a text between two words; the whole is its title."""
    return _titled(words, text.shortened(text.clean(words), most), most)


def _name(words: str) -> Markup | str:
    """Shorten a name in its middle, as its end often differs from others."""
    return _titled(words, short(words, _MAX_NAME), _MAX_NAME)


def _titled(words: str, shown: str, most: int) -> Markup | str:
    if len(words) <= most:
        return words
    return Markup('<span title="{}">{}</span>').format(text.clean(words), shown)


def _number_columns(table: Table) -> frozenset[int]:
    """Choose the columns that have numbers, and nothing else."""
    return frozenset(
        column
        for column in range(len(table.columns))
        if any(row[column] for row in table.rows)
        and all(_NUMBER.fullmatch(row[column]) for row in table.rows)
    )


FILTERS: dict[str, Any] = {
    "zip": zip,
    "drawn": Markup,
    "cut": _cut,
    "name": _name,
    "shortened": lambda words, most=_MAX_NAME: short(words, most),
    "number_columns": _number_columns,
}
SIZES = {"filtered_table": FILTERED_TABLE, "long_table": LONG_TABLE}


def render(home: Path, template: str, filters: dict[str, Any], **context: Any) -> str:
    """Render a template of `home`/reports that extends base.html.j2.

    `filters` are those that only this template has. Raises SeatrialError if a template,
    the style or the script is missing.
    """
    environment = _environment(home / "reports")
    environment.filters |= filters
    try:
        script = (home / "reports" / "report.js").read_text(encoding="utf-8")
        style = (home / "reports" / "report.css").read_text(encoding="utf-8")
        page = environment.get_template(template)
    except (OSError, jinja2.TemplateNotFound) as error:
        raise SeatrialError(
            f"{home / 'reports'}: a template of the report is missing: {error}; "
            "expected a complete checkout or installation of the suite"
        ) from error
    scripts = (_chart_library(), _inline(script))
    return page.render(
        policy=_policy(scripts),
        scripts=list(map(Markup, scripts)),
        style=Markup(style),
        version=__version__,
        **context,
    )


def _environment(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= {
        "breakable": text.breakable,
        "measured": text.measured,
        "moment": text.day_and_time,
        "few": lambda names: ", ".join(few(names, 8)),
        "exact": text.exact,
    }
    return environment


def _finalize(value: Any) -> Any:
    """Remove control characters from every text before it is escaped."""
    return text.clean(value) if type(value) is str else value


@cache
def _chart_library() -> str:
    """Bundle Vega, Vega-Lite and Vega-Embed: one script for all charts."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return _inline(bundle)


def _inline(script: str) -> str:
    """Escape a script for a page: nothing in it may end its element."""
    return script.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(scripts: tuple[str, ...]) -> str:
    """Forbid every request, and every script but ours, named by their hashes."""
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
