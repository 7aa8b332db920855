"""The report: a judged run as HTML and PDF, Markdown, CSV, and JUnit XML."""

import errno
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.errors import SeatrialError
from seatrial.judge.judge import Judgement
from seatrial.judge.summary import format_findings
from seatrial.report.chapters import contents
from seatrial.report.content import Content
from seatrial.report.criteria_rows import criteria_csv
from seatrial.report.html_page import html
from seatrial.report.junit import junit_xml
from seatrial.report.markdown import summary
from seatrial.report.pdf import pdf_bytes
from seatrial.runs.closed_run import Run

__all__ = ["FORMS", "report_files", "write_report"]

FORMS = ("html", "pdf", "md", "csv", "junit")
"""The forms of a report; csv is two files."""


def write_report(
    run: Run,
    judgement: Judgement,
    out_dir: Path,
    home: Path,
    forms: Collection[str] = FORMS,
    notes: Sequence[str] = (),
) -> dict[str, Path]:
    """Write the report in these forms into `out_dir`, all of them or none.

    Returns the files by their names; replaces older files. `notes` appear on page one;
    `home` has the templates in reports/. Raises SeatrialError if a template is missing,
    a figure cannot be drawn or `out_dir` cannot be written.
    """
    content = contents(run, judgement, home, notes)
    files = report_files(run, judgement, content, home, forms)
    _write({out_dir / name: data for name, data in files.items()})
    return {name: out_dir / name for name in files}


def report_files(
    run: Run,
    judgement: Judgement,
    content: Content,
    home: Path,
    forms: Collection[str] = FORMS,
) -> dict[str, bytes]:
    """Return the files of a report in these forms, by their names."""
    files: dict[str, bytes] = {}
    if "html" in forms:
        files["report.html"] = html(run, judgement, content, home).encode()
    if "pdf" in forms:
        files["report.pdf"] = pdf_bytes(run, judgement, content, home)
    if "md" in forms:
        files["summary.md"] = summary(content).encode()
    if "csv" in forms:
        findings = format_findings(judgement, "csv")
        files["findings.csv"] = findings.encode(errors="replace")
        files["criteria.csv"] = criteria_csv(content).encode(errors="replace")
    if "junit" in forms:
        files["junit.xml"] = junit_xml(run, judgement)
    return files


def _write(files: dict[Path, bytes]) -> None:
    """Write the files of one report; never mix them with those of an older one.

    The files are completed in a new folder, where no other user can have put a link.
    Then the older files are removed and the new ones renamed.
    """
    path = next(iter(files))
    out_dir = path.parent
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".report-", dir=out_dir) as folder:
            for path, content in files.items():
                Path(folder, path.name).write_bytes(content)
            for path in files:
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            for path in files:
                path.unlink(missing_ok=True)
            for path in files:
                Path(folder, path.name).rename(path)
    except OSError as error:
        raise SeatrialError(
            f"{path}: the report cannot be written: {error.strerror}; "
            "choose a folder that you may write to, with space left"
        ) from error
