"""Numbers, sizes, times and names as text for people."""

import json
import math
import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from seatrial import progress
from seatrial.model.units import size_label

_ABSENT = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"

# Characters that XML 1.0 forbids, C1 controls, and controls of text direction.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Remove characters that XML or a line of text must not contain."""
    return _UNFIT.sub("", text)


def shortened(words: str, most: int) -> str:
    """Shorten a text to at most `most` characters, between two words.

    A first word that is longer is cut itself.
    """
    if len(words) <= most:
        return words
    kept = words[: most - 1]
    if words[most - 1] != " ":
        kept = kept.rpartition(" ")[0] or kept
    return f"{kept.rstrip(' ,;:')}…"


def measured(value: float | None, limit: float | None = None, digits: int = 4) -> str:
    """Format a measured value with `digits` significant digits.

    More digits follow if the value would look equal to a different `limit`.
    """
    if value is None:
        return _ABSENT
    if not math.isfinite(value):
        return str(value)
    text = ""
    for enough in range(digits, 16):
        text = _plain(value, enough)
        if limit is None or value == limit or float(text) != limit:
            break
    return _group(text)


def quantity(number: str, unit: str) -> str:
    """Join a number and its unit; the unit 1 is omitted."""
    return number if unit == "1" else f"{number} {unit}"


def exact(value: float | None) -> str:
    """Format a set number (a limit) without padding: 60, 0.00001."""
    if value is None:
        return _ABSENT
    number = f"{value:.14g}"  # no rests of binary fractions
    if "e" in number and 1e-7 <= abs(value) < 1e15:
        number = f"{Decimal(number):f}"
    return _group(number)


def _plain(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])
    if not -4 <= exponent < 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def _group(text: str) -> str:
    """Put commas between thousands, as the judge does, and use a true minus sign."""
    whole, dot, fraction = text.partition(".")
    if "e" not in text and len(whole.lstrip("-")) > 3:
        whole = f"{int(whole):,}"
    return f"{whole}{dot}{fraction}".replace("-", _MINUS)


def size(size_bytes: int) -> str:
    """Format a message size with a space: 4 MiB."""
    label = size_label(size_bytes)
    number = label.rstrip("BKMGi")
    return f"{number} {label.removeprefix(number)}"


def ratio(value: float | None, limit: float | None) -> str:
    """Compare a value with its limit: '40.7 % of it'; '' without a finite ratio."""
    if value is None or not limit or not math.isfinite(value):
        return ""
    times = value / limit
    if times >= 10:
        return f"{exact(float(f'{times:.3g}'))} times it"
    return f"{measured(100 * times, 100, 3)} % of it"


def duration(seconds: float | None) -> str:
    """Format a time span: 0.85 s, 42 s, 3 min 05 s, 2 h 10 min."""
    if seconds is None:
        return _ABSENT
    return f"{seconds:.2g} s" if seconds < 10 else progress.duration(seconds)


def moment(iso: str | None) -> datetime | None:
    """Read an ISO time of the manifest; None if it has none."""
    try:
        return datetime.fromisoformat(iso or "")
    except ValueError:
        return None


def day_and_time(iso: str | None) -> str:
    """Format an ISO time: 2026-11-21 06:30:15 UTC."""
    when = moment(iso)
    if when is None:
        return iso or _ABSENT
    return f"{when:%Y-%m-%d %H:%M:%S}{'' if when.utcoffset() is None else ' UTC'}"


def span(started: str | None, ended: str | None) -> float | None:
    """Return the seconds between two ISO times; None if one is missing."""
    first, last = moment(started), moment(ended)
    return (last - first).total_seconds() if first and last else None


def memory(mib: float | None) -> str:
    """Format a node's memory: 24 000 MiB -> 23.4 GiB."""
    return _ABSENT if mib is None else f"{mib / 1024:.4g} GiB"


def breakable(name: str) -> Markup:
    """Allow line breaks after the underscores of a name."""
    return Markup("<wbr>").join(re.split("(?<=_)", clean(name)))


def parameters(written: str) -> dict[str, Any]:
    """Read the parameters of a measurement; those without names get one."""
    try:
        values = json.loads(written or "{}")
    except ValueError:
        return {"parameters": written}
    return values if isinstance(values, dict) else {"parameters": values}


def said(key: str, value: Any) -> str:
    """Format a parameter: 'sendrecv', but 'depth 64'."""
    alone = isinstance(value, str) and not value.isdecimal()
    return str(value) if alone else f"{key.replace('_', ' ')} {value}"


def few(names: Iterable[str], most: int = 12) -> list[str]:
    """Shorten a list of names: the first ones, then 'and 3 more'."""
    names = list(names)
    more = len(names) - most
    return [*names[:most], f"and {exact(more)} more"] if more > 0 else names


def short(name: str, most: int = 48) -> str:
    """Cut a long name in its middle, as its end often differs from others."""
    name = clean(name)
    if len(name) <= most:
        return name
    end = most // 3
    return f"{name[: most - end - 1]}…{name[-end:]}"
