"""Bad nodes are taken out and put back, and nothing foreign is touched."""

import dataclasses
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_scontrol import FakeSlurm

from seatrial.errors import SeatrialError
from seatrial.history.records import Alarm
from seatrial.nightly import actions, slurm_actions
from seatrial.nightly.settings import OFF, Caps, Settings
from seatrial.nightly.state import State
from seatrial.runs.ledger import read_ledger
from seatrial.runs.ledger_entries import parse_ledger

NODES = [f"cn{n:02d}" for n in range(1, 101)]
TODAY, NIGHT = date(2026, 11, 25), np.datetime64("2026-11-25")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm(tmp_path, NODES)
    monkeypatch.setenv("PATH", f"{fake.folder}:/usr/bin:/bin")
    return fake


def alarm(node: str, kind: Any = "node", night: Any = NIGHT, **more: Any) -> Alarm:
    return Alarm(f"{night}-{node}", kind, (node,), night, (night, night), **more)


def state(tmp_path: Path, *alarms: Alarm, **settings: Any) -> State:
    nothing: Any = None
    declared = Settings(
        tmp_path / "nightly.yaml",
        nothing,
        1.0,
        nothing,
        (),
        (),
        **{"action": "reservation", **settings},
    )
    ledger = parse_ledger(read_ledger(tmp_path / "runs") or b"")
    return State(
        "demo",
        declared,
        tmp_path / "runs",
        {"a": NODES},
        nothing,
        nothing,
        alarms,
        ledger,
        None,
    )


def act(tmp_path: Path, *alarms: Alarm, **settings: Any) -> tuple[actions.Action, ...]:
    return actions.act(state(tmp_path, *alarms, **settings), TODAY)


def events(tmp_path: Path) -> list[tuple[str, str, str]]:
    entries = parse_ledger(read_ledger(tmp_path / "runs") or b"").entries
    return [(e.event, e.node, e.reason.split(" 2")[0]) for e in entries]


