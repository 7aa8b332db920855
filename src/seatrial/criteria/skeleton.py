"""A first criteria.yaml of a system: every metric of some checks, without limits yet.

The schema wants a number for each limit. These are of kind `measured` with a
fingerprint that no run has: the judge leaves them undecided until limits are stated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.model.metrics import METRICS, Metric, split_flat_name

_OPEN = {"higher": "1e-9", "lower": "1e+9"}
"""Limits that every number meets, by the direction of a metric."""

_CERTAIN = {
    **{"pairs_answered": 100, "programs_passed": 100},
    **{"throttle_events": 0, "quota_stops": 0, "ecc_uncorrected": 0},
}
"""Limits that need no contract, by metric."""

_HEADING = """\
# Criteria of {system} for the campaign {campaign}: every metric of its checks, for each
# class of nodes and MPI stack, written by `seatrial new system`.
#
# No limit of performance is stated yet: these numbers are undecided in reports. Replace
# the limits 1e-9 and 1e+9 by those of
# - the contract: `kind: promised`, with `document` and `clause`, or
# - this machine: `seatrial references measure RUN` prints criteria of a run.
# docs/criteria.md explains all keys.
schema: 1
risks: {{seller: 0.05, buyer: 0.05, discovery: 0.1}}
defaults:
  kind: measured
  run: none yet
  fingerprint: {{limit: not stated yet}} # no run has it, so that nothing is decided
  model: lognormal
  cap: 20 # the most repeats that are agreed on
  # Who bears the burden of proof if these repeats decide nothing (verdict "not shown")?
  # seller: the machine is not accepted (exit status 1). buyer: it is not refused (3).
  bears: seller
criteria:
# - kind: declared # settings as hardware.yml declares them, see docs/hardware.md
# - kind: fabric # cables as the plan has them, see docs/fabric.md
"""


@dataclass(frozen=True)
class Metrics:
    """The metrics that a check judges, and those that some nodes do not offer.

    The keys are their flat names.
    """

    check: str
    question: str
    judged: Mapping[str, Metric]
    optional: Mapping[str, Metric]


def metrics_of(
    described: Iterable[Mapping[str, Any]],
    checks: Sequence[str],
    known: Mapping[str, Metric] = METRICS,
) -> list[Metrics]:
    """Return the metrics of checks, in their order, from `describe_checks`."""
    cases: dict[str, list[Mapping[str, Any]]] = {check: [] for check in checks}
    for case in described:
        cases.get(case["@class"], []).append(case)
    return [
        Metrics(
            check,
            " ".join(str(own[0]["question"]).split()),
            _metrics(own, "judged", known),
            _metrics(own, "judged_if_there", known),
        )
        for check, own in cases.items()
        if own
    ]


def _metrics(
    cases: Sequence[Mapping[str, Any]], key: str, known: Mapping[str, Metric]
) -> dict[str, Metric]:
    flats = (flat for case in cases for flat in case.get(key) or ())
    return {flat: split_flat_name(flat, known)[0] for flat in flats}


def skeleton(
    system: str,
    campaign: str,
    checks: Sequence[Metrics],
    classes: Sequence[str],
    stacks: Sequence[str],
) -> str:
    """Return the text of criteria.yaml, which names every metric of the checks."""
    lines = [_HEADING.format(system=system, campaign=campaign).rstrip("\n")]
    for metrics in checks:
        lines += ["", f"  # {metrics.question}"]
        lines += _certain(metrics.check, metrics.judged, optional=False)
        lines += _certain(metrics.check, metrics.optional, optional=True)
        for name in classes:
            for stack in stacks or ("",):
                where = f"$partition: '{system}:{name}'"
                where += f", $environ: {stack}" if stack else ""
                lines += _open(metrics.check, where, metrics.judged, optional=False)
                lines += _open(metrics.check, where, metrics.optional, optional=True)
    return "\n".join([*lines, ""])


def _certain(
    check: str, metrics: Mapping[str, Metric], *, optional: bool
) -> Iterator[str]:
    """Yield criteria of the metrics with a limit that needs no contract."""
    for flat, metric in metrics.items():
        limit = _CERTAIN.get(metric.name)
        if limit is not None:
            yield f"  - check: {check}"
            yield "    kind: theoretical"
            yield f"    formula: {limit}"
            yield "    model: every"
            yield from ["    optional: true # not every node has it"] * optional
            yield f"    metrics: [{flat}]"


def _open(
    check: str, where: str, metrics: Mapping[str, Metric], *, optional: bool
) -> Iterator[str]:
    """Yield a criterion of the other metrics on some cases."""
    kept = {f: metric for f, metric in metrics.items() if metric.name not in _CERTAIN}
    if not kept:
        return
    yield f"  - check: {check}"
    yield f"    where: {{{where}}}"
    yield from ["    optional: true # not every node has it"] * optional
    yield "    limits:"
    for flat, metric in kept.items():
        yield f"      {flat}: {_OPEN[metric.direction]} {metric.unit}"
