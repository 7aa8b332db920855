"""The state of the nights as a file for the node exporter of Prometheus.

It has no timestamps, which the node exporter refuses. The time of the last success is a
value: its age shows that nights no longer run.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from seatrial.nightly.state import State

_MODE = 0o644
_PREFIX = "seatrial_nightly_"
_HELP = {
    "alarms": "Alarms of the nights that last, by kind and standing.",
    "coverage_ratio": "Share of nodes that were measured within the declared nights.",
    "expected_false_alarms_per_year": "Declared number of false alarms a year.",
    "last_success_timestamp_seconds": "End of the last night that measured nodes.",
    "nodes": "Nodes in a state: learning, quarantined, unseen, watched.",
}
_KINDS = ("node", "machine", "common", "explained")
_STANDINGS = ("open", "acknowledged")


def write_metrics(state: State, today: date) -> list[str]:
    """Write the declared file by an atomic rename; return no lines.

    Raises OSError if it cannot be written.
    """
    if state.settings.notify.metrics is None:
        return []
    file = Path(state.settings.notify.metrics)
    new = file.with_name(f".{file.name}.new")  # the node exporter reads *.prom only
    new.unlink(missing_ok=True)
    with new.open("x", encoding="utf-8") as stream:
        stream.write(metrics_text(state, today))
    new.chmod(_MODE)
    new.replace(file)
    return []


def metrics_text(state: State, today: date) -> str:
    """Return the state in the text format of Prometheus."""
    alarms = Counter[tuple[str, str]](
        (one.kind, state.standing(one, today)) for one in state.alarms
    )
    every = state.settings.rules.every
    ages = state.unseen(today).values()
    nodes = {
        "learning": len(state.decision.learning),
        "quarantined": len(state.quarantined),
        "unseen": sum(age is None or age > every for age in ages),
        "watched": len(state.decision.watched),
    }
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {
        "alarms": [
            ({"kind": kind, "standing": standing}, alarms[kind, standing])
            for kind in _KINDS
            for standing in _STANDINGS
        ],
        "coverage_ratio": [({}, state.coverage(today))],
        "expected_false_alarms_per_year": [({}, state.settings.rules.alarms_a_year)],
        "last_success_timestamp_seconds": []
        if state.last is None
        else [({}, state.last.timestamp())],
        "nodes": [({"state": name}, count) for name, count in nodes.items()],
    }
    lines = []
    for name, of_name in samples.items():
        full = _PREFIX + name
        lines += [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} gauge"]
        for labels, value in of_name:
            texts = {"system": state.system, **labels}
            inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in texts.items())
            lines.append(f"{full}{{{inner}}} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
