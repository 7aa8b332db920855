"""Routes of a fabric, and the parts that explain slow pairs."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from closed_runs import close_run
from judge_samples import CASE, sample
from measured_fabrics import (
    SMALL,
    SWEEP,
    drawn_rounds,
    dump_tables,
    fabric_of,
    fabric_run,
    hosts_of,
    sweep_rows,
    with_lids,
)

from seatrial.calibration.simulate.fabric_rates import FabricRow, fabric_rows
from seatrial.calibration.simulate.fabric_traffic import ModelFabric
from seatrial.calibration.simulate.fabric_trials import Setting, Trial, trial
from seatrial.calibration.simulate.rates import Rate
from seatrial.checks.pairsweep.pair_list import read_pair_list
from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.fabric.counters import PortCounts, Reading, write_reading
from seatrial.fabric.generate import Shape, generate
from seatrial.fabric.locate import (
    MeasuredPaths,
    Part,
    likely_parts,
    located,
    residuals,
)
from seatrial.fabric.measured_paths import (
    bandwidths,
    forwarding_of,
    graph_of,
)
from seatrial.fabric.records import Device, End, Fabric, Kind, Link, write_fabric
from seatrial.fabric.routes import Graph, Routes
from seatrial.fabric.telling_pairs import telling_rounds
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.dump_fts import parse_dump_fts

DUMP = Path(__file__).parent / "data" / "fabric" / "dump_fts.txt"
CAPTURED = Shape("fat-tree-2", 16, radix=8)


def graph(shape: Shape = SMALL) -> Graph:
    cables = generate(shape)
    return Graph.of(hosts_of(cables), [Link(c.a, c.b) for c in cables])


def every_path(own: Graph) -> tuple[np.ndarray, np.ndarray]:
    count = len(own.hosts)
    sources, destinations = np.divmod(np.arange(count * count), count)
    apart = sources != destinations
    return sources[apart], destinations[apart]


@pytest.mark.parametrize(
    ("shape", "hops"),
    [
        (SMALL, {2, 4}),
        (Shape("fat-tree-3", 128, radix=8), {2, 4, 6}),
        (Shape("dragonfly", 72, radix=7), {2, 3, 4, 5}),
        (Shape("torus", 36, radix=12, dims=(3, 3)), {2, 3, 4}),
    ],
)
def test_planned_paths_are_shortest_and_lead_to_their_end(
    shape: Shape, hops: set[int]
) -> None:
    own = graph(shape)
    sources, destinations = every_path(own)
    crossings = Routes.planned(own).crossings(sources, destinations)
    assert set(np.bincount(crossings.path).tolist()) == hops
    steps = defaultdict(list)
    for path, arc in zip(crossings.path.tolist(), crossings.arc.tolist(), strict=True):
        steps[path].append(own.ends[arc // 2][:: -1 if arc % 2 else 1].tolist())
    for path in range(0, sources.size, 97):
        leads, here = dict(steps[path]), int(sources[path])
        for _ in steps[path]:
            here = leads[here]
        assert here == destinations[path]
    spread = Routes.planned(own, adaptive=True).crossings(sources, destinations)
    total = np.bincount(spread.path, spread.share)
    assert total == pytest.approx(np.bincount(crossings.path))


def captured_fabric() -> Fabric:
    """Return the fabric on which the tables were captured (opensm, on ibsim)."""
    text, cables = DUMP.read_text(), generate(CAPTURED)
    devices = []
    for line in text.splitlines():
        if line.startswith("0x") and "'" in line:
            lid, guid = int(line[:6], 16), line.split("portguid ")[1][:18]
            name, _, hca = line.split("'")[1].partition(" ")
            kind: Kind = "host" if hca else "switch"
            devices.append(Device(name, kind, guid=guid, hca=hca, lid=lid))
    return Fabric(tuple(dict.fromkeys(devices)), tuple(Link(c.a, c.b) for c in cables))


def test_captured_tables_lead_every_way_to_its_end() -> None:
    fabric, tables = captured_fabric(), parse_dump_fts(DUMP.read_text())
    assert len(tables) == 6
    assert {len(rows) for rows in tables.values()} == {21}, "22 LIDs but its own"
    own = graph_of(fabric, "mlx5_0")
    routes = Routes.forwarded(own, forwarding_of(fabric, tables, "mlx5_0"))
    sources, destinations = every_path(own)
    crossings = routes.crossings(sources, destinations)
    assert set(np.bincount(crossings.path).tolist()) == {2, 4}
    planned = Routes.planned(own).crossings(sources, destinations)
    assert np.bincount(crossings.path).sum() == planned.path.size


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:5000], "cut off"),
        (lambda text: "", "cut off"),
        (lambda text: text.replace("22 valid", "21 valid", 1), "line 26: 21 rows"),
        (lambda text: "ibwarn: something\n" + text, "line 1: 'ibwarn"),
        (lambda text: text + text, "a second table of switch"),
        (lambda text: text.replace("22 valid lids dumped \n", "", 1), "before the end"),
    ],
)
def test_damaged_tables_are_errors_with_their_line(
    change: Callable[[str], str], reason: str
) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_dump_fts(change(DUMP.read_text()))


def test_a_host_with_two_links_on_a_rail_is_refused() -> None:
    links = [Link(End("cn1", "mlx5_0:1"), End("leaf1", str(n))) for n in (1, 2)]
    with pytest.raises(SeatrialError, match="cn1: expected one link to a switch"):
        Graph.of(["cn1"], links)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_bad_parts_of_model_fabrics_are_found(bad: int) -> None:
    """On the routes of the switches; each seed draws other parts."""
    setting = Setting("small", bad, shape=replace(SMALL, hosts=128))
    trials = [trial(setting, seed) for seed in range(8)]
    assert not any(one.blames_sound for one in trials)
    if bad:
        assert sum(one.first_is_right for one in trials) >= 7


def test_what_pairs_cannot_tell_apart_is_told_by_counters() -> None:
    """Messages are spread over all up-links of a leaf: one of them is bad."""
    setting = Setting("adaptive", 1, "adaptive", shape=replace(SMALL, hosts=128))
    blind = {seed: trial(setting, seed) for seed in range(4)}
    cables = {
        seed: one
        for seed, one in blind.items()
        if any(kind == "cable" for kind, _ in one.faults)
    }
    assert len(cables) >= 2
    for seed, one in cables.items():
        assert one.first_is_among
        assert not one.first_is_right, "the first of equals is right by chance only"
        assert len(one.suspects[0]) == 8, "all up-links of the leaf"
        more = replace(setting, counters=True), replace(setting, then="pairs")
        for told in more:
            known = trial(told, seed)
            assert known.first_is_right
            assert len(known.suspects[0]) == 1


def measured(
    slowness: np.ndarray, group: np.ndarray, *pairs: np.ndarray
) -> MeasuredPaths:
    """Return paths of pairs with this slowness (logarithms), for planned routes."""
    crossings = Routes.planned(graph()).crossings(*pairs)
    return MeasuredPaths(*residuals(slowness, group), group, crossings)


def test_a_few_very_slow_paths_name_no_part() -> None:
    """All that cross one host are slow by 3 scatters; two others by a hundred."""
    dice = np.random.default_rng(1)
    own = graph()
    sources = dice.integers(0, len(own.hosts), 3000)
    destinations = (sources + dice.integers(1, len(own.hosts), 3000)) % len(own.hosts)
    slowness = 0.02 * dice.standard_normal(3000)
    wild = np.flatnonzero((sources == 7) & (destinations != 9))[:2]
    slowness[wild] += 2.0
    slowness[(sources == 9) | (destinations == 9)] += 0.06
    group = np.zeros(3000, dtype=np.int64)
    suspects = located(own, [measured(slowness, group, sources, destinations)])
    assert [one.parts for one in suspects] == [(Part("node", int(own.up_link[9])),)]
    assert suspects[0].slower == pytest.approx(0.06, abs=0.01)


def test_numbers_that_scatter_more_count_less() -> None:
    """Half of the numbers scatter 20 times as much: the shift is that of the others."""
    dice = np.random.default_rng(2)
    own = graph()
    sources = dice.integers(0, len(own.hosts), 4000)
    destinations = (sources + dice.integers(1, len(own.hosts), 4000)) % len(own.hosts)
    group = np.arange(4000) % 2
    slowness = np.where(group, 0.4, 0.02) * dice.standard_normal(4000)
    slowness[(sources == 9) | (destinations == 9)] += 0.05
    (suspect,) = located(own, [measured(slowness, group, sources, destinations)])
    assert suspect.parts == (Part("node", int(own.up_link[9])),)
    assert suspect.slower == pytest.approx(0.05, abs=0.01)


def test_pairs_that_tell_parts_apart_cross_one_of_them_only() -> None:
    own = graph()
    routes = Routes.planned(own)
    inner = [k for k, ends in enumerate(own.ends) if ends.min() >= len(own.hosts)]
    cable, other = Part("cable", inner[0]), Part("cable", inner[1])
    rounds = telling_rounds(routes, [cable, other])
    assert len(rounds) == 8
    pairs = [pair for one in rounds for pair in one]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs), "no pair twice"
    number = {name: k for k, name in enumerate(own.hosts)}
    for one in rounds:
        ends = np.array([[number[name] for name in pair] for pair in one])
        assert np.unique(ends).size == ends.size, "a host is in one pair"
        for near, far in ((0, 1), (1, 0)):
            crossings = routes.crossings(ends[:, near], ends[:, far])
            assert np.unique(crossings.arc).size == crossings.arc.size, "nor a link"
    ends = np.array([[number[name] for name in pair] for pair in pairs])
    crossings = routes.crossings(ends[:, 0], ends[:, 1])
    crossed = [
        {*crossings.path[crossings.arc // 2 == p.number]} for p in (cable, other)
    ]
    assert crossed[0] | crossed[1] == {*range(len(pairs))}
    assert not crossed[0] & crossed[1]
    assert abs(len(crossed[0]) - len(crossed[1])) <= 1
    adaptive = Routes.planned(own, adaptive=True)
    assert telling_rounds(adaptive, [cable, other]) == []


def test_rates_count_fabrics() -> None:
    bad = frozenset({("node", "cn1")})
    right = Trial(bad, ((("node", "cn1"),),), 0.02)
    alike = Trial(bad, ((("cable", "c1"), ("node", "cn1")),), 0.03)
    wrong = Trial(bad, ((("cable", "c1"),),), 0.01)
    luck = Trial(bad, ((("node", "cn1"), ("cable", "c1")),), 0.01, frozenset({0}))
    trials = (right, alike, wrong, luck, Trial(bad, (), 0.01))
    row = FabricRow(Setting("some", 1), trials)
    assert row.rates == {
        "first_right": Rate(1, 5),
        "first_among": Rate(3, 5),
        "all_found": Rate(1, 5),
        "sound_named": Rate(1, 5),
    }
    assert row.share == 0.03
    sound = FabricRow(Setting("none", 0), (Trial(frozenset(), (), 0.01),))
    assert sound.rates["first_right"] == Rate(0, 0)


def locate(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["fabric", "locate", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_names_the_cable_as_the_plan_does(tmp_path: Path) -> None:
    bad = next(c for c in generate(SMALL) if not c.a.device.startswith("cn"))
    run = fabric_run(tmp_path, bad.cable)
    files = (
        "--fabric",
        tmp_path / "fabric.json",
        "--routes",
        tmp_path / "dump_fts.txt",
    )
    code, text, _ = locate(run, *files, "--format", "json")
    assert code == 1
    (row,) = json.loads(text)
    assert row["part"] == f"cable {bad.cable}: {bad.a} - {bad.b}"
    assert 40 < row["slower_percent"] < 120
    assert row["one_of"] == ""
    code, text, _ = locate(run, *files, "--format", "csv")
    head, line = text.splitlines()
    assert head.split(",") == [*row]
    assert line.startswith(f"{row['part']},")
    code, text, error = locate(run, *files)
    assert (code, error) == (1, "")
    assert bad.cable in text
    assert "routes are a guess" in locate(run, *files[:2])[2]
    ports = tuple(PortCounts(end, {}, 0) for end in (bad.a, bad.b))
    write_reading(tmp_path / "before", Reading(0.0, ports))
    write_reading(tmp_path / "after", Reading(60.0, ports))
    readings = ("--counters", tmp_path / "before", tmp_path / "after")
    assert locate(run, *files, *readings)[0] == 1
    pairs = tmp_path / "pairs"
    assert locate(run, *files, "--pairs", pairs)[0] == 1
    assert pairs.read_text() == "", "nothing is left to tell apart"


def test_pairs_that_were_repeated_alone_count_with_the_load_of_their_round(
    tmp_path: Path,
) -> None:
    answers = []
    for alone in (False, True):
        folder = tmp_path / str(alone)
        folder.mkdir()
        run = fabric_run(folder, "c00100", alone=alone)
        code, text, _ = locate(
            run, "--routes", folder / "dump_fts.txt", "--format", "json"
        )
        answers.append((code, json.loads(text)[0]["part"]))
    assert answers[0] == answers[1]
    assert "cable c00100" in answers[0][1]


def test_the_pairs_of_the_first_run_tell_suspects_apart_in_a_second(
    tmp_path: Path,
) -> None:
    """Leafs that met only one other: all paths across a cable cross another, too."""
    hosts = hosts_of(generate(SMALL))
    leafs = [hosts[at : at + 8] for at in range(0, len(hosts), 8)]
    met = [
        [
            (host, far[(place + shift) % 8])
            for near, far in zip(leafs[::2], leafs[1::2], strict=True)
            for place, host in enumerate(near)
        ]
        for shift in range(8)
    ]
    run = fabric_run(tmp_path, "c00100", rounds=met)
    pairs, routes = tmp_path / "pairs", ("--routes", tmp_path / "dump_fts.txt")
    code, text, _ = locate(run, *routes, "--format", "json", "--pairs", pairs)
    (row,) = json.loads(text)
    assert (code, row["one_of"] != "") == (1, True)
    model = ModelFabric(generate(SMALL), 1, [("cable", "c00100", 1.8)])
    listed = read_pair_list(pairs, model.hosts).rounds
    rows = sweep_rows(model, listed)
    second = close_run(
        tmp_path, "20260102T000000Z-pairs", "lab", rows=rows, cases=[SWEEP]
    )
    code, text, _ = locate(run, second, *routes, "--format", "json")
    (row,) = json.loads(text)
    assert (code, row["one_of"]) == (1, "")
    assert "cable c00100" in row["part"]


def test_pairs_without_adaptive_routing_tell_the_up_link(tmp_path: Path) -> None:
    """The way out of the docs: sweep, tables tell pairs, measure these without it."""
    run = fabric_run(tmp_path, "c00100", adaptive=True)
    model = ModelFabric(generate(SMALL), 1, [("cable", "c00100", 1.8)])
    routes = ("--routes", tmp_path / "dump_fts.txt")
    code, text, _ = locate(run, "--adaptive")
    assert code == 1
    assert "one of 8 cables of leaf01" in text
    assert "adaptive routing hides which" in " ".join(text.split())
    pairs = tmp_path / "pairs"
    options = ("--adaptive", *routes, "--pairs", pairs, "--format", "json")
    code, text, _ = locate(run, *options)
    (row,) = json.loads(text)
    assert row["one_of"].count("cable c00") == 8
    rounds = read_pair_list(pairs, model.hosts).rounds
    assert row["telling_pairs"] == sum(map(len, rounds)) <= 64, "1.4 % of all pairs"
    rows = sweep_rows(model, rounds)
    second = close_run(
        tmp_path, "20260102T000000Z-pairs", "lab", rows=rows, cases=[SWEEP]
    )
    code, text, _ = locate(run, "--fixed", second, *options)
    (row,) = json.loads(text)
    assert (code, row["one_of"], row["telling_pairs"]) == (1, "", 0)
    assert "cable c00100" in row["part"]
    code, _, error = locate(run, "--fixed", second, "--adaptive")
    assert (code, "--fixed: expected --adaptive, and --routes" in error) == (2, True)


def test_tables_of_another_fabric_are_refused_and_odd_ones_warned_of(
    tmp_path: Path,
) -> None:
    run = fabric_run(tmp_path, "c00100")
    text = (tmp_path / "dump_fts.txt").read_text()
    tables = tmp_path / "tables"
    tables.write_text(re.sub(r"guid 0x....", "guid 0xabcd", text))
    code, _, error = locate(run, "--routes", tables)
    assert code == 2
    assert "the tables lead 0 % of all paths to their end; no table of leaf" in error
    assert "Expected the tables of the fabric that the run kept" in error
    odd = re.sub(r"^(0x0001) (\d+)", r"\1 300", text, count=1, flags=re.M)
    tables.write_text(odd)
    code, text, error = locate(run, "--routes", tables)
    words = " ".join(error.split())
    assert re.search(r"99.* %.*; ports without a link: \w+ port 300\. A named", words)
    assert "A named part may be wrong." in words
    assert (code, "c00100" in text) == (1, True)


def test_the_most_likely_parts_have_the_likelihood_together() -> None:
    """A leaf with a fifth of the likelihood is named; one with a hundredth is not."""
    gains = np.full(2000, 0.0)
    gains[[4, 7, 9]] = 40.0, 40.0 - np.log(4), 40.0 - np.log(100)
    assert likely_parts(gains, 4) == [4, 7]
    gains[7] = 40.0 - np.log(30)
    assert likely_parts(gains, 4) == [4]
    gains[100:132] = 40.0
    assert likely_parts(gains, 4) == [4, *range(100, 132)], "equals stay together"
    gains[:] = 3.0
    gains[4] = 11.0
    assert likely_parts(gains, 4) == [4], "many of a thousandth do not add up"


def test_simulated_fabrics_need_several_leafs() -> None:
    with pytest.raises(SeatrialError, match="--nodes 32: expected more than 32"):
        next(fabric_rows(32, fabrics=1, seed=1))


def test_a_bad_cable_is_found_on_its_rail_only(tmp_path: Path) -> None:
    cables = generate(replace(SMALL, rails=2))
    bad = next(c for c in cables if c.a.device.startswith("r1-leaf"))
    rounds, rows = drawn_rounds(hosts_of(cables), 24), []
    for rail in ("0", "1"):
        own = [c for c in cables if c.b.device.startswith(f"r{rail}-")]
        model = ModelFabric(own, 1, [("cable", bad.cable, 1.8)])
        rows += sweep_rows(model, rounds, hca=f"mlx5_{rail}:1")
        dump_tables(tmp_path / f"dump{rail}", model)
    file = tmp_path / "fabric.json"
    write_fabric(file, fabric_of(cables, ("mlx5_0", "mlx5_1")))
    with_lids(file)
    run = close_run(tmp_path, rows=rows, cases=[SWEEP])
    answers = {}
    for rail in ("0", "1"):
        options = ("--fabric", file, "--hca", f"mlx5_{rail}", "--format", "json")
        code, text, _ = locate(run, *options, "--routes", tmp_path / f"dump{rail}")
        answers[rail] = code, [row["part"] for row in json.loads(text)]
    assert answers == {"0": (0, []), "1": (1, [f"cable {bad.a} - {bad.b}"])}
    code, _, error = locate(run, "--fabric", file)
    assert (code, "expected one link to a switch on a rail" in error) == (2, True)


def test_the_load_of_a_round_counts_in_place_of_a_repetition_alone() -> None:
    pair = {"source": "cn01", "destination": "cn02", "hca": None, "session": "s"}
    kind = {"check": "PairSweep", "environment": "openmpi", "attempt": 1}
    numbers = [("bw", 12.0, 1), ("crowded_bw", 5.0, 1), ("bw", 7.0, 2)]
    rows = [
        {**pair, **kind, "metric": metric, "value": value, "round": number}
        for metric, value, number in numbers
    ]
    found = bandwidths(pl.DataFrame(rows, schema_overrides={"hca": pl.String}).lazy())
    assert sorted(found["value"]) == [5.0, 7.0]


def test_a_part_that_slows_only_some_of_its_paths_is_not_named() -> None:
    own = graph()
    dice = np.random.default_rng(3)
    sources, destinations = every_path(own)
    chosen = dice.choice(sources.size, 3000, replace=False)
    sources, destinations = sources[chosen], destinations[chosen]
    crossings = Routes.planned(own, adaptive=False).crossings(sources, destinations)
    number = next(n for n, ends in enumerate(own.ends) if ends.min() >= len(own.hosts))
    across = np.unique(crossings.path[crossings.arc // 2 == number])
    for share, named in ((1.0, [Part("cable", number)]), (0.4, [])):
        residual = dice.normal(size=3000)
        slow = across[: round(share * across.size)]
        residual[slow] += 4.5
        group = np.zeros(3000, dtype=np.int64)
        paths = MeasuredPaths(residual, np.ones(3000), group, crossings)
        assert [one.parts[0] for one in located(own, [paths])] == named


def test_what_the_command_refuses(tmp_path: Path) -> None:
    run = fabric_run(tmp_path, "c00100", keeps=False)
    code, _, error = locate(run)
    assert (code, "this run kept no fabric" in error) == (2, True)
    fabric = ("--fabric", tmp_path / "fabric.json")
    code, _, error = locate(run, *fabric, "--hca", "mlx5_9")
    assert (code, "no host with a link of mlx5_9" in error) == (2, True)
    broken = tmp_path / "broken"
    broken.write_text(DUMP.read_text()[:5000])
    code, _, error = locate(run, *fabric, "--routes", broken)
    assert (code, "cut off" in error) == (2, True)
    code, _, error = locate(run, *fabric, "--adaptive", "--fixed", run)
    assert (code, "with or without --fixed, got both" in error) == (2, True)
    other = close_run(tmp_path / "other", rows=[sample(CASE, 1.0, pair="cn01 cn02")])
    code, _, error = locate(other, *fabric)
    assert (code, "no bandwidth of pairs" in error) == (2, True)
