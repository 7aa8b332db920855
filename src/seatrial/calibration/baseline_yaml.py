"""Measured references as criteria, in the words of criteria.yaml."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import yaml

from seatrial.calibration.baselines import Claim, Reference, Refusal
from seatrial.model.cases import parameters_of
from seatrial.paths import CRITERIA_FILE

_DIGITS = 4
"""Significant digits of a limit, rounded to the tolerant side."""

_CHOSEN = ("tuning", "placement")
"""Parameters that a case has, though its name does not tell them."""

_METHODS = {
    "any": "tolerance bound by order statistics of each place, the worst of all",
    "normal": "tolerance bound of the worst place by the noncentral t",
    "lognormal": "tolerance bound of the worst place by the noncentral t, on logs",
}


def criteria_text(
    references: Sequence[Reference],
    refused: Sequence[Refusal],
    claim: Claim,
    *,
    runs: Sequence[str],
    system: str,
    configuration: Mapping[str, str],
    who: str,
    day: date,
) -> str:
    """Write criteria of kind measured, as list items of criteria.yaml.

    Metrics of a case with as many allocations share a criterion. What was refused is
    told in comments.
    """
    file = f"reference-data/{system}/{CRITERIA_FILE}"
    lines = [
        f"# Measured on {system}: {claim}.",
        f"# Review these, then move them below `criteria:` of {file}.",
        *(f"# No reference for {each.history}: {each.reason}." for each in refused),
    ]
    groups: dict[Any, list[Reference]] = defaultdict(list)
    for reference in references:
        key = (
            reference.history.key,
            reference.history.num_nodes,
            reference.n,
            reference.aside,
        )
        groups[key].append(reference)
    for group in groups.values():
        first = group[0]
        criterion = {
            "check": first.history.key.check,
            "kind": "measured",
            "model": claim.model,
            "where": _where(first),
            "run": ", ".join(runs),
            "fingerprint": dict(configuration),
            "coverage": claim.coverage,
            "confidence": claim.confidence,
            "n": first.n,
            "who": who,
            "date": day,
            "method": _method(first, claim),
        }
        for number, (name, value) in enumerate(criterion.items()):
            lines.append(f"{'  ' if number else '- '}{name}: {_flow(value)}")
        lines += ["  limits:", *_limits(group, claim.model)]
    return "\n".join(lines) + "\n"


def _where(reference: Reference) -> dict[str, Any]:
    """Choose exactly the case that was measured."""
    key, own = reference.history.key, reference.history.parameters
    names = [name for name in own if name in (*parameters_of(key.case), *_CHOSEN)]
    where = {
        "$partition": key.partition,
        "$environ": key.environment,
        "num_nodes": reference.history.num_nodes,
        **{name: own[name] for name in names},
    }
    return {
        name: _exactly(value) if isinstance(value, str) else value
        for name, value in where.items()
        if type(value) in (str, int, float, bool)
    }


def _exactly(text: str) -> str:
    """Write a text so that as a pattern it fits itself."""
    try:
        fits = re.fullmatch(text, text) is not None
    except re.error:
        fits = False
    return text if fits else re.escape(text)


def _method(reference: Reference, claim: Claim) -> str:
    aside = ", ".join(reference.aside)
    return _METHODS[claim.model] + (
        f"; set aside as outliers: {aside}" if aside else ""
    )


def _limits(group: Sequence[Reference], model: str) -> Iterator[str]:
    for each in group:
        history = each.history
        limit = _outwards(each.limit, history.direction)
        yield (
            f"    {history.metric}: {_flow(f'{limit} {history.unit}')}"
            f" # typical {each.typical:.4g}, {_scatter(each, model)}"
        )


def _scatter(reference: Reference, model: str) -> str:
    """Return the scatter of one place's numbers, relative to the typical one."""
    scale = 1.0 if model == "lognormal" else abs(reference.typical)
    return f"allocations scatter by {100 * reference.spread.within / scale:.2g} %"


def _outwards(limit: float, direction: str) -> str:
    """Round a limit so that it becomes no stricter."""
    rounding = ROUND_FLOOR if direction == "higher" else ROUND_CEILING
    rounded = Context(prec=_DIGITS, rounding=rounding).create_decimal(Decimal(limit))
    return f"{float(rounded):.12g}"


def _flow(value: Any) -> str:
    """Write a value in one line of YAML."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**9, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")
