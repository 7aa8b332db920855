"""The report: a judged run as one HTML file for people and JUnit XML for machines."""

from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.judge import Judgement
from seatrial.report.junit import junit_xml
from seatrial.report.page import html
from seatrial.results import Run

__all__ = ["ReportPaths", "write_report"]


@dataclass(frozen=True)
class ReportPaths:
    """The files of one report."""

    html: Path
    junit: Path


def write_report(
    run: Run, judgement: Judgement, out_dir: Path, home: Path
) -> ReportPaths:
    """Write report.html and junit.xml into `out_dir`, replacing older ones.

    The run is only read. `home` holds the templates in reports/. Raises
    SeatrialError if a template is missing or `out_dir` cannot be written.
    """
    paths = ReportPaths(out_dir / "report.html", out_dir / "junit.xml")
    page = html(run, judgement, home).encode()
    _write(paths.html, page)
    _write(paths.junit, junit_xml(run, judgement))
    return paths


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is either complete or not there."""
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise SeatrialError(
            f"{path}: the report cannot be written: {error.strerror}; "
            "choose a folder that you may write to, with space left"
        ) from error
