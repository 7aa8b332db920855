"""The plan of a build: lock files, where packages come from, and how long it takes."""

import json
from pathlib import Path

import pytest

from seatrial.errors import SeatrialError
from seatrial.system.spack_build import BuildTimeLeft
from seatrial.system.spack_lock import Lock, Spec, parse_lock, read_lock
from seatrial.system.spack_plan import Origin, Step, Timing, Total, plan, total

DATA = Path(__file__).parent / "data" / "spack"
SPECS = {
    "app": Spec("app", "app", "1", False, ("lib", "mpi"), ("lib", "mpi", "tool")),
    "lib": Spec("lib", "lib", "2", False, (), ("gcc",)),
    "tool": Spec("tool", "tool", "3", False, ("lib",), ("lib", "gcc")),
    "mpi": Spec("mpi", "mpi", "4", True, (), ()),
    "gcc": Spec("gcc", "gcc", "12", True, (), ()),
}
LOCK = Lock(("app",), SPECS)


def planned(
    installed: tuple[str, ...] = (),
    cached: tuple[str, ...] = (),
    timings: tuple[Timing, ...] = (),
) -> tuple[Step, ...]:
    return plan("openmpi", LOCK, LOCK.roots, installed, cached, timings)


def test_lock_of_spack() -> None:
    lock = read_lock(DATA / "openmpi.lock")
    names = {lock.specs[root].name for root in lock.roots}
    assert {"hpcc", "seatrial-benchmarks", "npb", "openmpi"} <= names
    (hpcc,) = lock.chosen(["hpcc"])
    spec = lock.specs[hpcc]
    assert (str(spec), spec.external) == ("hpcc@1.5.0", False)
    needed = [lock.specs[each].name for each in spec.needed]
    assert needed == ["gcc-runtime", "glibc", "openblas", "openmpi"]
    tools = [each for each in spec.building if each not in spec.needed]
    assert {lock.specs[each].name for each in tools} == {
        "compiler-wrapper",
        "gcc",
        "gmake",
    }
    assert lock.chosen([]) == lock.roots


def test_package_that_the_environment_lacks() -> None:
    with pytest.raises(
        SeatrialError, match="no package nope, what in this environment"
    ):
        LOCK.chosen(["app", "nope", "what"])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"roots": [{"hash": "a"}], "concrete_specs": {}}']
)
def test_damaged_lock(text: str, tmp_path: Path) -> None:
    file = tmp_path / "spack.lock"
    file.write_text(text)
    with pytest.raises(SeatrialError, match=r"spack\.lock: not a lock file of Spack"):
        read_lock(file)


def test_hole_in_the_graph_is_found_at_once() -> None:
    content = json.loads((DATA / "openmpi.lock").read_text())
    gone = next(
        key
        for key, spec in content["concrete_specs"].items()
        if spec["name"] == "gmake"
    )
    del content["concrete_specs"][gone]
    with pytest.raises(KeyError):
        parse_lock(content)


@pytest.mark.parametrize(
    ("installed", "cached", "expected"),
    [
        ((), (), "gcc external, lib source, mpi external, tool source, app source"),
        ((), ("app", "lib"), "lib cache, mpi external, app cache"),
        (("app", "lib"), (), "lib installed, mpi external, app installed"),
        (
            ("lib",),
            ("tool",),
            "lib installed, mpi external, tool cache, app source",
        ),
    ],
)
def test_origin_of_each_package(
    installed: tuple[str, ...], cached: tuple[str, ...], expected: str
) -> None:
    steps = planned(installed, cached)
    found = ", ".join(f"{step.package} {step.origin}" for step in steps)
    assert found == expected


TIMINGS = (
    Timing("app", "app", False, 100.0),
    Timing("app", "app", False, 50.0),
    Timing("elsewhere", "app", True, 3.0),
    Timing("lib-1", "lib", False, 10.0),
    Timing("lib-2", "lib", False, 20.0),
)


def test_times_come_from_records_only() -> None:
    steps = {step.package: step for step in planned(timings=TIMINGS)}
    took = {name: (step.seconds, step.basis) for name, step in steps.items()}
    assert took == {
        "app": (50.0, "same build"),
        "lib": (15.0, "other builds"),
        "tool": (None, ""),
        "mpi": (0.0, ""),
        "gcc": (0.0, ""),
    }
    assert total(steps.values()) == Total(3, 0, 65.0, 1)


def test_time_from_the_cache_is_another_than_from_source() -> None:
    steps = planned(cached=("app", "lib"), timings=TIMINGS)
    assert {step.package: step.seconds for step in steps} == {
        "app": 3.0,
        "lib": None,
        "mpi": 0.0,
    }
    assert total(steps) == Total(0, 2, 3.0, 1)


def step(name: str, seconds: float | None) -> Step:
    return Step("openmpi", name, "1", name, Origin.SOURCE, seconds)


def test_time_left_is_never_made_up() -> None:
    left = BuildTimeLeft([step("a", None), step("b", None)])
    assert left.seconds() is None
    assert left.text() == "time left unknown"
    left = BuildTimeLeft([step("a", None), step("b", 100.0), step("c", 25.0)])
    assert left.text() == "at least 2 min 05 s left, 1 of unknown time"
    left.start("b@1 (openmpi)")
    left.start("a@1 (openmpi)")
    left.finish("b@1 (openmpi)")
    assert left.text() == "at least 25 s left, 1 of unknown time"
    left.finish("a@1 (openmpi)")
    assert left.text() == "25 s left"
    left.finish("c@1 (openmpi)")
    assert left.text() == "0 s left"
