"""The numbers of one night, from its closed run."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from seatrial.history.records import Metric
from seatrial.judge.sampling import History, histories
from seatrial.model.metrics import judged_statistic
from seatrial.nightly.tonight import Fault, faults_of, gave_way, pair_name
from seatrial.runs.closed_run import Run
from seatrial.runs.fingerprint import fingerprint
from seatrial.runs.settings_table import is_stable
from seatrial.runs.verified_cache import verified

_VERSION = 4
"""Version of the numbers of a night; kept ones of others are computed anew."""


class Series(msgspec.Struct, frozen=True):
    """One metric of a night: its value by node."""

    metric: Metric
    values: dict[str, float]


class Night(msgspec.Struct, frozen=True):
    """The numbers of one closed run, and what the limits of its night say.

    `started` and `ended` are UTC seconds. `configurations` are texts by key of each
    node that some case measured, or tried to; `leafs` the leaf switches of nodes;
    `pairs` those that were measured. `yielded` counts the cases that gave way.
    `model`: the numbers are those of a model machine.
    """

    run: str
    started: float
    ended: float
    configurations: dict[str, dict[str, str]]
    leafs: dict[str, str]
    pairs: list[str]
    series: list[Series]
    faults: list[Fault]
    yielded: int
    model: bool


def night_at(path: Path, alarms_a_year: float) -> Night:
    """Return the night of a closed run; SeatrialError as `verified` raises it."""
    name = f"night-{_VERSION}-{alarms_a_year:g}"
    return verified(path, name, Night, lambda run: night_of(run, alarms_a_year))


def night_of(run: Run, alarms_a_year: float) -> Night:
    """Reduce a run to one value for each metric and node, and to its faults."""
    manifest = run.manifest
    tried = {n for case in run.cases if not gave_way(case) for n in case.nodes}
    names = [
        node
        for node in manifest["nodes"]
        if node.get("state") == "present" and node["name"] in tried
    ]
    values: dict[Metric, dict[str, list[float]]] = {}
    pairs: set[str] = set()
    for history in histories([run]):
        if history.declared:
            _add_values(history, values, pairs)
    return Night(
        run=str(manifest["run"]),
        started=datetime.fromisoformat(manifest["started"]).timestamp(),
        ended=datetime.fromisoformat(manifest["ended"]).timestamp(),
        configurations={str(n["name"]): _configuration(run, n) for n in names},
        leafs={
            str(node["name"]): str(node["facts"]["leaf"])
            for node in names
            if (node.get("facts") or {}).get("leaf")
        },
        pairs=sorted(pairs),
        series=[
            Series(metric, {node: float(np.median(own)) for node, own in of.items()})
            for metric, of in values.items()
        ],
        faults=faults_of(run, alarms_a_year),
        yielded=sum(map(gave_way, run.cases)),
        model=bool(manifest.get("model")),
    )


def _configuration(run: Run, node: Mapping[str, Any]) -> dict[str, str]:
    """Return facts, software and the stable settings of a node."""
    own = fingerprint({**run.manifest, "nodes": [node], "settings": {}})
    texts = {key: text for key, text in own.items() if key != "nodes"}
    if run.settings is None:
        return texts
    rows = run.settings.filter(
        (pl.col("node") == node["name"]) & pl.col("actual").is_not_null()
    )
    for subject, key, actual in rows.select("subject", "key", "actual").iter_rows():
        if is_stable(subject, key):
            texts[f"{subject} {key}"] = actual
    return texts


def _add_values(
    history: History, values: dict[Metric, dict[str, list[float]]], pairs: set[str]
) -> None:
    """Add the numbers of each node; a number of a pair counts for both of its nodes."""
    statistic = judged_statistic(history.rows["statistic"].unique())
    key = history.key
    metric = Metric(
        check=key.check,
        case=key.case,
        environment=key.environment,
        partition=key.partition,
        metric=history.metric,
        statistic=str(statistic),
        unit=history.unit,
        higher_is_better=history.direction == "higher",
    )
    sample = history.sampled(statistic)
    places = sample.places.select(pl.col("node", "source", "destination"))
    for names, row in zip(places.iter_rows(), sample.values, strict=True):
        known = row[np.isfinite(row)]
        if names[1] and names[2] and known.size:
            pairs.add(pair_name(names[1:]))
        for name in set(filter(None, names)):
            values.setdefault(metric, {}).setdefault(name, []).extend(known.tolist())
