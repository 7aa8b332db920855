"""Campaigns: what is read, and what is refused."""

import hashlib
from pathlib import Path

import pytest
from fake_home import write, write_home

from seatrial.campaign.campaign_file import (
    Block,
    Campaign,
    FrozenWeights,
    load_campaign,
    only_checks,
)
from seatrial.criteria.weights import Weights
from seatrial.errors import Exit, SeatrialError
from seatrial.paths import known_campaigns, weights_file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_home(tmp_path)


def test_load_campaign(home: Path) -> None:
    assert load_campaign(home, "two") == Campaign(
        name="two",
        description="all of it, twice",
        repeats=2,
        blocks=(Block("echo", ("Echo", "Gpu")), Block("silent", ("Silent",))),
    )


def test_defaults_and_variables(home: Path) -> None:
    campaign = load_campaign(home, "high")
    assert campaign.repeats == 1
    assert campaign.blocks[0].variables == {"text": "latency 30.0"}


FULL = """
repeats: 3
retries: 1
max_jobs: 8
order: shuffled
seed: 7
block_size: 2
controls: {checks: [Echo], variables: {pause: 1}, every: 4}
blocks:
  - name: links
    checks: [Ring, {Echo: {x: [1, 2], kind: [a b]}}]
"""


def test_everything_a_campaign_can_say(home: Path) -> None:
    write(home / "reframe-checks" / "campaigns" / "full.yaml", FULL)
    campaign = load_campaign(home, "full")
    assert campaign == Campaign(
        name="full",
        description="",
        repeats=3,
        blocks=(
            Block(
                "links",
                ("Ring", "Echo"),
                {},
                {"Echo": {"x": ("1", "2"), "kind": ("a b",)}},
            ),
        ),
        retries=1,
        max_jobs=8,
        order="shuffled",
        seed=7,
        block_size=2,
        controls=Block("controls", ("Echo",), {"pause": 1}),
        controls_every=4,
    )
    assert campaign.checks == ("Echo", "Ring")
    assert only_checks(campaign, ("Ring",)).controls is None
    assert only_checks(campaign, ("Echo",)).controls == campaign.controls


@pytest.mark.parametrize("name", ["nightmare", "../two", "", "two.yaml"])
def test_unknown_campaign_lists_the_known_ones(home: Path, name: str) -> None:
    with pytest.raises(SeatrialError) as raised:
        load_campaign(home, name)
    assert str(raised.value) == (
        f"unknown campaign {name!r}; known campaigns: high, slow, smoke, two, wrong"
    )
    assert raised.value.exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "blocks: [",
            "1: not valid YAML: expected the node content, but found '<stream end>'",
        ),
        (
            "a: 1\nb: [",
            "2: not valid YAML: expected the node content, but found '<stream end>'",
        ),
        (
            "- a",
            "1: expected a mapping of blocks, description, repeats, retries, max_jobs",
        ),
        ("repeats: 1", "1: blocks: expected a list of blocks, got nothing."),
        ("blocks: []", "1: blocks: expected a list of blocks, got []."),
        (
            "blocks: [x]",
            "1: blocks[0]: expected a mapping of name, checks, variables, got 'x'.",
        ),
        (
            "blocks: [{checks: [A]}]",
            "1: blocks[0].name: expected a name of letters, digits, - and _, got noth",
        ),
        (
            "blocks: [{name: a/b, checks: [A]}]",
            "1: blocks[0].name: expected a name of letters, digits, - and _, got 'a/b",
        ),
        (
            "blocks: [{name: a}]",
            "1: blocks[0].checks: expected a list of checks, got nothing.",
        ),
        (
            "blocks: [{name: a, checks: A}]",
            "1: blocks[0].checks: expected a list of checks, got 'A'.",
        ),
        (
            "blocks: [{name: a, checks: [A|B]}]",
            "1: blocks[0].checks[0]: expected the class of one check, once in a block",
        ),
        (
            "blocks: [{name: a, checks: [A], x: 1}]",
            "1: blocks[0].x: expected one of the keys name, checks, variables, got 'x",
        ),
        (
            "blocks: [{name: a, checks: [A]}, {name: a, checks: [B]}]",
            "1: blocks[1].name: expected a name of its own, not controls, got 'a'.",
        ),
        (
            "repeats: 0\nblocks: [{name: a, checks: [A]}]",
            "1: repeats: expected a whole number >= 1, got 0.",
        ),
        (
            "repeats: yes\nblocks: [{name: a, checks: [A]}]",
            "1: repeats: expected a whole number >= 1, got True.",
        ),
        (
            "retries: -1\nblocks: [{name: a, checks: [A]}]",
            "1: retries: expected a whole number >= 0, got -1.",
        ),
        (
            "max_jobs: 0\nblocks: [{name: a, checks: [A]}]",
            "1: max_jobs: expected a whole number >= 1, got 0.",
        ),
        (
            "block_size: 0\nblocks: [{name: a, checks: [A]}]",
            "1: block_size: expected a whole number >= 1, got 0.",
        ),
        (
            "seed: x\nblocks: [{name: a, checks: [A]}]",
            "1: seed: expected a whole number >= 0, got 'x'.",
        ),
        (
            "order: random\nblocks: [{name: a, checks: [A]}]",
            "1: order: expected one of listed, shuffled, got 'random'.",
        ),
        (
            "controls: [A]\nblocks: [{name: a, checks: [A]}]",
            "1: controls: expected a mapping of every, checks, variables, got ['A'].",
        ),
        (
            "controls: {every: 2}\nblocks: [{name: a, checks: [A]}]",
            "1: controls.checks: expected a list of checks, got nothing.",
        ),
        (
            "controls: {checks: [A], every: 0}\nblocks: [{name: a, checks: [A]}]",
            "1: controls.every: expected a whole number >= 1, got 0.",
        ),
        (
            "controls: {checks: [A]}\nblocks: [{name: controls, checks: [A]}]",
            "2: blocks[0].name: expected a name of its own, not controls, got 'contro",
        ),
        (
            "blocks: [{name: a, checks: [A, A]}]",
            "1: blocks[0].checks[1]: expected the class of one check, once in a block",
        ),
        (
            "blocks: [{name: a, checks: [{A: 1}]}]",
            "1: blocks[0].checks[0].A: expected a mapping, got 1.",
        ),
        (
            "blocks: [{name: a, checks: [{A: {x: 1}}]}]",
            "1: blocks[0].checks[0].A.x: expected a list of values, got 1.",
        ),
        (
            "blocks: [{name: a, checks: [{A: {x: []}}]}]",
            "1: blocks[0].checks[0].A.x: expected a list of values, got [].",
        ),
        (
            "repets: 1\nblocks: [{name: a, checks: [A]}]",
            "1: repets: expected one of the keys blocks, description, repeats, retrie",
        ),
        (
            "blocks: [{name: a, checks: [A], variables: [1]}]",
            "1: blocks[0].variables: expected a mapping, got [1].",
        ),
        (
            "blocks: [{name: a, checks: [A], variables: {B.n: 1}}]",
            "1: blocks[0].variables.B.n: expected a variable of a check of this block",
        ),
        *(
            (
                f"blocks:\n- {{name: a, checks: [A], variables: {{A.n: {number}}}}}",
                "2: blocks[0].variables.A.n: expected a number below 2^64, got "
                + number[:99],
            )
            for number in ("1" + 400 * "0", "1e400", "1.0e+400", "nan")
        ),
    ],
)
def test_bad_campaign_is_refused(home: Path, text: str, expected: str) -> None:
    file = home / "reframe-checks" / "campaigns" / "bad.yaml"
    write(file, text)
    with pytest.raises(SeatrialError) as raised:
        load_campaign(home, "bad")
    assert str(raised.value).startswith(f"{file}:")
    assert expected in str(raised.value)


