"""The self-test without a lab: what is planted is lifted, and who is blamed is told."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from fake_home import write_home

from seatrial.calibration import selftest_faults
from seatrial.calibration.selftest import (
    CONTROL,
    Trial,
    lift_standing,
    planted,
    selftest,
    standing,
    trial,
)
from seatrial.calibration.selftest_faults import Fault, known_faults
from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.judge.findings import Finding, Judgement, Kind, NodeVerdict
from seatrial.system.lab.faults import LabFault

AGAIN = "seatrial selftest sea --lift"


class Machine:
    """Remembers what is planted in it."""

    def __init__(self) -> None:
        self.faults: set[str] = set()
        self.log: list[str] = []

    def fault(self, name: str = "hole", **changes: Any) -> Fault:
        fault = Fault(
            name,
            "a hole below the waterline",
            "cn02",
            plant=lambda: self.plant(name),
            lift=lambda: self.lift(name),
        )
        return replace(fault, **changes)

    def plant(self, name: str) -> None:
        self.faults.add(name)
        self.log.append(f"plant {name}")

    def lift(self, name: str) -> None:
        self.faults.discard(name)
        self.log.append(f"lift {name}")


def found(kind: Kind, place: str) -> Finding:
    case = ("PairSweep", "PairSweep", "mpi")
    return Finding(kind, *case, place=place, verdict="fail")


def judgement(*findings: Finding, convicted: tuple[str, ...] = ()) -> Judgement:
    return Judgement(
        run="r",
        system="sea",
        campaign="selftest",
        verdict="fail" if findings or convicted else "pass",
        findings=findings,
        nodes=(),
        convicted=convicted,
    )


GOOD = judgement()
CN02 = judgement(found("limit", "cn02"), convicted=("cn02",))
ABSENT = judgement(found("inventory", "cn02"))


def run_all(
    folder: Path, faults: list[Fault], answers: Callable[[Fault | None], Judgement]
) -> list[Trial]:
    return selftest(folder, faults, answers, lambda trial: None, AGAIN)


@pytest.mark.parametrize(
    ("absent", "said", "is_found", "wrongly"),
    [
        (None, GOOD, None, ()),
        (None, CN02, None, ("cn02",)),
        (None, judgement(found("case", "")), None, ("PairSweep",)),
        (False, CN02, True, ()),
        (False, GOOD, False, ()),
        (False, judgement(found("limit", "cn02 - cn03")), False, ()),
        (False, judgement(found("limit", "cn01 - cn03")), False, ("cn01 - cn03",)),
        (False, judgement(convicted=("cn02", "cn01")), True, ("cn01",)),
        (False, judgement(found("limit", "cn03 (rail1)")), False, ("cn03 (rail1)",)),
        (True, ABSENT, True, ()),
        (True, CN02, False, ()),
        (True, judgement(found("inventory", "cn04")), False, ("cn04",)),
    ],
)
def test_what_is_found_and_who_is_blamed_wrongly(
    absent: bool | None, said: Judgement, is_found: bool | None, wrongly: tuple[str]
) -> None:
    fault = None if absent is None else Machine().fault(absent=absent)
    told = trial(fault, said, 1.0)
    assert (told.found, told.wrongly) == (is_found, wrongly)
    assert told.as_it_should == (is_found is not False and not wrongly)


DOWN = replace(found("case", ""), reason="rank 1 on cn02: ibv_query_port: a:1: is down")


@pytest.mark.parametrize(
    ("said", "is_found", "wrongly"),
    [
        (judgement(found("limit", "cn01 - cn02 (a:1)")), True, ()),
        (judgement(found("node", "cn01 (a:1)")), False, ("cn01 (a:1)",)),
        (judgement(DOWN), True, ()),
        (judgement(found("case", "")), False, ()),
        (judgement(found("limit", "cn01 - cn02 (b:1)")), False, ("cn01 - cn02 (b:1)",)),
        (judgement(found("limit", "cn01 - cn03 (a:1)")), False, ("cn01 - cn03 (a:1)",)),
        (judgement(DOWN, convicted=("cn01",)), True, ("cn01",)),
        (GOOD, False, ()),
    ],
)
def test_a_fault_of_one_rail_is_found_there(
    said: Judgement, is_found: bool, wrongly: tuple[str]
) -> None:
    fault = Machine().fault(rail="a:1")
    told = trial(fault, said, 1.0)
    assert told.expected == "a:1 of cn02 fails"
    assert (told.found, told.wrongly) == (is_found, wrongly)


@pytest.mark.parametrize(("rail", "wrongly"), [("a:1", ()), ("b:1", ("cn01", "cn02"))])
def test_of_two_nodes_the_rail_is_told_and_not_the_node(
    rail: str, wrongly: tuple[str]
) -> None:
    both = [replace(found("node", node), reason="on a:1") for node in ("cn01", "cn02")]
    said = judgement(*both, convicted=("cn01", "cn02"))
    said = replace(
        said, nodes=tuple(NodeVerdict(f.place, "present", "fail", "", {}) for f in both)
    )
    told = trial(Machine().fault(rail=rail), said, 1.0)
    assert (told.found, told.wrongly) == (not wrongly, wrongly)


def test_the_control_comes_first_and_every_fault_is_alone(tmp_path: Path) -> None:
    machine = Machine()

    def answer(fault: Fault | None) -> Judgement:
        machine.log.append(f"run {sorted(machine.faults)}")
        return CN02 if fault else GOOD

    trials = run_all(tmp_path, [machine.fault("a"), machine.fault("b")], answer)
    assert machine.log == [
        "run []",
        *("plant a", "run ['a']", "lift a"),
        *("plant b", "run ['b']", "lift b"),
    ]
    assert [each.fault for each in trials] == [CONTROL, "a", "b"]
    assert all(each.as_it_should for each in trials)
    assert standing(tmp_path) == {}


@pytest.mark.parametrize("error", [SeatrialError("no"), KeyboardInterrupt(), OSError()])
def test_a_fault_is_lifted_whatever_ends_the_run(
    error: BaseException, tmp_path: Path
) -> None:
    machine = Machine()

    def answer(fault: Fault | None) -> Judgement:
        if fault:
            assert standing(tmp_path)["fault"] == "hole"
            raise error
        return GOOD

    with pytest.raises(type(error)):
        run_all(tmp_path, [machine.fault()], answer)
    assert machine.log == ["plant hole", "lift hole"]
    assert standing(tmp_path) == {}


def test_a_fault_that_is_half_planted_is_lifted(tmp_path: Path) -> None:
    machine = Machine()

    def plant() -> None:
        machine.faults.add("hole")
        raise SeatrialError("the second half failed")

    with pytest.raises(SeatrialError, match="second half"):
        run_all(tmp_path, [machine.fault(plant=plant)], lambda fault: GOOD)
    assert machine.faults == set()


def test_what_cannot_be_lifted_is_told_and_stands(tmp_path: Path) -> None:
    machine = Machine()

    def lift() -> None:
        raise SeatrialError("no answer from cn02")

    stuck = machine.fault(lift=lift)
    with pytest.raises(SeatrialError) as told:
        run_all(tmp_path, [stuck], lambda fault: GOOD)
    assert "hole on cn02 (a hole below the waterline) is NOT lifted" in str(told.value)
    assert f"Lift it by hand: {AGAIN}" in str(told.value)
    with pytest.raises(SeatrialError, match="hole on cn02 still stands since 20"):
        run_all(tmp_path, [machine.fault()], lambda fault: GOOD)
    assert lift_standing(tmp_path, lambda node: {"hole": machine.fault()}) == (
        "hole on cn02 (a hole below the waterline) is lifted"
    )
    assert standing(tmp_path) == {}
    said = lift_standing(tmp_path, lambda node: {})
    assert said == "no fault of a self-test stands"


def test_an_unknown_fault_is_not_lifted_silently(tmp_path: Path) -> None:
    (tmp_path / "planted.json").write_text("damaged")
    with pytest.raises(SeatrialError, match="unknown on unknown is unknown now"):
        lift_standing(tmp_path, lambda node: {"hole": Machine().fault()})
    assert standing(tmp_path)


def test_two_self_tests_do_not_meet(tmp_path: Path) -> None:
    def answer(fault: Fault | None) -> Judgement:
        with pytest.raises(SeatrialError, match="another self-test"):
            run_all(tmp_path, [], lambda fault: GOOD)
        return GOOD

    run_all(tmp_path, [], answer)


CHILD = """
import sys, time
from pathlib import Path
from seatrial.interrupts import interruptible
from seatrial.calibration.selftest import planted
from seatrial.calibration.selftest_faults import Fault
folder = Path(sys.argv[1])
mark = folder / "mark"
fault = Fault("hole", "w", "cn02", lambda: mark.touch(), lambda: mark.unlink())
with interruptible(), planted(folder, fault, "again"):
    print("planted", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lifts_the_fault(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "planted\n"
    assert (tmp_path / "mark").exists()
    os.kill(child.pid, number)
    assert child.wait(timeout=20) != 0
    assert not (tmp_path / "mark").exists()
    assert standing(tmp_path) == {}


def test_after_kill_9_the_next_one_refuses(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.wait(timeout=20)
    with pytest.raises(SeatrialError, match="still stands"):
        run_all(tmp_path, [], lambda fault: GOOD)
    assert standing(tmp_path)["node"] == "cn02"


# --- Which faults a system allows ---


HOSTS = "login: {hosts: {head: {seatrial_prefix: /nowhere}}}\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = write_home(tmp_path / "home")
    (home / "inventories" / "sea").mkdir(parents=True)
    return home


def inventory(home: Path, variables: str = "") -> Path:
    folder = home / "inventories" / "sea"
    (folder / "hosts.yml").write_text(HOSTS)
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / "group_vars" / "all.yml").write_text(f"port: 1\n{variables}")
    return folder


ENTRY = "name: hole, what: a hole, node: cn02, plant: touch {}, lift: rm -f {}"


def test_an_inventory_describes_faults_by_commands(home: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    entry = ENTRY.format(mark, mark)
    listed = f"[{{{entry}, checks: [Echo], repeats: 2, absent: true}}]"
    inventory(home, f"selftest_faults: {listed}\n")
    (fault,) = known_faults(home, "sea").values()
    assert (fault.name, fault.what, fault.node) == ("hole", "a hole", "cn02")
    assert (fault.checks, fault.repeats, fault.absent) == (("Echo",), 2, True)
    with planted(tmp_path, fault, AGAIN):
        assert mark.exists()
    assert not mark.exists()
    fault.lift()  # twice does no harm
    with pytest.raises(SeatrialError, match="has its own node"):
        known_faults(home, "sea", "cn01")


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ("{name: hole}", "expected a list"),
        ("[{name: hole}]", "expected mappings with lift, name, node, plant, what"),
        (f"[{{{ENTRY}, colour: red}}]", "expected mappings"),
        (f"[{{{ENTRY}, repeats: many}}]", "expected texts, a list of checks"),
        (f"[{{{ENTRY}, rail: 1}}]", "expected texts, a list of checks"),
        (f"[{{{ENTRY}}}, {{{ENTRY}}}]", "names of their own"),
    ],
)
def test_faults_badly_described_are_refused(
    described: str, expected: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(home, described.replace("{}", "x"), monkeypatch)
    with pytest.raises(SeatrialError, match=expected):
        known_faults(home, "sea")


def describe(home: Path, faults: str, patch: pytest.MonkeyPatch) -> None:
    """Let an inventory have faults, as if Ansible had read it."""
    inventory(home)
    read = {selftest_faults.VARIABLE: yaml.safe_load(faults)}
    patch.setattr(selftest_faults, "login_variables", lambda *_: read)


def test_a_command_that_fails_says_what_it_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = ENTRY.format("/nowhere/at/all", "x")
    describe(home, f"[{{{entry}}}]", monkeypatch)
    (fault,) = known_faults(home, "sea").values()
    with pytest.raises(SeatrialError, match=r"exit status 1: .*No such file"):
        fault.plant()


# --- The command, on a system whose jobs are processes of this machine ---


def command(home: Path, *arguments: str) -> Any:
    return CliRunner(env={"SEATRIAL_HOME": str(home)}).invoke(
        main, ["selftest", *arguments]
    )


def test_other_systems_refuse_unless_their_inventory_allows(home: Path) -> None:
    inventory(home)
    result = command(home, "sea")
    assert result.exit_code == 2
    assert "system 'sea' allows no self-test" in result.stderr
    assert "selftest_faults" in result.stderr


def test_the_command_knows_its_faults(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(home, f"[{{{ENTRY.format('x', 'x')}}}]", monkeypatch)
    result = command(home, "sea", "--fault", "iceberg")
    assert result.exit_code == 2
    assert "no such fault; expected one of hole" in result.stderr


def test_nothing_to_lift(home: Path) -> None:
    result = command(home, "sea", "--lift")
    assert (result.exit_code, result.stdout) == (0, "no fault of a self-test stands\n")


def test_the_lab_plants_and_lifts_on_the_node_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[tuple[str, str]] = []
    fake = LabFault(
        "a hole",
        plant=lambda node: done.append(("planted", node)),
        lift=lambda node: done.append(("lifted", node)),
    )
    lab = SimpleNamespace(nodes={"head": None, "cn01": None, "cn02": None})
    monkeypatch.setattr("seatrial.system.lab.faults.LAB_FAULTS", {"hole": fake})
    monkeypatch.setattr("seatrial.system.lab.state.require", lambda: lab)
    found = known_faults(Path(), "lab", "cn01")["hole"]
    found.plant()
    found.lift()
    assert done == [("planted", "cn01"), ("lifted", "cn01")]
