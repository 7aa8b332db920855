"""What a report says of a judged run, filled once for all its forms."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seatrial.judge.findings import Judgement
from seatrial.report.chapters import chapters
from seatrial.report.content import Content
from seatrial.report.criteria_rows import criterion_rows
from seatrial.report.exclusions import exclusions
from seatrial.report.folding import fold_criteria, skip_reasons
from seatrial.report.front_page import front
from seatrial.report.methods_chapter import configuration, methods
from seatrial.runs.closed_run import Run


def contents(
    run: Run, judgement: Judgement, home: Path, notes: Sequence[str] = ()
) -> Content:
    """Say all that a report says, notes before all else.

    `home` has known signers and published numbers.
    """
    rows = criterion_rows(run, judgement)
    skipped = skip_reasons(run)
    one = front(run, judgement, home, rows)
    return Content(
        front=replace(one, notices=(*notes, *one.notices)),
        criteria=rows,
        folded=fold_criteria(rows, skipped),
        chapters=(
            exclusions(run, judgement),
            *chapters(run, judgement, home),
            methods(run, judgement),
            configuration(run),
        ),
    )
