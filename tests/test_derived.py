"""Derived metrics: the papers' own arithmetic, from their published numbers."""

import inspect
import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reframe_runs import HOME

from seatrial.criteria.published import load_published
from seatrial.model import derived
from seatrial.model.derived import DERIVED, Point
from seatrial.model.link_rates import INFINIBAND_LANES, LANES, PCIE_LANES
from seatrial.model.metrics import Direction
from seatrial.paths import published_dir

PUBLISHED = load_published(published_dir(HOME))
GENERAL = {number.name: number for number in PUBLISHED.general}

POSITIVE = st.floats(1e-6, 1e9)
COUNTS = st.integers(1, 1 << 20)
DIRECTIONS: st.SearchStrategy[Direction] = st.sampled_from(["higher", "lower"])


def value(system: str, name: str) -> float:
    """Give a value of a paper that nothing in it contradicts."""
    return PUBLISHED.system(system).numbers[name].sound_value()


def test_table_and_functions_agree() -> None:
    for name, metric in DERIVED.items():
        function = getattr(derived, name)
        assert metric.name == name == function.__name__
        assert function.__doc__
        assert metric.formula
        assert metric.source
    public = {
        name
        for name, function in inspect.getmembers(derived, inspect.isfunction)
        if not name.startswith("_") and function.__module__.startswith("seatrial.")
    }
    assert public == {*DERIVED}


# ---- the papers' arithmetic

PCIE, PCIX = "mt25208-pcie", "mt23108-pcix"


@pytest.mark.parametrize(
    ("name", "percent"), [("send_recv", 30.4), ("write", 20.8), ("read", 27.4)]
)
def test_latency_of_pci_express_is_20_to_30_percent_lower(
    name: str, percent: float
) -> None:
    found = derived.improvement(value(PCIE, name), value(PCIX, name), "lower")
    assert found == pytest.approx(percent, abs=0.05)
    stated = {number.name: number for number in PUBLISHED.compare(PCIE, PCIX)}
    least = stated["latency_least"].sound_value()
    most = stated["latency_most"].sound_value()
    assert least <= found < most + 0.5


def test_bandwidth_of_pci_express() -> None:
    def over(new: tuple[str, str], old: tuple[str, str]) -> float:
        return derived.factor(value(*new), value(*old), "higher")

    one = (PCIE, "bw_1_port")
    assert over(one, (PCIX, "bw_1_port")) == pytest.approx(1.245, abs=5e-4)
    both = over((PCIE, "bibw_1_port"), (PCIX, "bibw_1_port"))
    assert both == pytest.approx(2.04, abs=5e-3)
    striped = (PCIE, "mpi_bw_2_ports")
    assert over(striped, (PCIE, "mpi_bw_1_port")) == pytest.approx(1.542, abs=5e-4)
    assert over(striped, (PCIX, "mpi_bw")) == pytest.approx(1.871, abs=5e-4)
    mpi = over((PCIE, "mpi_bibw_2_ports"), (PCIX, "mpi_bibw"))
    assert mpi == pytest.approx(2.895, abs=5e-4)
    verbs = over((PCIE, "bibw_2_processes_binding"), (PCIX, "bibw_2_processes"))
    assert verbs == pytest.approx(2.902, abs=5e-4)


def test_86_percent_over_pcix_imply_805_mb_per_s() -> None:
    stated = {number.name: number for number in PUBLISHED.compare(PCIE, PCIX)}
    gain = stated["mpi_bw_2_ports"].sound_value()
    implied = value(PCIE, "mpi_bw_2_ports") / (1 + gain / 100)
    assert implied == pytest.approx(805, abs=0.5)


NPB = {
    "c": {"cg": 6.0, "ft": 5.9, "is": 8.6, "lu": 0.0, "mg": 1.2},
    "b": {"cg": 6.3, "ft": 7.3, "is": 9.8, "lu": 0.0, "mg": 0.0},
}


def test_qdr_shortens_npb_by_up_to_10_percent() -> None:
    found = {
        size: {
            name: derived.improvement(
                value("nehalem-qdr", f"npb_{name}_{size}"),
                value("nehalem-ddr", f"npb_{name}_{size}"),
                "lower",
            )
            for name in names
        }
        for size, names in NPB.items()
    }
    for size, names in NPB.items():
        assert found[size] == pytest.approx(names, abs=0.051)
    gains = [gain for names in found.values() for gain in names.values()]
    (stated,) = [
        number.sound_value()
        for number in PUBLISHED.compare("nehalem-qdr", "nehalem-ddr")
        if number.name == "npb"
    ]
    assert round(max(gains)) == stated
    assert max(gains) == found["b"]["is"]


