"""What a file of an earlier, interrupted sweep has already."""

import json

Key = tuple[int, int, int]
"""Two nodes, by their places in the order of names, and the rail."""


class Done:
    """Pairs that were measured, with latency, bandwidth and round; None: it hung.

    `retested` were measured again alone, or hung then.
    """

    def __init__(self) -> None:
        self.numbers: dict[Key, tuple[float, float, int] | None] = {}
        self.retested: set[Key] = set()


def read_done(name: str, nodes: list[str]) -> Done:
    """Read the pairs of these nodes; a last line without an end is removed."""
    done = Done()
    at = {node: i for i, node in enumerate(nodes)}
    whole = 0
    with open(name, "ab+") as file:  # noqa: PTH123
        file.seek(0)
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(whole)
                break
            whole += len(line)
            if b'"pair"' in line:
                _add(done, json.loads(line), at)
    return done


def _add(done: Done, row: dict, at: dict[str, int]) -> None:  # type: ignore[type-arg]
    first, second = at.get(row["source"]), at.get(row["destination"])
    if first is None or second is None:
        return
    key = (min(first, second), max(first, second), row["rail"])
    if row["mode"] == "quiet":
        done.retested.add(key)
    elif row["status"] == "hung":
        done.numbers[key] = None
    else:
        bandwidth = min(row["bw_mb_per_s"], row["bw_back_mb_per_s"])
        done.numbers[key] = (row["latency_p50_us"], bandwidth, row["round"])
