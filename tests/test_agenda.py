"""The agenda of a run: blocks cut, ordered, repeated, with controls in between."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seatrial.campaign.campaign_file import Block, Campaign
from seatrial.campaign.schedule import Agenda, frozen, plan_sessions, read_agenda
from seatrial.campaign.selected_cases import select
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.system.description import NodeClass

LISTED = tuple(
    ListedCase(case, "lab:batch", environment)
    for case in ("Echo %x=1", "Echo %x=2", "Echo %x=10", "Ring", "Sum %kind=a b %n=2")
    for environment in ("openmpi", "mpich")
)
CAMPAIGN = Campaign(
    name="c",
    description="",
    repeats=2,
    blocks=(
        Block("one", ("Echo", "Gpu")),
        Block("two", ("Ring",), {"pause": 1}),
        Block("three", ("Sum",)),
    ),
)
MISSING = {"Gpu": "no GPU"}


def names(campaign: Campaign) -> list[str]:
    return [each.name for each in plan_sessions(campaign, LISTED, MISSING)]


def test_repeats_take_turns() -> None:
    assert names(CAMPAIGN) == [
        *("one-1", "two-1", "three-1"),
        *("one-2", "two-2", "three-2"),
    ]


def test_a_session_has_cases_variables_and_what_is_missing() -> None:
    one, two, *_ = plan_sessions(CAMPAIGN, LISTED, MISSING)
    assert [str(case) for case in one.cases] == [
        f"Echo %x={x} @lab:batch+{environment}"
        for x in (1, 2, 10)
        for environment in ("openmpi", "mpich")
    ]
    assert one.missing == MISSING
    assert (two.variables, two.checks, two.missing) == ({"pause": 1}, ("Ring",), {})


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, {"one.1-1": [1], "one.2-1": [2], "one.3-1": [10]}),
        (2, {"one.1-1": [1, 2], "one.2-1": [10]}),
        (3, {"one-1": [1, 2, 10]}),
    ],
)
def test_blocks_are_cut_between_checks(
    size: int, expected: dict[str, list[int]]
) -> None:
    campaign = replace(CAMPAIGN, repeats=1, block_size=size)
    planned = plan_sessions(campaign, LISTED, MISSING)
    parts = [each for each in planned if each.block == "one"]
    assert {
        part.name: list(dict.fromkeys(int(c.parameters["x"]) for c in part.cases))
        for part in parts
    } == expected
    assert all(len(part.cases) % 2 == 0 for part in parts), "both MPIs, side by side"
    assert [part.missing for part in parts if part.missing] == [MISSING]


def test_a_block_without_any_case_is_a_session_all_the_same() -> None:
    campaign = replace(CAMPAIGN, repeats=1, blocks=(Block("gpu", ("Gpu",)),))
    (only,) = plan_sessions(campaign, LISTED, MISSING)
    assert (only.name, only.cases, only.missing) == ("gpu-1", (), MISSING)


def test_shuffled_blocks_depend_on_the_seed_alone() -> None:
    shuffled = replace(CAMPAIGN, repeats=8, order="shuffled", seed=3)
    order = names(shuffled)
    assert order == names(shuffled)
    repeats = [order[i : i + 3] for i in range(0, len(order), 3)]
    for number, repeat in enumerate(repeats, 1):
        assert sorted(repeat) == [f"{b}-{number}" for b in ("one", "three", "two")]
    assert len({tuple(n.split("-")[0] for n in repeat) for repeat in repeats}) > 1
    assert order != names(replace(shuffled, seed=4))


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (4, "c-1 one-1 two-1 three-1 one-2 c-2 two-2 three-2 c-3"),
        (3, "c-1 one-1 two-1 three-1 c-2 one-2 two-2 three-2 c-3"),
        (99, "c-1 one-1 two-1 three-1 one-2 two-2 three-2 c-2"),
    ],
)
def test_controls_are_first_in_between_and_last(every: int, expected: str) -> None:
    campaign = replace(CAMPAIGN, controls=Block("c", ("Ring",)), controls_every=every)
    assert " ".join(names(campaign)) == expected
    planned = plan_sessions(campaign, LISTED, MISSING)
    controls = [each for each in planned if each.block == "c"]
    assert [each.repeat for each in controls] == list(range(1, len(controls) + 1))


def test_parameters_choose_among_the_cases_of_a_check() -> None:
    block = Block("b", ("Echo", "Sum"), {}, {"Echo": {"x": ("1", "10")}})
    (only,) = plan_sessions(replace(CAMPAIGN, repeats=1, blocks=(block,)), LISTED, {})
    assert {case.case for case in only.cases} == {
        "Echo %x=1",
        "Echo %x=10",
        "Sum %kind=a b %n=2",
    }


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"x": ("1", "3")}, "no case of Echo with x=3; its values here: 1, 10, 2"),
        ({"y": ("1",)}, "no case of Echo with y=1; its values here: none"),
    ],
)
def test_a_parameter_that_no_case_has_is_refused(
    chosen: dict[str, tuple[str, ...]], expected: str
) -> None:
    block = Block("b", ("Echo",), {}, {"Echo": chosen})
    with pytest.raises(SeatrialError) as raised:
        plan_sessions(replace(CAMPAIGN, blocks=(block,)), LISTED, {})
    assert str(raised.value) == f"block 'b': {expected}"


def test_an_agenda_is_read_as_it_was_written(tmp_path: Path) -> None:
    agenda = Agenda(
        run="r",
        system="lab",
        created="2026-11-21T06:30:15+00:00",
        campaign=frozen(CAMPAIGN),
        sessions=plan_sessions(CAMPAIGN, LISTED, MISSING),
    )
    (tmp_path / "plan.json").write_bytes(agenda.write())
    assert read_agenda(tmp_path) == agenda


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "No such file"),
        ("{", "not valid JSON"),
        ("[]", "the agenda of a run"),
        ('{"schema": 9, "sessions": []}', "schema 9, expected 2"),
        ('{"schema": 2, "sessions": [], "more": 1}', "the agenda of a run"),
        ('{"schema": 2, "sessions": [{"name": "x"}]}', "the agenda of a run"),
    ],
)
def test_a_damaged_agenda_is_refused(
    tmp_path: Path, text: str | None, expected: str
) -> None:
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    with pytest.raises(SeatrialError, match=expected) as raised:
        read_agenda(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'plan.json'}: ")


CLASSES = {
    "thin": NodeClass(("cn1",), "standard"),
    "wide": NodeClass(("cn2",), "standard"),
    "fat": NodeClass(("fat1",), "bigmem"),
}
EVERYWHERE = tuple(
    ListedCase("Ring", f"lab:{name}", environment)
    for name in CLASSES
    for environment in ("openmpi", "mpich")
)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, EVERYWHERE),
        ({"classes": ("thin",)}, EVERYWHERE[:2]),
        ({"partitions": ("standard",)}, EVERYWHERE[:4]),
        ({"stacks": ("mpich",)}, EVERYWHERE[1::2]),
        ({"classes": ("thin", "fat"), "partitions": ("bigmem",)}, EVERYWHERE[4:]),
        ({"classes": ("thin",), "partitions": ("bigmem",)}, ()),
    ],
)
def test_a_campaign_chooses_classes_partitions_and_stacks(
    chosen: dict[str, Any], expected: tuple[ListedCase, ...]
) -> None:
    campaign = replace(CAMPAIGN, **chosen)
    assert select(campaign, CLASSES, EVERYWHERE) == expected


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("classes", "fat, thin, wide"),
        ("partitions", "bigmem, standard"),
        ("stacks", "mpich, openmpi"),
    ],
)
def test_a_choice_that_the_system_lacks_is_refused(key: str, known: str) -> None:
    chosen: dict[str, Any] = {key: ("gpu",)}
    with pytest.raises(SeatrialError) as caught:
        select(replace(CAMPAIGN, **chosen), CLASSES, EVERYWHERE)
    expected = f"campaign 'c': {key}: expected some of {known}; got gpu"
    assert str(caught.value) == expected
