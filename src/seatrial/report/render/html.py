"""A page as one HTML file that loads nothing: styles, scripts and data inside."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from seatrial import __version__
from seatrial.errors import SeatrialError
from seatrial.report.render import text
from seatrial.report.render.text import few


def render(home: Path, template: str, filters: dict[str, Any], **context: Any) -> str:
    """Render a template of `home`/reports that extends base.html.j2.

    `filters` are those that only this template has. Raises SeatrialError if a template,
    the style or the script is missing.
    """
    environment = _environment(home / "reports")
    environment.filters |= filters
    try:
        scripts = (_chart_library(), _script(home / "reports" / "report.js"))
        style = (home / "reports" / "report.css").read_text(encoding="utf-8")
        page = environment.get_template(template)
    except (OSError, jinja2.TemplateNotFound) as error:
        raise SeatrialError(
            f"{home / 'reports'}: a template of the report is missing: {error}; "
            "expected a complete checkout or installation of the suite"
        ) from error
    return page.render(
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
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


def _script(path: Path) -> str:
    return _inline(path.read_text(encoding="utf-8"))


def _inline(script: str) -> str:
    """Make a script fit to stand in a page: nothing in it may end its element."""
    return script.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(scripts: tuple[str, ...]) -> str:
    """Forbid every request, and every script but ours, named by their hashes."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(digest).decode()}'"
        for script in scripts
        for digest in [hashlib.sha256(script.encode()).digest()]
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
