"""ReFrame's reference files are made from the criteria, and mean the same there."""

import re
from copy import deepcopy
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml
from fake_home import write
from reframe.core.pipeline import RegressionTestDict, RegressionTestPlugin
from reframe_runs import FAKE, HOME, Fake, run_rows

from seatrial.checks.base import SeatrialCheck
from seatrial.checks.sources import check_classes
from seatrial.criteria.criteria import Criteria
from seatrial.criteria.reframe_references import (
    compare_reference_files,
    render_reference_files,
    write_reference_files,
)
from seatrial.errors import SeatrialError

CHECK = """
import reframe as rfm
from reframe.core.builtins import parameter
from seatrial.checks.base import SeatrialCheck


class Base(SeatrialCheck):
    reference_file = "fake.yaml"
    window = parameter([1, 2])
    protocol = parameter(["eager", "rndv", "rndv_get", "put"])


@rfm.simple_test
class Fake(Base):
    pass


@rfm.simple_test
class Other(Base):
    reference_file = "other.yaml"
    size = parameter(range(3))
"""
HEAD = """\
schema: 1
risks: {seller: 0.05, buyer: 0.05}
defaults: {kind: promised, document: Contract, clause: '1'}
criteria:
"""


def fake_home(folder: Path, criteria: str) -> Path:
    write(folder / "reframe-checks" / "checks" / "fake.py", CHECK)
    write(folder / "reference-data" / "lab" / "criteria.yaml", HEAD + criteria)
    return folder


def load(home: Path) -> Criteria:
    return Criteria.load(home / "reference-data" / "lab" / "criteria.yaml")


def rendered(home: Path) -> dict[str, Any]:
    files = render_reference_files(home, load(home), "lab")
    return {file.name: yaml.safe_load(text) for file, text in files.items()}


def test_file_says_what_it_is_and_where_limits_come_from(tmp_path: Path) -> None:
    home = fake_home(
        tmp_path,
        """
  - {check: Other, limits: {latency_8B: 2.5 us, pairs_answered: 100 %}}
  - {check: Fake, where: {$partition: 'lab:.*'}, limits: {bw_8B: 0.00001 MB/s}}
  - {check: Fake, kind: theoretical, formula: 3 * 4, metrics: [bw_4MiB]}
  - {check: Fake, kind: sameness, tolerance: 0.1, metrics: [latency_8B]}
""",
    )
    files = render_reference_files(home, load(home), "lab")
    heading = """\
# Written from criteria.yaml by `seatrial references generate lab`; changes
# made here are lost. Sameness, and how sure a verdict must be, only the judge knows.

"""
    fake = """\
# promised: Contract, 1 (bw_8B)
# theoretical: 3 * 4 (bw_4MiB)
Fake:
  $index: [$partition]
  lab:.*:
    bw_8B: [1.0e-05, 0, null, MB/s]
    bw_4MiB: [12, 0, null, MB/s]
  .*:
    bw_4MiB: [12, 0, null, MB/s]
"""
    other = """\
# promised: Contract, 1
Other:
  $index: [$partition]
  .*:
    latency_8B: [2.5, null, 0, us]
    pairs_answered: [100, 0, null, '%']
"""
    folder = home / "reference-data" / "lab"
    assert files == {
        folder / "fake.yaml": heading + fake,
        folder / "other.yaml": heading + other,
    }


class Place(NamedTuple):
    """Parameters that distinguish cases of one check."""

    partition: str
    environment: str
    parameters: dict[str, Any]
    num_nodes: int


