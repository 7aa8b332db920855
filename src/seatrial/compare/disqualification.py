"""Reasons against a winner, in words."""

from collections.abc import Sequence

from seatrial.compare.records import Key, Side, Unpaired
from seatrial.compare.weight_shares import Grouping
from seatrial.criteria.weights import RankBy, Weights


def not_ranked_by(sides: Sequence[Side], rank_by: RankBy) -> list[str]:
    """Note prices and powers that are known and change no rank."""
    known = {
        "price": any(side.price is not None for side in sides),
        "power": any(side.power_kw is not None for side in sides),
    }
    return [
        f"{cost} is shown and changes no rank: it goes by {rank_by}"
        for cost, is_known in known.items()
        if is_known and cost != rank_by
    ]


def bars(side: Side, incomplete: Sequence[tuple[Key, str]]) -> str:
    """Return why a side cannot win, independent of its score; '' if it can.

    `incomplete` are the numbers that count and that it lacks in some repeats: its score
    is of the others only, and those that crashed might have been the slow ones.
    """
    reasons = []
    if side.published:
        reasons.append("it is a published system, not a run")
    if side.replay:
        reasons.append("it is a replay of recorded output, no measurement")
    if side.verdict == "fail":
        reasons.append("it fails the criteria")
    if (side.verdict, side.bears) == ("not shown", "seller"):
        reasons.append("it is not shown to meet the criteria; the seller bears that")
    if incomplete:
        (key, repeats), many = incomplete[0], len(incomplete) - 1
        case = key.case and f" ({key.case})"
        more = f", and {many} more so" if many else ""
        reasons.append(f"it has {key.check} {key.flat}{case} only {repeats}{more}")
    return "; ".join(reasons)


def lacking(at: int, grouping: Grouping, unpaired: Sequence[Unpaired]) -> str:
    """Return the numbers that count and that a side lacks; '' if none."""
    heavy = grouping.counting
    own = [entry for entry in unpaired if entry.group in heavy and entry.reasons[at]]
    if not own:
        return ""
    many = f", and {len(own) - 1} more" if len(own) > 1 else ""
    return f"lacks numbers that count: {own[0].name} - {own[0].reasons[at]}{many}"


def against(
    sides: Sequence[Side], weights: Weights | None, frozen: bool, grouping: Grouping
) -> list[str]:
    """Return the reasons against any winner among these sides."""
    if weights is None:
        return ["no weights say what counts how much"]
    why = []
    if not frozen:
        other = [
            side.name
            for side in sides
            if not side.published and side.weights_sha256 != weights.sha256
        ]
        why.append(
            f"weights {weights.name} were not frozen: {' and '.join(other)} did not "
            "record them before the first measurement"
        )
    return why + [
        f"group {group}: no side measured {choice}"
        for group, choice in grouping.unmeasured
        if group in grouping.counting
    ]
