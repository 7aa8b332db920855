"""The ledger of runs: what it lists, and what shows when somebody tampers with it."""

import json
import shutil
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner
from closed_runs import close_run, rewrite_manifest
from ledger_runs import (
    LIMITS,
    NAMES,
    break_off,
    judged_run,
    ledger_run,
    problems_of,
    start_run,
)

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.runs.closed_run import load_run
from seatrial.runs.ledger import LEDGER, begin, close, note_removed, place_in
from seatrial.runs.ledger_beside import read_beside
from seatrial.runs.ledger_check import ledger_view
from seatrial.runs.ledger_entries import parse_ledger
from seatrial.runs.open_run import utc_text
from seatrial.runs.pack import pack, unpack

FIRST, SECOND, THIRD, FOURTH, *_ = NAMES


def lines_of(results: Path) -> list[bytes]:
    return (results / "lab" / LEDGER).read_bytes().splitlines(keepends=True)


def write_lines(results: Path, lines: list[bytes]) -> None:
    (results / "lab" / LEDGER).write_bytes(b"".join(lines))


def rechained(lines: list[bytes]) -> list[bytes]:
    """Write entries anew with numbers and hashes that fit, as a forger would."""
    written: list[bytes] = []
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        entry = json.loads(line) | {"entry": number}
        entry["previous"] = sha256(written[-1][:-1]).hexdigest() if written else ""
        if entry["event"] == "started":
            count = numbers[entry["campaign"]] = numbers.get(entry["campaign"], 0) + 1
            entry["number"] = count
        written.append(json.dumps(entry).encode() + b"\n")
    return written


def test_every_started_run_is_listed(tmp_path: Path) -> None:
    """Closed, broken off and removed runs count, and are named with their state."""
    ledger_run(tmp_path, FIRST, criteria="0" * 64)
    ledger_run(tmp_path, SECOND)
    break_off(tmp_path, THIRD)
    gone = ledger_run(tmp_path, FOURTH)
    shutil.rmtree(gone)
    note_removed(tmp_path / "lab", FOURTH, "disk full")
    path = ledger_run(tmp_path, NAMES[4])
    later = ledger_run(tmp_path, NAMES[5])
    judgement = judged_run(path)
    view = judgement.ledger
    assert view is not None
    assert (view.number, view.count, view.before) == (4, 5, 1)
    assert view.words == (
        "run 4 of 5 since the criteria were frozen; 1 earlier run of this campaign had "
        "other criteria"
    )
    assert view.earlier == (
        f"{SECOND} (closed)",
        f"{THIRD} (broken off or not finished)",
        f"{FOURTH} (removed: disk full)",
    )
    assert problems_of(judgement) == []
    assert judgement.verdict == judged_run(path, alone=True).verdict
    assert judgement.digest == judged_run(path, alone=True).digest
    assert place_in(load_run(later).manifest) is not None


def test_numbers_count_within_a_campaign(tmp_path: Path) -> None:
    ledger_run(tmp_path, FIRST)
    ledger_run(tmp_path, "20260102T000000Z-nightly")
    view = judged_run(ledger_run(tmp_path, THIRD)).ledger
    assert view is not None and (view.number, view.count) == (2, 2)


def test_changing_the_criteria_later_does_not_begin_anew(tmp_path: Path) -> None:
    """A run counts from the first with its own criteria or with those of today."""
    for name in (FIRST, SECOND):
        ledger_run(tmp_path, name, criteria="1" * 64)
    path = ledger_run(tmp_path, THIRD, criteria="1" * 64)
    view = judged_run(path).ledger
    assert view is not None and view.number == 3


def _cut_off(results: Path) -> None:
    write_lines(results, lines_of(results)[:2])


def _rewrite(results: Path) -> None:
    lines = lines_of(results)
    lines[0] = lines[0].replace(FIRST.encode(), b"another")
    write_lines(results, lines)


def _leave_out(results: Path) -> None:
    lines = lines_of(results)
    write_lines(results, lines[:2] + lines[4:])


def _leave_out_and_rechain(results: Path) -> None:
    lines = lines_of(results)
    shutil.rmtree(results / "lab" / FIRST)
    write_lines(results, rechained(lines[2:]))


def _begin_anew(results: Path) -> None:
    (results / "lab" / LEDGER).unlink()
    start_run(results, FOURTH)


def _delete_a_run(results: Path) -> None:
    shutil.rmtree(results / "lab" / SECOND)


def _replace_a_run(results: Path) -> None:
    rewrite_manifest(results / "lab" / SECOND, description="another")