def test_reservation_is_made_renewed_and_deleted(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    (made,) = act(tmp_path, alarm("cn03"))
    assert (made.node, made.verb, made.done) == ("cn03", "quarantine", True)
    assert "Flags=MAINT,FLEX,IGNORE_JOBS" in slurm.calls[0]
    assert act(tmp_path, alarm("cn03")) == ()
    assert slurm.calls[1][-1] == "EndTime=now+7days"
    (freed,) = act(tmp_path, alarm("cn03", closed=NIGHT))
    assert (freed.verb, freed.done) == ("release", True)
    assert slurm.load()["reservations"] == {}
    assert [event for event, *_ in events(tmp_path)] == ["quarantined", "released"]


def test_drain_is_released_by_a_person_only(tmp_path: Path, slurm: FakeSlurm) -> None:
    (made,) = act(tmp_path, alarm("cn03"), action="drain")
    assert made.done
    assert slurm.load()["nodes"]["cn03"][2].startswith("seatrial:1:")
    (freed,) = act(tmp_path, alarm("cn03", closed=NIGHT), action="drain")
    assert (freed.verb, freed.done) == ("release", False)
    assert freed.command[-1] == "State=RESUME"
    assert len(slurm.calls) == 1


@pytest.mark.parametrize(
    ("alarms", "settings", "why"),
    [
        ([alarm("cn03"), alarm("cn04")], {}, "common cause"),
        ([alarm("xx99")], {}, "does not know"),
    ],
)
def test_refused(
    tmp_path: Path, slurm: FakeSlurm, alarms: Any, settings: Any, why: str
) -> None:
    done = act(tmp_path, *alarms, **settings)
    assert len(done) == len(alarms)
    assert all(not one.done and why in one.reason for one in done)
    assert slurm.calls == [] == events(tmp_path)


def test_a_recommendation_is_no_action(tmp_path: Path, slurm: FakeSlurm) -> None:
    assert act(tmp_path, alarm("cn03"), action="recommend") == ()
    assert slurm.calls == [] == events(tmp_path)


@pytest.mark.parametrize("kind", ["machine", "common", "explained"])
def test_other_kinds_never_act(tmp_path: Path, slurm: FakeSlurm, kind: str) -> None:
    assert act(tmp_path, alarm("cn03", kind)) == ()
    assert slurm.calls == []


@pytest.mark.parametrize(
    ("key", "name", "value", "why"),
    [
        ("nodes", "cn03", ["drained", "admin", "disk"], "drained already: disk"),
        ("nodes", "cn03", ["idle", "admin", "look at it"], "look at it"),
        ("nodes", "cn03", ["down*", "root", "none"], "down* already"),
        ("nodes", "cn03", ["", "root", "none"], "state of Slurm is unknown"),
    ],
)
def test_what_admins_did_stays(
    tmp_path: Path, slurm: FakeSlurm, key: str, name: str, value: Any, why: str
) -> None:
    slurm.change(key, name, value)
    (one,) = act(tmp_path, alarm("cn03"), action="drain")
    assert not one.done
    assert why in one.reason
    assert slurm.calls == []


def test_foreign_reservation_of_this_name_stays(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    theirs = {"ReservationName": "seatrial-cn03", "StartTime": "x", "Users": "root"}
    slurm.change("reservations", "seatrial-cn03", {**theirs, "Nodes": "cn03"})
    (one,) = act(tmp_path, alarm("cn03"))
    assert "not ours" in one.reason
    assert slurm.calls == []


def test_nodes_that_others_took_out_count(tmp_path: Path, slurm: FakeSlurm) -> None:
    for node in NODES[50:52]:  # 2 % of 100
        slurm.change("nodes", node, ["drained", "admin", "disk"])
    (one,) = act(tmp_path, alarm("cn03"))
    assert "2 of class a are out; at most 2" in one.reason


def test_one_a_night(tmp_path: Path, slurm: FakeSlurm) -> None:
    before = np.datetime64("2026-11-24")
    first, second = act(tmp_path, alarm("cn03"), alarm("cn04", night=before))
    assert (first.node, first.done) == ("cn04", True)
    assert "at most 1 a night" in second.reason
    third = act(tmp_path, alarm("cn03"), alarm("cn04", night=before))
    assert "at most 1 a night" in third[0].reason
    caps = Caps(night=2)
    assert act(tmp_path, alarm("cn03"), caps=caps)[0].done


def test_off_switch_and_silence(tmp_path: Path, slurm: FakeSlurm) -> None:
    (tmp_path / OFF).touch()
    assert "off-switch" in act(tmp_path, alarm("cn03"))[0].reason
    (tmp_path / OFF).unlink()
    slurm.save({**slurm.load(), "silent": 1})
    assert "unknown" in act(tmp_path, alarm("cn03"))[0].reason
    assert events(tmp_path) == []


@pytest.mark.parametrize("mode", ["StartTime", "Users", "Nodes", "drain"])
def test_reason_or_reservation_changed_by_an_admin_is_no_longer_ours(
    tmp_path: Path, slurm: FakeSlurm, mode: str
) -> None:
    field = mode
    mode = "drain" if mode == "drain" else "reservation"
    act(tmp_path, alarm("cn03"), action=mode)
    if mode == "drain":
        slurm.change("nodes", "cn03", ["drained", "admin", "memory"])
    else:
        ours = slurm.load()["reservations"]["seatrial-cn03"]
        slurm.change("reservations", "seatrial-cn03", {**ours, field: "x"})
    (one,) = act(tmp_path, alarm("cn03", closed=NIGHT), action=mode)
    assert one.reason == "was gone"
    assert len(slurm.calls) == 1


def test_crash_between_intent_and_act(
    tmp_path: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(slurm_actions, "run", _crash(slurm_actions.run))
        with pytest.raises(KeyboardInterrupt):
            act(tmp_path, alarm("cn03"))
    assert [event for event, *_ in events(tmp_path)] == ["quarantined"]
    first, second = act(tmp_path, alarm("cn03"))
    assert (first.verb, first.reason) == ("release", "was gone")
    assert not second.done
    assert slurm.calls == []


def _crash(run: Any) -> Any:
    def crashing(command: tuple[str, ...]) -> str:
        if "create" in command:
            raise KeyboardInterrupt
        text: str = run(command)
        return text

    return crashing


def test_expired_reservation_is_noted(tmp_path: Path, slurm: FakeSlurm) -> None:
    act(tmp_path, alarm("cn03"))
    slurm.save({**slurm.load(), "reservations": {}})
    gone, again = act(tmp_path, alarm("cn03"))
    assert gone.reason == "was gone"
    assert "somebody put it back" in again.reason or "a night" in again.reason


def test_ledger_that_cannot_be_written_stops_the_act(
    tmp_path: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise SeatrialError("the disk is full")

    monkeypatch.setattr(actions, "note_night", full)
    with pytest.raises(SeatrialError, match="full"):
        act(tmp_path, alarm("cn03"))
    assert slurm.calls == []


def test_spool_gets_a_small_request(
    tmp_path: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "_AGENT_S", 0.0)
    spool = tmp_path / "spool"
    spool.mkdir()
    (one,) = act(tmp_path, alarm("cn03"), spool=spool)
    assert one.reason == "Slurm does not show it yet"
    (file,) = spool.iterdir()
    assert file.name.startswith("quarantine-")
    assert slurm.calls == []


def test_recommended_commands(tmp_path: Path) -> None:
    lines = actions.recommended(state(tmp_path, action="recommend"), alarm("cn03"))
    assert "Flags=MAINT,FLEX,IGNORE_JOBS" in lines[0]
    assert lines[1] == "scontrol delete ReservationName=seatrial-cn03"
    assert dataclasses.is_dataclass(actions.Action)
