"""Parts of a criteria.yaml."""

from typing import NamedTuple

from seatrial.criteria.absence import Absence
from seatrial.criteria.criterion import Criterion, Risks
from seatrial.criteria.recorded import Recorded
from seatrial.runs.maintenance import Maintenance


class Parts(NamedTuple):
    """The parts of a criteria.yaml; `declared` are criteria of what a run recorded."""

    risks: Risks
    criteria: tuple[Criterion, ...]
    declared: tuple[Recorded, ...]
    absence: Absence
    maintenance: tuple[Maintenance, ...]
