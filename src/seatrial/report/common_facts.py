"""Facts that failing nodes share and other nodes lack.

Fisher's exact test compares failing nodes with the others for every value of every
fact. The procedure of Benjamini and Hochberg limits the expected share of wrong claims
to `RISK`. Facts of too few nodes are listed without a claim.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from seatrial.judge.judge import Judgement
from seatrial.judge.multiple_testing import discoveries
from seatrial.names import natural_key
from seatrial.report.render import text
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run

RISK = 0.05
MOST = 20
"""Facts in the report, the smallest p first."""

_MOST_OTHERS = 0.5  # share of the others that may have what is said without a claim
_OWN = 0.5  # share of nodes with a value of their own, above which a fact names them
_DEPTH = 6  # levels of nesting in a fact


@dataclass(frozen=True)
class CommonFact:
    """A fact's value: `failing` of `of_failing` nodes have it, `others` of `of_others`.

    `p` is the chance of at least `failing` nodes if fact and failure are independent;
    `shown`: significant among all tested values. `nodes` fail, or are worth a look, and
    have the value.
    """

    fact: str
    value: str
    failing: int
    of_failing: int
    others: int
    of_others: int
    p: float
    words: str
    shown: bool = False
    nodes: tuple[str, ...] = ()


Facts = Mapping[str, Mapping[str, str]]


def common_facts(run: Run, judgement: Judgement) -> tuple[CommonFact, ...]:
    """Find the facts that failing nodes share, then those of nodes worth a look."""
    facts = node_facts(run)
    failing = [node for node in judgement.convicted if node in facts]
    looks = {place.rpartition(" (")[0] or place for place in judgement.worth_a_look}
    suspects = sorted(looks & {*facts} - {*failing}, key=natural_key)
    sound = [node for node in facts if node not in {*failing, *suspects}]
    return (
        *_shared(facts, failing, [*suspects, *sound], "failing node"),
        *_shared(facts, suspects, sound, "node worth a look"),
    )[:MOST]


def node_facts(run: Run) -> dict[str, dict[str, str]]:
    """Return the facts of every node that was there, flat: 'hcas.mlx5_0.firmware'."""
    return {
        node["name"]: dict(_flat("", node.get("facts") or {}, 0))
        for node in run.manifest["nodes"]
        if node.get("state", "present") == "present"
    }


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Return the leaves of a fact; keys of a list are its names, else positions."""
    if depth > _DEPTH or value is None or value == "":
        return
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), each, depth + 1)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            own = each.get("name") if isinstance(each, Mapping) else None
            key = str(number) if own is None else str(own)
            yield from _flat(f"{name}.{key}", each, depth + 1)
    else:
        yield name, str(value)


def _shared(
    facts: Facts, chosen: Sequence[str], rest: Sequence[str], what: str
) -> list[CommonFact]:
    """Test every value that the chosen nodes have, and others may have too."""
    if not chosen or not rest:
        return []
    among, beside = _count(facts, chosen), _count(facts, rest)
    values: dict[str, list[str]] = defaultdict(list)
    for known in facts.values():
        for fact, value in known.items():
            values[fact].append(value)
    shared = []
    for (fact, value), nodes in among.items():
        others = len(beside[fact, value])
        own = values[fact]
        names_nodes = len(own) > 2 and len(set(own)) > _OWN * len(own)
        if not names_nodes and (len(nodes) < len(chosen) or others < len(rest)):
            shared.append((fact, value, nodes, others))
    if not shared:
        return []
    hits = np.array([len(nodes) for _, _, nodes, _ in shared])
    total = hits + np.array([others for *_, others in shared])
    p = scipy.stats.hypergeom.sf(hits - 1, len(chosen) + len(rest), total, len(chosen))
    shown = discoveries(np.asarray(p, dtype=float), RISK)
    common = [
        CommonFact(
            fact=fact,
            value=value,
            failing=len(nodes),
            of_failing=len(chosen),
            others=others,
            of_others=len(rest),
            p=chance,
            words="",
            shown=sure,
            nodes=tuple(nodes),
        )
        for (fact, value, nodes, others), chance, sure in zip(
            shared, p.tolist(), shown.tolist(), strict=True
        )
        if sure or (len(nodes) == len(chosen) and others <= _MOST_OTHERS * len(rest))
    ]
    return sorted(
        (replace(fact, words=_words(fact, what)) for fact in common),
        key=lambda fact: (not fact.shown, fact.p, fact.fact),
    )


def _count(
    facts: Facts, nodes: Sequence[str]
) -> defaultdict[tuple[str, str], list[str]]:
    """Return the nodes with each fact and value."""
    holders: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        for pair in facts[node].items():
            holders[pair].append(node)
    return holders


def _words(fact: CommonFact, what: str) -> str:
    """Describe it: 'all 3 failing nodes have firmware 20.31 (hcas.mlx5_0); ...'."""
    nodes = what if fact.of_failing == 1 else what.replace("node", "nodes")
    if fact.of_failing == 1:
        who, have = f"the {nodes} ({short(fact.nodes[0])})", "has"
    elif fact.failing == fact.of_failing:
        who, have = f"all {fact.failing} {nodes}", "have"
    else:
        who = f"{fact.failing} of {fact.of_failing} {nodes}"
        have = "has" if fact.failing == 1 else "have"
    if fact.of_others == 1:
        rest = f"the other node does{'' if fact.others else ' not'}"
    else:
        do = "does" if fact.others <= 1 else "do"
        count = text.exact(fact.others) if fact.others else "none"
        rest = f"of the {text.exact(fact.of_others)} others {count} {do}"
    doubt = "" if fact.shown else ": too few to tell whether that is chance"
    return (
        f"{who} {have} {_name(fact.fact)} {short(fact.value)}; {rest} "
        f"(p = {fact.p:.1g}{doubt})"
    )


def _name(fact: str) -> str:
    """Put the last part first: 'hcas.mlx5_0.firmware' is 'firmware (hcas.mlx5_0)'."""
    where, _, last = fact.rpartition(".")
    last = last.replace("_", " ")
    return f"{short(last)} ({short(where)})" if where else short(last)
