"""Counters of ports by their nodes: drivers, what grew, resets, wraps, damage."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_counters import (
    BNXT_RE,
    DRIVERS,
    HFI1,
    IRDMA,
    MLX5_IB,
    MLX5_ROCE,
    Port,
    read,
    text_of,
    write_ports,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from seatrial.errors import SeatrialError
from seatrial.fabric.counters import rate_below
from seatrial.fabric.node_counters import NodeCounters, parse_node_counters
from seatrial.fabric.port_growth import PortGrowth, growth_of_node
from seatrial.fabric.quantities import GREATEST, QUANTITIES
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.ethtool_counters import parse_ethtool_counters


def grown(tmp_path: Path, before: Port, after: Port) -> PortGrowth:
    """Return what a port counted within an hour."""
    first = read(tmp_path / "first", before, at=1000)
    (one,) = growth_of_node("cn01", first, read(tmp_path / "last", after, at=4600))
    return one


def test_ports_of_all_drivers_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, *DRIVERS)
    names = ["bnxt_re0:1", "hfi1_0:1", "irdma0:1", "mlx5_0:1", "mlx5_2:1"]
    assert sorted(found.ports) == names
    assert {name: port.source for name, port in found.ports.items()} == {
        "bnxt_re0:1": "sysfs ethtool",
        "hfi1_0:1": "sysfs",
        "irdma0:1": "sysfs ethtool",
        "mlx5_0:1": "sysfs",
        "mlx5_2:1": "sysfs ethtool",
    }
    assert found.boot == "boot-1"
    counters = found.ports["irdma0:1"].counters
    assert counters["hw:RNR sent"] == 0, "counters of a device with one port"
    assert "ib:symbol_error" not in found.ports["mlx5_2:1"].counters
    assert "eth:rx0_packets" not in found.ports["mlx5_2:1"].counters
    assert "eth:rx_prio3_pause" in found.ports["mlx5_2:1"].counters
    assert not any("[0]" in name for name in found.ports["bnxt_re0:1"].counters)


CASES = [
    (MLX5_IB, "counters", {"symbol_error": 7}, {"symbol_error": 7}),
    (MLX5_IB, "counters", {"link_downed": 2}, {"link_downed": 2}),
    (MLX5_IB, "hardware", {"packet_seq_err": 5, "local_ack_timeout_err": 3},
     {"retransmissions": 3}),
    (MLX5_ROCE, "ethtool", {"rx_pcs_symbol_err_phy": 4, "rx_crc_errors_phy": 2},
     {"symbol_error": 4, "port_rcv_errors": 2}),
    (MLX5_ROCE, "ethtool", {"link_down_events_phy": 2, "rx_discards_phy": 9},
     {"link_downed": 1, "receive_discards": 8}),
    (MLX5_ROCE, "counters", {"symbol_error": 9}, {}),
    (MLX5_ROCE, "hardware", {"rp_cnp_handled": 6}, {"congestion_notifications": 1}),
    (IRDMA, "ethtool", {"rx_crc_errors.nic": 4}, {"port_rcv_errors": 3}),
    (IRDMA, "net", {"carrier_down_count": 3}, {"link_downed": 1}),
    (IRDMA, "hardware", {"RetransSegs": 3}, {"retransmissions": 2}),
    (BNXT_RE, "ethtool", {"rx_pcs_symbol_err": 2, "link_down_events": 2},
     {"symbol_error": 2, "link_downed": 1}),
    (BNXT_RE, "hardware", {"to_retransmits": 3}, {"retransmissions": 1}),
    (HFI1, "counters", {"link_error_recovery": 4, "port_xmit_wait": 10},
     {"link_error_recovery": 3, "port_xmit_wait": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("port", "kind", "changed", "expected"), CASES)
def test_what_grew(
    tmp_path: Path,
    port: Port,
    kind: str,
    changed: dict[str, int],
    expected: dict[str, int],
) -> None:
    one = grown(tmp_path, port, port.counting(kind, **changed))
    assert {name: count for name, count in one.counts.items() if count} == expected
    assert (one.missing, one.cleared, one.start_time, one.seconds) == (
        "",
        (),
        1e3,
        3600,
    )


@pytest.mark.parametrize(
    ("port", "kind", "changed", "bits"),
    [
        (MLX5_IB, "counters", {"port_rcv_data": 237159415345822 + 10}, 320),
        (MLX5_ROCE, "ethtool", {"rx_bytes_phy": 9000}, 8000),
        (MLX5_ROCE, "counters", {"port_rcv_data": 200}, 0),
        (IRDMA, "ethtool", {"rx_bytes.nic": 501}, 8),
        (BNXT_RE, "ethtool", {"rx_bits": 1001, "rx_bytes": 90}, 1),
        (HFI1, "counters", {"port_rcv_data": 51}, 32),
    ],
)
def test_bits_that_passed(
    tmp_path: Path, port: Port, kind: str, changed: dict[str, int], bits: int
) -> None:
    one = grown(tmp_path, port, port.counting(kind, **changed))
    assert one.bits_received == bits
    bound = one.bit_error_rate_below()
    assert bound == (pytest.approx(2.9957 / bits, rel=1e-4) if bits else None)


def test_each_name_of_a_driver_has_one_meaning() -> None:
    names = [
        part
        for quantity in QUANTITIES.values()
        for counter in quantity.counters
        for part in counter.split(" + ")
    ]
    assert len(names) == len(set(names))
    assert all(name in names or name.endswith("_data") for name in GREATEST)


def test_a_reset_is_noticed(tmp_path: Path) -> None:
    """Counts since the reset are the least; nothing bounds the error rate."""
    before = MLX5_IB.counting("counters", symbol_error=9)
    after = MLX5_IB.counting("counters", symbol_error=2, port_rcv_data=100)
    one = grown(tmp_path, before, after)
    assert one.cleared == ("ib:symbol_error", "ib:port_rcv_data")
    assert (one.counts["symbol_error"], one.bits_received) == (2, 3200)
    assert one.bit_error_rate_below() is None


def test_a_new_boot_is_a_reset(tmp_path: Path) -> None:
    first = read(tmp_path / "first", MLX5_IB, at=1)
    last = read(tmp_path / "last", MLX5_IB, boot="boot-2", at=2)
    (one,) = growth_of_node("cn01", first, last)
    assert one.cleared == ("the node was started anew",)


def test_a_wrap_of_32_bits_gives_the_least_bits(tmp_path: Path) -> None:
    before = HFI1.counting("counters", port_rcv_data=4_000_000_000)
    one = grown(tmp_path, before, HFI1.counting("counters", port_rcv_data=1000))
    assert (one.wrapped, one.cleared) == (("ib:port_rcv_data",), ())
    assert one.bits_received == 32_000
    assert one.bit_error_rate_below() == pytest.approx(2.9957 / 32_000, rel=1e-4)


def test_full_counters_bound_nothing(tmp_path: Path) -> None:
    before = MLX5_IB.counting("counters", symbol_error=65_000)
    after = MLX5_IB.counting("counters", symbol_error=0xFFFF, link_downed=0xFF)
    one = grown(tmp_path, before, after)
    assert one.full == ("symbol_error", "link_downed", "port_xmit_wait")
    assert one.bit_error_rate_below() is None
    data = HFI1.counting("counters", port_rcv_data=0xFFFF_FFFF)
    (tmp_path / "data").mkdir()
    assert grown(tmp_path / "data", HFI1, data).bits_received is None


def test_a_port_that_is_gone_is_missing(tmp_path: Path) -> None:
    first = read(tmp_path / "first", MLX5_IB, HFI1)
    last = read(tmp_path / "last", HFI1, at=1)
    missing = {one.port: one.missing for one in growth_of_node("cn01", first, last)}
    assert missing == {"mlx5_0:1": "not there at the end", "hfi1_0:1": ""}


def test_a_port_without_a_link_is_left_out(tmp_path: Path) -> None:
    down = replace(MLX5_IB, state="1: DOWN")
    first = read(tmp_path / "first", down)
    assert [*growth_of_node("cn01", first, read(tmp_path / "down", down, at=1))] == []
    (one,) = growth_of_node("cn01", first, read(tmp_path / "up", MLX5_IB, at=1))
    assert one.missing == ""


def test_without_ethtool_nothing_bounds_the_error_rate(tmp_path: Path) -> None:
    """Linux shows 0 CRC errors of drivers that count none."""
    silent = replace(MLX5_ROCE, ethtool="", net={"rx_bytes": 9, "rx_crc_errors": 0})
    first = read(tmp_path / "first", MLX5_ROCE.counting("net", carrier_down_count=0))
    last = read(tmp_path / "last", silent.counting("net", carrier_down_count=1), at=1)
    assert last.ports["mlx5_2:1"].trouble == "ethtool: exit status 1"
    (one,) = growth_of_node("cn01", first, last)
    assert one.counts["link_downed"] == 1
    assert (one.of_bits, one.bit_error_rate_below()) == (None, None)


def test_a_port_without_counters_is_missing(tmp_path: Path) -> None:
    bare = Port("mlx5_9")
    assert grown(tmp_path, bare, bare).missing == "it has no counters"


def test_a_declared_interface_is_read(tmp_path: Path) -> None:
    plain = replace(MLX5_ROCE, device="", interface="eno1")
    text = text_of(write_ports(tmp_path, plain), "eno1", "eno9")
    ports = parse_node_counters(text).ports
    assert [*ports] == ["eno1", "eno9"]
    assert ports["eno1"].counters["eth:rx_bytes_phy"] == 8000
    assert ports["eno1"].up
    first = parse_node_counters(text)
    last = NodeCounters(first.time + 9, first.boot, first.ports)
    missing = {one.port: one.missing for one in growth_of_node("cn01", first, last)}
    assert missing == {"eno1": "", "eno9": "ethtool: exit status 1"}


def test_unreadable_counters_are_left_out(tmp_path: Path) -> None:
    """The kernel prints 'N/A (no PMA)' where a driver has none."""
    port = MLX5_IB.counting("counters")
    port = replace(port, counters={**port.counters, "symbol_error": "N/A (no PMA)"})
    one = grown(tmp_path, port, port)
    assert "symbol_error" not in one.counts
    assert one.of_bits == "port_rcv_errors"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[: len(text) // 2], "ends early"),
        (lambda text: "", "ends early"),
        (lambda text: text.replace(" time\t", " tome\t"), "time of the counters: ''"),
        (lambda text: text.replace("@\tcounters", "@\tother"), "no block of counters"),
    ],
)
def test_half_written_output_is_an_error(
    tmp_path: Path, change: object, reason: str
) -> None:
    assert callable(change)
    text = text_of(write_ports(tmp_path, MLX5_IB))
    with pytest.raises(SeatrialError, match=reason):
        parse_node_counters(change(text))


def test_two_readings_in_one_second_are_apart(tmp_path: Path) -> None:
    texts = (text_of(write_ports(tmp_path, MLX5_IB)) for _ in range(2))
    first, last = map(parse_node_counters, texts)
    assert last.time - first.time > 0
    (port,) = growth_of_node("cn01", first, last)
    assert port.seconds == last.time - first.time
    (port,) = growth_of_node("cn01", last, first)
    assert port.missing.startswith("the clock of the node went back by 0.")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("no stats available\n", 1, "expected 'NIC statistics:'"),
        ("NIC statistics:\n", 1, "no counter"),
        ("NIC statistics:\n     rx_bytes: 12", 2, "cut off"),
        ("NIC statistics:\n     rx_bytes: 12\n     rx_cr\n", 3, "no counter of"),
        ("NIC statistics:\n     rx_bytes: -1\n", 2, "no counter of"),
    ],
)
def test_damaged_ethtool(text: str, line: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason) as error:
        parse_ethtool_counters(text)
    assert error.value.line == line


def test_a_damaged_ethtool_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, replace(MLX5_ROCE, ethtool="NIC statistics:\n  rx\n"))
    trouble = found.ports["mlx5_2:1"].trouble
    assert trouble.startswith("ethtool -S ens1f0np0: "), trouble


@given(st.integers(0, 10_000), st.floats(1, 1e18), st.floats(0.5, 0.999))
def test_the_bound_is_exact(count: int, exposure: float, confidence: float) -> None:
    """At the bound, as few events have the chance that the confidence leaves."""
    expected = rate_below(count, exposure, confidence) * exposure
    assert poisson.cdf(count, expected) == pytest.approx(1 - confidence, rel=1e-6)
    assert rate_below(count + 1, exposure, confidence) * exposure > expected
