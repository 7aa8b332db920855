"""Findings on one node of each class, which a job of the doctor looked at."""

from collections.abc import Collection, Iterator, Mapping

from seatrial.system.doctor.finding import Diagnosis, finding, number_of, version_of
from seatrial.system.doctor.probe import Facts

SUITE_PYTHON = (3, 11)
_CLOCK_S = 2.0
_MEMLOCK_KIB = 1 << 20
_TMP_MIB = 256


def node_findings(
    facts: Facts, name: str, features: Collection[str]
) -> Iterator[Diagnosis]:
    """Yield the findings on one node of a class, which a job looked at."""
    subject = f"class {name}"
    node = {
        fact: values[0] for (of, fact), values in facts.values.items() if of == subject
    }
    if "end" not in node:
        lines = [line for line in facts.all("error", subject) if line]
        associations = ", ".join(facts.all("association")) or "not known"
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
    if "verbs" in features:
        yield from _verbs(name, node)


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
    if (python := node.get("python")) is not None:  # a bundled one is not there yet
        yield finding(
            "python of the suite",
            name,
            holds=python[:1].isdecimal() and version_of(python) >= SUITE_PYTHON,
            text=python or "missing",
            remedy="PairSweep and NodeSweep run suite_python on this node: install it "
            "there, or on the shared file system, or set suite_python to bundled",
        )
    if suite := node.get("suite"):
        yield finding(
            "installed suite",
            name,
            holds=suite == "runs",
            text=suite,
            remedy="run playbooks/site.yml again; it makes the environment anew when "
            "suite_python changes",
        )
    own = facts.first("architecture")
    yield finding(
        "architecture",
        name,
        holds=node.get("architecture") == own,
        text=node.get("architecture", ""),
        remedy=f"choose a login node of this architecture, not {own}",
    )


def _verbs(name: str, node: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield the findings on programs below MPI; without them checks are skipped."""
    lacks = node.get("perftest_lacks", "")
    yield finding(
        "perftest",
        name,
        holds=not lacks,
        text=f"not on PATH: {lacks}" if lacks else "on PATH",
        remedy="VerbsLatency, VerbsAtomics and VerbsBandwidth run it: install perftest "
        "on the nodes, or name a module that has it in modules of the stack",
        warn=True,
    )
    if (built := node.get("verbs_lacks")) is not None:  # else nothing is built yet
        yield finding(
            "programs of verbs",
            name,
            holds=not built,
            text=f"not built: {built}" if built else "built",
            remedy="install librdmacm-dev (rdma-core-devel) on the login node and run "
            "playbooks/site.yml again",
            warn=True,
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
    unit = " KiB" if memlock.isdecimal() else ""
    yield finding(
        "memlock",
        name,
        holds=memlock == "unlimited" or number_of(memlock) >= _MEMLOCK_KIB,
        text=f"{memlock}{unit} (login node: {facts.first('memlock')})",
        remedy="RDMA registers memory: set LimitMEMLOCK=infinity for slurmd, and "
        "PropagateResourceLimitsExcept=MEMLOCK where the login node limits it",
        warn=True,
    )
    runs, free = node.get("tmp_runs") == "yes", node.get("tmp_free_mib", "")
    yield finding(
        "/tmp",
        name,
        holds=runs and number_of(free) >= _TMP_MIB,
        text=("programs run there" if runs else "mounted noexec")
        + f", {free} MiB free",
        remedy="set TMPDIR of jobs to a folder with space where programs run",
        warn=True,
    )
    login, moment = float(facts.first("clock")), float(node["clock"])
    # The node's clock was read while the probe ran, by the clock of the login node.
    difference = max(0.0, login - moment, moment - login - facts.received + facts.sent)
    yield finding(
        "clock",
        name,
        holds=difference <= _CLOCK_S,
        text=f"{difference:.1f} s from the login node at most",
        remedy="synchronise the clocks (chrony): events are matched to jobs by time",
        warn=True,
    )
