"""Findings on one node of each class, which a job of the doctor looked at."""

from collections.abc import Iterator, Mapping

from seatrial.system.doctor.finding import Diagnosis, finding, version_of
from seatrial.system.doctor.probe import Facts

SUITE_PYTHON = (3, 11)
_CLOCK_S = 2.0
_MEMLOCK_KIB = 1 << 20


def node_findings(facts: Facts, name: str) -> Iterator[Diagnosis]:
    """Yield the findings on one node of a class, which a job looked at."""
    node = facts.nodes.get(name, {})
    if "end" not in node:
        lines = [line for line in facts.errors.get(name, ()) if line]
        associations = ", ".join(facts.values.get("association", ())) or "not known"
        remedy = (
            f"see account, qos, constraint and reservation of the class; account, "
            f"partition, QOS of {facts.first('user')}: {associations}"
        )
        text = lines[-1] if lines else "no node within 60 s"
        yield Diagnosis("job", name, "fail", text, remedy)
        return
    yield Diagnosis("job", name, "ok", f"ran on {node['node']}")
    yield from _programs(facts, name, node)
    yield from _limits(facts, name, node)


def _programs(facts: Facts, name: str, node: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield the findings on the shared folder, Python and architecture of a node."""
    seen = node.get("token") == facts.token
    writable = "seen and writable" if node.get("writable") else "seen, not writable"
    yield finding(
        "shared folder",
        name,
        holds=seen and node.get("writable") == "yes",
        text=writable if seen else "a file of the login node is not seen",
        remedy="seatrial_prefix must be on a file system that all nodes share",
    )
    yield finding(
        "file locks",
        name,
        holds=node.get("locks") == "yes",
        text="flock works" if node.get("locks") else "flock fails",
        remedy="mount the file system with locks (Lustre: -o flock)",
    )
    python = node.get("python", "")
    yield finding(
        "python of the suite",
        name,
        holds=version_of(python) >= SUITE_PYTHON,
        text=python or "missing",
        remedy="PairSweep and NodeSweep run suite_python on this node: install it "
        "there, or on the shared file system",
    )
    own = facts.first("architecture")
    yield finding(
        "architecture",
        name,
        holds=node.get("architecture") == own,
        text=node.get("architecture", ""),
        remedy=f"choose a login node of this architecture, not {own}",
    )


def _limits(facts: Facts, name: str, node: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield the findings on the name, limits and clock of a node."""
    yield finding(
        "node name",
        name,
        holds=node["host"] == node["node"],
        text=f"{node['node']} calls itself {node['host']}",
        remedy="MPI starts by host name: NodeName and the host name must agree",
        warn=True,
    )
    memlock = node.get("memlock", "")
    limit = int(memlock) if memlock.isdecimal() else 0
    yield finding(
        "memlock",
        name,
        holds=memlock == "unlimited" or limit >= _MEMLOCK_KIB,
        text=f"{memlock} KiB" if limit else memlock,
        remedy="RDMA registers memory: set LimitMEMLOCK=infinity for slurmd, or "
        "PropagateResourceLimitsExcept=MEMLOCK",
        warn=True,
    )
    runs = node.get("tmp_runs") == "yes"
    yield finding(
        "/tmp",
        name,
        holds=runs,
        text="programs run there" if runs else "mounted noexec",
        remedy="set TMPDIR of jobs to a folder where programs run",
        warn=True,
    )
    difference = _clock_difference(facts, node)
    yield finding(
        "clock",
        name,
        holds=difference <= _CLOCK_S,
        text=f"{difference:.1f} s from the login node at most",
        remedy="synchronise the clocks (chrony): events are matched to jobs by time",
        warn=True,
    )


def _clock_difference(facts: Facts, node: Mapping[str, str]) -> float:
    """Return how far a node's clock is outside of the time of the probe, in s."""
    login, moment = float(facts.first("clock")), float(node["clock"])
    duration = facts.received - facts.sent
    return max(0.0, login - moment, moment - login - duration)
