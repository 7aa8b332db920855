"""The acceptance of a machine of 256 nodes: real Slurm, programs of a model machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_runs import scale_lab, seatrial

pytestmark = [pytest.mark.lab, pytest.mark.slow]

FAULTS = {
    "slow_nodes": [
        {"node": "n0100", "factor": 1.3, "area": "memory"},
        {"node": "n0200", "factor": 1.25, "area": "network"},
    ],
    "slow_leaves": [{"leaf": 5, "factor": 1.25, "area": "network"}],
    "late_nodes": [{"node": "n0030", "seconds": 5}],
}

SWEPT = ("latency_8B", "bw_1MiB")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder with the run; the lab is up until the last test has ended."""
    folder = tmp_path_factory.mktemp("acceptance")
    truth = {"seed": 1, "nodes": "n[0001-0256]", "faults": FAULTS}
    with scale_lab(folder, 256) as lab:
        lab.play("site", "-e", json.dumps({"standins_truth": truth}))
        run = ("run", "scale-lab", "--campaign", "acceptance", "--repeats", "4")
        options = ("--run-id", "model", "--no-judge")
        done = seatrial(*run, *options, results=folder, timeout_s=3 * 3600)
        (folder / "said").write_text(done.stdout + done.stderr)
        assert done.returncode == 0, done.stdout + done.stderr
        yield folder


def judged(results: Path) -> dict[str, Any]:
    """Judge the run."""
    done = seatrial("judge", "scale-lab/model", "--format", "json", results=results)
    return dict(json.loads(done.stdout))


def test_exactly_the_faults_are_found(results: Path) -> None:
    verdict = judged(results)
    assert verdict["verdict"] == "fail"
    assert verdict["convicted"] == ["n0100", "n0200"]
    found = {
        (one["check"], one["metric"], one["place"])
        for one in verdict["findings"]
        if one["verdict"] == "fail"
    }
    # The late node is within the limit of Startup. Leafs of the model count from 0.
    sweep = {(metric, of) for metric in SWEPT for of in ("n0200", "leaf leaf06")}
    assert found == {
        ("NodeSweep", "mem_bw", "n0100"),
        *(("PairSweep", metric, place) for metric, place in sweep),
    }