def _smuggle_in_a_copy(results: Path) -> None:
    copy = results / "lab" / FOURTH
    shutil.copytree(results / "lab" / FIRST, copy)
    rewrite_manifest(copy, run=FOURTH)


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (_cut_off, "has no such entry: it was cut off, rewritten or begun anew"),
        (_rewrite, "line 2 does not follow line 1, which was changed"),
        (_leave_out, "line 3 is entry 5; an entry is missing"),
        (_leave_out_and_rechain, "it was cut off, rewritten or begun anew"),
        (_begin_anew, f"run {FIRST} is not in the ledger beside it"),
        (_delete_a_run, f"run {SECOND} is in the ledger, and its folder is gone"),
        (_replace_a_run, f"run {SECOND} is not the one that closed"),
        (_smuggle_in_a_copy, f"run {FOURTH} is not in the ledger beside it"),
    ],
)
def test_a_ledger_that_was_tampered_with_fails(
    tmp_path: Path, tamper: Callable[[Path], None], problem: str
) -> None:
    for name in (FIRST, SECOND, THIRD):
        path = ledger_run(tmp_path, name)
    assert problems_of(judged_run(path)) == []
    tamper(tmp_path)
    judgement = judged_run(path)
    assert judgement.verdict == "fail"
    assert any(problem in text for text in problems_of(judgement)), problems_of(
        judgement
    )


def test_a_removed_run_is_recorded_at_the_next_start(tmp_path: Path) -> None:
    """The deletion of a run is in the copies of all later runs; a reason settles it."""
    shutil.rmtree(ledger_run(tmp_path, FIRST))
    path = ledger_run(tmp_path, SECOND)
    entries = parse_ledger((path / LEDGER).read_bytes()).entries
    assert [(e.event, e.run) for e in entries][2:] == [
        ("removed", FIRST),
        ("started", SECOND),
    ]
    assert f"run {FIRST} was removed" in judged_run(path, alone=True).history
    assert problems_of(judged_run(path)) != []
    with pytest.raises(SeatrialError, match="lists no run 'r0'"):
        note_removed(tmp_path / "lab", "r0", "never was")
    with pytest.raises(SeatrialError, match="this run is there"):
        note_removed(tmp_path / "lab", SECOND, "a lie")
    note_removed(tmp_path / "lab", FIRST, "wrong cable")
    assert problems_of(judged_run(path)) == []
    assert f"run {FIRST} was removed: wrong cable" in judged_run(path).history


def test_a_run_alone_shows_the_runs_before_it(tmp_path: Path) -> None:
    """The copy in a pack lists them all; of later runs it says nothing."""
    break_off(tmp_path, FIRST)
    path = ledger_run(tmp_path, SECOND)
    ledger_run(tmp_path, THIRD)
    pack(path, tmp_path / "offer.tar.xz")
    (tmp_path / "elsewhere").mkdir()
    copy = unpack(tmp_path / "offer.tar.xz", tmp_path / "elsewhere")
    judgement = judged_run(copy)
    assert problems_of(judgement) == []
    assert judgement.history[:2] == (
        "run 2 of 2 since the criteria were frozen",
        f"earlier runs: {FIRST} (broken off or not finished)",
    )
    assert judgement.history[2].startswith("no ledger is beside this run")


def test_a_fetching_machine_knows_later_runs(tmp_path: Path) -> None:
    """Without the ledger itself, the copy of the last run there stands for it."""
    login, here = tmp_path / "login", tmp_path / "here"
    paths = [ledger_run(login, name) for name in (FIRST, SECOND, THIRD)]
    for path in (paths[0], paths[2]):
        shutil.copytree(path, here / "lab" / path.name)
    view = judged_run(here / "lab" / FIRST).ledger
    assert view is not None
    assert (view.number, view.count, view.problems) == (1, 3, ())
    assert judged_run(here / "lab" / FIRST).history[0] == (
        "run 1 of 3 since the criteria were frozen"
    )


def test_a_fetching_machine_notices_a_ledger_that_was_cut_off(tmp_path: Path) -> None:
    """The login node forgets a run that was fetched: the copies contradict."""
    login, here = tmp_path / "login", tmp_path / "here"
    for name in (FIRST, SECOND):
        shutil.copytree(ledger_run(login, name), here / "lab" / name)
    shutil.rmtree(login / "lab" / SECOND)
    write_lines(login, lines_of(login)[:2])
    for name in (THIRD, FOURTH):
        shutil.copytree(ledger_run(login, name), here / "lab" / name)
    problems = problems_of(judged_run(here / "lab" / SECOND))
    assert "the copy of a later run is not a continuation" in problems[0]
    text = "runs of another ledger in this folder, which are not counted"
    assert f"{text}: {SECOND}" in judged_run(here / "lab" / FOURTH).history


