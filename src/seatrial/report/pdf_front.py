"""Page one of the PDF as data, at several levels of detail."""

from collections.abc import Sequence
from typing import Any

from seatrial.report.content import ActOn, Front, SmallMap
from seatrial.report.render import svg, text

_DETAILS = (
    *((8, 2, 5, 2000), (8, 2, 3, 2000), (8, 1, 3, 2000), (6, 1, 3, 2000)),
    *((4, 1, 2, 2000), (3, 1, 1, 600), (3, 1, 1, 200), (2, 1, 1, 90), (1, 1, 1, 60)),
)
"""Levels of detail: items of each list, reasons of each, headline numbers of each
area, and characters of a text. The first that fits is printed."""

_PLACE = 400
"""Characters of a place at most: both ends of four cables."""


def fronts(front: Front) -> list[dict[str, Any]]:
    """Return page one at each level of detail, the fullest first."""
    return [_front(front, *detail) for detail in _DETAILS]


def _front(
    front: Front, most: int, reasons: int, headlines: int, longest: int
) -> dict[str, Any]:
    """Return page one with at most these items, reasons, headlines and characters."""

    def act_on(items: Sequence[ActOn]) -> list[dict[str, Any]]:
        return [
            {
                "place": text.shortened(item.place, max(100, min(longest, _PLACE))),
                "reasons": [
                    text.shortened(reason, longest) for reason in item.reasons[:reasons]
                ],
            }
            for item in items
        ]

    lists = {
        "Act on": act_on(front.act_on),
        "Parts of the fabric, decide nothing": act_on(front.parts),
        "Absent or lost nodes": act_on(front.absent),
        "Facts that failing nodes share": _plain(front.in_common, longest),
        "Not shown": act_on(front.not_shown),
        "Look at": act_on(front.look_at),
        "Worth a look, decides nothing": _joined(front.worth_a_look, longest),
        "Needed for undecided criteria": _plain(front.needs, longest),
        "Optional criteria that were not measured": _joined(front.optional, longest),
        "Signed reasons for missing numbers": _plain(front.reasons, longest),
    }
    return {
        "verdict": front.verdict,
        "meaning": text.shortened(front.meaning, 2 * longest),
        "notices": [text.shortened(notice, longest) for notice in front.notices[:most]],
        "counts": front.counts,
        "areas": [
            {
                "area": area.area.capitalize(),
                "counts": area.counts,
                "headlines": [
                    {
                        key: text.shortened(value, min(longest, 100))
                        for key, value in vars(headline).items()
                    }
                    for headline in area.headlines[:headlines]
                ],
            }
            for area in front.areas
        ],
        "not_tested": text.shortened(front.not_tested, longest),
        "lists": [
            {"title": title, "items": items[:most], "more": max(0, len(items) - most)}
            for title, items in lists.items()
            if items
        ],
        "facts": [
            [text.shortened(name, 40), text.shortened(value, min(longest, 120))]
            for name, value in front.facts[: 2 * most]
        ],
        "signer": text.shortened(front.signer, longest),
        **{name: getattr(front, name) for name in ("digest", "manifest_sha256")},
    }


def small_map(
    node_map: SmallMap | None, palette: dict[str, str]
) -> dict[str, Any] | None:
    """Return the small map as SVG in the colours of paper, with its words."""
    if node_map is None:
        return None
    return {
        "svg": svg.for_paper(node_map.svg, palette),
        "alt": node_map.words,
        "groups": [
            {"state": state.capitalize(), "names": text.shortened(names, 200)}
            for state, _, names in node_map.groups
        ],
    }


def _joined(names: Sequence[str], longest: int) -> list[dict[str, Any]]:
    return _plain([", ".join(names)] if names else [], longest)


def _plain(items: Sequence[str], longest: int) -> list[dict[str, Any]]:
    return [{"place": "", "reasons": [text.shortened(item, longest)]} for item in items]
