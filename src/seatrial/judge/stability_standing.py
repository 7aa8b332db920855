"""Standing of an open stability phase, in lines for the terminal."""

from collections import Counter
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.judge.stability_findings import judge_phase, stability_criteria
from seatrial.model.spans import span_text
from seatrial.stability.phase import open_criteria, phase_of_folder

_BURST_S = 300.0
_MOST_EVENTS = 5


def stability_lines(folder: Path, home: Path) -> list[str]:
    """Describe the phase of an open run so far; nothing of another campaign.

    A run that is closed meanwhile has none. Raises SeatrialError if a file of the run
    is damaged.
    """
    try:
        criteria = open_criteria(folder, home)
        phase = phase_of_folder(folder, criteria)
    except SeatrialError:
        if not folder.exists():
            return []
        raise
    if phase is None:
        return []
    rules = stability_criteria(criteria.declared) if criteria else ()
    events = phase.events(min((rule.burst_s for rule in rules), default=_BURST_S))
    counts = Counter(event.cause for event in events if not event.planned)
    causes = ", ".join(f"{count} {cause}" for cause, count in counts.items())
    observed, declared = phase.journal.seconds, phase.declared.duration_s
    seen = f"observed {span_text(observed)} of {span_text(declared)}"
    lines = [
        f"stability    {seen}; jobs took {100 * phase.load:.3g} % of the node-hours",
        f"events       {causes or 'none'}",
        *(
            f"             {event.name} {event.cause}: {event.words}"
            for event in events[-_MOST_EVENTS:]
        ),
    ]
    for rule in rules:
        finding = judge_phase(rule, phase)
        lines.append(f"so far       {rule.name}: {finding.verdict}; {finding.reason}")
    return lines
