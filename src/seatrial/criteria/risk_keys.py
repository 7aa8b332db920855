"""The risks of one criterion: at most those of the machine."""

from collections.abc import Callable

from msgspec import structs

from seatrial.criteria.criteria_types import SmallerRisks
from seatrial.criteria.criterion import Risks
from seatrial.model.yaml_file import Place, YamlFile


def own_risks(
    file: YamlFile, machine: Risks, given: SmallerRisks, at: Callable[[str], Place]
) -> Risks:
    """Return the criterion's risks; `at` returns the place of one of them.

    Raises SeatrialError with file and line if one exceeds the machine's.
    """
    own = {name: risk for name, risk in structs.asdict(given).items() if risk}
    for name, risk in own.items():
        most = getattr(machine, name)
        if risk > most:
            file.expected(f"at most the machine's {most:g}", risk, at(name))
    return structs.replace(machine, **own)
