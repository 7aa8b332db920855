"""Slurm's lists of nodes: `mn[001-003,007],head` are five names."""


def expand(text: str) -> list[str]:
    """Return the names in a list of Slurm; ValueError if it is something else."""
    names: list[str] = []
    for part in _split(text):
        names += _names(part, text)
    return names


def _split(text: str) -> list[str]:
    """Divide at the commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _names(part: str, text: str) -> list[str]:
    before, bracket, rest = part.partition("[")
    ranges, end, after = rest.partition("]")
    if not part or (bracket and not end) or "]" in before:
        raise ValueError(f"{text!r} is no list of nodes, expected one like mn[1-4]")
    if not bracket:
        return [part]
    names = []
    for item in ranges.split(","):
        low, _, high = item.partition("-")
        if not (low.isdecimal() and (high or low).isdecimal()):
            raise ValueError(f"{item!r} in {text!r} is no range of numbers")
        for number in range(int(low), int(high or low) + 1):
            name = f"{before}{number:0{len(low)}}"
            names += [name + rest for rest in (_names(after, text) if after else [""])]
    return names
