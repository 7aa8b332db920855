"""Changes since the previous run; they are not judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from seatrial.criteria.criteria import Criteria, changes
from seatrial.runs.fingerprint import differences, fingerprint

_SUITE = {
    "seatrial": "Seatrial",
    "git_commit": "commit of the suite",
    "dirty": "suite with changes of its own",
    "reframe": "ReFrame",
}


@dataclass(frozen=True)
class Change:
    """One difference in words: `kernel was 6.1.0-25, is 6.1.0-28`."""

    kind: Literal["configuration", "suite", "criteria", "nodes"]
    words: str


def night_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
    """List differences of two manifests of a system; none if `old` is empty."""
    if not old:
        return ()
    before, after = fingerprint(old), fingerprint(new)
    unknown = {name: value for name, value in after.items() if name not in before}
    return (
        *(Change("nodes", words) for words in _absences(old, new)),
        *(Change("configuration", words) for words in differences(before, after)),
        *(
            Change("configuration", f"{name} was not known, is {value}")
            for name, value in unknown.items()
        ),
        *(Change("suite", words) for words in _suite(old, new)),
    )


def criteria_changes(old: Criteria | None, new: Criteria | None) -> tuple[Change, ...]:
    """List the criteria that changed; equal files have no changes."""
    if old is None or new is None or (old.sha256 and old.sha256 == new.sha256):
        return ()
    return tuple(
        Change("criteria", f"{name or 'risks of the machine'}: {words}")
        for name, words in changes(old, new).items()
    )


def _absences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = _absent(old), _absent(new)
    for name, reason in after.items():
        if name not in before:
            yield f"{name} absent: {reason or 'no reason known'}"
    delivered = {node["name"] for node in new["nodes"]}
    for name in before:
        if name in delivered and name not in after:
            yield f"{name} back"


def _absent(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {
        node["name"]: str(node.get("reason") or "")
        for node in manifest["nodes"]
        if node.get("state", "present") != "present"
    }


def _suite(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = (manifest.get("software") or {} for manifest in (old, new))
    for key, name in _SUITE.items():
        was, now = before.get(key), after.get(key)
        if was != now:
            yield f"{name} was {_format(was)}, is {_format(now)}"


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not known" if value is None else str(value)[:12]
