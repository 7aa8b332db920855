"""What a paper states of two systems, beside what follows from its numbers.

Shares become ratios by the definitions of `seatrial.model.derived`: an improvement by
20 % is 1 / 0.8 = 1.25 times better for a time, and 1.2 times better for a rate. A share
that a paper does not define is not turned into a ratio.
"""

from collections.abc import Sequence
from itertools import permutations

from seatrial.compare.published_sides import published_key, usable
from seatrial.compare.records import Claim
from seatrial.compare.sides import Entrant
from seatrial.criteria.published import Published
from seatrial.criteria.published_numbers import Number
from seatrial.model.derived import factor, improvement
from seatrial.model.metrics import Direction, flat_name

_VAGUE = 0.01
"""How far "about", "almost" and the like are taken to reach, as a share."""


def claims(entrants: Sequence[Entrant], published: Published) -> tuple[Claim, ...]:
    """Return every statement about two of the published sides, in either order."""
    known = [entrant for entrant in entrants if entrant.system is not None]
    return tuple(
        _claim(number, first, second, published)
        for first, second in permutations(known, 2)
        for number in published.compare(first.side.source, second.side.source)
    )


def _claim(number: Number, one: Entrant, other: Entrant, published: Published) -> Claim:
    operands = _operands(number, one, other, published)
    computed = None
    if operands is not None:
        new, old = (operand.sound_value() for operand in operands)
        computed = factor(new, old, number.direction)
    return Claim(
        paper=number.paper,
        place=number.place,
        experiment=number.experiment or "",
        what=number.what,
        metric=flat_name(number.metric, number.size_bytes),
        size=number.size or "",
        side=one.side.name,
        baseline=other.side.name,
        qualifier=number.qualifier or "",
        stated=stated_ratio(number),
        computed=computed,
        words=_words(number),
        agrees=None if operands is None else _agrees(number, *operands),
        conflict=number.conflict or "",
    )


def stated_ratio(number: Number) -> float | None:
    """Turn what a paper states into how many times better the system is."""
    if number.value is None:
        return None
    if number.unit == "1":
        return number.value
    if number.derived != "improvement":
        return None
    return improvement_ratio(number.value, number.direction)


def improvement_ratio(percent: float, direction: Direction) -> float:
    """Return the factor of an improvement in %: the inverse of `derived.improvement`.

    ValueError for a time that is to be shorter by 100 % or more.
    """
    if direction == "higher":
        return 1 + percent / 100
    if percent >= 100:
        raise ValueError(f"a time cannot be {percent:g} % shorter, expected below 100")
    return 1 / (1 - percent / 100)


def _operands(
    number: Number, one: Entrant, other: Entrant, published: Published
) -> tuple[Number, Number] | None:
    """Find the two numbers that a statement follows from, if the paper gives both."""
    if number.kind != "ratio":
        return None
    sides = ((one.side.source,), (other.side.source,))
    if number.operands and (number.systems, number.baselines) == sides:
        new, old = published.operands(number)
        return new, old
    key = published_key(number)
    operands = [
        [own for own in usable(side).values() if published_key(own) == key]
        for side in (one, other)
    ]
    if any(len(fitting) != 1 for fitting in operands):
        return None
    return operands[0][0], operands[1][0]


def _agrees(number: Number, new: Number, old: Number) -> bool | None:
    """Return True if a statement fits its numbers, in its own unit.

    Its last digit may be rounded, and each vague word at it or at its numbers is worth
    `_VAGUE`; "up to" bounds from above, "more than" from below.
    """
    if number.value is None or number.derived not in ("improvement", "factor"):
        return None
    compute = improvement if number.unit == "%" else factor
    gain = compute(new.sound_value(), old.sound_value(), number.direction)
    unit = 100.0 if number.unit == "%" else number.value
    words = sum(
        term.qualifier in ("about", "almost", "up to") for term in (number, new, old)
    )
    slack = rounding(number.value) + _VAGUE * unit * words
    if number.qualifier in ("up to", "less than"):
        return gain <= number.value + slack
    if number.qualifier == "more than":
        return gain >= number.value - slack
    return abs(gain - number.value) <= slack


def rounding(value: float) -> float:
    """Return half the last digit that a paper prints."""
    digits = f"{value:g}".partition(".")[2]
    return float(0.5 * 10 ** -len(digits))


def _words(number: Number) -> str:
    """Return the paper's sentence, or its number, with its note."""
    words = number.sentence
    if words is None and number.value is not None:
        unit = "%" if number.unit == "%" else "times"
        words = " ".join(filter(None, [number.qualifier, f"{number.value:g} {unit}"]))
    return " ".join(filter(None, [words, number.note and f"({number.note})"]))
