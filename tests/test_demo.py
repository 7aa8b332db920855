"""The demo: recorded runs of the lab, judged, reported and compared as anybody can."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.commands.demo import RECORDED

HOME = Path(__file__).resolve().parents[1]
PAGES = (
    *("acceptance/report", "slow-link/report", "bakeoff/compare"),
    *("twice/compare", "stacks/compare", "trend/trend"),
)


def run_demo(out: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if "SEATRIAL" not in name}
    return subprocess.run(
        [Path(sys.executable).with_name("seatrial"), "demo", "--out", out],
        env=kept | {"SEATRIAL_HOME": str(HOME)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = run_demo(folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_it_prints_each_command_and_where_the_pages_are(out: tuple[Path, str]) -> None:
    folder, printed = out
    assert printed.startswith(RECORDED)
    commands = re.findall(r"^\$ seatrial (\w+)", printed, re.MULTILINE)
    assert commands == ["report"] * 2 + ["compare"] * 3 + ["trend"]
    for page in PAGES:
        assert f"{folder / page}.html" in printed


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_that_it_was_recorded(out: tuple[Path, str], page: str) -> None:
    text = (out[0] / f"{page}.html").read_text()
    shown = text[text.index("<body>") :]
    assert shown.index("Recorded.</strong> These numbers") < shown.index("<h1>")


def test_verdicts_are_what_was_planted(out: tuple[Path, str]) -> None:
    said = (out[0] / "acceptance" / "summary.md").read_text()
    assert "UNDECIDED" in said and "| 0 | 0 | 2 |" in said
    assert "campaign acceptance does not run LammpsScaled" in said, "nor is it optional"
    said = (out[0] / "slow-link" / "summary.md").read_text()
    assert "FAIL" in said and "cn03" in said
    assert not re.search(r"cn0[124]\b", said.partition("Criteria")[0])
    page = (out[0] / "slow-link" / "report.html").read_text()
    limit, beside = page.index("at least 40 MB/s is required"), "times the typical"
    assert beside not in page[page.index("<h1>") : limit], "contract before sameness"


@pytest.mark.parametrize(
    ("page", "sides", "planted"),
    [
        ("bakeoff", ["delivered", "slow-links"], True),
        ("twice", ["busy-1", "busy-2"], False),
    ],
)
def test_recorded_bake_offs_are_too_short_for_a_winner(
    out: tuple[Path, str], page: str, sides: list[str], planted: bool
) -> None:
    """Three repeats cannot exclude that neighbours have a correlation of 0.5.

    What was planted still shows: the bandwidth is lower beyond doubt, and a few more
    repeats would probably give a winner.
    """
    found = json.loads((out[0] / page / "compare.json").read_text())
    assert [side["name"] for side in found["sides"]] == sides
    assert all(side["signer"] == "demo@example.org" for side in found["sides"])
    assert found["frozen"] is True
    assert found["winner"] is None
    assert "that may be chance" in found["why"][0]
    assert found["correlation"]["used"] == 0.5
    assert (found["ranking"][0]["side"] == sides[0]) is planted
    assert (found["ranking"][0]["selected"] == 1) is planted
    slower = {
        each["name"] for each in found["groups"] if each["ratios"][1]["upper"] < 1
    }
    assert slower == ({"bandwidth"} if planted else set())
    assert (found["more_repeats"] in range(2, 7)) is planted


@pytest.mark.slow
def test_nothing_is_in_it_that_only_this_machine_knows(
    out: tuple[Path, str], tmp_path: Path
) -> None:
    """The same pages come out again, elsewhere: pictures of them stay true."""
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        first, second = (folder / f"{page}.html" for folder in (out[0], tmp_path))
        assert first.read_bytes() == second.read_bytes()
        assert str(out[0]) not in first.read_text()


def test_recorded_runs_are_small() -> None:
    files = list((HOME / "reports" / "demo").glob("*"))
    assert len(files) > 10
    assert sum(file.stat().st_size for file in files) < 3e6


def test_documentation_shows_what_the_demo_shows_today(out: tuple[Path, str]) -> None:
    """If this fails: `make format` writes the pages and takes the pictures."""
    done = subprocess.run(
        [sys.executable, HOME / "tools" / "readme.py", "--check", out[0]],
        env={**os.environ, "SEATRIAL_HOME": str(HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page, name in (
        ("README.md", "docs/pictures/example.png"),
        ("docs/index.md", "pictures/example.png"),
        ("docs/compare.md", "pictures/comparison.png"),
    ):
        file = HOME / page
        assert f"]({name})" in file.read_text()
        assert (file.parent / name).read_bytes().startswith(b"\x89PNG")
