"""The section of a system in a scrontab: other lines stay byte by byte."""

import random
from datetime import datetime, time
from pathlib import Path

import pytest
from fake_cron import stand_in
from fake_home import write

from seatrial.errors import SeatrialError
from seatrial.history.rules import Rules
from seatrial.nightly.cron_jobs import (
    NoScrontabError,
    cancel_waiting,
    read_scrontab,
    submit_next,
    waiting,
    write_scrontab,
)
from seatrial.nightly.crontab import (
    Driver,
    difference,
    driver_of,
    is_disabled,
    merged,
    section_of,
    without,
)
from seatrial.nightly.settings import Settings
from seatrial.nightly.window import Window

SETTINGS = Settings(
    file=Path("/s/reference-data/lab/nightly.yaml"),
    window=Window(time(1, 30), time(5)),
    node_hours=2,
    rules=Rules(),
    driver=("--partition=service",),
    jobs=(),
)
DRIVER = Driver(
    "lab", Path("/s/bin/seatrial"), Path("/s"), Path("/r"), "/usr/bin", SETTINGS
)
SECTION = """\
# BEGIN seatrial nightly lab: `seatrial nightly install` writes this
#SCRON --job-name=seatrial-nightly-lab
#SCRON --time=240
#SCRON --ntasks=1
#SCRON --cpus-per-task=1
#SCRON --mem=4G
#SCRON --open-mode=append
#SCRON --output=/r/lab/nightly.log
#SCRON --partition=service
30 1 * * * PATH=/usr/bin SEATRIAL_HOME=/s SEATRIAL_RESULTS=/r \
/s/bin/seatrial nightly run lab
# END seatrial nightly lab
"""
OTHER = Driver("lab-2", DRIVER.program, DRIVER.home, DRIVER.results, "/bin", SETTINGS)
PIECES = (
    *("0 3 * * * backup", "# a comment", "#SCRON --qos=cron", "", " ", "\t", "MAIL=a"),
    *(
        "#DISABLED: 0 4 * * * old",
        "\r",
        "é",
        "\x0b",
        "\u2028",
        "# END seatrial nightly",
    ),
    *("\udcff", "# BEGIN seatrial nightly lab", SECTION.split("\n")[0] + " "),
)


def test_section() -> None:
    """The limit is the window and half an hour; each option is a line of its own."""
    assert DRIVER.section == SECTION


def test_install_and_remove_give_the_same_bytes() -> None:
    random.seed(1)
    for _ in range(3000):
        lines = random.choices(PIECES, k=random.randrange(6))
        text = "\n".join(lines) + random.choice(("", "\n"))
        new = merged(text, DRIVER)
        assert new == SECTION + text
        assert without(new, "lab") == text
        assert merged(new, DRIVER) == new
        both = merged(new, OTHER)
        assert without(without(both, "lab"), "lab-2") == text
        assert section_of(both, "lab-2") == OTHER.section


def test_an_earlier_section_is_replaced_where_it_is() -> None:
    old = SECTION.replace("--time=240", "--time=60")
    text = f"# mine\n{old}0 3 * * * backup"
    assert merged(text, DRIVER) == f"# mine\n{SECTION}0 3 * * * backup"
    assert without(text, "lab") == "# mine\n0 3 * * * backup"


def test_user_options_do_not_apply_to_the_section() -> None:
    """Slurm adds #SCRON lines to the next entry: a last one must not meet ours."""
    text = "0 3 * * * backup\n#SCRON --qos=cron"
    assert merged(text, DRIVER).startswith(SECTION)


@pytest.mark.parametrize(
    "text",
    [
        SECTION.split("\n")[0] + "\n0 3 * * * backup\n",
        "\n".join(SECTION.split("\n")[1:]),
        SECTION + SECTION,
        "# END seatrial nightly lab\n" + SECTION.split("\n")[0],
    ],
)
def test_a_damaged_section_is_refused(text: str) -> None:
    with pytest.raises(SeatrialError, match="the section of lab is damaged"):
        without(text, "lab")
    with pytest.raises(SeatrialError, match="the section of lab is damaged"):
        merged(text, DRIVER)


