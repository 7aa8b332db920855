"""Closed runs for tests of what reads them: small, and made by RunFolder."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge_samples import CASE, sample

from seatrial.model.cases import Case
from seatrial.model.records import Measurement
from seatrial.plain_files import sha256_plain
from seatrial.runs.measurement_table import table_of
from seatrial.runs.open_run import RunFolder

CRITERIA = """
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: d, clause: c}
criteria:
  - check: ImbRing
    model: lognormal
    limits: {bw_4MiB: 60 MB/s}
"""


def close_run(
    results: Path,
    run_id: str = "20260101T000000Z-smoke",
    system: str = "lab",
    /,
    *,
    rows: Sequence[Measurement] | None = None,
    cases: Sequence[Case] | None = None,
    kept: Mapping[str, str] | None = None,
    **manifest: Any,
) -> Path:
    """Close a run of one case, which measured two links; more goes to its manifest.

    `kept` are texts of further files of the run.
    """
    folder = RunFolder(results, system, run_id)
    folder.create()
    raw = folder.path / "raw" / "pairs-1" / "report.json"
    raw.parent.mkdir(parents=True)
    raw.write_text("{}")
    for name, text in (kept or {}).items():
        file = folder.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    day = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}"
    described = {
        "schema": 2,
        "run": run_id,
        "system": system,
        "description": "",
        "campaign": run_id.partition("-")[2],
        "partial": False,
        "demonstration": False,
        "started": f"{day}T00:00:00+00:00",
        "ended": f"{day}T01:00:00+00:00",
        "replay": None,
        "software": {"seatrial": "0.1.0"},
        "nodes": [
            {"name": name, "facts": {}, "state": "present", "reason": ""}
            for name in CASE.nodes
        ],
        "sessions": [],
    }
    measured = rows or [
        sample(CASE, 80.0, pair="cn01 cn02"),
        sample(CASE, 90.0, pair="cn02 cn03"),
    ]
    return folder.close(
        {**described, **manifest},
        [replace(CASE, raw="raw/pairs-1")] if cases is None else cases,
        [table_of([replace(row, run=run_id, system=system) for row in measured])],
    )


def rewrite_manifest(run: Path, /, **changed: Any) -> None:
    """Change the manifest of a closed run; `checksums` are those of today's files."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["checksums"] = {
        name: sha256_plain(run / name)
        for name in manifest["checksums"]
        if (run / name).is_file()
    }
    (run / "manifest.json").write_text(json.dumps({**manifest, **changed}))


def ssh_key(folder: Path, name: str) -> Path:
    """Build a key pair without a passphrase."""
    folder.mkdir(exist_ok=True)
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]
    subprocess.run([*command, str(folder / name)], check=True)
    return folder / name
