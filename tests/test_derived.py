"""Derived metrics: the papers' own arithmetic, from their published numbers."""

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reframe_runs import HOME

from seatrial.criteria.published import load_published
from seatrial.model import derived
from seatrial.model.metrics import Direction
from seatrial.paths import published_dir

PUBLISHED = load_published(published_dir(HOME))
GENERAL = {number.name: number for number in PUBLISHED.general}

POSITIVE = st.floats(1e-6, 1e9)
DIRECTIONS: st.SearchStrategy[Direction] = st.sampled_from(["higher", "lower"])


def value(system: str, name: str) -> float:
    """Return a value of a paper that agrees with its other values."""
    return PUBLISHED.system(system).numbers[name].sound_value()


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
    """(servers - 1) (processors cores)^2 gives all rows."""
    rows = [number for number in PUBLISHED.general if number.experiment == "E48"]
    assert len(rows) == 5
    for number in rows:
        count = {name: int(of) for name, of in number.parameters.items()}
        here = count["processors"] * count["cores"]
        assert (count["servers"] - 1) * here**2 == number.value


def test_rates_of_pci_express_are_those_of_the_paper() -> None:
    eight = 8 * value(PCIE, "lane_bw")
    assert eight == value(PCIE, "bus_bw") == value(PCIE, "bus_bibw") / 2
    rates = [
        value(f"{name}-ddr", "transfer_rate") for name in ("clovertown", "nehalem")
    ]
    assert rates == [2.5, 5.0]


def test_nothing_published_exceeds_its_link() -> None:
    one_way = value("nehalem-qdr", "bw")
    assert 100 * one_way / 4000 == pytest.approx(76, abs=0.5)
    both = value("nehalem-qdr", "bibw")
    assert 100 * both / (2 * one_way) == pytest.approx(95, abs=0.5)
    bus, port = value(PCIE, "bus_bw"), GENERAL["port_bw"].sound_value()
    for name, link in (
        ("bw_1_port", port),
        ("bibw_1_port", 2 * port),
        ("bw_striping", min(2 * port, bus)),
        ("bibw_2_processes_binding", min(4 * port, 2 * bus)),
    ):
        assert 0 < value(PCIE, name) < link
    assert value(PCIX, "bibw_1_port") < value(PCIX, "bus_bw")


def test_contested_message_rate_is_beyond_any_link_at_its_size() -> None:
    """68 million messages per second of 128 B, and all the more of 128 KiB."""
    contested = PUBLISHED.system("connectx3-qdr").numbers["msg_rate"]
    assert contested.conflict
    assert contested.value is not None
    assert contested.value > 4000e6 / 128


def test_balance_of_small_messages() -> None:
    """50 % higher within a node is a balance of 1.5."""
    stated = GENERAL["balance_bibw_small"]
    assert (stated.derived, stated.value) == ("balance_ratio", 1.5)


# ---- what the formulas are


def test_logp() -> None:
    """L + g(0) is half a round trip; g(m) grows as round trips do."""
    assert derived.logp_latency(10.0, 2.0) == 3.0
    assert derived.logp_latency(2.0, 2.0) == -1.0
    assert derived.logp_gap(25.0, 10.0, 2.0) == 17.0
    assert derived.logp_gap(10.0, 10.0, 2.0) == 2.0


def test_ratios() -> None:
    assert derived.buffer_reuse_ratio(4.3, 1.0) == 4.3
    assert derived.queue_usage_ratio(6.0, 2.0) == 3.0


NO_NUMBERS = (0.0, -1.0, math.nan, math.inf, -math.inf)
OF_TWO: tuple[Callable[..., float], ...] = (
    lambda a, b: derived.improvement(a, b, "lower"),
    lambda a, b: derived.improvement(a, b, "higher"),
    lambda a, b: derived.factor(a, b, "lower"),
    lambda a, b: derived.factor(a, b, "higher"),
    derived.buffer_reuse_ratio,
    derived.queue_usage_ratio,
    derived.logp_latency,
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


@given(POSITIVE, POSITIVE, POSITIVE)
def test_gap_of_an_empty_message_is_that_of_the_flood(
    rtt: float, rtt_0: float, gap_0: float
) -> None:
    assert derived.logp_gap(rtt_0, rtt_0, gap_0) == gap_0
    slower = derived.logp_gap(rtt + rtt_0, rtt_0, gap_0)
    assert slower >= gap_0
    latency = derived.logp_latency(rtt_0, gap_0)
    assert latency + gap_0 == pytest.approx(rtt_0 / 2, rel=1e-6, abs=1e-6)