def test_jump_at_256_bytes_and_what_the_bios_takes_off() -> None:
    below = value("connectx-ddr", "write_8_pairs_128B")
    above = value("connectx-ddr", "write_8_pairs_256B")
    muted = value("connectx-ddr", "write_8_pairs_256B_coalescing")
    jump = derived.factor(below, above, "lower")
    assert jump == pytest.approx(3.16, abs=5e-3)
    taken_off = derived.improvement(muted - below, above - below, "lower")
    assert taken_off == pytest.approx(47, abs=0.5)


def test_connections_per_nic_are_those_of_the_table() -> None:
    rows = [number for number in PUBLISHED.general if number.experiment == "E48"]
    assert len(rows) == 5
    for number in rows:
        counts = {name: int(of) for name, of in number.parameters.items()}
        assert derived.connections_per_nic(**counts) == number.value
    assert derived.connections_per_nic(1, 2, 4) == 0


def test_rates_of_pci_express_are_those_of_the_paper() -> None:
    transfer_rate = value("clovertown-ddr", "transfer_rate")
    lane = derived.pcie_rate(transfer_rate, 1)
    assert lane == value(PCIE, "lane_bw")
    eight = derived.pcie_rate(transfer_rate, 8)
    assert eight == value(PCIE, "bus_bw") == value(PCIE, "bus_bibw") / 2
    twice = derived.pcie_rate(value("nehalem-ddr", "transfer_rate"), 8)
    assert twice == 2 * eight == 4000


@pytest.mark.parametrize(
    ("name", "signalling", "rate"),
    [
        ("SDR", GENERAL["sdr_signalling_rate"].sound_value(), 1000),
        ("DDR", value("nehalem-ddr", "signalling_rate"), 2000),
        ("QDR", value("nehalem-qdr", "signalling_rate"), 4000),
    ],
)
def test_rates_of_infiniband_are_those_of_the_papers(
    name: str, signalling: float, rate: float
) -> None:
    assert 4 * INFINIBAND_LANES[name][0] == signalling
    assert derived.infiniband_rate(name) == rate
    if name == "SDR":
        assert (
            rate == GENERAL["port_bw"].value == GENERAL["port_bibw"].sound_value() / 2
        )


@pytest.mark.parametrize(
    ("name", "gbit_per_s"),
    [("FDR10", 40), ("FDR", 54.5), ("EDR", 100), ("HDR", 200), ("NDR", 400)],
)
def test_rates_of_later_infiniband_are_their_names(
    name: str, gbit_per_s: float
) -> None:
    found = derived.infiniband_rate(name) / 125
    assert found == pytest.approx(gbit_per_s, rel=1e-3)


def test_rate_of_pcie_4_x16() -> None:
    assert derived.pcie_rate(16, 16) == pytest.approx(31508, abs=1)


def test_nothing_published_exceeds_its_link() -> None:
    qdr = derived.infiniband_rate("QDR")
    one_way = value("nehalem-qdr", "bw")
    assert derived.link_share(one_way, qdr) == pytest.approx(76, abs=0.5)
    both = value("nehalem-qdr", "bibw")
    assert derived.link_share(both, 2 * one_way) == pytest.approx(95, abs=0.5)
    bus, port = value(PCIE, "bus_bw"), GENERAL["port_bw"].sound_value()
    for name, link in (
        ("bw_1_port", port),
        ("bibw_1_port", 2 * port),
        ("bw_striping", min(2 * port, bus)),
        ("bibw_2_processes_binding", min(4 * port, 2 * bus)),
    ):
        assert 0 < derived.link_share(value(PCIE, name), link) < 100
    shared = value(PCIX, "bus_bw")
    assert derived.link_share(value(PCIX, "bibw_1_port"), shared) < 100


def test_contested_message_rate_is_beyond_any_link_at_its_size() -> None:
    """68 million messages per second of 128 B, and all the more of 128 KiB."""
    contested = PUBLISHED.system("connectx3-qdr").numbers["msg_rate"]
    assert contested.conflict
    assert contested.value is not None
    qdr = derived.infiniband_rate("QDR")
    assert derived.message_rate(qdr, 128) < contested.value
    assert derived.message_rate(8.9e6, 128 << 10) == pytest.approx(68e6, rel=5e-3)


def test_balance_of_small_messages() -> None:
    """50 % higher within a node is a balance of 1.5."""
    stated = GENERAL["balance_bibw_small"]
    assert stated.derived == "balance_ratio"
    assert derived.balance_ratio(Point(1.5, 8), Point(1.0, 8)) == stated.value


def test_aggregate_bandwidth_over_pairs() -> None:
    """The older adapter falls by almost 4 times, the newer one not at all."""
    for system, many, one in (
        ("infinihost3-ddr", 1.0, 4.0),
        ("connectx-ddr", 1.0, 1.0),
    ):
        stated = PUBLISHED.system(system).numbers["write_bw_8_pairs_over_1"]
        pairs = int(stated.parameters["pairs"])
        found = derived.scaling_over_pairs(Point(many, 256, pairs), Point(one, 256))
        assert found == stated.value