PLACES = [
    Place(partition, environment, {"window": window, "protocol": protocol}, nodes)
    for partition in ("lab:batch", "lab:big", "other:batch")
    for environment in ("openmpi", "intelmpi", "intel", "mpich")
    for window in (1, 2)
    for protocol in ("eager", "rndv", "rndv_get", "put")
    for nodes in (2, 3, 4)
]
LIMITS = ("latency_8B: {} us", "bw_8B: {} MB/s")
WHERE = [
    "{}",
    "{$partition: 'lab:.*'}",
    "{$partition: lab:batch}",
    "{$partition: 'lab:b.*', $environ: '.*mpi'}",
    "{$environ: open.*}",
    "{$environ: 'open.*|intel.*'}",
    "{$environ: 'intel|mpich'}",
    "{$environ: 'intelx*mpi'}",
    "{$environ: 'intelm.*'}",
    "{num_nodes: 4}",
    "{window: 1}",
    "{window: 2, protocol: rndv.*}",
    "{protocol: '.*'}",
    "{protocol: '.*_get', num_nodes: 2}",
    "{tuning: fast}",
]


class Case(RegressionTestPlugin):  # type: ignore[misc]  # ReFrame has no types
    """As much of a test as ReFrame asks for when it looks for references."""

    __ref_missing_num_nodes__ = SeatrialCheck.__ref_missing_num_nodes__


def as_reframe_finds(references: dict[str, Any], place: Place) -> dict[str, Any]:
    """Look for the references of a case with ReFrame's own code."""
    case = Case()
    case.current_system = SimpleNamespace(name=place.partition.split(":")[0])
    case.current_partition = SimpleNamespace(fullname=place.partition)
    case.current_environ = SimpleNamespace(name=place.environment)
    case.num_nodes = place.num_nodes
    case.tuning = ""
    for name, value in place.parameters.items():
        setattr(case, name, value)
    try:
        found: dict[str, Any] = RegressionTestDict(references, protocol="ref")[case]
    except KeyError:
        return {}
    return found


def as_criteria_say(criteria: Criteria, place: Place) -> dict[str, Any]:
    """Return the strictest limit of each metric among all criteria that apply."""
    limits: dict[str, float] = {}
    for each in criteria.criteria:
        if each.applies("Fake", *place):
            assert each.limit is not None
            known = limits.get(each.metric, each.limit)
            strictest = min if each.direction == "lower" else max
            limits[each.metric] = strictest(known, each.limit)
    return {
        metric: [limit, None, 0, "us"] if "lat" in metric else [limit, 0, None, "MB/s"]
        for metric, limit in limits.items()
    }


def test_reframe_finds_the_strictest_limit_of_all_that_apply(tmp_path: Path) -> None:
    """Random choices of criteria that overlap in every way, all cases of each."""
    home = fake_home(tmp_path, "[]")
    random = Random(1)
    seen = set()
    for _ in range(10):
        entries = [
            f"  - {{check: Fake, where: {where}, name: c{number}, "
            f"limits: {{{random.choice(LIMITS).format(random.randint(1, 99))}}}}}\n"
            for number, where in enumerate(random.sample(WHERE, random.randint(1, 6)))
        ]
        fake_home(tmp_path, "".join(entries))
        criteria = load(home)
        references = rendered(home)["fake.yaml"]["Fake"]
        for place in PLACES:
            expected = as_criteria_say(criteria, place)
            found = as_reframe_finds(deepcopy(references), place)
            assert found == expected, (entries, place, references)
            seen.add(len(expected))
    assert seen == {0, 1, 2}


def test_limits_of_the_usual_statistic_come_first(tmp_path: Path) -> None:
    home = fake_home(
        tmp_path,
        """
  - {check: Fake, statistic: p99, limits: {latency_8B: 1 us, latency_16B: 1 us}}
  - {check: Fake, limits: {latency_8B: 2 us}}
""",
    )
    assert rendered(home)["fake.yaml"]["Fake"][".*"] == {
        "latency_8B": [2, None, 0, "us"],
        "latency_16B": [1, None, 0, "us"],
    }


REFUSED = [
    ("check: Fake, where: {size: 1}", "where of Fake has 'size'; expected one of $sys"),
    ("check: Other, where: {size: 1}", "its values are not written in the check"),
]


