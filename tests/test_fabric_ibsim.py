"""Discovery by the real infiniband-diags on fabrics that ibsim simulates."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cabled_fabric import Cabled, planned
from click.testing import CliRunner
from ibsim_fabric import IbsimFabric, ibsim

from seatrial.cli import main
from seatrial.errors import Exit, SeatrialError
from seatrial.fabric.compare import compare
from seatrial.fabric.declaration import Declaration, SubnetManager
from seatrial.fabric.discover import by_tools, from_files
from seatrial.fabric.findings import Finding, exit_status
from seatrial.fabric.plan import Cable, Plan, plan_csv
from seatrial.fabric.records import End

PLAN = planned(hosts=64, radix=36)
LARGE = planned(hosts=648, radix=36)
NODES = {f"cn{number:02}" for number in range(1, 33)}
"""The system declares fewer nodes than the fabrics have."""

SM = Declaration(fabric_sm=SubnetManager(None, 14))


@pytest.fixture(scope="module")
def fabric64(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IbsimFabric]:
    """A simulated fabric of 64 hosts, cabled as planned, with a subnet manager."""
    folder = tmp_path_factory.mktemp("ibsim") / "64"
    with ibsim(folder, PLAN.cables, PLAN.kinds) as running:
        running.start_manager()
        yield running


def findings_of(
    running: IbsimFabric, monkeypatch: pytest.MonkeyPatch, plan: Plan = PLAN
) -> list[Finding]:
    """Discover by the tools, and compare; without what follows for up-links."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(running.folder)
    findings = compare(by_tools(), plan, SM, lambda: NODES)
    return [one for one in findings if one.kind != "uplinks"]


def as_cabled(cabled: Cabled) -> list[Cable]:
    """Return the cables of a wrongly cabled fabric, in the order of the plan."""
    rates = cabled.rates
    cables = []
    for end, far in cabled.links.items():
        if end.device < far.device or (end.device == far.device and end < far):
            width, speed = rates.get(end) or rates.get(far) or (4, "HDR")
            cables.append(Cable(end, far, width, speed))
    return sorted(cables, key=lambda one: one.a)


def test_fabric_of_64_hosts_is_as_planned(
    fabric64: IbsimFabric, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert findings_of(fabric64, monkeypatch) == []
    found = by_tools(tmp_path)
    again = from_files([tmp_path])
    assert (again.devices, again.links) == (found.devices, found.links)
    assert again.managers is not None
    assert [one.guid for one in again.managers] == [
        one.guid for one in found.managers or ()
    ]
    with pytest.raises(SeatrialError, match="exists, and nothing is overwritten"):
        by_tools(tmp_path)
    assert {one.tool: one.version for one in found.sources}["ibnetdiscover"]
    assert all(link.state == "Active" for link in found.links)
    assert found.leafs["cn19"] == ("leaf02",)


def test_unlinked_cable_and_mad_loss(
    fabric64: IbsimFabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric64.console('Unlink "leaf02"[20]')
    (finding,) = findings_of(fabric64, monkeypatch)
    assert (finding.verdict, finding.kind) == ("absent", "missing")
    assert "leaf02 port 20 Down/Polling" in finding.actual
    spine = next(one.b for one in PLAN.cables if one.a == End("leaf02", "20"))
    fabric64.console(f'Link "leaf02"[20] "{spine.device}"[{spine.port}]')
    fabric64.wait_active()
    fabric64.console('Error "cn40/mlx5_0"[1] 100')
    lossy = findings_of(fabric64, monkeypatch)
    fabric64.console('Error "cn40/mlx5_0"[1] 0')
    assert "absent" not in {one.verdict for one in lossy}
    (device,) = [one for one in lossy if one.kind == "device"]
    assert (device.verdict, device.spots[0].device) == ("unknown", "cn40")
    assert exit_status(lossy) in (Exit.UNDECIDED, Exit.FAILED)


@pytest.mark.parametrize("seed", range(6))
def test_lost_mads_never_make_an_absent_device(
    seed: int, fabric64: IbsimFabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    hosts = chance.sample(range(2, 65), 6)
    ports = [f'"cn{host:02}/mlx5_0"[1]' for host in hosts]
    ports += [f'"leaf0{chance.randint(2, 4)}"[{chance.randint(0, 20)}]']
    rate = chance.choice((20, 50, 100))
    fabric64.console(*(f"Error {port} {rate}" for port in ports))
    findings = findings_of(fabric64, monkeypatch)
    fabric64.console(*(f"Error {port} 0" for port in ports))
    assert {one.verdict for one in findings} <= {"unknown"}


def test_swapped_moved_and_slow_cables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cabled = Cabled(PLAN)
    cabled.rotate(End("leaf01", "3"), End("leaf04", "2"))
    cabled.rotate(End("leaf02", "19"), End("leaf03", "20"), End("leaf04", "21"))
    cabled.rates[End("leaf01", "25")] = (4, "EDR")
    cabled.rates[End("cn50", "mlx5_0:1")] = (1, "HDR")
    with ibsim(tmp_path / "wrong", as_cabled(cabled), PLAN.kinds) as running:
        running.start_manager()
        findings = findings_of(running, monkeypatch)
    assert [(one.verdict, one.kind) for one in findings] == [
        ("drift", "swapped"),
        ("drift", "swapped"),
        ("drift", "rate"),
        ("drift", "rate"),
    ]
    assert "exchange the plugs at leaf01 port 3 and leaf04 port 2" in findings[0].reason
    assert len(findings[1].lines) == 3
    assert {one.actual for one in findings[2:]} == {"4x EDR", "1x HDR"}


def test_guid_that_exists_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ibsim(tmp_path / "twice", PLAN.cables, PLAN.kinds) as running:
        for node in ("cn40", "cn41"):
            running.console(f'Guid "{node}/mlx5_0" 0xabc00')
        findings = findings_of(running, monkeypatch)
    twice = [one for one in findings if one.kind == "guid"]
    assert len(twice) == 1
    assert "0x00000000000abc00" in twice[0].actual
    assert not [one for one in findings if one.kind == "missing"]


def test_fabric_without_subnet_manager_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plan.csv").write_text(plan_csv(PLAN.cables))
    with ibsim(tmp_path / "bare", PLAN.cables, PLAN.kinds) as running:
        findings = findings_of(running, monkeypatch)
        file = str(tmp_path / "fabric.json")
        done = CliRunner().invoke(main, ["fabric", "discover", "lab", "--output", file])
    (manager,) = [one for one in findings if one.kind == "manager"]
    assert (manager.verdict, manager.actual) == ("absent", "no subnet manager answers")
    assert {one.kind for one in findings} == {"manager", "state"}
    assert done.exit_code == Exit.FAILED
    assert "no subnet manager is master; start opensm" in done.output
    assert Path(file).is_file()


@pytest.mark.slow
def test_fabric_of_648_hosts_is_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ibsim(tmp_path / "648", LARGE.cables, LARGE.kinds) as running:
        running.start_manager()
        assert findings_of(running, monkeypatch, LARGE) == []
        wrong = replace(LARGE.cables[5], b=LARGE.cables[6].b)
        other = replace(LARGE.cables[6], b=LARGE.cables[5].b)
        cables = (*LARGE.cables[:5], wrong, other, *LARGE.cables[7:])
        plan = Plan("plan.csv", cables, LARGE.kinds)
        (finding,) = findings_of(running, monkeypatch, plan)
        assert finding.kind == "swapped"
