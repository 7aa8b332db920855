"""References measured from runs: bounds as published, and refusals."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from closed_runs import close_run
from fake_home import write, write_home
from history_runs import NODES, node_run, present, scattered
from judge_samples import CASE, make_run, sample

from seatrial.calibration.baselines import Claim, Reference, measure
from seatrial.calibration.tolerance_bounds import (
    normal_factor,
    order_rank,
    smallest_order_n,
)
from seatrial.cli import main
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import ANY
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.runs.closed_run import Run, load_run
from seatrial.runs.fingerprint import fingerprint

RUN = "20260101T000000Z-calibrate"
LOGS = Claim("lognormal")
HEAD = "schema: 1\nrisks: {seller: 0.05, buyer: 0.05}\ncriteria:\n"


@pytest.mark.parametrize(
    ("n", "coverage", "confidence", "factor"),
    [
        (2, 0.95, 0.95, 26.260),
        (3, 0.95, 0.95, 7.656),
        (5, 0.95, 0.95, 4.203),
        (10, 0.95, 0.95, 2.911),
        (30, 0.95, 0.95, 2.220),
        (10, 0.99, 0.95, 3.981),
        (3, 0.90, 0.90, 4.258),
        (43, 0.90, 0.99, 1.874),
    ],
)
def test_published_factors(
    n: int, coverage: float, confidence: float, factor: float
) -> None:
    found = normal_factor(n, coverage, confidence)
    assert found == pytest.approx(factor, abs=6e-4)


@pytest.mark.parametrize(
    ("coverage", "confidence", "n"),
    [(0.95, 0.95, 59), (0.99, 0.95, 299), (0.9, 0.9, 22), (0.9, 0.95, 29)],
)
def test_smallest_n_without_a_distribution(
    coverage: float, confidence: float, n: int
) -> None:
    assert smallest_order_n(coverage, confidence) == n
    assert order_rank(n, coverage, confidence) == 1
    assert order_rank(n - 1, coverage, confidence) == 0


@pytest.mark.parametrize(("n", "rank"), [(58, 0), (92, 1), (93, 2), (124, 3), (181, 5)])
def test_published_ranks(n: int, rank: int) -> None:
    assert order_rank(n, 0.95, 0.95) == rank


def measured(path: Path, claim: Claim = LOGS, **more: Any) -> Reference:
    (found,), refused = measure([load_run(path)], claim, **more)
    assert not refused
    return found


def refusal(path: Path, claim: Claim = LOGS) -> str:
    found, (refused,) = measure([load_run(path)], claim)
    assert not found
    return refused.reason


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param((0.0, 0.03, 0.0), marks=pytest.mark.slow),
        (0.02, 0.01, 0.02),
    ],
)
@pytest.mark.parametrize("units", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_confidence_is_kept(units: int, spread: tuple[float, float, float]) -> None:
    """In 95 % of all cases, 95 % of the allocations of each place reach the limit."""
    place, unit, rest = spread
    rng = np.random.default_rng(7)
    kept, times = 0, 200
    for number in range(200):
        sound = place * rng.standard_normal((8, 1))
        scatter = scattered(8, units, place=0, unit=unit, rest=rest, seed=number)
        values = np.exp(sound) * scatter
        run = in_memory(values)
        answers, refused = measure([run], LOGS)
        if refused:  # a test of shape or drift errs, too
            times -= 1
            continue
        (found,) = answers
        counted = [name not in found.aside for name in NODES]
        worst = np.log(100) + sound[counted].min()
        kept += np.log(found.limit) <= worst - 1.6449 * np.hypot(unit, rest)
    assert times >= 190
    assert kept >= 0.92 * times


def in_memory(values: np.ndarray) -> Run:
    case = replace(CASE, nodes=NODES)
    cases = [replace(case, session=f"s-{number}") for number in range(values.shape[1])]
    rows = [
        sample(case, value, node=name)
        for case, column in zip(cases, values.T.tolist(), strict=True)
        for name, value in zip(NODES, column, strict=True)
    ]
    return make_run(cases, rows, nodes=NODES)


def test_many_nodes_are_no_allocations(tmp_path: Path) -> None:
    path = node_run(tmp_path, RUN, scattered(8, 1))
    assert "1 allocation is too few" in refusal(path)
    wide = measured(node_run(tmp_path / "3", RUN, scattered(8, 3, rest=0, unit=0.02)))
    log_scatter = np.log(wide.typical / wide.limit) / wide.spread.within
    assert wide.n == 3
    assert log_scatter > 7


def test_without_a_distribution_59_allocations_give_the_smallest(
    tmp_path: Path,
) -> None:
    values = scattered(4, 59)
    found = measured(node_run(tmp_path, RUN, values), Claim())
    assert (found.limit, found.n) == (values.min(), 59)
    few = node_run(tmp_path / "few", RUN, values[:, :58])
    reason = refusal(few, Claim())
    assert reason == (
        "58 allocations are too few for 95 % coverage with 95 % confidence, model any: "
        "59 are needed; with --model lognormal 3, at the price of a limit 7.66 "
        "standard deviations off"
    )


def test_allocations_of_several_runs_count_together(tmp_path: Path) -> None:
    values = scattered(4, 60)
    paths = [
        node_run(
            tmp_path, f"2026010{day + 1}T000000Z-nightly", values[:, 20 * day :][:, :20]
        )
        for day in range(3)
    ]
    runs = [load_run(path) for path in paths]
    (found,), _ = measure(runs, Claim())
    assert (found.limit, found.n) == (values.min(), 60)


def test_latency_has_an_upper_limit(tmp_path: Path) -> None:
    cases = [
        replace(CASE, session=f"s-{i}", declared=("latency_8B",)) for i in range(9)
    ]
    values = scattered(1, 9)[0]
    rows = [
        sample(case, float(value), metric="latency", size=8)
        for case, value in zip(cases, values, strict=True)
    ]
    found = measured(close_run(tmp_path, RUN, rows=rows, cases=cases))
    assert found.limit > values.max()


def test_a_slow_node_is_set_aside(tmp_path: Path) -> None:
    values = scattered(8, 10)
    clean = measured(node_run(tmp_path / "clean", RUN, values))
    values[2] /= 3
    found = measured(node_run(tmp_path, RUN, values))
    assert found.aside == ("cn03",)
    assert found.limit == pytest.approx(clean.limit, rel=0.03)


@pytest.mark.parametrize(
    ("values", "more", "claim", "reason"),
    [
        (
            scattered(4, 5),
            {"case": replace(CASE, result="fail", phase="sanity", reason="lost")},
            LOGS,
            "one of its cases failed in sanity: lost",
        ),
        (np.full((4, 5), np.inf), {}, LOGS, "a value is no number"),
        (
            np.where(np.arange(4)[:, np.newaxis] == 1, np.nan, scattered(4, 5)),
            {},
            LOGS,
            "nothing was measured of cn02",
        ),
        (np.zeros((4, 5)), {}, LOGS, "a value of 0 or less has no logarithm"),
        (np.full((4, 5), 7.0), {}, LOGS, "all values of a place are equal"),
        (
            scattered(4, 20) * np.linspace(1, 2, 20),
            {},
            LOGS,
            "the numbers drift in the course of the allocations (p = ",
        ),
        (
            np.exp(np.random.default_rng(1).standard_t(1.5, (8, 30))),
            {},
            LOGS,
            "the values are not lognormal (p = ",
        ),
        (
            scattered(4, 3, level=1.0, unit=0.5),
            {},
            Claim("normal"),
            "3 allocations scatter so much that the limit would be 0 or less",
        ),
    ],
)
def test_metrics_of_which_nothing_can_be_said(
    values: np.ndarray, more: dict[str, Any], claim: Claim, reason: str, tmp_path: Path
) -> None:
    assert refusal(node_run(tmp_path, RUN, values, **more), claim).startswith(reason)


def absent() -> list[dict[str, Any]]:
    return [*present(NODES[:3]), {**present(["cn04"])[0], "state": "absent"}]


@pytest.mark.parametrize(
    ("manifests", "error"),
    [
        ([{"replay": "results/lab/r"}], "is of recorded output"),
        ([{"nodes": []}], "does not say on which nodes it was measured"),
        ([{"nodes": absent()}], "delivered nodes were absent: cn04"),
        (
            [{}, {"nodes": present(NODES[:4], kernel="6.1.9")}],
            "kernel was 6.1.0, is 6.1.9; expected runs of one configuration",
        ),
        ([{}, {"run": "20260101T000000Z-r"}], "is given twice"),
        ([{}, {"system": "other"}], "runs of lab, other; expected those of one system"),
    ],
)
def test_runs_that_are_no_reference(
    manifests: Sequence[dict[str, Any]], error: str, tmp_path: Path
) -> None:
    paths = []
    for day, manifest in enumerate(manifests):
        run = manifest.get("run", f"2026010{day + 1}T000000Z-r")
        paths.append(node_run(tmp_path / str(day), run, scattered(4, 5), **manifest))
    with pytest.raises(SeatrialError, match=error):
        measure([load_run(path) for path in paths], LOGS)


def test_an_unknown_metric_is_an_error(tmp_path: Path) -> None:
    run = load_run(node_run(tmp_path, RUN, scattered(4, 5)))
    with pytest.raises(SeatrialError, match="no number of latency_8B in 20260101"):
        measure([run], LOGS, metrics=["latency_8B"])


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = write_home(tmp_path / "home")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(home / "results"))
    return home


def seatrial(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_what_is_printed_is_criteria(lab: Path) -> None:
    case = replace(CASE, case="ImbRing %depth=4", parameters={"depth": 4, "other": 1})
    values = scattered(8, 10)
    path = node_run(lab / "results", RUN, values, case=case)
    output = lab / "measured.yaml"
    arguments = ("references", "measure", "lab/latest", "--model", "lognormal")
    result = seatrial(*arguments, "--output", str(output))
    assert result.stdout == f"1 references in {output}, 0 refused\n"
    text = output.read_text()
    assert text == seatrial(*arguments).stdout
    write(lab / "c.yaml", HEAD + text)
    (criterion,) = Criteria.load(lab / "c.yaml", known=ANY).criteria
    run = load_run(path)
    assert criterion.kind == "measured"
    assert criterion.limit is not None
    assert criterion.limit == pytest.approx(measured(path).limit, rel=1e-3)
    assert criterion.limit <= measured(path).limit
    assert criterion.where == {
        "$partition": "lab:batch",
        "$environ": "intelmpi",
        "num_nodes": 8,
        "depth": 4,
    }
    assert criterion.fingerprint == fingerprint(run.manifest)
    assert (criterion.source, criterion.provenance["n"]) == (RUN, "10")
    findings = judge(run, Criteria.load(lab / "c.yaml", known=ANY)).findings
    assert {f.verdict for f in findings if f.kind == "limit"} == {"pass"}


def test_nothing_to_say_is_an_error(lab: Path) -> None:
    node_run(lab / "results", RUN, scattered(4, 5))
    result = seatrial("references", "measure", "lab/latest", "--confidence", "90%")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "no reference can be stated:\n  5 allocations are too few" in result.stderr
    assert "90 % confidence, model any: 45 are needed" in result.stderr


@pytest.mark.parametrize("share", ["0", "1.5", "95", "100%", "x"])
def test_a_share_is_between_0_and_1(share: str, lab: Path) -> None:
    result = seatrial("references", "measure", "lab/latest", "--coverage", share)
    assert result.exit_code == 2
    assert "expected a share between 0 and 1" in result.stderr


def test_generate_writes_what_is_stale(lab: Path) -> None:
    folder = lab / "reference-data" / "lab"
    write(
        lab / "reframe-checks" / "checks" / "ring.py",
        "@rfm.simple_test\nclass ImbRing(Base):\n    reference_file = 'imb.yaml'\n",
    )
    criterion = (
        "- {check: ImbRing, document: d, clause: c, kind: promised, "
        "limits: {bw_4MiB: 60 MB/s}}\n"
    )
    write(lab / "reframe-checks" / "checks" / "fake" / "fake.py", "")
    (folder / "fake.yaml").unlink(missing_ok=True)
    write(folder / "criteria.yaml", HEAD + criterion)
    stale = seatrial("references", "generate", "lab", "--check")
    assert stale.exit_code == 1
    assert f"stale: {folder / 'imb.yaml'}" in stale.stderr
    assert not (folder / "imb.yaml").exists()
    written = seatrial("references", "generate", "lab")
    assert written.stdout == f"wrote {folder / 'imb.yaml'}\n"
    assert seatrial("references", "generate", "lab", "--check").exit_code == 0
