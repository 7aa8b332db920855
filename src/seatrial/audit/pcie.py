"""The PCIe links between an HCA and the processor, each against both of its ends."""

import re
from dataclasses import dataclass

ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Link:
    """One link; `upper` and `lower` are the addresses of its ends.

    Speeds are in GT/s, widths in lanes. `able` is the smaller maximum of both ends.
    None is what sysfs does not tell.
    """

    upper: str
    lower: str
    speed: float | None
    width: float | None
    able_speed: float | None
    able_width: float | None

    def lacks(self, what: str) -> bool:
        """Return True if `speed` or `width` is less than both ends are able to."""
        now, able = getattr(self, what), getattr(self, f"able_{what}")
        return now is not None and able is not None and now < able


def links_of(path: str, values: dict[str, str]) -> list[Link]:
    """Return the links above a PCI device, its own first.

    `path` is that of the device below sys/devices; `values` has the files of the whole
    chain. Ports inside a switch have no link between them: a chain is root port,
    [upper port, lower port of a switch]..., device, so every second step is a link.
    """
    chain = [part for part in path.split("/") if ADDRESS.fullmatch(part)]
    above = path.split("/")[: -len(chain)] if chain else []
    folders = ["/".join([*above, *chain[: i + 1]]) for i in range(len(chain))]
    return [
        _link(folders[index - 1], folders[index], values)
        for index in range(len(chain) - 1, 0, -2)
    ]


def _link(upper: str, lower: str, values: dict[str, str]) -> Link:
    ends = upper.rsplit("/", 1)[-1], lower.rsplit("/", 1)[-1]
    numbers = []
    for what in ("speed", "width"):
        # Both ends tell the same; a card of conventional PCI tells nothing.
        ends_now = (
            _number(values.get(f"{end}/current_link_{what}", ""))
            for end in (lower, upper)
        )
        now = next((number for number in ends_now if number is not None), None)
        most = [
            _number(values.get(f"{end}/max_link_{what}", "")) for end in (upper, lower)
        ]
        known = [number for number in most if number is not None]
        numbers.append((now, min(known) if len(known) == 2 else None))
    (speed, able_speed), (width, able_width) = numbers
    return Link(*ends, speed, width, able_speed, able_width)


def _number(text: str) -> float | None:
    """Return the number of `16.0 GT/s PCIe` or `8`; None for 0, 255 and Unknown."""
    match = _NUMBER.match(text)
    number = float(match[0]) if match else 0.0
    return number if 0 < number < 255 else None


def written(number: float | None) -> str | None:
    """Return a number as text, without a fraction of zero."""
    return None if number is None else f"{number:g}"
