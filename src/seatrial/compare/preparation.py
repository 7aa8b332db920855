"""Prepare the sides of a comparison: seals, verdicts, weights, papers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seatrial.checks.sources import known_checks
from seatrial.compare.sides import Entrant
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.keys import Known
from seatrial.criteria.published import Published
from seatrial.criteria.weights import Weights
from seatrial.errors import SeatrialError
from seatrial.judge.judge import judge
from seatrial.model.metrics import METRICS, Metric
from seatrial.paths import checks_dir, home
from seatrial.runs.closed_run import KEPT_WEIGHTS
from seatrial.runs.seal import require_signer
from seatrial.runs.stated import stated


def require_sealed(entrant: Entrant, known: Callable[[str], Path | None]) -> None:
    """Raise SeatrialError unless a known signer sealed the run."""
    if entrant.run is None:
        return
    file = known(entrant.side.system)
    if file is None:
        raise SeatrialError(
            f"{entrant.side.name}: --sealed needs the known signers; expected "
            f"reference-data/{entrant.side.system}/allowed_signers, or --signers"
        )
    try:
        require_signer(entrant.run.path, entrant.run.sealed, file)
    except SeatrialError as error:  # the path is that of an unpacked copy
        raise SeatrialError(f"{entrant.side.name}: {error}", error.exit_code) from error


def _metrics(entrants: Sequence[Entrant]) -> dict[str, Metric]:
    """Return all metrics that the runs know."""
    runs = (entrant.run for entrant in entrants if entrant.run is not None)
    return METRICS | {name: each for run in runs for name, each in run.metrics.items()}


def judged_by(entrants: Sequence[Entrant], file: Path) -> list[Entrant]:
    """Judge every run by the same criteria."""
    criteria = Criteria.load(file, Known(metrics=_metrics(entrants)))
    judged = []
    for entrant in entrants:
        if entrant.run is not None:
            result = judge(entrant.run, criteria)
            entrant = entrant.changed(
                verdict=result.verdict, bears=result.bears, digest=result.digest
            )
        judged.append(entrant)
    return judged


def weights_of(
    entrants: Sequence[Entrant], file: Path | None
) -> tuple[Weights | None, list[str]]:
    """Read the weights of a file, else those that all runs kept."""
    if file is not None:
        try:
            checks = known_checks(checks_dir(home()))
        except SeatrialError:  # no files of the suite on this machine
            checks = frozenset()
        return Weights.load(file, Known(checks, _metrics(entrants))), []
    runs = [entrant for entrant in entrants if entrant.run is not None]
    kept: dict[str, Weights] = {}
    for run in runs:
        assert run.run is not None
        content = run.run.kept.get(KEPT_WEIGHTS)
        if content is not None:
            file = run.run.path / KEPT_WEIGHTS
            parsed = Weights.parse(content, file, Known(metrics=run.run.metrics))
            name = (run.run.manifest.get("weights") or {}).get("name")
            kept[run.side.name] = replace(parsed, name=name or parsed.name)
    hashes = {name: weights.sha256 for name, weights in kept.items()}
    if len(set(hashes.values())) > 1:
        names = ", ".join(f"{name} {digest}" for name, digest in hashes.items())
        raise SeatrialError(
            f"the runs kept different weights, SHA-256: {names}; expected the same in "
            "all; --weights FILE compares by one, without a winner"
        )
    if not kept:
        return None, []
    without = [run.side.name for run in runs if run.side.name not in kept]
    if without:
        note = f"{' and '.join(without)} kept no weights, {' and '.join(kept)} did"
        return None, [f"{note}: compared without; --weights FILE compares by them"]
    return next(iter(kept.values())), []


def paper_arguments(
    entrants: Sequence[Entrant], published: Callable[[], Published]
) -> dict[str, Any]:
    """Return the arguments of `compare` for published systems; none without them."""
    if not any(entrant.system for entrant in entrants):
        return {}
    experiments = {}
    for entrant in entrants:
        if entrant.run is not None:
            checks = {*entrant.run.columns("check").unique().collect()["check"]}
            for name, own in stated(entrant.run, checks).items():
                experiments[name] = own.experiments
    return {"published": published(), "experiments": experiments}
