"""Error counters of ports: readings of real tools on ibsim, and what grew."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cabled_fabric import planned
from click.testing import CliRunner
from ibsim_fabric import IbsimFabric, ibsim
from scipy.stats import poisson

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.fabric import counters
from seatrial.fabric.counters import (
    Grown,
    PortCounts,
    Reading,
    by_device,
    counted,
    errors_of_links,
    grown,
    read_reading,
    reading_of,
    write_reading,
)
from seatrial.fabric.discover import by_tools
from seatrial.fabric.records import Device, End, Fabric, Link, write_fabric
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.ibqueryerrors import Data, parse_data, parse_errors

PLAN = planned(hosts=16, radix=8)
ERRORS = """Errors for 0x200000200 "leaf01"
   GUID 0x200000200 port ALL: [SymbolErrorCounter == 1234] [PortRcvData == 26 (1.02MB)]
   GUID 0x200000200 port 3: [SymbolErrorCounter == 1234] [PortRcvData == 1728 (6.750KB)]

## Summary: 22 nodes checked, 1 bad nodes found
##          232 ports checked, 1 ports have errors beyond threshold
## Thresholds: 
## Suppressed:
"""


@dataclass
class Running:
    """A simulated fabric, and the file of its discovery."""

    fabric: IbsimFabric
    file: Path

    def set(self, device: str, port: int, **counters: int) -> None:
        self.fabric.console(
            *(
                f'PerformanceSet "{device}"[{port}] '
                f"PortCounters{'Extended' * ('Data' in name)}.{name}={count}"
                for name, count in counters.items()
            )
        )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("counters") / "16"
    with ibsim(folder, PLAN.cables, PLAN.kinds) as fabric:
        fabric.start_manager()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in fabric.environment.items():
                patch.setenv(name, value)
            file = folder / "fabric.json"
            write_fabric(file, by_tools())
            yield Running(fabric, file)


def watch(running: Running, before: Path, *more: str) -> tuple[int, str, str]:
    arguments = ["fabric", "watch", "lab", "--fabric", str(running.file)]
    done = CliRunner().invoke(main, [*arguments, "--before", str(before), *more])
    return done.exit_code, done.stdout, done.stderr


def test_errors_between_two_readings(running: Running, tmp_path: Path) -> None:
    """Real ibqueryerrors: all ports are read, and only what grew is told."""
    found = by_tools()
    running.set("leaf01", 3, SymbolErrorCounter=5)
    first = counted(found)
    assert len(first.ports) == 2 * len(found.links)
    assert all(port.received_words for port in first.ports), "the manager's packets"
    before = tmp_path / "before.json"
    write_reading(before, first)
    assert read_reading(before) == first
    code, text, error = watch(running, before)
    assert code == 0, text + error
    assert "0 of 64 ports have errors" in text
    running.set("leaf01", 3, SymbolErrorCounter=12, PortRcvData=10**12)
    running.set("leaf02", 1, LinkDownedCounter=2)
    running.set("cn03/mlx5_0", 1, PortRcvErrors=4)  # ibsim: port and HCA have own GUIDs
    after = tmp_path / "after.json"
    words = ["--format", "json", "--output", str(after)]
    code, text, error = watch(running, before, *words)
    assert code == 1, error
    bad = {(r["device"], r["port"]): r for r in json.loads(text) if r["errors"]}
    assert set(bad) == {("leaf01", "3"), ("leaf02", "1"), ("cn03", "mlx5_0:1")}
    assert bad["cn03", "mlx5_0:1"]["errors"] == "PortRcvErrors 4"
    worst = bad["leaf01", "3"]
    assert worst["errors"] == "SymbolErrorCounter 7"
    assert worst["bits_received"] == pytest.approx(32e12, rel=1e-3)
    assert worst["bit_error_rate_below"] == pytest.approx(13.15 / 32e12, rel=1e-2)
    head, *lines = watch(running, before, "--format", "csv")[1].splitlines()
    assert head.split(",") == [*worst]
    assert len(lines) == 64
    code, text, _ = watch(running, before)
    assert code == 1
    assert "leaf01 port 3" in text
    assert "3 of 64 ports have errors" in text
    running.set("leaf01", 3, SymbolErrorCounter=0, PortRcvData=5)
    running.set("leaf02", 1, LinkDownedCounter=255)
    code, text, _ = watch(running, after, "--format", "json")
    rows = {(r["device"], r["port"]): r for r in json.loads(text)}
    assert rows["leaf01", "3"]["cleared"] == "SymbolErrorCounter PortRcvData"
    assert rows["leaf02", "1"]["full"] == "LinkDownedCounter"
    assert code == 1, "the port went down further times"


def test_a_device_that_does_not_answer_is_an_error(running: Running) -> None:
    found = by_tools()
    running.fabric.console('Error "leaf02"[0] 100')
    with pytest.raises(SeatrialError, match=r"queries of counters failed.* on leaf02,"):
        counted(found)
    running.fabric.console('Error "leaf02"[0] 0')


def test_counters_are_read_again_if_a_query_failed(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, real, answers = by_tools(), counters.counted_in, []

    def repair_and_parse(*arguments: Any) -> Reading:
        """Parse the outputs; leaf02 answers from the next reading on."""
        answers.append(arguments)
        running.fabric.console('Error "leaf02"[0] 0')
        return real(*arguments)

    monkeypatch.setattr(counters, "counted_in", repair_and_parse)
    running.fabric.console('Error "leaf02"[0] 100')
    assert len(counted(found).ports) == 2 * len(found.links)
    assert len(answers) == 2


def test_without_a_fabric_the_tool_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints nothing, and may exit with 0."""
    found = by_tools_of(tmp_path, monkeypatch)
    monkeypatch.delenv("LD_PRELOAD")
    with pytest.raises(SeatrialError, match="needs an active HCA"):
        counted(found)