# ---- what the formulas are


def test_logp() -> None:
    """L + g(0) is half a round trip; g(m) grows as round trips do."""
    assert derived.logp_latency(10.0, 2.0) == 3.0
    assert derived.logp_latency(2.0, 2.0) == -1.0
    assert derived.logp_gap(25.0, 10.0, 2.0) == 17.0
    assert derived.logp_gap(10.0, 10.0, 2.0) == 2.0


def test_overhead_connections_and_shares() -> None:
    mpi, user = Point(5.0, 8), Point(4.0, 8)
    assert derived.mpi_overhead(mpi, user) == 1.0
    assert derived.mpi_overhead_share(mpi, user) == 25.0
    assert derived.connection_latency(800.0, 10, 8) == 10.0
    assert derived.buffer_reuse_ratio(4.3, 1.0) == 4.3
    assert derived.queue_usage_ratio(6.0, 2.0) == 3.0
    assert derived.communication_share(2.5, 10.0) == 25.0
    assert derived.communication_share(0.0, 10.0) == 0.0
    assert derived.message_rate(8.0, 4) == 2e6
    assert derived.message_rate_per_ghz(80e6, 2.5) == 32e6


NO_NUMBERS = (0.0, -1.0, math.nan, math.inf, -math.inf)
OF_TWO: tuple[Callable[..., float], ...] = (
    lambda a, b: derived.improvement(a, b, "lower"),
    lambda a, b: derived.improvement(a, b, "higher"),
    lambda a, b: derived.factor(a, b, "lower"),
    lambda a, b: derived.factor(a, b, "higher"),
    lambda a, b: derived.balance_ratio(Point(a, 8), Point(b, 8)),
    lambda a, b: derived.mpi_overhead(Point(a, 8), Point(b, 8)),
    lambda a, b: derived.mpi_overhead_share(Point(a, 8), Point(b, 8)),
    lambda a, b: derived.scaling_over_pairs(Point(a, 8, 4), Point(b, 8)),
    derived.buffer_reuse_ratio,
    derived.queue_usage_ratio,
    derived.logp_latency,
    derived.link_share,
    derived.message_rate_per_ghz,
    lambda a, b: derived.logp_gap(a, b, 1.0),
    lambda a, b: derived.logp_gap(1.0, a, b),
)


@pytest.mark.parametrize("number", NO_NUMBERS)
@pytest.mark.parametrize("function", OF_TWO)
def test_what_cannot_be_measured_is_refused(
    function: Callable[..., float], number: float
) -> None:
    with pytest.raises(ValueError, match="expected a number above 0"):
        function(number, 1.0)
    with pytest.raises(ValueError, match="expected a number above 0"):
        function(1.0, number)


IMPOSSIBLE: list[tuple[Callable[[], object], str]] = [
    (lambda: Point(1.0, -1), "size_bytes is -1, expected at least 0"),
    (lambda: Point(1.0, 8, 0), "pairs is 0, expected a number above 0"),
    (
        lambda: derived.balance_ratio(Point(1.0, 8), Point(1.0, 16)),
        "size_bytes is 8 and 16, expected the same",
    ),
    (
        lambda: derived.balance_ratio(Point(1.0, 8, 2), Point(1.0, 8, 4)),
        "pairs is 2 and 4, expected the same",
    ),
    (
        lambda: derived.mpi_overhead(Point(1.0, 8), Point(1.0, 16)),
        "size_bytes is 8 and 16, expected the same",
    ),
    (
        lambda: derived.mpi_overhead_share(Point(1.0, 8, 2), Point(1.0, 8)),
        "pairs is 2 and 1, expected the same",
    ),
    (
        lambda: derived.scaling_over_pairs(Point(1.0, 8, 4), Point(1.0, 16)),
        "size_bytes is 8 and 16, expected the same",
    ),
    (
        lambda: derived.scaling_over_pairs(Point(1.0, 8, 4), Point(1.0, 8, 2)),
        "the baseline is of 2 pairs, expected 1",
    ),
    (lambda: derived.connection_latency(1.0, 0, 1), "messages is 0"),
    (lambda: derived.connection_latency(1.0, 1, 0), "connections is 0"),
    (lambda: derived.connection_latency(math.nan, 1, 1), "total_us is nan"),
    (lambda: derived.connections_per_nic(0, 1, 1), "servers is 0"),
    (lambda: derived.connections_per_nic(1, -1, 1), "processors is -1"),
    (lambda: derived.connections_per_nic(1, 1, 0), "cores is 0"),
    (lambda: derived.message_rate(1.0, 0), "size_bytes is 0"),
    (lambda: derived.message_rate(0.0, 8), "mb_per_s is 0.0"),
    (lambda: derived.communication_share(1.0, 0.0), "run_s is 0.0"),
    (lambda: derived.communication_share(2.0, 1.0), "2.0 s in MPI, expected 0 to 1.0"),
    (lambda: derived.communication_share(-1.0, 1.0), "-1.0 s in MPI, expected 0"),
    (lambda: derived.communication_share(math.nan, 1.0), "nan s in MPI, expected 0"),
    (
        lambda: derived.pcie_rate(4.0, 8),
        "4.0 GT/s is no PCI Express rate; expected 2.5",
    ),
    (lambda: derived.pcie_rate(math.nan, 8), "nan GT/s is no PCI Express rate"),
    (lambda: derived.pcie_rate(2.5, 3), "3 lanes, expected one of 1, 2, 4"),
    (lambda: derived.infiniband_rate("ADR"), "'ADR' is no InfiniBand rate; expected o"),
    (lambda: derived.infiniband_rate("SDR", 0), "0 lanes, expected one of 1, 2, 4"),
]


