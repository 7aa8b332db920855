"""Bad nodes are taken out and brought back; nothing foreign is touched."""

import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from action_states import NODES, TODAY, alarm, state
from fake_scontrol import FakeSlurm

from seatrial.errors import SeatrialError
from seatrial.history.records import Alarm, Kind
from seatrial.nightly import actions, slurm_actions
from seatrial.nightly.actions import Action, recommended
from seatrial.nightly.settings import OFF, Caps
from seatrial.nightly.slurm_actions import user_name
from seatrial.runs import ledger
from seatrial.runs.ledger import note_night, read_ledger
from seatrial.runs.ledger_entries import parse_ledger


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm(tmp_path, NODES)
    monkeypatch.setenv("PATH", f"{fake.folder}:{os.environ['PATH']}")
    return fake


def act(folder: Path, *alarms: Alarm, **settings: Any) -> list[Action]:
    return actions.act(state(folder, *alarms, **settings), TODAY)


def events(folder: Path) -> list[tuple[str, str, str]]:
    entries = parse_ledger(read_ledger(folder / "runs") or b"").entries
    return [(e.event, e.node, e.reason) for e in entries]


def test_a_reservation_is_made_renewed_and_deleted(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    (made,) = act(tmp_path, alarm("cn03"))
    assert (made.node, made.verb, made.done) == ("cn03", "quarantine", True)
    (command,) = slurm.calls
    assert command == [
        "create",
        "reservation",
        "ReservationName=seatrial-cn03",
        "Nodes=cn03",
        "StartTime=now",
        "Duration=7-00:00:00",
        "Flags=MAINT,FLEX,IGNORE_JOBS",
        f"Users={user_name()}",
    ]
    (renewed,) = act(tmp_path, alarm("cn03"))
    assert (renewed.verb, renewed.done) == ("renew", True)
    assert slurm.calls[1][-1] == "EndTime=now+7days"
    (freed,) = act(tmp_path, alarm("cn03", closed=True))
    assert (freed.verb, freed.done) == ("release", True)
    assert slurm.reservations == {}
    assert events(tmp_path) == [
        ("quarantined", "cn03", "reservation"),
        ("released", "cn03", "its alarm is closed"),
    ]
    assert act(tmp_path, alarm("cn03", closed=True)) == []


def test_an_acknowledged_alarm_takes_nothing_out_and_keeps_what_is_out(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    act(tmp_path, alarm("cn03"))
    for node in ("cn03", "cn04"):
        name = f"2026-11-25-{node}"
        note_night(tmp_path / "runs", "acknowledged", alarm=name, until="2026-12-01")
    done = act(tmp_path, alarm("cn03"), alarm("cn04"), caps=Caps(night=2))
    assert [(one.node, one.verb) for one in done] == [("cn03", "renew")]


def test_a_drain_is_ended_by_a_person(tmp_path: Path, slurm: FakeSlurm) -> None:
    (made,) = act(tmp_path, alarm("cn03"), action="drain")
    assert made.done
    state, reason = slurm.load()["nodes"]["cn03"]
    assert state == "drained"
    assert reason.startswith("seatrial:1:20261125")
    assert reason.endswith(" 2026-11-25-cn03")
    assert act(tmp_path, alarm("cn03"), action="drain") == []
    (kept,) = act(tmp_path, alarm("cn03", closed=True), action="drain")
    assert (kept.verb, kept.done) == ("release", False)
    assert "by hand: scontrol update NodeName=cn03 State=RESUME" in str(kept)
    assert len(slurm.calls) == 1
    slurm.node("cn03", "idle")
    (seen,) = act(tmp_path, alarm("cn03", closed=True), action="drain")
    assert "somebody resumed it" in str(seen)
    assert [event for event, *_ in events(tmp_path)] == ["quarantined", "released"]


@pytest.mark.parametrize("state", ["drained*", "draining", "draining@"])
def test_our_drain_is_known_in_every_state(
    tmp_path: Path, slurm: FakeSlurm, state: str
) -> None:
    act(tmp_path, alarm("cn03"), action="drain")
    slurm.node("cn03", state, slurm.load()["nodes"]["cn03"][1])
    assert act(tmp_path, alarm("cn03"), action="drain") == []


@pytest.mark.parametrize("kind", ["machine", "common", "explained"])
def test_other_kinds_of_alarms_never_act(
    tmp_path: Path, slurm: FakeSlurm, kind: Kind
) -> None:
    assert act(tmp_path, alarm("cn03", kind)) == []
    assert recommended(state(tmp_path), alarm("cn03", kind)) == []
    assert slurm.load()["reads"] == 0


def test_recommend_does_nothing(tmp_path: Path, slurm: FakeSlurm) -> None:
    assert act(tmp_path, alarm("cn03"), action="recommend") == []
    assert slurm.load()["reads"] == 0
    out, back = recommended(state(tmp_path, action="recommend"), alarm("cn03"))
    assert out == (
        "scontrol create reservation ReservationName=seatrial-cn03 Nodes=cn03 "
        "StartTime=now Duration=7-00:00:00 Flags=MAINT,FLEX,IGNORE_JOBS "
        f"Users={user_name()}"
    )
    assert back == "scontrol delete ReservationName=seatrial-cn03"
    out, back = recommended(state(tmp_path, action="drain"), alarm("cn03"))
    reason = "'Reason=seatrial:1:hand 2026-11-25-cn03'"
    assert out == f"scontrol update NodeName=cn03 State=DRAIN {reason}"
    assert back == "scontrol update NodeName=cn03 State=RESUME"


@pytest.mark.parametrize(
    ("node", "reason", "why"),
    [
        ("drained", "disk", "drained (disk)"),
        ("draining", "disk", "draining (disk)"),
        ("down*", "none", "down* (no reason)"),
        ("idle*", "none", "idle* (no reason)"),
        ("failing", "none", "failing"),
        ("maint", "none", "maint"),
        ("allocated$", "none", "allocated$"),
        ("idle", "look at it", "idle (look at it)"),
    ],
)
def test_what_an_administrator_did_stays(
    tmp_path: Path, slurm: FakeSlurm, node: str, reason: str, why: str
) -> None:
    slurm.node("cn03", node, reason)
    (one,) = act(tmp_path, alarm("cn03"), action="drain")
    assert (one.done, slurm.calls, events(tmp_path)) == (False, [], [])
    assert why in one.reason


@pytest.mark.parametrize("node", ["idle~", "mixed", "allocated", "planned", "reserved"])
def test_nodes_that_are_in_service_are_taken_out(
    tmp_path: Path, slurm: FakeSlurm, node: str
) -> None:
    slurm.node("cn03", node)
    (one,) = act(tmp_path, alarm("cn03"))
    assert one.done, one


def test_a_node_that_is_drained_in_between_stays(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    slurm.set(then={"read": 3, "nodes": {"cn03": ["drained", "mine"]}})
    (one,) = act(tmp_path, alarm("cn03"), action="drain")
    assert "drained (mine)" in one.reason
    assert slurm.load()["nodes"]["cn03"] == ["drained", "mine"]


def test_a_foreign_reservation_of_our_name_stays(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    slurm.reserve("cn03", user_name())
    (one,) = act(tmp_path, alarm("cn03"))
    assert "somebody else made a reservation" in one.reason
    assert slurm.calls == []


@pytest.mark.parametrize(
    "other", [{"users": "admin"}, {"users": "root,admin"}, {"age": 0.1}]
)
@pytest.mark.parametrize("closed", [False, True])
def test_a_reservation_that_was_replaced_is_not_ours(
    tmp_path: Path, slurm: FakeSlurm, other: dict[str, Any], closed: bool
) -> None:
    act(tmp_path, alarm("cn03"))
    slurm.reserve("cn03", **{"users": user_name(), **other})
    first, *_ = act(tmp_path, alarm("cn03", closed=closed))
    assert (first.verb, first.reason) == ("release", "was not there")
    assert len(slurm.calls) == 1
    assert "seatrial-cn03" in slurm.reservations


def test_a_reason_that_was_changed_is_not_ours(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    act(tmp_path, alarm("cn03"), action="drain")
    slurm.node("cn03", "drained", "memory")
    gone, left = act(tmp_path, alarm("cn03"), action="drain")
    assert "changed its reason" in gone.reason
    assert not left.done
    assert slurm.load()["nodes"]["cn03"] == ["drained", "memory"]
    assert len(slurm.calls) == 1


def test_a_node_that_a_person_brought_back_is_not_taken_out_again(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    act(tmp_path, alarm("cn03"), caps=Caps(night=2))
    slurm.set(reservations={})
    slurm.node("cn03", "idle")
    gone, left = act(tmp_path, alarm("cn03"), caps=Caps(night=2))
    assert gone.reason == "was not there"
    (left,) = act(tmp_path, alarm("cn03"), caps=Caps(night=2))
    assert left.reason == "it was out for this alarm before (was not there)"
    (other,) = act(tmp_path, alarm("cn03", days=1), caps=Caps(night=2))
    assert other.done


def test_an_expired_reservation_is_noted(
    tmp_path: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=8)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "utc_now", long_ago.isoformat)
        fields = {"node": "cn03", "alarm": "2026-11-25-cn03", "token": "20261117aaaa"}
        note_night(tmp_path / "runs", "quarantined", reason="reservation", **fields)
    (one,) = act(tmp_path, alarm("cn03"), action="recommend")
    assert (one.verb, one.reason) == ("release", "expired")
    assert slurm.calls == []
    assert events(tmp_path)[1:] == [("released", "cn03", "expired")]


def test_a_crash_between_intent_and_act(
    tmp_path: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = slurm_actions.run

    def crash(command: tuple[str, ...]) -> str:
        if "create" in command:
            raise KeyboardInterrupt
        return run(command)

    with monkeypatch.context() as patch:
        patch.setattr(slurm_actions, "run", crash)
        with pytest.raises(KeyboardInterrupt):
            act(tmp_path, alarm("cn03"))
    gone, _ = act(tmp_path, alarm("cn03"))
    assert (gone.verb, gone.reason) == ("release", "was not there")
    assert [event for event, *_ in events(tmp_path)] == ["quarantined", "released"]
    assert slurm.calls == []


def test_a_crash_after_the_act(tmp_path: Path, slurm: FakeSlurm) -> None:
    act(tmp_path, alarm("cn03"))  # nothing is written after the act
    assert [event for event, *_ in events(tmp_path)] == ["quarantined"]
    (one,) = act(tmp_path, alarm("cn03", closed=True))
    assert (one.verb, one.done) == ("release", True)


def test_a_refused_command_is_tried_again_the_next_night(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    slurm.set(denied=True)
    (one,) = act(tmp_path, alarm("cn03"))
    assert "Access/permission denied; by hand: scontrol create" in str(one)
    assert events(tmp_path)[1][2].startswith("failed: ")
    slurm.set(denied=False)
    assert "caps.night is 1" in act(tmp_path, alarm("cn03"))[0].reason
    tomorrow = TODAY + timedelta(days=1)
    (again,) = actions.act(state(tmp_path, alarm("cn03")), tomorrow)
    assert again.done


def test_caps_of_a_night(tmp_path: Path, slurm: FakeSlurm) -> None:
    early, late = alarm("cn04", days=1), alarm("cn03")
    first, second = act(tmp_path, early, late)
    assert (first.node, first.done, second.done) == ("cn04", True, False)
    assert "1 taken out tonight" in second.reason
    assert "1 taken out tonight" in act(tmp_path, early, late)[1].reason
    tomorrow = TODAY + timedelta(days=1)
    assert actions.act(state(tmp_path, early, late), tomorrow)[1].done


def test_several_suspects_of_one_night_have_a_common_cause(
    tmp_path: Path, slurm: FakeSlurm
) -> None:
    both = alarm("cn03"), alarm("cn04")
    done = act(tmp_path, *both)
    assert [one.done for one in done] == [False, False]
    assert all("a common cause is likely" in one.reason for one in done)
    assert not act(tmp_path, alarm("cn03"), alarm("cn04", closed=True))[0].done
    assert slurm.calls == []
    assert [one.done for one in act(tmp_path, *both, caps=Caps(night=2))] == [True] * 2


@pytest.mark.parametrize(
    ("others", "settings", "taken"),
    [
        (1, {}, True),  # 2 % of 100 are 2
        (2, {}, False),
        (2, {"share": 0.5}, True),
        (8, {"share": 0.5}, False),
        (0, {"share": 0.001}, True),
        (1, {"share": 0.001}, False),
    ],
)
def test_nodes_that_others_took_out_count(
    tmp_path: Path,
    slurm: FakeSlurm,
    others: int,
    settings: dict[str, Any],
    taken: bool,
) -> None:
    for node in NODES[50 : 50 + others]:
        slurm.node(node, "drained", "disk")
    (one,) = act(tmp_path, alarm("cn03"), **settings)
    assert one.done is taken
    assert taken or f"{others} nodes of class batch are out" in one.reason


def test_the_off_switch(tmp_path: Path, slurm: FakeSlurm) -> None:
    act(tmp_path, alarm("cn03"))
    (tmp_path / OFF).touch()
    for closed in (False, True):
        (one,) = act(tmp_path, alarm("cn03", closed=closed), alarm("cn04", days=1))
        assert "off-switch" in str(one)
    assert len(slurm.calls) == 1


@pytest.mark.parametrize(
    "broken",
    [
        {"silent": True},
        {"nodes": {}},
        {"nodes": {"cn03": ["", "none"]}},
        {"reservations": {"x": {"Strange": "1"}}},
        {"reservations": {"x": {"ReservationName": "x", "StartTime": "(null)"}}},
    ],
)
def test_slurm_that_cannot_be_read_is_left_alone(
    tmp_path: Path, slurm: FakeSlurm, broken: dict[str, Any]
) -> None:
    act(tmp_path, alarm("cn03"))
    slurm.set(**broken)
    (one,) = act(tmp_path, alarm("cn03", closed=True), alarm("cn04", days=1))
    assert "nothing is done: the state of Slurm is not known" in str(one)
    assert len(slurm.calls) == 1
    assert len(events(tmp_path)) == 1


def test_a_ledger_that_cannot_be_written_stops_the_act(
    tmp_path: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger, "_write", full)
    (one,) = act(tmp_path, alarm("cn03"))
    assert "no space left" in one.reason
    assert slurm.calls == []


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(slurm_actions, "_LOOK_S", 0.02)
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def agent(spool: Path, do: Callable[[dict[str, Any]], None]) -> threading.Thread:
    """Take one request as the agent does: remove it, then act."""

    def work() -> None:
        end, files = time.monotonic() + 20, list[Path]()
        while not files and time.monotonic() < end:
            time.sleep(0.01)
            files = list(spool.glob("[!.]*"))
        request = json.loads(files[0].read_text())
        files[0].unlink()
        do(request)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_the_agent_is_asked(tmp_path: Path, slurm: FakeSlurm, spool: Path) -> None:
    asked: list[dict[str, Any]] = []

    def reserve(request: dict[str, Any]) -> None:
        asked.append(request)
        slurm.reserve("cn03", user_name())

    thread = agent(spool, reserve)
    (one,) = act(tmp_path, alarm("cn03"), spool=spool)
    thread.join()
    assert one.done, one
    assert slurm.calls == []
    (request,) = asked
    token, moment = request.pop("token"), request.pop("time")
    assert (len(token), token[:8]) == (16, "20261125")
    assert abs(moment - time.time()) < 60
    wanted = {"verb": "quarantine", "node": "cn03", "alarm": "2026-11-25-cn03"}
    assert request == {**wanted, "mode": "reservation"}
    thread = agent(spool, lambda _: slurm.set(reservations={}))
    (freed,) = act(tmp_path, alarm("cn03", closed=True), spool=spool)
    thread.join()
    assert (freed.verb, freed.done) == ("release", True)


def test_a_request_that_the_agent_does_not_take_is_withdrawn(
    tmp_path: Path, slurm: FakeSlurm, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_actions, "_AGENT_S", 0.1)
    (one,) = act(tmp_path, alarm("cn03"), spool=spool)
    assert "is withdrawn" in one.reason
    assert list(spool.iterdir()) == []
    assert [event for event, *_ in events(tmp_path)] == ["quarantined", "released"]


def test_a_request_that_the_agent_refuses(
    tmp_path: Path, slurm: FakeSlurm, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_actions, "_TAKEN_S", 0.1)
    agent(spool, lambda _: None)
    (one,) = act(tmp_path, alarm("cn03"), spool=spool)
    assert "its journal on the controller says why" in one.reason


def test_a_spool_that_cannot_be_written(tmp_path: Path, slurm: FakeSlurm) -> None:
    (one,) = act(tmp_path, alarm("cn03"), spool=tmp_path / "missing")
    assert "the request cannot be written" in one.reason
    assert events(tmp_path)[1][2].startswith("failed: ")


def test_a_reservation_in_the_hour_that_comes_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        start = datetime(2026, 10, 25, 2, 30)
        one = slurm_actions.Reservation("cn03", user_name(), start, start)
        for hour in (0, 1):
            moment = datetime(2026, 10, 25, hour, 29, tzinfo=UTC)
            assert one.is_of("cn03", moment)
        assert not one.is_of("cn03", datetime(2026, 10, 25, 2, 29, tzinfo=UTC))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SeatrialError, match="scontrol show node"):
        slurm_actions.run(("/nowhere/scontrol", "show", "node"))
