"""Facts that failing nodes share and other nodes lack.

Fisher's exact test compares failing nodes with the others for every value of every
fact. The procedure of Benjamini and Hochberg limits the expected share of wrong claims
to `RISK`. Facts of too few nodes are listed without a claim.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from seatrial.judge.judge import Judgement
from seatrial.judge.multiple_testing import discoveries
from seatrial.names import natural_key
from seatrial.report.render import text
from seatrial.report.render.text import short
from seatrial.runs.closed_run import Run
from seatrial.runs.settings_table import is_stable

RISK = 0.05
MOST = 20
"""Facts in the report, the smallest p first."""

_MOST_OTHERS = 0.5  # share of the others that may have a fact listed without a claim
_OWN = 0.5  # share of distinct values above which a fact identifies nodes
_DEPTH = 6  # levels of nesting in a fact


@dataclass(frozen=True)
class CommonFact:
    """A fact's value: `failing` of `of_failing` nodes have it, `others` of `of_others`.

    `p` is the probability of at least `failing` nodes if fact and failure are
    independent; `shown`: significant among all tested values. `nodes` fail, or are
    worth a look, and have the value.
    """

    fact: str
    value: str
    failing: int
    of_failing: int
    others: int
    of_others: int
    p: float
    shown: bool
    nodes: tuple[str, ...]
    kind: str

    @property
    def words(self) -> str:
        """Describe it: 'all 3 failing nodes have firmware 20.31 (hcas.mlx5_0); ...'."""
        has = "has" if self.failing == 1 else "have"
        if self.of_failing == 1:
            holders = f"the {self.kind} ({short(self.nodes[0])})"
        else:
            count = f"{self.failing} of {self.of_failing}"
            if self.failing == self.of_failing:
                count = f"all {self.failing}"
            holders = f"{count} {self.kind.replace('node', 'nodes')}"
        if self.of_others == 1:
            rest = f"the other node does{'' if self.others else ' not'}"
        else:
            do = "does" if self.others <= 1 else "do"
            count = text.exact(self.others) if self.others else "none"
            rest = f"of the {text.exact(self.of_others)} others {count} {do}"
        doubt = "" if self.shown else ": too few to tell whether that is chance"
        where, _, last = self.fact.rpartition(".")
        name = short(last.replace("_", " ")) + (f" ({short(where)})" if where else "")
        return (
            f"{holders} {has} {name} {short(self.value)}; {rest} "
            f"(p = {self.p:.1g}{doubt})"
        )


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
    """Return the facts of every node that was there, flat: 'hcas.mlx5_0.firmware'.

    The stable settings are among them: 'rail0.firmware'; instead of `hcas`, then.
    """
    settings = _settings(run)
    facts: dict[str, dict[str, str]] = {}
    for node in run.manifest["nodes"]:
        if node.get("state", "present") == "present":
            own = dict(node.get("facts") or {})
            if node["name"] in settings:
                own.pop("hcas", None)
            known = settings.get(node["name"], {})
            facts[node["name"]] = dict(_flat("", own, 0)) | known
    return facts


def _settings(run: Run) -> dict[str, dict[str, str]]:
    """Return the stable settings of each node, at the start of the run if known."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    if run.settings is not None:
        columns = ("moment", "node", "subject", "key", "actual")
        table = run.settings.select(columns).drop_nulls("actual")
        for _, node, subject, key, value in table.sort(
            "moment", descending=True
        ).iter_rows():  # start before end
            if is_stable(subject, key):
                found[node].setdefault(f"{subject}.{key}", value)
    return found


def _flat(name: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Return the leaves of a fact; keys of a list are its names, else positions."""
    if depth > _DEPTH or value is None or value == "":
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), item, depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            own = item.get("name") if isinstance(item, Mapping) else None
            key = str(number) if own is None else str(own)
            yield from _flat(f"{name}.{key}", item, depth + 1)
    else:
        yield name, str(value)


def _shared(
    facts: Facts, chosen: Sequence[str], rest: Sequence[str], kind: str
) -> list[CommonFact]:
    """Test every value of the chosen nodes against the rest."""
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
        identifies = len(own) > 2 and len(set(own)) > _OWN * len(own)
        if not identifies and (len(nodes) < len(chosen) or others < len(rest)):
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
            shown=sure,
            nodes=tuple(nodes),
            kind=kind,
        )
        for (fact, value, nodes, others), chance, sure in zip(
            shared, p.tolist(), shown.tolist(), strict=True
        )
        if sure or (len(nodes) == len(chosen) and others <= _MOST_OTHERS * len(rest))
    ]
    return sorted(common, key=lambda fact: (not fact.shown, fact.p, fact.fact))


def _count(
    facts: Facts, nodes: Sequence[str]
) -> defaultdict[tuple[str, str], list[str]]:
    """Return the nodes with each fact and value."""
    holders: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        for pair in facts[node].items():
            holders[pair].append(node)
    return holders
