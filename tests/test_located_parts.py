"""The part of the fabric that explains slow pairs, in a judgement."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from closed_runs import close_run
from criteria_samples import criteria, criterion
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

from seatrial.calibration.simulate.fabric_traffic import ModelFabric
from seatrial.fabric.generate import generate
from seatrial.fabric.plan import Cable, plan_csv
from seatrial.fabric.records import write_fabric
from seatrial.judge.judge import Judgement, judge
from seatrial.judge.summary import format_findings
from seatrial.runs.closed_run import KEPT_DECLARATION, KEPT_FABRIC, Run, load_run

ADAPTIVE = {KEPT_DECLARATION: b"fabric_routing: adaptive\n"}
LIMIT = criterion("bw_4MiB", 11500.0, check="PairSweep", model="every")


@pytest.fixture(scope="module")
def bad() -> Cable:
    return next(c for c in generate(SMALL) if not c.a.device.startswith("cn"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, bad: Cable) -> Run:
    """Return a run on a fabric with a bad cable, with the tables of its switches."""
    folder = tmp_path_factory.mktemp("located")
    run = load_run(fabric_run(folder, bad.cable))
    with_lids(folder / "fabric.json")
    kept = {**run.kept, KEPT_FABRIC: (folder / "fabric.json").read_bytes()}
    return replace(run, kept=kept)


def with_tables(run: Run, folder: Path, text: str | None = None) -> Run:
    """Return the run as if it had kept forwarding tables: its own, or a text."""
    (folder / "system").mkdir()
    if text is None:
        text = next(run.path.parents[1].glob("dump_fts.txt")).read_text()
    (folder / "system" / "fabric_routes.txt").write_text(text)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    listed = {"checksums": {"system/fabric_routes.txt": checksum}}
    return replace(run, path=folder, manifest={**run.manifest, **listed})


def judged(run: Run) -> Judgement:
    return judge(run, criteria(LIMIT))


def keeping(run: Run, more: Mapping[str, bytes]) -> Run:
    return replace(run, kept={**run.kept, **more})


def test_the_cable_is_named_and_convicts_nothing(
    measured: Run, bad: Cable, tmp_path: Path
) -> None:
    judgement = judged(with_tables(measured, tmp_path))
    (part,) = judgement.located
    assert part.name == f"cable {bad.cable}: {bad.a} - {bad.b}"
    (member,) = part.members
    assert member.ends == ((bad.a.device, bad.a.port), (bad.b.device, bad.b.port))
    assert 0.4 < part.slower < 1.2
    assert part.words.startswith("explains slow pairs: the ")
    without = judged(measured)
    assert without.located == ()
    assert without.verdict == judgement.verdict
    assert without.convicted == judgement.convicted
    pairs = zip(judgement.findings, without.findings, strict=True)
    more = [(one, two) for one, two in pairs if one != two]
    assert more, "slow pairs are explained"
    for one, two in more:
        assert one.reason == f"{two.reason}; explained by {part.name}"
        assert replace(one, reason=two.reason) == two
        assert one.verdict == "fail"
    content = json.loads(format_findings(judgement, "json"))
    assert content["located"][0]["name"] == part.name
    assert "located" not in json.loads(format_findings(without, "json"))


def test_a_part_explains_the_pairs_of_its_rail_only(tmp_path: Path) -> None:
    cables = generate(replace(SMALL, rails=2))
    rounds, rows, bad, text = drawn_rounds(hosts_of(cables), 24), [], {}, ""
    for rail in ("0", "1"):
        own = [c for c in cables if c.b.device.startswith(f"r{rail}-")]
        bad[rail] = next(c for c in own if c.a.device.startswith("r"))
        model = ModelFabric(own, 1, [("cable", bad[rail].cable, 1.8)])
        rows += sweep_rows(model, rounds, hca=f"mlx5_{rail}:1")
        dump_tables(tmp_path / "dump.txt", model)
        text += (tmp_path / "dump.txt").read_text()
    write_fabric(tmp_path / "fabric.json", fabric_of(cables, ("mlx5_0", "mlx5_1")))
    with_lids(tmp_path / "fabric.json")
    fabric = (tmp_path / "fabric.json").read_text()
    kept = {"system/fabric.json": fabric, "system/fabric_plan.csv": plan_csv(cables)}
    kept["system/fabric_routes.txt"] = text
    path = close_run(tmp_path / "runs", rows=rows, cases=[SWEEP], kept=kept)
    judgement = judged(load_run(path))
    names = [part.name for part in judgement.located]
    assert [name.split(": ")[0] for name in names] == [
        f"cable {bad[rail].cable}" for rail in ("0", "1")
    ]
    for rail in ("0", "1"):
        place = f"(mlx5_{rail}:1)"
        of_rail = [one for one in judgement.findings if one.place.endswith(place)]
        words = " ".join(finding.reason for finding in of_rail)
        assert f"explained by {names[int(rail)]}" in words
        assert names[1 - int(rail)] not in words


def test_a_guess_names_nothing(measured: Run) -> None:
    assert judged(measured).located == ()


def test_adaptive_routing_names_all_up_links_with_the_way_out(
    tmp_path: Path, bad: Cable
) -> None:
    run = load_run(fabric_run(tmp_path, bad.cable, adaptive=True))
    judgement = judged(keeping(run, ADAPTIVE))
    (part,) = judgement.located
    assert part.name.startswith(f"one of 8 cables of {bad.a.device}: cable c0")
    assert part.name.endswith("; 5 more")
    assert {one.kind for one in part.members} == {"cable"}
    assert bad.cable in " ".join(one.name for one in part.members)
    assert sum(one.likely for one in part.members) == pytest.approx(1.0)
    assert "adaptive routing hides which: measure pairs without it" in part.words
    slow = [one for one in judgement.findings if one.verdict == "fail"]
    assert any(f"explained by {part.name}" in one.reason for one in slow)


def test_tables_that_do_not_fit_name_nothing(measured: Run, tmp_path: Path) -> None:
    lines = next(measured.path.parents[1].glob("dump_fts.txt")).read_text()
    moved = lines.replace("0x00", "0x10")
    judgement = judged(with_tables(measured, tmp_path, moved))
    assert judgement.located == ()
    assert any("the tables lead 0 % of all paths" in note for note in judgement.notes)
    assert any("run dump_fts beside the discovery" in note for note in judgement.notes)


def test_tables_that_changed_after_the_run_name_nothing(
    measured: Run, tmp_path: Path
) -> None:
    run = with_tables(measured, tmp_path)
    file = tmp_path / "system" / "fabric_routes.txt"
    file.write_text(file.read_text() + "\n")
    judgement = judged(run)
    assert judgement.located == ()
    assert any("not as the manifest lists it" in note for note in judgement.notes)


def test_damaged_tables_are_said_with_their_line(measured: Run, tmp_path: Path) -> None:
    text = next(measured.path.parents[1].glob("dump_fts.txt")).read_text()
    judgement = judged(with_tables(measured, tmp_path, text[:5000]))
    assert judgement.located == ()
    (note,) = [one for one in judgement.notes if one.startswith("slow pairs: ")]
    assert "fabric_routes.txt" in note
    assert "line " in note
