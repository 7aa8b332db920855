"""Runs that kept a fabric, as cabled in tests, beside its plan."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from cabled_fabric import Cabled
from judge_samples import CASE, make_run, sample

from seatrial.fabric.plan import plan_csv
from seatrial.fabric.records import Fabric
from seatrial.runs.closed_run import KEPT_DECLARATION, KEPT_FABRIC, KEPT_PLAN, Run


def fabric_run(
    cabled: Cabled,
    *,
    plan: str | None = None,
    declared: str = "",
    folder: Path = Path("r"),
    **changed: object,
) -> Run:
    """Return a run on the hosts of a fabric that kept it; `plan` replaces its plan."""
    hosts = [name for name, kind in cabled.plan.kinds.items() if kind == "host"]
    run = make_run([CASE], [sample(CASE, 100.0, pair=" ".join(hosts[:2]))], nodes=hosts)
    fabric = msgspec.structs.replace(cabled.fabric(), **changed)
    return replace(run, path=folder, kept=kept(fabric, cabled, plan, declared))


def kept(
    fabric: Fabric, cabled: Cabled, plan: str | None = None, declared: str = ""
) -> dict[str, bytes]:
    """Return the files of a fabric in a run, by their paths."""
    text = plan_csv(cabled.plan.cables) if plan is None else plan
    return {
        KEPT_FABRIC: msgspec.json.encode(fabric),
        KEPT_DECLARATION: (declared or "fabric_plan: plan.csv\n").encode(),
        **({KEPT_PLAN: text.encode()} if text else {}),
    }


def with_racks(cabled: Cabled, rows: int = 4) -> Cabled:
    """Put the devices of a plan into racks: hosts by leaf, switches in rows."""
    racks: dict[str, str] = {}
    for cable in cabled.plan.cables:
        for end in (cable.a, cable.b):
            racks.setdefault(end.device, f"R{len(racks) % rows + 1}")
    cables = tuple(
        replace(one, a_rack=racks[one.a.device], b_rack=racks[one.b.device])
        for one in cabled.plan.cables
    )
    plan = replace(cabled.plan, cables=cables, racks=racks)
    return replace(cabled, plan=plan)


def break_cables(cabled: Cabled) -> Sequence[str]:
    """Plant a swap, a missing cable, a slow one and an absent node; return the cables.

    The numbers are those of both swapped cables, the missing and the slow one.
    """
    own = [
        one for one in cabled.plan.cables if cabled.plan.kinds[one.a.device] == "host"
    ]
    up = [one for one in cabled.plan.cables if one not in own]
    one, other = own[0], own[-1]
    cabled.connect(one.a, other.b)
    cabled.connect(other.a, one.b)
    missing, slow = up[3], up[-2]
    cabled.unplug(missing.a)
    cabled.rates[slow.a] = (2, "HDR")
    cabled.gone.add(own[len(own) // 2].a.device)
    return [cable.cable for cable in (one, other, missing, slow)]
