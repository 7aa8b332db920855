"""Compare sides: pair their numbers, score them, rank them.

Everything follows from the sides and the weights; the same input gives the same
comparison, on any machine.
"""

import operator
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from seatrial.compare.allocations import allocations
from seatrial.compare.disqualification import against, bars, lacking, not_ranked_by
from seatrial.compare.pairing import Floats, Paired, paired
from seatrial.compare.paper_claims import claims
from seatrial.compare.published_sides import add_published, left_out
from seatrial.compare.ranking import Rules, ranked
from seatrial.compare.ratios import (
    between,
    marked,
    number_differences,
    ratios_of,
    score_ratio,
    scores,
    serial_correlation,
)
from seatrial.compare.records import (
    Comparison,
    GroupScore,
    PairedNumber,
    Side,
)
from seatrial.compare.sides import Entrant, require_comparable
from seatrial.compare.unpaired import Unmatched, faults
from seatrial.compare.weight_shares import Grouping, grouped, shares
from seatrial.criteria.published import Published
from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 1


def compare(
    entrants: Sequence[Entrant],
    weights: Weights | None = None,
    *,
    published: Published | None = None,
    experiments: Mapping[str, Collection[str]] | None = None,
    confidence: float = CONFIDENCE,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compare two sides or more; the first is the baseline.

    `published` are the papers, for what they claim of sides that they describe;
    `experiments` are those of each check, by which a run is put beside a paper. `notes`
    are kept. Raises SeatrialError if the sides cannot be compared: different campaigns
    or units, no number that all have, or weights that fit none.
    """
    require_comparable(entrants)
    numbers = paired(allocations(entrants), len(entrants))
    alone = add_published(numbers, entrants, experiments or {})
    grouping = grouped(numbers.keys, numbers.values, weights)
    parts, whole = _weights_of_numbers(numbers, grouping)
    _require_numbers(whole, weights, numbers, entrants)
    unmatched = Unmatched(entrants, numbers, grouping)
    unpaired = (*unmatched.found(), *alone)
    sides = tuple(entrant.side for entrant in entrants)
    rules = Rules(
        rank_by=weights.rank_by if weights else "performance",
        margin=weights.margin if weights else 0.0,
        confidence=confidence,
        resamples=RESAMPLES,
        seed=SEED,
        correlation=serial_correlation(numbers, whole),
    )
    rho = rules.correlation.used
    frozen = _frozen(sides, weights)
    _note_repeats(numbers, sides, sparse := unmatched.sparse())
    ranking = ranked(
        sides,
        scores(numbers, whole, rho),
        rules,
        bars=_bars(numbers, sides, sparse, whole),
        lacking=[lacking(at, grouping, unpaired) for at in range(len(sides))],
        against=against(sides, weights, frozen, grouping),
    )
    return Comparison(
        sides=sides,
        numbers=_records(numbers, grouping, whole, rules),
        claims=claims(entrants, published) if published else (),
        unpaired=unpaired,
        groups=_groups(numbers, grouping, parts, rules),
        weights=weights.name if weights else "",
        weights_sha256=weights.sha256 if weights else "",
        frozen=frozen,
        **vars(rules),
        **vars(ranking),
        notes=(*notes, *_notes(entrants, rules)),
    )


def _frozen(sides: Sequence[Side], weights: Weights | None) -> bool:
    """Return True if every run recorded these weights before it measured."""
    runs = [side for side in sides if not side.published]
    return weights is not None and all(
        side.weights_sha256 == weights.sha256 for side in runs
    )


def _bars(
    numbers: Paired,
    sides: Sequence[Side],
    sparse: Sequence[Mapping[int, str]],
    whole: Floats,
) -> list[str]:
    """Return for each side why it cannot win, independent of its score."""
    return [
        bars(side, [(numbers.keys[row], few[row]) for row in few if whole[row] > 0])
        for side, few in zip(sides, sparse, strict=True)
    ]


def _notes(entrants: Sequence[Entrant], rules: Rules) -> list[str]:
    """Note faults of runs, numbers that are left out, and unused prices and powers."""
    sides = [entrant.side for entrant in entrants]
    notes = [*filter(None, map(faults, entrants)), *left_out(entrants)]
    return notes + not_ranked_by(sides, rules.rank_by)


def _note_repeats(
    numbers: Paired, sides: Sequence[Side], sparse: Sequence[Mapping[int, str]]
) -> None:
    """Note numbers without all repeats: the score is of the others only."""
    for side, known in zip(sides, sparse, strict=True):
        for row, text in known.items():
            numbers.add_note(row, f"{side.name}: {text}")


def _require_numbers(
    whole: Floats, weights: Weights | None, numbers: Paired, entrants: Sequence[Entrant]
) -> None:
    """Raise SeatrialError unless a number that all sides have counts."""
    if weights is not None and all(entrant.run is None for entrant in entrants):
        raise SeatrialError(
            f"weights {weights.name} choose numbers of checks; published systems have "
            "none: compare them without weights"
        )
    if not numbers.on_all.any():
        raise SeatrialError(
            f"no number that all sides have: {_contents(numbers, entrants)}; "
            "expected the same check, parameters, environment, number of nodes, metric "
            "and size; RUN@ENVIRONMENT compares different environments"
        )
    if not whole.any():
        raise SeatrialError(
            f"weights {weights.name if weights else ''} choose no number that all "
            f"sides have; {_contents(numbers, entrants)}"
        )


def _contents(numbers: Paired, entrants: Sequence[Entrant]) -> str:
    """Name the checks and environments of each side."""
    notes = []
    for side, entrant in enumerate(entrants):
        if entrant.run is None:
            notes.append(f"{entrant.side.name} has what its paper measured")
            continue
        there = np.flatnonzero(numbers.there[:, side]).tolist()
        checks = sorted({numbers.keys[row].check for row in there})
        stacks = {stack for row in there for stack in numbers.values[row]["$environ"]}
        nodes = {n for row in there for n in numbers.values[row]["num_nodes"]}
        notes.append(
            f"{entrant.side.name} has {_few(checks) or 'no numbers'}"
            + (f" with {_few(sorted(stacks))}" if stacks - {""} else "")
            + (f" on {_few([str(n) for n in sorted(nodes)])} nodes" if nodes else "")
        )
    return "; ".join(notes)


def _few(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _weights_of_numbers(
    numbers: Paired, grouping: Grouping
) -> tuple[list[Floats], Floats]:
    """Return the shares of numbers in their groups, and in the whole.

    Only numbers that all sides have count; a group without any has no part in the
    whole.
    """
    common = numbers.on_all
    own: list[list[int]] = [[] for _ in grouping.groups]
    for row, group in enumerate(grouping.of_number):
        if group >= 0 and common[row]:
            own[group].append(row)
    parts = [shares(numbers.keys, rows) for rows in own]
    weighted = map(operator.mul, grouping.weights(), parts)
    whole = np.asarray(sum(weighted, np.zeros(len(numbers.keys))))
    total = whole.sum()
    return parts, whole / total if total > 0 else whole


def _records(
    numbers: Paired, grouping: Grouping, whole: Floats, rules: Rules
) -> tuple[PairedNumber, ...]:
    """Write the numbers that at least two sides have."""
    differences = number_differences(numbers, rules.correlation.used)
    ratios = ratios_of(differences, rules.confidence)
    flags = marked(differences)
    words = np.where(flags, np.where(differences.value > 0, "better", "worse"), "")
    there = numbers.there
    values = np.exp(numbers.means).tolist()
    marks, counts, weights = words.tolist(), numbers.counts.tolist(), whole.tolist()
    names = [group.name for group in grouping.groups]
    records = []
    for row in np.flatnonzero(there.sum(axis=1) > 1).tolist():
        key, group = numbers.keys[row], grouping.of_number[row]
        records.append(
            PairedNumber(
                **vars(key),
                unit=numbers.units[row],
                direction=numbers.directions[row],
                group=names[group] if group >= 0 else "",
                weight=weights[row],
                values=tuple(
                    value if known else None
                    for value, known in zip(values[row], there[row], strict=True)
                ),
                n=tuple(counts[row]),
                ratios=tuple(ratios[row]),
                marks=tuple(marks[row]),
                note=numbers.notes.get(row, ""),
            )
        )
    return tuple(records)


def _groups(
    numbers: Paired, grouping: Grouping, parts: Sequence[Floats], rules: Rules
) -> tuple[GroupScore, ...]:
    """Score each group by itself; one without a common number has no ratios."""
    groups = []
    for group, weight, part in zip(
        grouping.groups, grouping.weights().tolist(), parts, strict=True
    ):
        count = int((part > 0).sum())
        first, *rest = scores(numbers, part, rules.correlation.used)
        ratios = [
            score_ratio(between(score, first), rules.confidence) if count else None
            for score in rest
        ]
        groups.append(GroupScore(group.name, weight, count, (None, *ratios)))
    return tuple(groups)
