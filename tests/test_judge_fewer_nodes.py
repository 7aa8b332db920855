"""Runs that went on with fewer nodes: which numbers are repeats of each other."""

from dataclasses import replace

import pytest
from criteria_samples import criterion
from judge_samples import LIMIT, NODES, judged, make_run, repeats, sample


def test_numbers_of_fewer_nodes_are_judged_apart() -> None:
    """Three nodes are slower as a whole; that is no repeat of four."""
    cases = repeats(6)
    cases[4:] = [replace(case, nodes=case.nodes[:3]) for case in cases[4:]]
    rows = [sample(case, 1000.0 if len(case.nodes) == 4 else 10.0) for case in cases]
    run = replace(make_run(cases, rows), cases=tuple(cases))
    told = {f.case: f for f in judged(run, LIMIT).findings if f.metric}
    assert {case: f.n for case, f in told.items()} == {
        "ImbRing": 4,
        "ImbRing on 3 nodes": 2,
    }
    assert told["ImbRing"].value == pytest.approx(1000)
    assert told["ImbRing on 3 nodes"].value == pytest.approx(10)


def test_numbers_of_single_nodes_stay_together() -> None:
    cases = repeats(6)
    cases[4:] = [replace(case, nodes=case.nodes[:3]) for case in cases[4:]]
    rows = [sample(case, 1000.0, node=name) for case in cases for name in case.nodes]
    run = replace(make_run(cases, rows), cases=tuple(cases))
    findings = judged(run, LIMIT).findings
    assert {f.case for f in findings if f.metric} == {"ImbRing"}


def test_whole_numbers_of_fewer_nodes_stay_out_of_the_case() -> None:
    """A metric of the whole allocation and of its nodes: only the nodes' stay."""
    cases = repeats(6)
    cases[4:] = [replace(case, nodes=case.nodes[:3]) for case in cases[4:]]
    rows = [sample(case, 1000.0, node=name) for case in cases for name in case.nodes]
    rows += [
        sample(case, 500.0 if len(case.nodes) == 4 else 10.0, metric="bibw")
        for case in cases
    ]
    rate = criterion("bibw_4MiB", 100.0)
    run = replace(make_run(cases, rows), cases=tuple(cases))
    run.manifest["nodes"][3]["state"] = "lost"
    findings = judged(run, LIMIT, rate).findings
    counts = {(f.case, f.metric, f.place): f.n for f in findings if f.metric}
    nodes = {("ImbRing", "bw_4MiB", name): 6 for name in NODES[:3]}
    assert counts == {
        **nodes,
        ("ImbRing", "bw_4MiB", NODES[3]): 4,
        ("ImbRing", "bibw_4MiB", ""): 4,
        ("ImbRing on 3 nodes", "bibw_4MiB", ""): 2,
    }