def test_only_some_checks(home: Path) -> None:
    campaign = only_checks(load_campaign(home, "two"), ("Gpu",))
    assert campaign.blocks == (Block("echo", ("Gpu",)),)


def test_only_checks_that_are_there(home: Path) -> None:
    with pytest.raises(SeatrialError) as raised:
        only_checks(load_campaign(home, "two"), ("Gpu", "Cpu"))
    assert str(raised.value) == (
        "campaign 'two' has no check Cpu; its checks: Echo, Gpu, Silent"
    )


def test_known_campaigns(home: Path) -> None:
    assert known_campaigns(home) == ["high", "slow", "smoke", "two", "wrong"]


WEIGHTS = """
schema: 1
groups:
  - {name: latency, weight: 1, numbers: [{check: Echo, metrics: [latency]}]}
"""
WEIGHED = "weights: offers\nblocks: [{name: echo, checks: [Echo]}]\n"


def test_weights_are_read_with_the_campaign(home: Path) -> None:
    file = home / "reference-data" / "weights" / "offers.yaml"
    write(file, WEIGHTS)
    write(home / "reframe-checks" / "campaigns" / "offers.yaml", WEIGHED)
    assert load_campaign(home, "offers").weights == FrozenWeights(
        "offers", hashlib.sha256(WEIGHTS.encode()).hexdigest(), WEIGHTS
    )
    assert load_campaign(home, "two").weights is None


@pytest.mark.parametrize(
    ("named", "text", "said"),
    [
        ("offers", None, "offers.yaml"),
        ("../offers", WEIGHTS, "weights: expected a name of letters, "),
        ("offers", WEIGHTS.replace("weight: 1", "weight: 0"), "offers.yaml:3"),
    ],
)
def test_broken_weights_end_a_campaign_before_it_begins(
    home: Path, named: str, text: str | None, said: str
) -> None:
    if text is not None:
        write(home / "reference-data" / "weights" / "offers.yaml", text)
    campaign = WEIGHED.replace("offers", named)
    write(home / "reframe-checks" / "campaigns" / "offers.yaml", campaign)
    with pytest.raises(SeatrialError) as caught:
        load_campaign(home, "offers")
    assert said in str(caught.value)


def test_what_is_weighted_in_a_bake_off_is_run() -> None:
    suite = Path(__file__).parents[1]
    campaign = load_campaign(suite, "bakeoff")
    assert campaign.weights is not None
    weights = Weights.load(weights_file(suite, campaign.weights.name))
    weighed = {each.check for group in weights.groups for each in group.numbers}
    assert weighed <= set(campaign.checks)
    assert weights.sha256 == campaign.weights.sha256
