"""Parsers on damaged output return the right numbers, or raise ParseError.

A flipped digit cannot be noticed in general, so these are the kinds of damage that a
parser is held to (`damaged_outputs` has the outputs):

- cut at any byte, without its beginning or without its end;
- twice in one file, or after another one that was killed anywhere;
- lines lost, repeated, and in another order;
- the lines of two runs mixed, or their pieces, cut anywhere and put together in turns;
- characters that belong to no number put in anywhere, and spaces and line breaks too,
  but not before or after a whole number of a row (which stays one);
- nan, inf, nothing, absurd values, and negative ones in the place of any number (but
  the sign of an energy);
- fields of a row lost;
- digits lost where the program prints a number twice: right within the rounding.

After any other damage there may be other numbers, but no other exception.
"""

from collections.abc import Callable
from typing import Any

import pytest
from damaged_outputs import OUTPUTS, Output, are_near
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.parsers.errors import ParseError

PLACE = st.integers(0, 2**20)
"""A place in a text of any length, which is much less than this: take the rest."""

NO_NUMBER = st.text(
    "#xyzXYZN/|:;=!?%()[]{}\"'\\@~^*<>&$`_\0\x7fäλ٣", min_size=1, max_size=8
)
ABSURD = (
    "nan",
    "-nan",
    "inf",
    "-inf",
    "NaN",
    "Infinity",
    "",
    "1e300",
    "-1e300",
    "1e999",
)


