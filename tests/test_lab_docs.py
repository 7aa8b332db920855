"""Commands of docs/lab.md on the lab itself, in the order of the page."""

import re
from pathlib import Path

import pytest
from conftest import Lab
from lab_runs import seatrial
from shown_commands import LAB_COMMANDS, Shown, shown_commands

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def needs_the_lab(shown: Shown) -> bool:
    words = set(shown.words)
    of_it = {"lab", "lab/latest"} & words and "--scale" not in words
    return shown.page == "docs/lab.md" and not shown.inline and bool(of_it)


def test_commands_of_the_page_run(lab: Lab, tmp_path: Path) -> None:
    commands = [shown for shown in shown_commands() if needs_the_lab(shown)]
    assert {shown.words[0] for shown in commands} & set(LAB_COMMANDS)
    try:
        for shown in commands:
            if shown.words == ("lab", "down"):  # other tests go on with the lab
                continue
            stated = re.search(r"exit status (\d)", shown.comment)
            done = seatrial(*shown.words, results=tmp_path)
            assert done.returncode == int(stated[1] if stated else 0), done.stderr
    finally:
        seatrial("lab", "slow-link", "cn02", "--off", results=tmp_path)
