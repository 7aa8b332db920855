"""Output of `pairsweep` and `seatrial.checks.pairsweep`: one sweep, as JSON Lines.

A sweep that was interrupted goes on in the same file: every start of the program
writes a row `run`, and a row `end` when it came to its end. Between them
`seatrial.checks.pairsweep` writes which nodes it left out and which pairs hung.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from seatrial.parsers.errors import ParseError
from seatrial.parsers.pairsweep_rows import (
    EndRow,
    HungRow,
    LeftOut,
    PairKey,
    PairRow,
    PhaseRow,
    RunRow,
    pair_key,
)
from seatrial.parsers.rows import Decoder, decode_object


@dataclass(frozen=True)
class PairSweep:
    """A whole sweep: every pair once, those tested again alone, and what is missing.

    `quiet` holds the pairs that were tested again alone. `ended` is false where the
    program never came to its end, as its nodes were left out. `keys` are the pairs that
    were measured, or hung. `pairs` is empty if their rows were not kept. An adaptive
    sweep has `phases`.
    """

    runs: tuple[RunRow, ...]
    pairs: tuple[PairRow, ...]
    quiet: dict[PairKey, PairRow]
    hung: tuple[HungRow, ...]
    left_out: tuple[LeftOut, ...]
    ended: bool
    keys: Set[PairKey]
    phases: tuple[PhaseRow, ...] = ()

    def verify_complete(
        self,
        nodes: Sequence[str],
        rounds: int = 0,
        listed: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Check that no pair of the delivered nodes is missing, or of those listed.

        Each is measured or hung on every rail, or has a node that was left out. Of a
        sweep of the first `rounds` (0: all), or an adaptive one that begins with them,
        there are as many pairs as these have.
        Raises ParseError otherwise, and for nodes that were not delivered.
        """
        gone = {event.node for event in self.left_out}
        keys = self.keys
        known = {node for key in keys for node in key[:2]} | gone
        if foreign := sorted(known.difference(nodes)):
            raise ParseError(0, f"{foreign[0]} is none of the {len(nodes)} nodes")
        rails = range(len(self.runs[0].rail_names) if self.runs else 1)
        here = [node for node in nodes if node not in gone]
        if len(here) > 1 and not self.ended:
            raise ParseError(0, f"the sweep of {len(here)} nodes has no end")
        if self.phases:
            self._verify_phases(here, gone, len(rails))
            return
        if 0 < rounds < len(here) - 1:
            left = sum(gone.isdisjoint(key[:2]) for key in keys)
            least = rounds * (len(here) // 2) * len(rails)
            if left < least:
                reason = f"{left} pairs of {len(here)} nodes; expected {least} or more"
                raise ParseError(0, f"{reason} in {rounds} rounds")
            return
        missing = (
            (*sorted(pair), rail)
            for pair in listed or combinations(here, 2)
            if gone.isdisjoint(pair)
            for rail in rails
            if pair_key(*pair, rail) not in keys
        )
        if first := next(missing, None):
            count = 1 + sum(1 for _ in missing)
            reason = f"{count} pairs are missing, the first is "
            raise ParseError(0, reason + "{} {}, rail {}".format(*first))

    def _verify_phases(self, here: Sequence[str], gone: set[str], rails: int) -> None:
        """Check that no pair of the phases is missing but with nodes that are `gone`.

        Each of these was to meet a partner in every round, at most.
        """
        planned = sum(phase.pairs for phase in self.phases)
        lost = sum(phase.rounds for phase in self.phases) * len(gone)
        left = sum(gone.isdisjoint(key[:2]) for key in self.keys)
        if left < (planned - lost) * rails:
            reason = f"{left} pairs of {len(here)} nodes; expected {planned} or more"
            raise ParseError(0, f"{reason} in {len(self.phases)} phases")
        met = Counter((node, rail) for *pair, rail in self.keys for node in pair)
        least = self.phases[0].rounds - 1 - len(gone)  # a round may leave one node out
        for node in here:
            few = min(met[node, rail] for rail in range(rails))
            if few < least:
                reason = f"{node} has {few} partners; expected {least} or more"
                raise ParseError(0, reason)

    def answered(
        self, nodes: Sequence[str], rounds: int = 0
    ) -> dict[str, tuple[int, int]]:
        """Count for each node the pairs that were measured, and those expected.

        None was measured of a node that was left out, and none is expected with it
        of the others. A node that no other is left for is not in the answer. Only of
        a complete sweep, or of its first `rounds` (0: all), or of rounds of a list.
        """
        gone = {event.node for event in self.left_out}
        rails = len(self.runs[0].rail_names) if self.runs else 1
        hung = Counter(
            node
            for row in self.hung
            if gone.isdisjoint((row.source, row.destination))
            for node in (row.source, row.destination)
        )
        most = (len(nodes) - len(gone) - 1) * rails
        expected = dict.fromkeys(nodes, most)
        if self.phases or 0 < rounds < len(nodes) - len(gone) - 1:
            left = [key for key in self.keys if gone.isdisjoint(key[:2])]
            expected = Counter(node for key in left for node in key[:2])
        counts = {n: (most - hung[n], most) for n, most in expected.items() if most > 0}
        return counts | {node: (0, (len(nodes) - 1) * rails) for node in gone}


def parse_pairsweep(text: str) -> PairSweep:
    """Read one sweep, of one start of the program or of several, with all its pairs.

    Raises ParseError as `SweepReader`.
    """
    reader = SweepReader()
    pairs = tuple(reader.pairs(text.splitlines(keepends=True)))
    return replace(reader.result(), pairs=pairs)


class SweepReader:
    """Reader of one sweep, of one start of the program or of several, row by row.

    Each row is checked against those before. Raises ParseError on anything but rows
    that are whole, in order and without contradiction: unknown keys, numbers that are
    negative or not finite, settings that change, a pair measured twice, contents that
    failed validation, a last start of the program without its end.
    """

    def __init__(self) -> None:
        self._decode_pair = Decoder(PairRow)
        self._decoders: dict[Any, Decoder[Any]] = {
            "run": Decoder(RunRow),
            "hung": Decoder(HungRow),
            "left_out": Decoder(LeftOut),
            "phase": Decoder(PhaseRow),
            "end": Decoder(EndRow),
        }
        self._runs: list[RunRow] = []
        self._quiet: dict[PairKey, PairRow] = {}
        self._hung: dict[PairKey, HungRow] = {}
        self._left_out: dict[str, LeftOut] = {}
        self._phases: list[PhaseRow] = []
        self._done: set[PairKey] = set()
        self._last = 0
        self._at_work = False  # between a row `run` and its end, or a fault
        self._ended = False
        self._measured = 0  # since the last row `run`
        self._retested = 0  # since the last row `run`

    def pairs(self, lines: Iterable[str]) -> Iterator[PairRow]:
        """Read all lines; yield the rows of pairs that were measured with others."""
        for number, line in enumerate(lines, start=1):
            if not line.endswith("\n"):
                raise ParseError(number, "the last line is cut off")
            row = self._read(number, decode_object(number, line))
            if row is not None and row.mode == "sweep":
                yield row

    def _read(self, line: int, values: dict[str, Any]) -> PairRow | None:
        """Read the next row; return it if a pair was measured."""
        self._last = line
        kind = values.get("type")
        if kind == "pair" and values.get("status") != "hung":
            return self._pair(line, values)
        kind = "hung" if kind == "pair" else kind
        kind = str(values.get("event")) if kind == "event" else kind
        if kind not in self._decoders:
            raise ParseError(line, f"a row of type {kind!r}")
        row = self._decoders[kind](line, values)
        if kind == "run":
            self._run(line, row)
        elif kind == "end":
            self._end(line, row)
        elif kind == "phase":
            self._phase(line, row)
        else:
            self._at_work = False
            self._fault(line, row)
        return None

    def result(self) -> PairSweep:
        """Return the sweep; ParseError if it is cut off."""
        if not (self._runs or self._left_out):
            raise ParseError(self._last, "no output of pairsweep")
        if self._at_work:
            raise ParseError(self._last, "the last start of pairsweep has no end")
        return PairSweep(
            tuple(self._runs),
            (),
            self._quiet,
            tuple(self._hung.values()),
            tuple(self._left_out.values()),
            self._ended,
            self._done,
            tuple(self._phases),
        )

    def _run(self, line: int, row: RunRow) -> None:
        first = self._runs[0] if self._runs else row
        self._decoders["run"].verify_settings(line, row, first)
        if row.resumed > len(self._done):
            reason = f"resumed: {row.resumed}, found {len(self._done)} pairs"
            raise ParseError(line, reason)
        self._runs.append(row)
        self._at_work, self._ended = True, False
        self._measured = self._retested = 0

    def _pair(self, line: int, values: dict[str, Any]) -> PairRow:
        if values.get("validation") == "fail":
            pair = f"{values.get('source')} and {values.get('destination')}"
            raise ParseError(line, f"contents between {pair} failed validation")
        row = self._decode_pair(line, values)
        if not self._at_work:
            raise ParseError(line, "a pair that belongs to no run")
        rails = self._runs[-1].rail_names
        if row.rail >= len(rails) or row.hca != rails[row.rail]:
            raise ParseError(line, f"rail {row.rail} is {row.hca!r}, of rails {rails}")
        if row.mode == "sweep":
            self._once(line, row.key)
            self._measured += 1
        else:
            self._again(line, row)
            self._quiet[row.key] = row
            self._retested += 1
        return row

    def _again(self, line: int, row: PairRow | HungRow) -> None:
        pair = f"{row.source} and {row.destination}, rail {row.rail}"
        if row.key not in self._done:
            raise ParseError(line, f"{pair} were tested again before the first time")
        if row.key in self._quiet or row.key in self._hung:
            raise ParseError(line, f"{pair} were tested again twice")

    def _once(self, line: int, key: PairKey) -> None:
        if key in self._done:
            first, second, rail = key
            raise ParseError(line, f"{first} and {second}, rail {rail}: a second time")
        self._done.add(key)

    def _end(self, line: int, row: EndRow) -> None:
        if not self._at_work:
            raise ParseError(line, "the end of no run")
        for name, counted, stated in (
            ("measured", self._measured, row.measured),
            ("pairs", self._measured, self._runs[-1].pairs),
            ("retested", self._retested, row.retested),
        ):
            if stated != counted:
                raise ParseError(line, f"{name}: {stated}, found {counted} rows")
        self._at_work, self._ended = False, True

    def _phase(self, line: int, row: PhaseRow) -> None:
        if row.phase != len(self._phases) + 1 or self._at_work:
            raise ParseError(line, f"phase {row.phase} after {len(self._phases)}")
        self._phases.append(row)

    def _fault(self, line: int, row: HungRow | LeftOut) -> None:
        if isinstance(row, HungRow):
            if row.mode == "sweep":
                self._once(line, row.key)
            else:
                self._again(line, row)
            self._hung[row.key] = row
            return
        if row.node in self._left_out:
            raise ParseError(line, f"{row.node} is left out a second time")
        self._left_out[row.node] = row
