"""Types and rules of keys that criteria and weights share."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from seatrial.checks.sources import known_checks, own_metrics
from seatrial.model.metrics import METRICS, Metric, split_flat_name
from seatrial.model.yaml_file import Place, YamlFile
from seatrial.paths import checks_dir, known_campaigns

CASE_KEYS = ("$system", "$partition", "$environ", "num_nodes")
"""Keys of a case beside the parameters of its check; ReFrame's names."""

_CASE_KEY = r"^(\$system|\$partition|\$environ|[^\W\d]\w*)$"
_CASE_NAMES = f"{', '.join(CASE_KEYS)} or a parameter of the check"

CaseKey = Annotated[str, Meta(pattern=_CASE_KEY, description=_CASE_NAMES)]
CaseValue = Annotated[
    str | int | float | bool, Meta(description="a text, a number, true or false")
]
Where = dict[CaseKey, CaseValue]
Share = Annotated[float, Meta(ge=0, lt=1, description="a share, from 0 to below 1")]
Metrics = Annotated[
    tuple[str, ...], Meta(min_length=1, description="a list of metrics such as bw_4MiB")
]


def check_where(file: YamlFile, where: dict[str, Any], place: Place) -> None:
    """Refuse values that a key of a case can never have."""
    for key, value in where.items():
        if key == "num_nodes" and type(value) is not int:
            file.expected("a number of nodes such as 4, not '4'", value, (*place, key))
        if key.startswith("$") and not isinstance(value, str):
            file.expected("a text", value, (*place, key))
        if isinstance(value, str):
            try:
                re.compile(value)
            except re.error as error:
                reason = f"a regular expression ({error})"
                file.expected(reason, value, (*place, key))


@dataclass(frozen=True)
class Known:
    """Names in criteria and weights; without checks or campaigns, any of these."""

    checks: Collection[str] = ()
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS)
    campaigns: Collection[str] = ()

    @classmethod
    def beside(cls, file: Path) -> "Known":
        """Return those of the suite that a file of references is in."""
        home = file.resolve().parents[2]
        folder, campaigns = checks_dir(home), known_campaigns(home)
        return cls(known_checks(folder), METRICS | own_metrics(folder), campaigns)


ANY = Known()


def checked_metric(file: YamlFile, flat: str, place: Place, known: Known) -> Metric:
    """Return a metric by its flat name; refuse an unknown one."""
    try:
        return split_flat_name(flat, known.metrics)[0]
    except ValueError as error:
        file.refuse(place, str(error))


def check_metrics(
    file: YamlFile, metrics: Collection[str], place: Place, known: Known
) -> None:
    """Refuse unknown and repeated metrics of a list."""
    for index, flat in enumerate(metrics):
        checked_metric(file, flat, (*place, index), known)
        if flat in list(metrics)[:index]:
            file.refuse((*place, index), f"{flat} is listed twice. Remove one.")


def check_campaigns(
    file: YamlFile, campaigns: Collection[str], place: Place, known: Known
) -> None:
    """Refuse campaigns that the suite does not have."""
    for index, name in enumerate(campaigns if known.campaigns else ()):
        file.one_of("campaigns", known.campaigns, name, (*place, index))