def repeated(examples: int) -> Callable[[Any], Any]:
    """So many examples, the same in every run."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.differing_executors],
    )


@pytest.fixture(params=OUTPUTS, scope="module")
def output(request: pytest.FixtureRequest) -> Output:
    return OUTPUTS[request.param]


def refused(output: Output, text: str) -> ParseError | None:
    """Parse; None if the numbers are right."""
    found = parsed(output, text)
    if isinstance(found, ParseError):
        return found
    assert found == output.right
    return None


def parsed(output: Output, text: str) -> Any:
    """Return the numbers, or the ParseError with its line and reason."""
    try:
        return output.numbers(text)
    except ParseError as error:
        assert error.reason
        assert 0 <= error.line <= text.count("\n") + 2
        return error


def test_whole_output_is_right(output: Output) -> None:
    assert refused(output, output.text) is None


@repeated(30)
@given(end=PLACE)
def test_cut_anywhere(output: Output, end: int) -> None:
    refused(output, output.text[: end % len(output.text)])


def test_cut_before_and_after_every_line_break(output: Output) -> None:
    end = 0
    for line in output.lines[:-1]:
        end += len(line)
        refused(output, output.text[: end - 1])
        refused(output, output.text[:end])


@repeated(15)
@given(start=PLACE)
def test_without_a_beginning(output: Output, start: int) -> None:
    refused(output, output.text[start % len(output.text) :])


@repeated(15)
@given(end=PLACE)
def test_after_one_that_was_killed(output: Output, end: int) -> None:
    refused(output, output.text[: end % len(output.text)] + output.text)


def test_twice_is_refused(output: Output) -> None:
    assert refused(output, output.text + output.text) is not None


@repeated(15)
@given(first=PLACE, count=st.integers(1, 40))
def test_lines_lost(output: Output, first: int, count: int) -> None:
    lines = output.lines
    first %= len(lines)
    refused(output, "".join(lines[:first] + lines[first + count :]))


@repeated(20)
@given(first=PLACE)
def test_one_line_lost(output: Output, first: int) -> None:
    first %= len(output.lines)
    refused(output, "".join(output.lines[:first] + output.lines[first + 1 :]))


@repeated(20)
@given(line=PLACE, place=PLACE)
def test_line_repeated_elsewhere(output: Output, line: int, place: int) -> None:
    lines = list(output.lines)
    lines.insert(place % (len(lines) + 1), lines[line % len(lines)])
    refused(output, "".join(lines))


@repeated(20)
@given(moves=st.lists(st.tuples(PLACE, PLACE), min_size=1, max_size=6))
def test_lines_shuffled(output: Output, moves: list[tuple[int, int]]) -> None:
    lines = list(output.lines)
    for source, destination in moves:
        line = lines.pop(source % len(lines))
        lines.insert(destination % (len(lines) + 1), line)
    refused(output, "".join(lines))


@repeated(8)
@given(turns=st.randoms(use_true_random=False))
def test_all_lines_shuffled(output: Output, turns: Any) -> None:
    lines = list(output.lines)
    turns.shuffle(lines)
    refused(output, "".join(lines))


def another(output: Output) -> str:
    """The output of a second run, with other decimals."""
    text = list(output.text)
    for start, end in output.places:
        for at in range(start + 2, end):
            if text[at].isdigit() and text[at - 1] in ".123456789":
                text[at] = str((int(text[at]) + 1) % 10)
    return "".join(text)


@repeated(12)
@given(turns=st.lists(st.integers(1, 30), min_size=2, max_size=12), end=PLACE)
def test_lines_of_two_runs_mixed(output: Output, turns: list[int], end: int) -> None:
    """The second run gets to any of its lines; the first one, to its end."""
    mine, others = list(output.lines), another(output).splitlines(keepends=True)
    others = others[: end % len(others) + 1]
    mixed: list[str] = []
    for turn, count in enumerate(turns):
        source = others if turn % 2 else mine
        mixed += source[:count]
        del source[:count]
    refused(output, "".join(mixed + others + mine))


@repeated(12)
@given(turns=st.lists(st.integers(1, 400), min_size=2, max_size=12))
def test_pieces_of_two_runs_mixed(output: Output, turns: list[int]) -> None:
    """All numbers are of one of the two, which no piece interrupts, or none."""
    other = another(output)
    mine, others = output.text, other
    mixed = ""
    for turn, count in enumerate(turns):
        if turn % 2:
            mixed, others = mixed + others[:count], others[count:]
        else:
            mixed, mine = mixed + mine[:count], mine[count:]
    found = parsed(output, mixed + others + mine)
    if not isinstance(found, ParseError):
        assert found in (output.right, parsed(output, other))


@repeated(30)
@given(place=PLACE, noise=NO_NUMBER)
def test_characters_of_no_number_put_in(output: Output, place: int, noise: str) -> None:
    place %= len(output.text) + 1
    refused(output, output.text[:place] + noise + output.text[place:])


@repeated(30)
@given(number=PLACE, inside=PLACE, noise=NO_NUMBER | st.sampled_from([" ", "\n", "\t"]))
def test_numbers_broken(output: Output, number: int, inside: int, noise: str) -> None:
    start, end = output.places[number % len(output.places)]
    if end - start > 1:
        place = start + 1 + inside % (end - start - 1)
        refused(output, output.text[:place] + noise + output.text[place:])


@repeated(30)
@given(number=PLACE, value=st.sampled_from(ABSURD))
def test_absurd_values_put_in(output: Output, number: int, value: str) -> None:
    start, end = output.places[number % len(output.places)]
    refused(output, output.text[:start] + value + output.text[end:])


@repeated(20)
@given(number=PLACE)
def test_negative_values_put_in(output: Output, number: int) -> None:
    start, _ = output.places[number % len(output.places)]
    if not output.signed and output.text[start] != "-":
        refused(output, f"{output.text[:start]}-{output.text[start:]}")


@repeated(30)
@given(line=PLACE, field=PLACE)
def test_field_of_a_line_lost(output: Output, line: int, field: int) -> None:
    lines = list(output.lines)
    line %= len(lines)
    words = lines[line].split()
    if words:
        del words[field % len(words)]
        lines[line] = " ".join(words) + "\n"
        refused(output, "".join(lines))


@pytest.mark.parametrize(
    "output",
    [name for name, each in OUTPUTS.items() if each.digits_printed_twice],
    indirect=True,
)
@repeated(30)
@given(place=PLACE)
def test_digit_lost_of_a_number_that_is_printed_twice(
    output: Output, place: int
) -> None:
    at = output.digits_printed_twice[place % len(output.digits_printed_twice)]
    try:
        found = output.numbers(output.text[:at] + output.text[at + 1 :])
    except ParseError:
        return
    assert are_near(found, output.right, output.rounding)


@repeated(30)
@given(changes=st.lists(st.tuples(PLACE, st.characters()), min_size=1, max_size=8))
def test_any_damage_raises_no_other_error(
    output: Output, changes: list[tuple[int, str]]
) -> None:
    text = list(output.text)
    for place, character in changes:
        text[place % len(text)] = character
    try:
        output.numbers("".join(text))
    except ParseError as error:
        assert error.reason


@repeated(20)
@given(text=st.text(max_size=200))
def test_any_text_is_refused(output: Output, text: str) -> None:
    assert refused(output, text) is not None