@pytest.mark.parametrize(("entry", "reason"), REFUSED)
def test_what_reframe_cannot_express_is_an_error(
    tmp_path: Path, entry: str, reason: str
) -> None:
    limits = "limits: {latency_8B: 1 us}"
    check = entry.partition(",")[0]
    criteria = f"  - {{{entry}, {limits}}}\n  - {{{check}, {limits}}}\n"
    home = fake_home(tmp_path, criteria)
    with pytest.raises(SeatrialError, match=re.escape(reason)):
        rendered(home)


def test_too_many_patterns_are_an_error(tmp_path: Path) -> None:
    entry = (
        "  - {{check: Fake, where: {{$environ: .*{}}}, limits: {{bw_8B: 1 MB/s}}}}\n"
    )
    home = fake_home(tmp_path, "".join(entry.format(letter) for letter in "abcdefghi"))
    with pytest.raises(SeatrialError, match=r"Fake has 9 patterns for \$environ"):
        rendered(home)


def test_check_without_a_file_is_an_error(tmp_path: Path) -> None:
    home = fake_home(tmp_path, "  - {check: Fake, limits: {bw_8B: 1 MB/s}}\n")
    write(
        home / "reframe-checks" / "checks" / "fake.py",
        CHECK.replace('    reference_file = "fake.yaml"\n', ""),
    )
    with pytest.raises(SeatrialError, match=r"check Fake below .*: no reference_file"):
        rendered(home)


def test_files_are_written_once_and_nothing_of_a_hand_is_lost(tmp_path: Path) -> None:
    one, two = (
        f"  - {{check: {check}, limits: {{bw_8B: 1 MB/s}}}}\n"
        for check in ("Fake", "Other")
    )
    home = fake_home(tmp_path, one + two)
    folder = home / "reference-data" / "lab"
    fake, other = folder / "fake.yaml", folder / "other.yaml"
    criteria = load(home)
    assert compare_reference_files(home, criteria, "lab") == [fake, other]
    assert write_reference_files(home, criteria, "lab") == [fake, other]
    assert write_reference_files(home, criteria, "lab") == []

    write(folder / "notes.yaml", "mine: 1\n")
    fake_home(tmp_path, one)
    criteria = load(home)
    assert compare_reference_files(home, criteria, "lab") == [other]
    assert write_reference_files(home, criteria, "lab") == [other]
    assert sorted(file.name for file in folder.iterdir()) == [
        *("criteria.yaml", "fake.yaml", "notes.yaml"),
    ]

    write(fake, "Fake: {}\n")
    assert compare_reference_files(home, criteria, "lab") == [fake]
    with pytest.raises(SeatrialError, match=r"fake\.yaml: written by hand, and crit"):
        write_reference_files(home, criteria, "lab")
    assert fake.read_text() == "Fake: {}\n"


def test_files_of_the_lab_are_up_to_date() -> None:
    criteria = Criteria.load(HOME / "reference-data" / "lab" / "criteria.yaml")
    assert compare_reference_files(HOME, criteria, "lab") == []


def test_a_case_on_any_number_of_nodes_has_its_reference(tmp_path: Path) -> None:
    """A real session: what is asked of 4 nodes only does not hide the rest."""
    home = fake_home(
        tmp_path / "home",
        """
  - {check: Fake, where: {num_nodes: 4}, limits: {latency_8B: 1 us}}
  - {check: Fake, limits: {latency_8B: 2 us}}
""",
    )
    (text,) = render_reference_files(home, load(home), "lab").values()
    rows = run_rows(tmp_path / "run", {"fake": Fake(FAKE, text)})
    for _, row in rows:
        (value,) = row["perfvalues"].values()
        assert value[1:4] == [2, None, 0]
        assert row["result"] == "pass"


def test_parameters_and_files_are_read_from_the_sources() -> None:
    classes = check_classes(HOME)
    assert classes["OsuMessageRate"].reference_file == "osu.yaml"
    assert classes["OsuMessageRate"].parameters["window"] == [64, 512]
    assert classes["ImbMultiLatency"].reference_file == "imb.yaml"
