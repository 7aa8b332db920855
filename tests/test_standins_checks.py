"""The checks of the campaigns on a model machine: real ReFrame and real parsers."""

from pathlib import Path
from statistics import median

import pytest
from model_runs import model_truth, run_checks, samples

from seatrial.standins.truth import Faults, SlowNode

CHECKS = (
    "NodeSweep PairSweep ImbRing ImbWithin ImbUniband ImbBiband ImbOneSided "
    "ImbMultiLatency MultiPair Balance OsuLatency OsuBandwidth OsuOneSided "
    "OsuMessageRate OsuMultiLatency Startup Halo ImbSendrecv ImbExchange ImbCollective "
    "ImbBarrier OsuCollective OsuBarrier ManyRegions BufferReuse MatchQueue LogP Hpcc "
    "Hpl HplNodes HplRacks Hpcg Npb LammpsRhodo LammpsFixed VerbsLatency VerbsAtomics "
    "VerbsBandwidth MultiPairVerbs WindowBandwidth Registration Connections "
    "VerbsPairSweep OsuClock FullLaunch Throughput HybridAffinity Congestion "
    "OsNoise Ior Mdtest"
)
"""All checks of the campaigns, and VerbsPairSweep."""

VARIABLES = {
    "calibrate": "yes",
    "NodeSweep.memlat_mib": 8,
    "NodeSweep.quiet": 0,
    "NodeSweep.fixedwork_s": 2,
    "OsNoise.seconds": 1,
    "Hpcc.n": 500,
    "Hpcg.seconds": 1,
    "Npb.problem_class": "S",
    "Throughput.jobs": 3,
    "Throughput.tasks": 4,
}
OPTIONS = [
    word for key, value in VARIABLES.items() for word in ("-S", f"{key}={value}")
]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 5, 64])
def test_every_check_passes_on_a_sound_model(nodes: int, tmp_path: Path) -> None:
    fits = {"Congestion": nodes >= 4}  # it is skipped on fewer nodes
    checks = [name for name in CHECKS.split() if fits.get(name, True)]
    rows = run_checks(tmp_path, model_truth(nodes), nodes, checks, *OPTIONS)
    assert {row["result"] for row in rows} == {"pass"}, [
        (row["name"], row["fail_reason"]) for row in rows if row["result"] != "pass"
    ]
    assert {row["unique_name"].partition("_")[0] for row in rows} == {*checks}


def test_a_slow_node_shows_in_the_samples_of_its_check(tmp_path: Path) -> None:
    slow = (SlowNode("mn0003", 1.1, "memory"), SlowNode("mn0002", 3, "noise"))
    truth = model_truth(5, noise_percent=0.2, faults=Faults(slow_nodes=slow))
    chosen = ["NodeSweep", "OsNoise"]
    row, noise = run_checks(tmp_path, truth, 5, chosen, *OPTIONS)
    lost = {sample["node"]: sample["value"] for sample in samples(noise, "os_noise")}
    assert lost["mn0002"] / median(lost.values()) == pytest.approx(3, abs=0.1)
    assert sum(lost.values()) / median(lost.values()) == pytest.approx(7, abs=0.2)
    assert row["result"] == "pass", row["fail_reason"]
    rates = {sample["node"]: sample["value"] for sample in samples(row, "mem_bw")}
    usual = median(rates.values())
    assert rates["mn0003"] / usual == pytest.approx(1 / 1.1, abs=0.02)
    assert min(rates, key=lambda node: rates[node]) == "mn0003"
