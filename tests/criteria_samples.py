"""Criteria for tests, as they would be read from a criteria.yaml."""

from typing import Any

from seatrial.criteria.criteria import Criteria, Criterion, Risks
from seatrial.model.metrics import split_flat_name

RISKS = Risks(seller=0.05, buyer=0.05, discovery=0.1)


def criterion(
    metric: str = "bw_4MiB", limit: float | None = 60.0, **more: Any
) -> Criterion:
    """Build a promised limit of ImbRing; with `tolerance`, one of sameness."""
    known, _ = split_flat_name(metric)
    alike = "tolerance" in more
    fields: dict[str, Any] = {
        "check": "ImbRing",
        "where": {},
        "metric": metric,
        "unit": known.unit,
        "direction": known.direction,
        "statistic": None,
        "kind": "sameness" if alike else "promised",
        "limit": None if alike else limit,
        "tolerance": None,
        "model": "lognormal",
        "zone": 0.05,
        "risks": RISKS,
        "cap": 20,
        "bears": "seller",
        "source": "contract, 3.1",
        **more,
    }
    name = f"{fields['check']} {metric} {fields['kind']}"
    return Criterion(**{"name": name, **fields})


def criteria(*listed: Criterion, risks: Risks = RISKS, sha256: str = "") -> Criteria:
    """Put criteria together."""
    return Criteria(risks, listed, sha256)
