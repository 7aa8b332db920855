"""ReFrame's reference files, as `$ref` reads them, made from a system's criteria.

ReFrame takes the first branch of a tree with keys that fit; Seatrial applies every
criterion of a case. So each branch has the strictest limit of each metric for its
cases, and special branches come before general ones.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from seatrial.checks.sources import CheckClass, check_classes
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.criterion import Criterion, matches
from seatrial.criteria.keys import CASE_KEYS
from seatrial.errors import SeatrialError
from seatrial.paths import CRITERIA_FILE, references_dir

_MARK = f"# Written from {CRITERIA_FILE} by `seatrial references generate"
_HEADING = """\
{mark} {system}`; changes
# made here are lost. Sameness, and how sure a verdict must be, only the judge knows.
"""
_ANY = object()
"""The key of a case does not matter: unlike `.*` it need not be a text."""

_ANY_TEXT = ".*"
_MOST_PATTERNS = 8
_PLAIN = re.compile(r"[\w:/ @%,=-]*")


def render_reference_files(
    home: Path, criteria: Criteria, system: str
) -> dict[Path, str]:
    """Return the text of each reference file of a system.

    Raises SeatrialError if a check names no file, or lacks a parameter that a
    criterion asks for.
    """
    classes = check_classes(home)
    files: dict[str, dict[str, list[Criterion]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for criterion in criteria.criteria:
        if criterion.check not in classes:
            raise SeatrialError(
                f"{CRITERIA_FILE}: unknown check {criterion.check!r}; expected one of "
                + ", ".join(classes)
            )
        if criterion.limit is not None:
            file = classes[criterion.check].reference_file
            files[file][criterion.check].append(criterion)
    heading = _HEADING.format(mark=_MARK, system=system)
    return {
        references_dir(home, system) / file: "\n".join(
            [heading, *(_class(classes[name], held) for name, held in checks.items())]
        )
        for file, checks in sorted(files.items())
    }


def write_reference_files(home: Path, criteria: Criteria, system: str) -> list[Path]:
    """Update the reference files of a system; return those that changed.

    Raises SeatrialError, before anything is written, if one of them was written by
    hand.
    """
    rendered = render_reference_files(home, criteria, system)
    differing = compare_reference_files(home, criteria, system)
    for file in differing:
        if file.is_file() and not _is_generated(file):
            raise SeatrialError(
                f"{file}: written by hand, and {CRITERIA_FILE} has limits for it; move "
                f"those of this file to {CRITERIA_FILE} and remove it"
            )
    for file in differing:
        if file in rendered:
            file.write_text(rendered[file], encoding="utf-8")
        else:
            file.unlink()
    return differing


def compare_reference_files(home: Path, criteria: Criteria, system: str) -> list[Path]:
    """Return the files that differ from the criteria, are missing, or are left over."""
    rendered = render_reference_files(home, criteria, system)
    there = references_dir(home, system).glob("*.yaml")
    stale = [file for file in there if file not in rendered and _is_generated(file)]
    for file, text in rendered.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            stale.append(file)
    return sorted(stale)


def _is_generated(file: Path) -> bool:
    return file.read_text(encoding="utf-8").startswith(_MARK)


def _class(check: CheckClass, criteria: Sequence[Criterion]) -> str:
    """Return the references of one class as YAML, with their sources."""
    used = {key for criterion in criteria for key in criterion.where}
    for name in used - {*CASE_KEYS, *check.parameters}:
        raise SeatrialError(
            f"{CRITERIA_FILE}: where of {check.name} has {name!r}; expected one of "
            + ", ".join((*CASE_KEYS, *check.parameters))
        )
    index = [key for key in (*CASE_KEYS, *check.parameters) if key in used]
    index = index or ["$partition"]
    content = {check.name: {"$index": index, **_tree(check, index, criteria)}}
    text = yaml.safe_dump(
        content, sort_keys=False, default_flow_style=None, width=10_000
    )
    return "".join(f"# {line}\n" for line in _sources(criteria)) + text


def _sources(criteria: Sequence[Criterion]) -> Iterator[str]:
    metrics: dict[str, list[str]] = defaultdict(list)
    for criterion in criteria:
        metrics[f"{criterion.kind}: {criterion.source}"].append(criterion.metric)
    for source, names in metrics.items():
        of = f" ({', '.join(dict.fromkeys(names))})" if len(metrics) > 1 else ""
        yield source + of


def _tree(
    check: CheckClass, index: Sequence[str], criteria: Sequence[Criterion]
) -> dict[Any, Any]:
    if not index:
        return _leaf(criteria)
    return {
        key: _tree(check, index[1:], held)
        for key, held in _branches(check, index[0], criteria)
    }


def _leaf(criteria: Sequence[Criterion]) -> dict[str, list[Any]]:
    """Return the strictest limit of each metric, as ReFrame writes it.

    Limits of the usual statistic count, without any those of others. If campaigns have
    limits of their own, the limits are those of the easiest: ReFrame knows no campaign.
    """
    metrics: dict[str, list[Criterion]] = defaultdict(list)
    for criterion in criteria:
        metrics[criterion.metric].append(criterion)
    leaf: dict[str, list[Any]] = {}
    for metric, held in metrics.items():
        usual = [each for each in held if each.statistic is None] or held
        campaigns = {name for each in usual for name in each.campaigns or ("",)}
        limits = [
            [
                each.limit
                for each in usual
                if each.holds_in(name) and each.limit is not None
            ]
            for name in campaigns
        ]
        if held[0].direction == "higher":
            leaf[metric] = [_number(min(map(max, limits))), 0, None, held[0].unit]
        else:
            leaf[metric] = [_number(max(map(min, limits))), None, 0, held[0].unit]
    return leaf


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _branches(
    check: CheckClass, key: str, criteria: Sequence[Criterion]
) -> Iterator[tuple[Any, list[Criterion]]]:
    """Split criteria by one key of a case; each branch has all that hold there."""
    asked = [criterion.where.get(key, _ANY) for criterion in criteria]

    def held(fits: Iterable[bool]) -> list[Criterion]:
        return [each for each, fit in zip(criteria, fits, strict=True) if fit]

    for value in _values(check, key, asked):
        branches = held(each is _ANY or matches(each, value) for each in asked)
        if branches:
            yield value, branches
    patterns = {each for each in asked if isinstance(each, str) and not _plain(each)}
    if len(patterns) > _MOST_PATTERNS:
        raise SeatrialError(
            f"{CRITERIA_FILE}: where of {check.name} has {len(patterns)} patterns for "
            f"{key}; expected at most {_MOST_PATTERNS}, or names"
        )
    for chosen in _overlaps(patterns):
        yield _all_of(chosen), held(each is _ANY or each in chosen for each in asked)
    if _ANY in asked and _ANY_TEXT not in patterns:
        yield _ANY_TEXT, held(each is _ANY for each in asked)


def _values(check: CheckClass, key: str, asked: Sequence[Any]) -> list[Any]:
    """Return the values that need branches of their own.

    ReFrame has no pattern for a number: where some criteria ask for one and others
    for none, all numbers are listed. (Of nodes there is any number: see
    SeatrialCheck.)
    """
    values = [each for each in asked if isinstance(each, str) and _plain(each)]
    values += [each for each in asked if each is not _ANY and not isinstance(each, str)]
    if _ANY in asked and key in check.parameters:
        known = check.parameters[key]
        if known is None:
            raise SeatrialError(
                f"{CRITERIA_FILE}: some criteria of {check.name} ask for {key}, others "
                "do not, and its values are not written in the check; expected it in "
                "the where of all or of none"
            )
        values += [each for each in known if not isinstance(each, str)]
    return list(dict.fromkeys(values))


def _plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None


def _overlaps(patterns: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Return all sets of patterns that one text may fit, the largest first.

    A text fits exactly those of the first set all of which it fits.
    """
    ordered = sorted(patterns)
    for size in range(len(ordered), 0, -1):
        for chosen in combinations(ordered, size):
            apart = any(_disjoint(*pair) for pair in combinations(chosen, 2))
            implied = {
                other for other in ordered for each in chosen if _within(each, other)
            }
            if not apart and implied <= {*chosen}:
                yield chosen


def _all_of(patterns: Sequence[str]) -> str:
    """Write the one pattern of the texts that fit all of some patterns."""
    needed = [
        pattern
        for pattern in patterns
        if not any(_within(other, pattern) for other in patterns if other != pattern)
    ]
    *before, last = needed
    if not before and "|" not in last:
        return last
    return "".join(f"(?=(?:{each})$)" for each in before) + f"(?:{last})"


def _prefix(pattern: str) -> str:
    """Return the literal text at the start of a pattern."""
    match = _PLAIN.match(pattern)
    if match is None or "|" in pattern:
        return ""
    text, rest = match[0], pattern[match.end() :]
    return text[:-1] if rest[:1] in ("*", "?", "{") else text


def _disjoint(one: str, other: str) -> bool:
    one, other = _prefix(one), _prefix(other)
    return not one.startswith(other) and not other.startswith(one)


def _within(special: str, general: str) -> bool:
    """Return True if texts that fit one pattern surely fit the other."""
    return general == _prefix(general) + _ANY_TEXT and _prefix(special).startswith(
        _prefix(general)
    )
