"""The declared risks and the power of the judge, on seeded machines of known truth.

The generator shares no code with the judge. Quick variants look at few machines, most
slow ones at 2,000.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from criteria_samples import criterion
from scipy.stats import binomtest

from seatrial.criteria.criterion import Risks
from seatrial.judge.findings import Finding
from seatrial.judge.group import Group
from seatrial.judge.place_groups import groups_of
from seatrial.judge.sampling import UNIT, Sampled
from seatrial.judge.screening import tried
from seatrial.judge.verdicts import FAIL, PASS, Ruling, rulings
from seatrial.model.places import PLACE

Floats = npt.NDArray[np.float64]

RISKS = Risks(0.05, 0.05, 0.1)
MANY = pytest.param(2000, marks=pytest.mark.slow)


def noise(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> Floats:
    """Draw stationary AR(1) series of variance 1, a row each."""
    values = rng.standard_normal(shape)
    for unit in range(1, shape[1]):
        fresh = np.sqrt(1 - rho**2) * values[:, unit]
        values[:, unit] = rho * values[:, unit - 1] + fresh
    return values


def machine(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    *,
    inside: float = 0.0,
    cv: float = 0.02,
    shared: float = 0.0,
    rho: float = 0.0,
) -> list[Floats]:
    """Draw metrics x (nodes, allocations); each limit is 100, higher is better."""
    metrics, nodes, units = shape
    return [
        100
        * (1 + inside)
        * np.exp(
            cv * noise(rng, (nodes, units), rho) + shared * noise(rng, (1, units), rho)
        )
        for _ in range(metrics)
    ]


def judged(metrics: Sequence[Floats], **rule: object) -> list[Ruling]:
    groups: list[Group] = []
    alike = "tolerance" in rule
    for number, values in enumerate(metrics):
        limit = None if alike else 100.0
        given = {"model": "lognormal", "bears": "buyer", "cap": 1000, **rule}
        asked = criterion("bw_4MiB", limit, name=f"metric {number}", **given)
        nodes, units = values.shape
        jobs = [str(unit) for unit in range(units)]
        data = Sampled(
            places=pl.DataFrame({"node": [f"cn{node:03}" for node in range(nodes)]})
            .with_columns(**{name: None for name in PLACE if name != "node"})
            .select(*PLACE)
            .cast({"socket": pl.Int64}),
            units=pl.DataFrame({"session": jobs, "job_id": jobs})
            .with_columns(run=pl.lit("run"), attempt=1)
            .select(UNIT),
            values=values,
            spoilt=np.zeros(values.shape, dtype=bool),
            higher=True,
        )
        subject = Finding("sameness" if alike else "limit", "ImbRing").held_to(asked)
        groups += groups_of(subject, asked, data)
    return list(rulings(tried(groups, RISKS)))


def share(
    machines: int, draw: Callable[[np.random.Generator], bool]
) -> tuple[float, float]:
    """Return the exact 95 % interval of the share of machines with an event."""
    hits = sum(draw(np.random.default_rng(seed)) for seed in range(machines))
    interval = binomtest(hits, machines).proportion_ci(0.95)
    return float(interval.low), float(interval.high)


def fails(ruled: Sequence[Ruling]) -> set[str]:
    return {
        name
        for ruling in ruled
        for name in ruling.names["node"].filter(pl.Series(ruling.verdict == FAIL))
    }


def passes(ruled: Sequence[Ruling]) -> bool:
    return all((ruling.verdict == PASS).all() for ruling in ruled)


@pytest.mark.parametrize("machines", [30, MANY])
@pytest.mark.parametrize("model", ["lognormal", "any"])
@pytest.mark.parametrize(
    ("units", "rho", "shared"),
    [
        (6, 0.0, 0.0),
        (6, 0.5, 0.01),
        pytest.param(12, 0.0, 0.01, marks=pytest.mark.slow),
        (12, 0.5, 0.0),
        pytest.param(20, 0.5, 0.01, marks=pytest.mark.slow),
    ],
)
def test_a_compliant_machine_hardly_ever_fails(
    machines: int, model: str, units: int, rho: float, shared: float
) -> None:
    """All places are exactly at the limit: the worst compliant machine."""

    def fail(rng: np.random.Generator) -> bool:
        drawn = machine(rng, (4, 16, units), rho=rho, shared=shared)
        return bool(fails(judged(drawn, model=model)))

    assert share(machines, fail)[0] <= RISKS.seller


@pytest.mark.parametrize("machines", [60, MANY])
@pytest.mark.parametrize("model", ["lognormal", "any"])
@pytest.mark.parametrize(
    ("units", "rho"),
    [
        (4, 0.5),
        pytest.param(6, 0.0, marks=pytest.mark.slow),
        pytest.param(6, 0.5, marks=pytest.mark.slow),
        (12, 0.5),
    ],
)
def test_a_node_at_its_limit_hardly_ever_passes(
    machines: int, model: str, units: int, rho: float
) -> None:
    def passed(rng: np.random.Generator) -> bool:
        (values,) = machine(rng, (1, 8, units), inside=0.2, rho=rho)
        values[0] /= 1.2
        return bool(judged([values], model=model)[0].verdict[0] == PASS)

    assert share(machines, passed)[0] <= RISKS.buyer


@pytest.mark.parametrize("machines", [60, MANY])
def test_a_node_5_percent_slow_is_named(machines: int) -> None:
    """6 allocations, CV 1 %, 64 nodes x 4 metrics, slow in one; sameness within 3 %."""
    sound = 0

    def named(rng: np.random.Generator) -> bool:
        nonlocal sound
        drawn = machine(rng, (4, 64, 6), cv=0.01)
        drawn[1][3] *= 0.95
        found = fails(judged(drawn, tolerance=0.03, kind="sameness"))
        sound += bool(found - {"cn003"})
        return "cn003" in found

    assert share(machines, named)[1] >= 0.85
    assert binomtest(sound, machines).proportion_ci(0.95).low <= 0.05


@pytest.mark.parametrize("metrics", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_more_damage_is_never_harder_to_convict(metrics: int) -> None:
    def convicted(rng: np.random.Generator) -> bool:
        drawn = machine(rng, (20, 16, 6), inside=0.1)
        for values in drawn[:metrics]:
            values[2] *= 0.5
        return fails(judged(drawn)) == {"cn002"}

    assert share(20, convicted)[1] >= 0.99


@pytest.mark.parametrize("machines", [40, MANY])
def test_a_machine_10_percent_inside_passes_under_correlation(machines: int) -> None:
    def passed(rng: np.random.Generator) -> bool:
        drawn = machine(rng, (4, 16, 20), inside=0.1, cv=0.01, rho=0.5)
        return passes(judged(drawn))

    assert share(machines, passed)[0] >= 0.8


@pytest.mark.parametrize("machines", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_a_large_healthy_machine_passes(machines: int) -> None:
    """1,000 nodes x 20 metrics, 5 % inside, CV 2 %, shared 1 %, 12 allocations."""

    def decided(rng: np.random.Generator) -> bool:
        return passes(judged(machine(rng, (20, 1000, 12), inside=0.05, shared=0.01)))

    assert share(machines, decided)[1] >= 0.95


def test_a_steady_bottleneck_is_convicted_beside_wild_nodes() -> None:
    """The scatter of the others says nothing about a place that does not scatter."""
    rng = np.random.default_rng(1)
    values = 600 * np.exp(1.2 * rng.standard_normal((4, 4)))
    values[2] = [59.5, 58.7, 59.7, 59.8]
    assert fails(judged([values])) == {"cn002"}
