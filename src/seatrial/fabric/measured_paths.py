"""The pairs of a run as paths of a fabric."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from seatrial.errors import SeatrialError
from seatrial.fabric.locate import (
    MeasuredPaths,
    Part,
    expected_load,
    residuals,
)
from seatrial.fabric.records import Fabric
from seatrial.fabric.routes import Forwarding, Graph, Numbers, Routes
from seatrial.parsers.fabric.dump_fts import Tables

KIND = ("check", "environment")
"""Columns of numbers that may be compared with each other."""

ROUND = (*KIND, "session", "attempt", "round")
"""Columns of what was measured at the same time."""

CHECKS = ("PairSweep", "VerbsPairSweep")
"""Checks whose bandwidths are those of paths."""

_CROWDED = "crowded_bw"
_FEWEST_LIKES = 100


def graph_of(fabric: Fabric, hca: str = "") -> Graph:
    """Return the hosts, switches and links of one rail; all without `hca`.

    SeatrialError if a host has no link to a switch there, or several.
    """
    hosts = {one.name for one in fabric.devices if one.kind == "host"}
    links = [
        link
        for link in fabric.links
        if not any(
            end.device in hosts and hca and end.port.partition(":")[0] != hca
            for end in (link.a, link.b)
        )
    ]
    there = {end.device for link in links for end in (link.a, link.b)} & hosts
    if not there:
        raise SeatrialError(f"no host with a link of {hca or 'any HCA'} in the fabric")
    return Graph.of(sorted(there), links)


def forwarding_of(fabric: Fabric, tables: Tables, hca: str = "") -> Forwarding:
    """Return forwarding tables by the names of switches and hosts."""
    names = {one.guid: one.name for one in fabric.devices if one.kind == "switch"}
    hosts = {
        one.lid: one.name
        for one in fabric.devices
        if one.kind == "host" and one.lid and hca in ("", one.hca)
    }
    return {
        names[guid]: {hosts[lid]: port for lid, port in rows.items() if lid in hosts}
        for guid, rows in tables.items()
        if guid in names
    }


def bandwidths(rows: pl.LazyFrame, hca: str = "", most: int = 0) -> pl.DataFrame:
    """Return the bandwidths of sweeps in `measurements`, as `paths_of` takes them.

    Those of one rail, or all without `hca`, under the load of a round: not of pairs
    that were repeated alone. Of more than `most` rows, whole rounds are left out
    evenly; 0: none are.
    """
    wanted = [
        pl.col("check").cast(pl.String).is_in(CHECKS),
        pl.col("metric").cast(pl.String).is_in(("bw", _CROWDED)),
        pl.col("source").is_not_null(),
        pl.col("value") > 0,
    ]
    if hca:
        named = pl.col("hca").cast(pl.String).str.split(":").list.first()
        wanted.append(named.fill_null(hca) == hca)
    columns = ("source", "destination", "value", "metric", *ROUND)
    found = rows.filter(wanted).select(columns)
    if most:
        rounds = found.group_by(ROUND).len().collect(engine="streaming").sort(ROUND)
        if (total := int(rounds["len"].sum())) > most:
            few = rounds.gather_every(math.ceil(total / most)).select(ROUND)
            found = found.join(few.lazy(), on=ROUND, how="semi", nulls_equal=True)
    crowded = pl.col("metric").cast(pl.String) == _CROWDED
    repeated = crowded.any().over("source", "destination", *ROUND)
    texts = pl.col("source", "destination", "session", *KIND).cast(pl.String)
    return (
        found.collect().filter(crowded | ~repeated).drop("metric").with_columns(texts)
    )


def paths_of(routes: Routes, rows: pl.DataFrame) -> MeasuredPaths:
    """Return the paths of measured bandwidths.

    `rows` has `source`, `destination`, `value` (a rate) and the columns of `ROUND`, as
    `measurements`; hosts that the fabric lacks are left out. Pairs of a round share
    links: rates are compared among paths with the same greatest load.
    """
    number = {name: place for place, name in enumerate(routes.graph.hosts)}
    known = rows.with_columns(pl.col("source", "destination").cast(pl.String))
    here = [pl.col(name).is_in([*number]) for name in ("source", "destination")]
    known = known.filter(pl.all_horizontal(here))
    if known.is_empty():
        raise SeatrialError("no measured pair has both nodes in the fabric")
    sources, destinations = (
        known[name].replace_strict(number, return_dtype=pl.Int64).to_numpy()
        for name in ("source", "destination")
    )
    crossings = routes.crossings(sources, destinations)
    level = np.ones(sources.size, dtype=np.int64)
    if not routes.adaptive:
        group = _concurrent(known, sources, destinations)
        arcs = 2 * len(routes.graph.links)
        load, crossings = expected_load(crossings, group, arcs)
        level = np.round(load).astype(np.int64)
    kind = _numbered(known, KIND)
    level = level * (kind.max() + 1) + kind
    # Paths of a load that few have tell nothing: there is no usual one among them.
    likes = np.bincount(level)[level]
    tells = likes >= min(_FEWEST_LIKES, likes.max())
    slowness = -np.log(known["value"].to_numpy())
    residual, scatter = np.zeros(level.size), np.ones(level.size)
    residual[tells], scatter[tells] = residuals(slowness[tells], level[tells])
    return MeasuredPaths(
        residual, scatter, level, crossings.kept(tells[crossings.path])
    )


def _concurrent(rows: pl.DataFrame, sources: Numbers, destinations: Numbers) -> Numbers:
    """Number what was measured at the same time: a round, in one direction.

    The second number of a pair in a round is that of the way back.
    """
    pair = np.sort(np.column_stack([sources, destinations]), axis=1)
    low, high = pl.Series(pair[:, 0]), pl.Series(pair[:, 1])
    numbered = rows.select(round=_numbered(rows, ROUND), low=low, high=high)
    back = pl.int_range(pl.len()).over("round", "low", "high").clip(0, 1)
    return numbered.select(2 * pl.col("round") + back).to_series().to_numpy()


def _numbered(rows: pl.DataFrame, columns: Sequence[str]) -> Numbers:
    """Number the different values of some columns from 0."""
    values = pl.struct(pl.col(columns).cast(pl.String)).rank("dense")
    return rows.select(values.cast(pl.Int64) - 1).to_series().to_numpy()


def column_of(graph: Graph, part: Part) -> int:
    """Return the column of a part: links come first, then switches."""
    return part.number + (len(graph.links) if part.kind == "switch" else 0)
