"""The report as one HTML page that loads nothing: styles, scripts and data inside."""

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
from seatrial.judge import Judgement
from seatrial.report import text, view
from seatrial.report.charts import chart, metric_title
from seatrial.report.curves import curves
from seatrial.report.heat import LEAST_CELL, WIDE, heat_chart, level_names
from seatrial.report.matrix import MAX_RETESTED, SLOW, matrices
from seatrial.report.nodes import node_table
from seatrial.report.table import table
from seatrial.results import Run

_TEMPLATE = "report.html.j2"


def html(run: Run, judgement: Judgement, home: Path) -> str:
    """Render the page; SeatrialError if a template below `home` is missing."""
    environment = _environment(home / "reports")
    try:
        scripts = (_chart_library(), _script(home / "reports" / "report.js"))
        style = (home / "reports" / "report.css").read_text(encoding="utf-8")
        template = environment.get_template(_TEMPLATE)
    except (OSError, jinja2.TemplateNotFound) as error:
        raise SeatrialError(
            f"{home / 'reports'}: a template of the report is missing: {error}; "
            "expected a complete checkout or installation of the suite"
        ) from error
    figures = [(curve, chart(curve), table(curve)) for curve in curves(run, judgement)]
    return template.render(
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(style),
        run=run,
        manifest=run.manifest,
        judgement=judgement,
        seconds=text.span(run.manifest.get("started"), run.manifest.get("ended")),
        counts=view.counts(judgement.findings),
        findings=view.finding_rows(judgement),
        causes=view.causes(judgement),
        worth_a_look=judgement.worth_a_look,
        nodes=node_table(run, judgement),
        failed=view.cases_by_result(run.cases, "fail"),
        skipped=view.cases_by_result(run.cases, "skip"),
        cases=run.cases[: view.MAX_CASES],
        pairs=[(matrix, heat_chart(matrix)) for matrix in matrices(run, judgement)],
        max_retested=MAX_RETESTED,
        slow_level=SLOW,
        wide_matrix=WIDE,
        least_cell=LEAST_CELL,
        figures=figures,
        methods=view.methods(run),
        sources=view.sources(judgement.findings),
        max_names=view.MAX_NAMES,
        version=__version__,
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
        "quantity": text.quantity,
        "size": text.size,
        "duration": text.duration,
        "moment": text.day_and_time,
        "metric_title": metric_title,
        "detail_of": lambda case, check: view.case_detail(check, case),
        "lasted": lambda session: text.span(session["started"], session["ended"]),
        "few": lambda names: ", ".join(view.few(names, 8)),
        "by_check": _by_check,
        "exact": text.exact,
        "level_names": level_names,
    }
    return environment


def _by_check(
    figures: list[tuple[Any, ...]],
) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """Number the figures and group them by check, in their order."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for number, figure in enumerate(figures, 1):
        groups.setdefault(figure[0].check, []).append((number, *figure))
    return list(groups.items())


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
