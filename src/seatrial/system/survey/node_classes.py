"""Classes of nodes: the nodes of a survey that are alike, and how jobs reach them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatrial.names import natural_key, node_set
from seatrial.system.survey.slurm_records import Partition, Reservation, SlurmNode
from seatrial.system.survey.survey import Survey

_LONG_S = 4 * 3600
"""Time limit that every check of the suite keeps: that of NodeSweep."""


@dataclass(frozen=True)
class SurveyedClass:
    """A class of nodes: alike in cores, sockets, memory, gres, features, partition.

    `others` are further partitions of some of its nodes. `account` and `qos` are ''
    where Slurm's defaults do; `accounts` and `all_qos` are those that the partition
    permits the user. `reservation` covers all nodes and permits the user.
    """

    name: str
    nodes: tuple[SlurmNode, ...]
    partition: Partition
    others: tuple[str, ...]
    accounts: tuple[str, ...]
    all_qos: tuple[str, ...]
    reservation: str
    touching: tuple[Reservation, ...]

    @property
    def host_list(self) -> str:
        """Return its nodes as a host list."""
        return node_set(node.name for node in self.nodes)

    @property
    def lost(self) -> dict[str, str]:
        """Return the host lists of its lost nodes, by state and reason."""
        names: dict[str, list[str]] = defaultdict(list)
        for node in self.nodes:
            if node.loss:
                reason = f": {node.reason}" if node.reason else ""
                names[f"{node.loss}{reason}"].append(node.name)
        return {node_set(listed): text for text, listed in names.items()}


def node_classes(survey: Survey) -> tuple[SurveyedClass, ...]:
    """Group the delivered nodes of a survey; each node is in one class.

    Nodes without a partition are in none: see `unreachable`.
    """
    partitions = {partition.name: partition for partition in survey.partitions}
    members = _members(survey)
    groups: dict[tuple[object, ...], list[SlurmNode]] = defaultdict(list)
    for node in _delivered(survey):
        names = [name for name in node.partitions if name in partitions]
        if names:
            choices = [partitions[name] for name in names]
            chosen = _best_partition(survey, choices, members, {*names})
            hardware = (node.cores, node.sockets, node.memory_mib, node.gres)
            groups[chosen.name, *hardware, node.features].append(node)
    names = _class_names([*groups.values()], [str(key[0]) for key in groups])
    return tuple(
        _surveyed(survey, name, partitions[str(key[0])], nodes)
        for name, (key, nodes) in zip(names, groups.items(), strict=True)
    )


def unreachable(survey: Survey) -> str:
    """Return the delivered nodes without a partition, as a host list."""
    return node_set(node.name for node in _delivered(survey) if not node.partitions)


def _delivered(survey: Survey) -> list[SlurmNode]:
    nodes = [node for node in survey.nodes if node.is_delivered]
    return sorted(nodes, key=lambda node: natural_key(node.name))


def _members(survey: Survey) -> dict[str, frozenset[str]]:
    members: dict[str, set[str]] = defaultdict(set)
    for node in survey.nodes:
        for name in node.partitions:
            members[name].add(node.name)
    return {name: frozenset(nodes) for name, nodes in members.items()}


def _best_partition(
    survey: Survey,
    choices: Sequence[Partition],
    members: dict[str, frozenset[str]],
    names: set[str],
) -> Partition:
    """Return the partition for jobs on the nodes that are in all of `choices`.

    One that is usable and long enough comes first, then the one with the fewest other
    nodes, then the longest.
    """
    own = frozenset.intersection(*(members[name] for name in names))

    def rank(partition: Partition) -> tuple[object, ...]:
        limit = float("inf") if partition.limit_s is None else partition.limit_s
        return (
            not partition.is_up or partition.root_only,
            not _accounts(survey, partition) and bool(survey.accounts),
            bool(partition.groups) and not {*survey.groups} & {*partition.groups},
            limit < _LONG_S,
            len(members[partition.name] - own),
            partition.is_hidden,
            -limit,
            partition.name,
        )

    return min(choices, key=rank)


def _accounts(survey: Survey, partition: Partition) -> tuple[str, ...]:
    """Return the user's accounts that a partition permits, and with them a QOS."""
    return tuple(
        name
        for name, qos in survey.accounts.items()
        if name not in partition.denied_accounts
        and (not partition.accounts or name in partition.accounts)
        and (not partition.qos or not qos or {*qos} & {*partition.qos})
    )


def _surveyed(
    survey: Survey, name: str, partition: Partition, nodes: list[SlurmNode]
) -> SurveyedClass:
    own = {node.name for node in nodes}
    others = {other for node in nodes for other in node.partitions}
    accounts = _accounts(survey, partition)
    touching = [r for r in survey.reservations if r.nodes & own]
    covering = [
        reservation.name
        for reservation in touching
        if reservation.nodes >= own
        and (
            survey.user in reservation.users
            or {*accounts}.intersection(reservation.accounts)
        )
    ]
    return SurveyedClass(
        name=name,
        nodes=tuple(nodes),
        partition=partition,
        others=tuple(sorted(others - {partition.name})),
        accounts=accounts,
        all_qos=tuple(name for name in survey.qos if name in partition.qos),
        reservation=covering[0] if len(covering) == 1 else "",
        touching=tuple(touching),
    )


def _class_names(
    groups: Sequence[Sequence[SlurmNode]], partitions: Sequence[str]
) -> list[str]:
    """Return a name for each class: its partition, with what tells it from others."""
    names: list[str] = []
    for group, partition in zip(groups, partitions, strict=True):
        rivals = [
            other[0]
            for other, of in zip(groups, partitions, strict=True)
            if of == partition and other is not group
        ]
        words = [partition, _difference(group[0], rivals)] if rivals else [partition]
        names.append(_free_name("-".join(filter(None, words)), names))
    return names


def _difference(node: SlurmNode, rivals: Iterable[SlurmNode]) -> str:
    """Return a feature, a gres or a size that none of the rivals has; else ''."""
    rivals = [*rivals]
    for feature in node.features:
        if all(feature not in rival.features for rival in rivals):
            return feature
    if node.gres and all(node.gres != rival.gres for rival in rivals):
        return node.gres
    if all(node.cores != rival.cores for rival in rivals):
        return f"{node.cores}-cores"
    if all(node.memory_mib != rival.memory_mib for rival in rivals):
        return f"{node.memory_mib // 1000}-gb"
    return ""


def _free_name(text: str, taken: Sequence[str]) -> str:
    """Return a text as a name of ReFrame's that is not taken."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(free for free in (name, *numbered) if free not in taken)