def by_tools_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Fabric:
    with ibsim(folder / "other", PLAN.cables, PLAN.kinds) as fabric:
        for name, value in fabric.environment.items():
            monkeypatch.setenv(name, value)
        return by_tools()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: "", "no line '## Summary"),
        (lambda text: text[: text.index("##")], "no line '## Summary"),
        (lambda text: text.replace("1 bad nodes", "2 bad nodes"), "announced, got 1"),
        (lambda text: text[:40], "cut off"),
        (lambda text: "what\n" + text, "line 1: 'what' is no line"),
        (lambda text: text.replace("port ALL", "port 3"), "line 3: port 3 of"),
        (
            lambda text: text + "##          19 PMA query failures\n",
            "line 9: 19 queries of counters failed, and their ports would look sound",
        ),
    ],
)
def test_damaged_output_is_an_error(change: Callable[[str], str], reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_errors(change(ERRORS))


def test_the_sum_over_a_switch_is_no_port() -> None:
    answer = parse_errors(ERRORS)
    port = ("0x0000000200000200", "3")
    assert answer.counts == {port: {"SymbolErrorCounter": 1234, "PortRcvData": 1728}}
    assert (answer.nodes, answer.ports) == (22, 232)
    assert answer.names == {"0x0000000200000200": "leaf01"}
    with pytest.raises(ParseError, match="no line '## Summary"):
        parse_data(ERRORS[: ERRORS.index("##")])


def test_errors_with_the_guid_of_a_port_are_those_of_its_hca() -> None:
    """Real output: data have the GUID of the HCA, errors that of the port."""
    text = ERRORS.replace('Errors for 0x200000200 "leaf01"', 'Errors for "cn40 mlx5_0"')
    text = text.replace("0x200000200", "0x100002b01")
    names = {"0x0000000100002b00": "cn40 mlx5_0", "0x0000000100002c00": "cn41 mlx5_0"}
    found = by_device(parse_errors(text), Data({}, names))
    assert {port: counts["SymbolErrorCounter"] for port, counts in found.items()} == {
        ("0x0000000100002b00", "3"): 1234
    }
    for name in ("cn40 mlx5_0", "other"):  # twice, or of no device
        names = dict.fromkeys(names, name)
        with pytest.raises(SeatrialError, match="expected one device of this name"):
            by_device(parse_errors(text), Data({}, names))


def reading(at: float, words: int, **errors: int) -> Reading:
    return Reading(at, (PortCounts(End("leaf1", "1"), errors, words),))


def test_bounds_of_the_error_rate_are_exact() -> None:
    """At the bound, so few errors have the chance of 5 %."""
    for errors, words in ((0, 10**9), (4, 10**9), (4, 10**12)):
        (one,) = grown(reading(0, 0), reading(60, words, SymbolErrorCounter=errors))
        bound = one.bit_error_rate()
        assert bound is not None
        assert poisson.cdf(errors, bound * one.bits) == pytest.approx(0.05)
    (idle,) = grown(reading(0, 7), reading(60, 7))
    assert idle.bit_error_rate() is None
    full = Grown(End("l", "1"), 1, {}, 10, (), ("SymbolErrorCounter",))
    assert full.bit_error_rate() is None


def test_a_counter_that_was_cleared_counts_since_then() -> None:
    before = reading(0, 100, SymbolErrorCounter=12, LinkDownedCounter=1)
    after = reading(60, 40, SymbolErrorCounter=5, LinkDownedCounter=3)
    (one,) = grown(before, after)
    assert one.cleared == ("SymbolErrorCounter", "PortRcvData")
    assert one.errors == {"SymbolErrorCounter": 5, "LinkDownedCounter": 2}
    assert one.bits == 40 * 32


def test_outputs_that_lack_devices_are_refused() -> None:
    link = Link(End("leaf1", "1"), End("leaf2", "1"))
    devices = tuple(
        Device(f"leaf{n}", "switch", guid=f"0x{n:016x}", ports=1) for n in (1, 2)
    )
    fabric = Fabric(devices, (link,))
    data = {(device.guid, "1"): {"PortRcvData": 7} for device in devices}
    whole = reading_of(fabric, data, {}, 2, 0.0)
    assert [port.received_words for port in whole.ports] == [7, 7]
    with pytest.raises(SeatrialError, match="errors of 1 devices were read, 2 are"):
        reading_of(fabric, data, {}, 1, 0.0)
    del data[devices[1].guid, "1"]
    with pytest.raises(SeatrialError, match="leaf2 is missing"):
        reading_of(fabric, data, {}, 2, 0.0)


def test_readings_out_of_order_are_refused() -> None:
    with pytest.raises(SeatrialError, match="60 s older"):
        grown(reading(60, 0), reading(0, 0))


def test_errors_of_a_link_are_those_of_both_ends() -> None:
    ends = End("leaf1", "1"), End("spine1", "4")
    changes = [
        Grown(ends[0], 1, {"SymbolErrorCounter": 3, "LinkDownedCounter": 1}, 1),
        Grown(ends[1], 1, {"SymbolErrorCounter": 4}, 1),
    ]
    links = [Link(*ends), Link(End("leaf1", "2"), End("spine1", "5"))]
    assert errors_of_links(links, changes) == [7.0, 0.0]