@pytest.mark.parametrize(("call", "reason"), IMPOSSIBLE)
def test_impossible_input_is_refused(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert reason in str(caught.value)


# ---- what holds of all numbers


@given(POSITIVE, POSITIVE, DIRECTIONS)
def test_factor_of_the_other_way_is_its_inverse(
    new: float, old: float, direction: Direction
) -> None:
    there = derived.factor(new, old, direction)
    assert there * derived.factor(old, new, direction) == pytest.approx(1)
    assert derived.factor(new, new, direction) == 1


@given(POSITIVE, POSITIVE, DIRECTIONS)
def test_improvement_and_factor_agree(
    new: float, old: float, direction: Direction
) -> None:
    assume(not math.isclose(new, old))
    percent = derived.improvement(new, old, direction)
    by = derived.factor(new, old, direction)
    assert (percent > 0) == (by > 1)
    expected = 100 * (1 - 1 / by) if direction == "lower" else 100 * (by - 1)
    assert percent == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert direction == "higher" or percent < 100


@given(POSITIVE, COUNTS, COUNTS)
def test_connection_latency_is_of_one_message(
    one_us: float, messages: int, connections: int
) -> None:
    total_us = one_us * messages * connections
    found = derived.connection_latency(total_us, messages, connections)
    assert found == pytest.approx(one_us)


@given(POSITIVE, COUNTS)
def test_message_rate_carries_the_bandwidth(mb_per_s: float, size_bytes: int) -> None:
    rate = derived.message_rate(mb_per_s, size_bytes)
    assert rate * size_bytes == pytest.approx(mb_per_s * 1e6)


@given(POSITIVE, POSITIVE, st.integers(0, 1 << 30))
def test_overhead_and_its_share_agree(mpi: float, user: float, size: int) -> None:
    pair = (Point(mpi, size), Point(user, size))
    us, percent = derived.mpi_overhead(*pair), derived.mpi_overhead_share(*pair)
    assert percent / 100 * user == pytest.approx(us)
    assert derived.balance_ratio(*pair) == pytest.approx(1 + percent / 100)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_gap_of_an_empty_message_is_that_of_the_flood(
    rtt: float, rtt_0: float, gap_0: float
) -> None:
    assert derived.logp_gap(rtt_0, rtt_0, gap_0) == gap_0
    slower = derived.logp_gap(rtt + rtt_0, rtt_0, gap_0)
    assert slower >= gap_0
    latency = derived.logp_latency(rtt_0, gap_0)
    assert latency + gap_0 == pytest.approx(rtt_0 / 2, rel=1e-6, abs=1e-6)


@given(st.sampled_from(sorted(PCIE_LANES)), st.sampled_from(LANES))
def test_pcie_rate_is_below_its_transfers(gt_per_s: float, lanes: int) -> None:
    rate = derived.pcie_rate(gt_per_s, lanes)
    assert 0.8 <= rate / (gt_per_s * lanes * 125) < 1
    assert rate == pytest.approx(lanes * derived.pcie_rate(gt_per_s, 1))


@given(st.integers(1, 1000), st.integers(1, 4), st.integers(1, 64))
def test_connections_are_those_of_a_full_mesh(
    servers: int, processors: int, cores: int
) -> None:
    """Counted at both ends, they are twice the pairs of processes on two servers."""
    here = processors * cores
    everywhere = servers * here
    pairs = math.comb(everywhere, 2) - servers * math.comb(here, 2)
    found = derived.connections_per_nic(servers, processors, cores)
    assert found * servers == 2 * pairs
