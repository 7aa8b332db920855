"""Runs whose pairs were measured on a model fabric with a bad cable."""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from closed_runs import close_run
from judge_samples import CASE, sample

from seatrial.calibration.simulate.fabric_traffic import ModelFabric
from seatrial.checks.pairsweep.adaptive import Rounds
from seatrial.fabric.generate import Shape, generate
from seatrial.fabric.plan import Cable, plan_csv
from seatrial.fabric.records import Device, Fabric, Link, write_fabric
from seatrial.model.records import Measurement

SMALL = Shape("fat-tree-2", 96, radix=16)
SWEEP = replace(CASE, check="PairSweep", case="PairSweep")


def hosts_of(cables: tuple[Cable, ...]) -> list[str]:
    return sorted({c.a.device for c in cables if c.a.device.startswith("cn")})


def sweep_rows(
    model: ModelFabric,
    rounds: Rounds,
    *,
    alone: bool = False,
    hca: str | None = None,
    adaptive: bool = False,
) -> list[Measurement]:
    """Return bandwidths of rounds of pairs, both directions one after the other.

    `alone`: slow pairs were repeated alone.
    """
    rows = []
    for number, pairs in enumerate(rounds, 1):
        for own in (pairs, [(b, a) for a, b in pairs]):
            rates = model.rates(own, adaptive=adaptive)
            for pair, rate in zip(own, rates.tolist(), strict=True):
                metrics = {"bw": rate}
                if alone and rate < 0.8:
                    metrics = {"crowded_bw": rate, "bw": float(model.rates([pair])[0])}
                for metric, value in metrics.items():
                    row = sample(
                        SWEEP, 12000 * value, metric=metric, pair=" ".join(pair)
                    )
                    rows.append(replace(row, round=number, hca=hca))
    return rows


def drawn_rounds(hosts: list[str], count: int) -> Rounds:
    dice = np.random.default_rng(1)
    orders = [dice.permutation(hosts).tolist() for _ in range(count)]
    return [list(zip(order[::2], order[1::2], strict=True)) for order in orders]


def fabric_of(cables: Iterable[Cable], hcas: Iterable[str] = ("mlx5_0",)) -> Fabric:
    switches = sorted({c.b.device for c in cables})
    hosts = sorted({c.a.device for c in cables if c.a.device.startswith("cn")})
    devices = [Device(name, "switch") for name in switches]
    devices += [Device(name, "host", hca=hca) for name in hosts for hca in hcas]
    return Fabric(tuple(devices), tuple(Link(c.a, c.b) for c in cables))


def fabric_run(
    folder: Path,
    cable: str,
    *,
    keeps: bool = True,
    rounds: Rounds | None = None,
    alone: bool = False,
    adaptive: bool = False,
) -> Path:
    """Close a run whose pairs were measured on a model fabric with a bad cable."""
    cables = generate(SMALL)
    model = ModelFabric(cables, 1, [("cable", cable, 1.8)])
    rounds = rounds or drawn_rounds(model.hosts, 40)
    rows = sweep_rows(model, rounds, alone=alone, adaptive=adaptive)
    write_fabric(folder / "fabric.json", fabric_of(cables))
    dump_tables(folder / "dump_fts.txt", model)
    with_lids(folder / "fabric.json")
    kept = {
        "system/fabric.json": (folder / "fabric.json").read_text(),
        "system/fabric_plan.csv": plan_csv(cables),
    }
    return close_run(folder, rows=rows, cases=[SWEEP], kept=kept if keeps else None)


def dump_tables(file: Path, model: ModelFabric) -> None:
    """Write the tables of a model as dump_fts does; LIDs are numbers of hosts.

    GUIDs follow from the names of switches.
    """
    by_switch: dict[str, list[str]] = defaultdict(list)
    for switch, host, number in model.entries():
        cable = model.cables[number]
        end = cable.b if cable.b.device == switch else cable.a
        lid = model.hosts.index(host) + 1
        by_switch[switch].append(f"0x{lid:04x} {int(end.port):03} : ({host})")
    text = ""
    for switch, rows in by_switch.items():
        guid = guid_of_switch(switch)
        text += f"Unicast lids [0x0-0xff] of switch Lid 1 guid {guid} ({switch}):\n"
        text += "  Lid  Out   Destination\n       Port     Info \n"
        text += "".join(f"{row}\n" for row in rows)
        text += f"{len(rows)} valid lids dumped \n"
    file.write_text(text)


def guid_of_switch(name: str) -> str:
    return f"{zlib.crc32(name.encode()):#018x}"


def with_lids(file: Path) -> None:
    """Write the LIDs and GUIDs of `dump_tables` into fabric.json."""
    content = json.loads(file.read_text())
    hosts = sorted({d["name"] for d in content["devices"] if d["kind"] == "host"})
    for device in content["devices"]:
        if device["kind"] == "host":
            device["lid"] = hosts.index(device["name"]) + 1
        else:
            device["guid"] = guid_of_switch(device["name"])
    file.write_text(json.dumps(content))
