"""Files that pairsweep reads: lists of pairs, and an earlier, interrupted sweep."""

import json

from seatrial.standins.run import UsageError

Pair = tuple[int, int]
"""Two nodes, by their places in the order of names."""

Key = tuple[int, int, int]
"""A pair, and the rail."""


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
    with open(name, "ab+") as file:
        file.seek(0)
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(whole)
                break
            whole += len(line)
            if b'"pair"' in line:
                _add(done, json.loads(line), at)
    return done


def _add(done: Done, row: dict, at: dict[str, int]) -> None:
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


def read_pairs(name: str, nodes: list[str]) -> dict[Pair, int]:
    """Read lines HOST HOST [ROUND]; a round of 0: in that of the tournament.

    Raises UsageError for other lines and for nodes that are not among these.
    """
    at = {node: i for i, node in enumerate(nodes)}
    wanted: dict[Pair, int] = {}
    with open(name, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            ends, rounds = words[:2], words[2:] or ["0"]
            if len(ends) < 2 or len(rounds) > 1 or not rounds[0].isdecimal():
                raise UsageError(f"{name}, line {number}: expected HOST HOST [ROUND]")
            if unknown := [node for node in ends if node not in at]:
                where = f"{name}, line {number}"
                raise UsageError(f"{where}: not a node of this run: {unknown[0]}")
            first, second = sorted(at[node] for node in ends)
            wanted[first, second] = int(rounds[0])
    return wanted
