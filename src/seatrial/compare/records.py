"""Records of a comparison: sides, paired numbers, scores, ranking.

Every ratio says how many times better a side is than the first side, the baseline: of
times the baseline's over its own, of rates its own over the baseline's. Above 1 is
always better.
"""

from dataclasses import dataclass

from seatrial.compare.serial import Correlation
from seatrial.criteria.weights import RankBy
from seatrial.model.metrics import Direction, flat_name
from seatrial.model.units import counted


@dataclass(frozen=True)
class Side:
    """One side: a closed run, or a published system.

    `source` is the run's id or the system's name. `environment` is the one that counts,
    '' for all. `repeats` and `nodes` are 0 of a published system. `verdict` and
    `digest` are of the judgement, '' if nothing was judged; `bears` is the party that
    bears what is not shown; `signer` sealed the run, '' if no known person did;
    `weights_sha256` is what the run recorded before its first measurement, '' for none.
    `price` is in any one unit, `power_kw` in kW.
    """

    name: str
    source: str
    system: str
    campaign: str
    started: str
    environment: str = ""
    repeats: int = 0
    nodes: int = 0
    published: bool = False
    replay: bool = False
    demonstration: bool = False
    model: bool = False
    verdict: str = ""
    bears: str = ""
    digest: str = ""
    signer: str = ""
    weights_sha256: str = ""
    price: float | None = None
    power_kw: float | None = None


@dataclass(frozen=True)
class Ratio:
    """How many times better than the baseline, with its confidence bounds.

    `lower` and `upper` are None where too little is known of the scatter: fewer than
    two repeats of a side, or published numbers.
    """

    value: float
    lower: float | None = None
    upper: float | None = None

    @property
    def bounds(self) -> tuple[()] | tuple[float, float]:
        """Return both confidence bounds; empty where they are unknown."""
        if self.lower is None or self.upper is None:
            return ()
        return self.lower, self.upper


@dataclass(frozen=True)
class Key:
    """Identity of a number: numbers of several sides are paired if it is equal.

    `case` is the case without its check's name; `num_nodes` is None of numbers that are
    taken of nodes or pairs one by one. `size` is a published size in words.
    """

    check: str
    case: str
    environment: str
    partition: str
    num_nodes: int | None
    metric: str
    size_bytes: int | None
    size: str = ""

    @property
    def case_key(self) -> tuple[str, str, str, str, int | None]:
        """Return the identity of the case: equal for all of its numbers."""
        case = (self.check, self.case, self.environment, self.partition)
        return (*case, self.num_nodes)

    @property
    def flat(self) -> str:
        """Return metric and size: `latency_8B`."""
        return flat_name(self.metric, self.size_bytes)

    @property
    def where(self) -> str:
        """Join case, environment, partition, published size and number of nodes."""
        nodes = counted(self.num_nodes, "node") if self.num_nodes else ""
        parts = (self.case, self.environment, self.partition, self.size, nodes)
        return ", ".join(filter(None, parts))

    @property
    def name(self) -> str:
        """Name the number within its check: `bw_1MiB (openmpi, 4 nodes)`."""
        return f"{self.flat} ({self.where})" if self.where else self.flat

    def __str__(self) -> str:
        return f"{self.check} {self.name}".lstrip()


@dataclass(frozen=True, kw_only=True)
class PairedNumber(Key):
    """One metric of one case that at least two sides have.

    `values` are the geometric means over the repeats of each side (in each over its
    allocations, the median over places), None for a side without; `ratios` likewise,
    None for the baseline
    and without a value. `n` counts allocations. `marks` has for each side 'better' or
    'worse' than the baseline if that is more than chance over all numbers of the
    comparison (false discovery rate 5 %). `weight` is the share in the whole score, 0
    without a group; `group` is '' then.
    """

    unit: str
    direction: Direction
    group: str
    weight: float
    values: tuple[float | None, ...]
    n: tuple[int, ...]
    ratios: tuple[Ratio | None, ...]
    marks: tuple[str, ...]
    note: str = ""

    @property
    def mark(self) -> str:
        """Return better or worse if marked sides agree, both if not; alike if none."""
        marks = {*self.marks} - {""}
        return "both" if len(marks) > 1 else next(iter(marks), "alike")


@dataclass(frozen=True)
class Claim:
    """What a paper states of two of the published sides, beside what follows here.

    `stated` is its number as a ratio, None of a statement in words, or of a share that
    the paper does not define; `computed` is the ratio of the numbers that the paper
    gives, None if it gives none. `agrees` tells whether the two do, to the digits and
    by the qualifier of the paper, None where that cannot be said. `conflict` says what
    else in its paper contradicts it, '' if nothing does.
    """

    paper: str
    place: str
    experiment: str
    what: str
    metric: str
    size: str
    side: str
    baseline: str
    qualifier: str
    stated: float | None
    computed: float | None
    words: str
    agrees: bool | None = None
    conflict: str = ""


@dataclass(frozen=True)
class Unpaired:
    """A case, or one metric of it, that not all sides have.

    `reasons` are per side, '' where it has it.
    """

    check: str
    case: str
    metric: str
    group: str
    reasons: tuple[str, ...]

    @property
    def name(self) -> str:
        """Join check, metric and case: `ImbRing bw_1MiB (ppn=2)`."""
        case = self.case and f"({self.case})"
        return " ".join(filter(None, [self.check, self.metric, case]))


@dataclass(frozen=True)
class GroupScore:
    """Geometric mean of a group's numbers; `ratios` per side, None of the baseline."""

    name: str
    weight: float
    numbers: int
    ratios: tuple[Ratio | None, ...]


@dataclass(frozen=True)
class Standing:
    """A side in the ranking: its whole score beside the baseline's.

    `score` is what the ranking goes by (performance, or that per price or power),
    `performance` without that. `selected` is the share of bootstrap resamples in which
    the side comes first, None where nothing can be resampled. `excluded` says why the
    side cannot win, '' if it can.
    """

    side: str
    rank: int
    score: Ratio
    performance: Ratio
    selected: float | None
    excluded: str = ""


@dataclass(frozen=True)
class Comparison:
    """A whole comparison. `winner` is a side's name, or None with the reasons `why`.

    `ahead` names the side of the best score. `weights` names the file, '' if all groups
    count the same without one; `frozen`: every run recorded just these weights before
    its first measurement. `more_repeats` is about how many more repeats of each side
    would separate the first two, None if unknown or needless. `lead` is by how much the
    first is better than the second, in what is ranked by. `confidence` is that of all
    intervals, each by itself; `margin` is how much better a winner must be, as a share.
    `correlation` is that of successive repeats, which widens all intervals.
    """

    sides: tuple[Side, ...]
    numbers: tuple[PairedNumber, ...]
    claims: tuple[Claim, ...]
    unpaired: tuple[Unpaired, ...]
    groups: tuple[GroupScore, ...]
    ranking: tuple[Standing, ...]
    ahead: str
    winner: str | None
    why: tuple[str, ...]
    weights: str
    weights_sha256: str
    frozen: bool
    rank_by: RankBy
    margin: float
    confidence: float
    resamples: int
    seed: int
    correlation: Correlation
    more_repeats: int | None = None
    lead: Ratio | None = None
    notes: tuple[str, ...] = ()
