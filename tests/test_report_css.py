"""The colours of the pages: can all of them be told apart?"""

import re
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[1]


def _luminance(colour: str) -> float:
    digits = (
        colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    )
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colours_have_contrast(mode: int) -> None:
    """WCAG 2.2, 1.4.3 and 1.4.11: 4.5 for text, 3 for lines of a chart."""
    style = (HOME / "reports" / "report.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.S)[mode]
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", block))
    pairs = [(name, "paper", 4.5) for name in ("ink", "muted", "link", "limit")]
    for verdict in ("pass", "fail", "not-shown", "undecided", "skipped"):
        pairs += [(verdict, "paper", 4.5), (verdict, f"{verdict}-tint", 4.5)]
    pairs += [(f"line-{number}", "paper", 3) for number in range(1, 7)]
    pairs += [("quiet", "paper", 3)]
    # What is written on the squares of a matrix; the cross of a missing one.
    pairs += [("ink", f"heat-{level}", 4.5) for level in range(3)]
    pairs += [("paper", f"heat-{level}", 4.5) for level in (3, 4)]
    for front, back, least in pairs:
        light, dark = sorted(
            (_luminance(colours[front]), _luminance(colours[back])), reverse=True
        )
        assert (light + 0.05) / (dark + 0.05) >= least, (front, back)
    # Without colours too, a worse square is a stronger one.
    heat = [_luminance(colours[f"heat-{level}"]) for level in range(5)]
    assert heat == sorted(heat, reverse=mode == 0)
