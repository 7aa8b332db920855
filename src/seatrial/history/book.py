"""The alarms so far: one for each onset, until it ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from seatrial.history.causes import Changes, overlap
from seatrial.history.entries import Class, Entry, Member
from seatrial.history.explain import Suspected, causes_of, covers, suspected
from seatrial.history.part import Conviction, Found
from seatrial.history.records import Alarm, Kind, Note, Visits
from seatrial.history.rules import Rules

_SHARING = 3
"""Nodes of a group, or with a change, that have a common cause."""


@dataclass
class Book:
    """The alarms and notes so far, and the changes of the configuration."""

    visits: Visits
    rules: Rules
    changes: Changes
    entries: list[Entry] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the nodes of each group; one of all nodes tells nothing."""
        place = {name: node for node, name in enumerate(self.visits.nodes)}
        groups = {
            name: frozenset(place[node] for node in nodes if node in place)
            for name, nodes in sorted(self.visits.groups.items())
        }
        self._groups = {k: v for k, v in groups.items() if len(v) < len(place)}

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the alarms as they are now."""
        return tuple(entry.alarm(self.visits, self.changes) for entry in self.entries)

    def night(self, found: Sequence[tuple[Class, Found]]) -> None:
        """Record the confirmed losses and gains of a night."""
        for of, confirmed in found:
            for conviction in confirmed.class_losses:
                self._whole(_member(of, conviction, whole=True))
            for conviction in confirmed.class_gains:
                self._note(_member(of, conviction, whole=True))
            for conviction in confirmed.gains:
                self._note(_member(of, conviction))
        members = [_member(of, one) for of, night in found for one in night.losses]
        left = [m for m in members if not self._explained(m) and not self._joins(m)]
        left = self._sharing(left)
        if len(left) > self.rules.most_suspects:
            self._common(left, *self._group_of(left))
            return
        for member in left:
            name = self.visits.nodes[member.node or 0]
            self._raise(name, "node", [member], self._suspected(member))

    def follow(self, night: int, visited: set[int]) -> None:
        """Close the alarms whose nodes are good again."""
        for entry in self._open():
            for member in entry.members:
                if member.node is not None and member.node not in visited:
                    continue
                if not member.good and member.recovered():
                    member.good = True
                    one = member.conviction.node
                    member.series.restore(night, one, member.kept)
            if all(member.good for member in entry.members):
                entry.closed = night

    def changed(self, nodes: set[int]) -> None:
        """Drop the old baselines of nodes that changed, or were repaired."""
        for entry in self._open():
            for member in entry.members:
                if member.node in nodes:
                    member.kept = None

    def _open(self, *kinds: Kind) -> list[Entry]:
        some = kinds or ("node", "machine", "common")
        return [e for e in self.entries if e.closed is None and e.kind in some]

    def _date(self, night: int) -> np.datetime64:
        start: np.datetime64 = self.visits.nights[0].astype("datetime64[D]")
        return start + night

    def _raise(
        self,
        place: str,
        kind: Kind,
        members: list[Member],
        changes: Sequence[Suspected],
    ) -> Entry:
        """Add an alarm; its losses and evidence are those of its first member."""
        night = members[0].conviction.night
        names = {entry.name for entry in self.entries}
        name = stem = f"{self._date(night)}-{place}"
        for number in range(2, len(names) + 2):
            if name in names:
                name = f"{stem}-{number}"
        begins, ends = zip(*(member.onset for member in members), strict=True)
        span = (min(begins), max(ends))
        common = (max(begins), min(ends))
        entry = Entry(
            name=name,
            kind=kind,
            night=night,
            members=members,
            onset=common if common[0] <= common[1] else span,
            span=span,
            losses=tuple(members[0].losses(self.visits.metrics)),
            changes=tuple(one.change for one in changes),
        )
        if kind == "explained":
            entry.claimed = tuple(one.cause for one in changes if one.explains)
            entry.closed = night
        self.entries.append(entry)
        return entry

    def _whole(self, member: Member) -> None:
        """Raise an alarm for the loss of a class, unless a known change explains it."""
        if self._known(member):
            return
        changes = self._suspected(member)
        kind: Kind = "explained" if any(c.explains for c in changes) else "machine"
        self._raise(member.of.name, kind, [member], changes)

    def _explained(self, member: Member) -> bool:
        """Return True if a change explains the loss of a node: it has an alarm."""
        if self._known(member):
            return True
        changes = self._suspected(member)
        explains = [change.cause for change in changes if change.explains]
        if explains:
            self._raise(explains[0].key, "explained", [member], changes)
        return bool(explains)

    def _known(self, member: Member) -> bool:
        """Return True if a change that has an alarm explains the loss."""
        claimed = {cause for entry in self.entries for cause in entry.claimed}
        causes = claimed.intersection(causes_of(self.changes, member))
        return any(covers(self.changes, member, cause) for cause in causes)

    def _suspected(self, member: Member) -> list[Suspected]:
        return suspected(self.changes, member, self.visits.nodes)

    def _joins(self, member: Member) -> bool:
        """Add a node to the common alarm that it belongs to, if there is one."""
        for entry in self._open("common"):
            fits = entry.group is None or member.node in entry.group
            if fits and overlap(entry.span, member.possible):
                entry.members.append(member)
                return True
        return False

    def _sharing(self, members: list[Member]) -> list[Member]:
        """Raise an alarm for nodes that share a group or a change; return the others.

        Earlier alarms of nodes count, too.
        """
        earlier = [entry.members[0] for entry in self._open("node")]
        left = list(members)
        for anchor in members:
            if anchor not in left:
                continue
            near = [m for m in earlier + left if overlap(m.possible, anchor.possible)]
            for shared, group in self._shares(anchor):
                some = [m for m in near if m.node in group]
                if len({m.node for m in some}) >= _SHARING:
                    self._common(
                        [anchor, *(m for m in some if m is not anchor)], shared, group
                    )
                    left = [m for m in left if m not in some]
                    break
        return left

    def _shares(self, member: Member) -> list[tuple[str, frozenset[int]]]:
        """Return what a node shares with others, the fewest nodes first."""
        shares = [(k, v) for k, v in self._groups.items() if member.node in v]
        for cause in causes_of(self.changes, member):
            name = f"{cause.key}: {cause.was} -> {cause.now}"
            shares.append((name, frozenset(self.changes.nodes[cause])))
        return sorted(shares, key=lambda one: len(one[1]))

    def _group_of(self, members: list[Member]) -> tuple[str, frozenset[int] | None]:
        """Return the smallest group of all these nodes; '' without one."""
        nodes = {member.node for member in members}
        for shared, group in self._shares(members[0]):
            if nodes <= group:
                return shared, group
        return "", None

    def _common(
        self, members: list[Member], shared: str, group: frozenset[int] | None
    ) -> None:
        changes = {c.cause: c for m in members for c in self._suspected(m)}
        entry = self._raise("common", "common", members, [*changes.values()])
        entry.shared, entry.group = shared, group

    def _note(self, member: Member) -> None:
        """Note a gain, unless it ends an alarm."""
        ends = any(
            member.of is other.of and member.node == other.node and not other.good
            for entry in self._open()
            for other in entry.members
        )
        if ends:
            return
        gain = member.losses(self.visits.metrics, -1)[0]
        first = self._date(member.onset[0])
        last = self._date(member.onset[1])
        text = (
            f"{gain.metric}: {gain.before:.4g} -> {gain.after:.4g} {gain.metric.unit} "
            f"({-100 * gain.share:.1f} % better), begun {first} to {last}"
        )
        node = "" if member.node is None else self.visits.nodes[member.node]
        place = member.of.name if member.node is None else node
        night = self._date(member.conviction.night)
        self.notes.append(Note(night, node, f"{place}: {text}"))


def _member(of: Class, conviction: Conviction, *, whole: bool = False) -> Member:
    node = None if whole else int(of.nodes[conviction.node])
    return Member(of, node, conviction, conviction.kept)
