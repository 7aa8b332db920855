"""Runs with the settings of their nodes, from trees of sysfs and procfs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fake_hardware import Hca, raw_of, write_node
from judge_samples import CASE, make_run, sample

from seatrial.audit.audit import audit
from seatrial.audit.collect import Collected
from seatrial.audit.hardware_file import HardwareFile
from seatrial.runs.closed_run import Run
from seatrial.runs.settings_table import (
    Moment,
    parse_settings,
    settings_parquet,
    summary,
)

NODES = ("cn01", "cn02", "cn03", "cn04")
DECLARED = """\
hca_models: {MT_0000000222: {firmware: {version: "20.43.2566"}}}
hca_slots:
  all: [{name: rail0, bdf: "0000:41:00.0", psid: MT_0000000222, rate: 200}]
node_settings: {all: {governor: performance}}
"""

Nodes = Mapping[str, Hca | None]
"""The HCA of each node; None if the node could not be read."""


def settings_run(
    folder: Path, start: Nodes, end: Nodes | None = None, declared: str = DECLARED
) -> Run:
    """Build a run whose nodes had these HCAs at its start and at its end."""
    hardware = folder / "hardware.yml"
    hardware.write_text(declared)
    declaration = HardwareFile(hardware, ["cpu"], folder / "no database")
    rows: dict[Moment, Any] = {}
    moments: dict[Moment, Nodes] = {"start": start, "end": end or start}
    for moment, nodes in moments.items():
        raw = {name: _raw(hca) for name, hca in nodes.items() if hca is not None}
        missing = {name: "not asked" for name, hca in nodes.items() if hca is None}
        collected = Collected({"cpu": [*nodes]}, raw, missing)
        rows[moment] = audit(collected, declaration)
    run = make_run([CASE], [sample(CASE, 100.0)], nodes=[*start])
    file = folder / "settings.parquet"
    table = parse_settings(settings_parquet(rows), file)
    manifest = {**run.manifest, "settings": summary(rows)}
    return replace(run, manifest=manifest, settings=table)


@cache
def _raw(hca: Hca) -> str:
    with TemporaryDirectory() as folder:
        return raw_of(write_node(Path(folder), hca))


def alike(**changed: Hca | None) -> dict[str, Hca | None]:
    """Return the HCAs of all nodes: as declared, but for some."""
    return {**dict.fromkeys(NODES, Hca()), **changed}