def test_a_disabled_entry_is_noticed() -> None:
    lines = SECTION.splitlines()
    off = [
        line if "seatrial nightly lab" in line else f"#DISABLED: {line}"
        for line in lines[:-2]
    ]
    off += [f"#DISABLED: {lines[-2]}", lines[-1]]
    text = "\n".join(off) + "\n#DISABLED: 0 3 * * * backup\n"
    assert is_disabled(text, "lab")
    assert not is_disabled(SECTION + "#DISABLED: 0 3 * * * backup\n", "lab")
    assert merged(text, DRIVER) == SECTION + "#DISABLED: 0 3 * * * backup\n"


def test_difference_shows_changed_lines_only() -> None:
    shown = difference("# mine\n0 3 * * * x\n0 4 * * * y\n", "# mine\n0 3 * * * x\n")
    assert [line for line in shown if line[0] in "+-"][2:] == ["-0 4 * * * y"]
    assert difference("a", "a") == []


@pytest.mark.parametrize("folder", ["a b", "100%", "a$b"])
def test_paths_that_slurm_changes_are_refused(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / folder))
    with pytest.raises(SeatrialError, match="expected a path without blanks"):
        driver_of(tmp_path, "lab", SETTINGS)


def test_the_driver_finds_the_programs_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    write(tmp_path / "bin" / "seatrial", "")
    driver = driver_of(tmp_path, "lab", SETTINGS)
    assert driver.path == f"{tmp_path}/bin:/usr/local/bin:/usr/bin:/bin"
    assert driver.program == tmp_path / "bin" / "seatrial"


def test_scrontab_is_read_and_written_as_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = stand_in(tmp_path, monkeypatch)
    assert read_scrontab() == ""
    content = b"# caf\xe9\r\n0 3 * * * backup"
    (at / "crontab").write_bytes(content)
    text = read_scrontab()
    write_scrontab(text, merged(text, DRIVER), "lab")
    assert (at / "crontab").read_bytes() == SECTION.encode() + content
    write_scrontab(merged(text, DRIVER), text, "lab")
    assert (at / "crontab").read_bytes() == content


def test_an_empty_scrontab_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = stand_in(tmp_path, monkeypatch)
    write_scrontab("", SECTION, "lab")
    write_scrontab(SECTION, "", "lab")
    assert not (at / "crontab").exists()


FAULTS = [
    ("refuse", "Slurm refused the new scrontab, the old one stays: There are errors"),
    ("deaf", "expected the section of lab as it was written"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_a_refused_scrontab(
    fault: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = stand_in(tmp_path, monkeypatch)
    (at / "crontab").write_text("# mine\n")
    (at / fault).touch()
    with pytest.raises(SeatrialError, match=message):
        write_scrontab("# mine\n", SECTION + "# mine\n", "lab")
    assert (at / "crontab").read_text() == "# mine\n"


def test_a_scrontab_that_changed_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = stand_in(tmp_path, monkeypatch)
    (at / "crontab").write_text("# new\n")
    with pytest.raises(SeatrialError, match="changed by another program meanwhile"):
        write_scrontab("# mine\n", SECTION + "# mine\n", "lab")
    assert not (at / "writes").exists()


def test_no_scrontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = stand_in(tmp_path, monkeypatch)
    (at / "off").touch()
    with pytest.raises(NoScrontabError, match=r"slurm\.conf disables it"):
        read_scrontab()
    (at / "off").unlink()
    (at / "silent").touch()
    with pytest.raises(SeatrialError, match="Unable to contact slurm") as caught:
        read_scrontab()
    assert not isinstance(caught.value, NoScrontabError)
    (tmp_path / "bin" / "scrontab").unlink()
    with pytest.raises(NoScrontabError, match="is not installed here"):
        read_scrontab()


def test_a_job_that_submits_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One waits at any time, however often a night is started."""
    at = stand_in(tmp_path, monkeypatch)
    now = datetime(2026, 11, 25, 12)
    assert submit_next(DRIVER, now) == "1"
    assert submit_next(DRIVER, now) == "1"
    assert waiting("lab") == ["1"]
    assert waiting("lab-2") == []
    words = (at / "jobs" / "1").read_text().splitlines()
    assert "--begin=2026-11-26T01:30:00" in words
    assert {"--no-requeue", "--time=240", "--partition=service"} < set(words)
    assert words[-1] == f"--wrap={DRIVER.command} --resubmit"
    assert cancel_waiting("lab") == ["1"]
    assert (waiting("lab"), cancel_waiting("lab")) == ([], [])