def test_a_copy_that_the_ledger_does_not_continue_fails(tmp_path: Path) -> None:
    """Entries that were rewritten after a run had closed differ from its copy."""
    path = ledger_run(tmp_path, FIRST)
    begin(tmp_path / "lab", FIRST, campaign="smoke", criteria="", partial=False)
    lines = lines_of(tmp_path)
    copy = (path / LEDGER).read_bytes()
    assert lines[0] == copy
    forged = [lines[0].replace(b"smoke", b"other"), *lines[1:]]
    write_lines(tmp_path, rechained(forged))
    assert "has no such entry" in problems_of(judged_run(path))[0]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ({"entry": 1, "number": 2, "head": "0" * 64}, "has no such entry"),
        (None, "is not in the ledger beside it, which began before it"),
    ],
)
def test_a_manifest_with_another_place_fails(
    tmp_path: Path, place: dict[str, object] | None, problem: str
) -> None:
    path = ledger_run(tmp_path, FIRST)
    soon = utc_text(time.time() + 60)
    rewrite_manifest(path, started=soon, ended=soon, ledger=place)
    assert problem in problems_of(judged_run(path))[0]


def test_old_runs_say_what_they_cannot_show(tmp_path: Path) -> None:
    """A run without a number is judged as before, with a note; so beside newer ones."""
    path = close_run(tmp_path, FIRST, kept={"system/criteria.yaml": "schema: 1\n"})
    for name in (SECOND, THIRD):
        ledger_run(tmp_path, name)
    run = load_run(path)
    for beside in (None, read_beside(run)):
        view = ledger_view([run], LIMITS.sha256, beside)
        assert view is not None
        assert (view.number, view.count, view.problems) == (1, 0, ())
        assert view.notes[0].startswith("this run is not in a ledger: an older")
    assert problems_of(judged_run(tmp_path / "lab" / THIRD)) == []


def test_replays_and_imports_are_not_in_the_ledger(tmp_path: Path) -> None:
    ledger_run(tmp_path, SECOND)
    path = close_run(tmp_path, THIRD, replay="elsewhere", rows=[], cases=[])
    view = judged_run(tmp_path / "lab" / SECOND).ledger
    assert view is not None and (view.count, view.problems) == (1, ())
    assert ledger_view([load_run(path)], LIMITS.sha256) is None


def test_starts_at_the_same_moment(tmp_path: Path) -> None:
    """Many starts at once: every entry is whole, and each number is there once."""
    errors: list[BaseException] = []
    ready = threading.Barrier(8)
    names = [f"r{number}" for number in range(8)]
    for name in names:
        (tmp_path / f"{name}.open").mkdir()

    def start(name: str) -> None:
        try:
            ready.wait()
            for _ in range(5):
                begin(tmp_path, name, campaign="smoke", criteria="", partial=False)
            close(tmp_path, name, "0" * 64)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    book = parse_ledger((tmp_path / LEDGER).read_bytes())
    assert (book.problem, book.torn, len(book.entries)) == ("", 0, 8 * 6)
    numbers = [entry.number for entry in book.entries if entry.event == "started"]
    assert numbers == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_torn_entry_is_cut_off_and_recorded(tmp_path: Path) -> None:
    """A crash in the middle of a write: the start had not begun; the note stays."""
    path = ledger_run(tmp_path, FIRST)
    with (tmp_path / "lab" / LEDGER).open("ab") as file:
        file.write(b'{"entry":3,"event":"star')
    notes = judged_run(path).history
    assert "the ledger beside it: its last line is incomplete" in notes
    judgement = judged_run(ledger_run(tmp_path, SECOND))
    assert problems_of(judgement) == []
    assert "1 incomplete entries were cut off the ledger" in judgement.history
    events = [e.event for e in parse_ledger(b"".join(lines_of(tmp_path))).entries]
    assert events == ["started", "closed", "torn", "started", "closed"]


def test_a_broken_ledger_stops_a_start(tmp_path: Path) -> None:
    for name in (FIRST, SECOND):
        ledger_run(tmp_path, name)
    _rewrite(tmp_path)
    with pytest.raises(SeatrialError, match=r"which was changed.*nothing was started"):
        start_run(tmp_path, THIRD)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("x")
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / LEDGER).symlink_to(target)
    with pytest.raises(SeatrialError, match="cannot write below"):
        start_run(tmp_path, FIRST)
    assert target.read_text() == "x"


def test_a_folder_of_several_users_has_a_ledger_of_several_users(
    tmp_path: Path,
) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab").chmod(0o775)
    start_run(tmp_path, FIRST)
    assert (tmp_path / "lab" / LEDGER).stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("command", ["repaired", "removed", "show"])
def test_an_unknown_system_gets_no_ledger(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("reframe-checks", "reference-data"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
    more = [] if command == "show" else ["cn01", "--reason", "a test"]
    refused = CliRunner().invoke(main, ["ledger", command, "sean", *more])
    assert refused.exit_code == 2
    assert "unknown system 'sean'; known systems: none" in refused.output
    assert not (tmp_path / "results").exists()
