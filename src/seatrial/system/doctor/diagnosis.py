"""Findings of the doctor: what holds, what is missing, and its remedy."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from seatrial.system.doctor.probe import Facts

Verdict = Literal["ok", "warn", "fail"]

_COMMANDS = ("sbatch", "srun", "squeue", "sinfo", "scontrol", "sacct", "scancel")
_ANSIBLE_PYTHON = (3, 8)
_SUITE_PYTHON = (3, 11)
_SLURM = (20, 11)
_FREE_MIB = 2_000
_CLOCK_S = 2.0
_MEMLOCK_KIB = 1 << 20


@dataclass(frozen=True)
class Diagnosis:
    """One finding: a topic, its subject (a class, a stack or the login node)."""

    topic: str
    subject: str
    verdict: Verdict
    text: str
    remedy: str = ""


def diagnose(facts: Facts, settings: Mapping[str, Any]) -> list[Diagnosis]:
    """Return all findings, in the order in which a first run would meet them."""
    if facts.error:
        remedy = (
            "try `ssh` to the login node yourself; see ansible_host in the inventory"
        )
        return [Diagnosis("ssh", "login", "fail", facts.error, remedy)]
    classes = settings["classes"]
    return [
        Diagnosis("ssh", "login", "ok", f"{facts.first('user')}@{facts.first('host')}"),
        *_slurm(facts),
        *_python(facts, str(settings["python"])),
        *_prefix(facts),
        *_classes(facts, classes),
        *_stacks(facts, settings["stacks"]),
    ]


def _finding(
    topic: str, subject: str, *, holds: bool, text: str, remedy: str, warn: bool = False
) -> Diagnosis:
    """Return a finding; `warn`: a run can do without it."""
    if holds:
        return Diagnosis(topic, subject, "ok", text)
    return Diagnosis(topic, subject, "warn" if warn else "fail", text, remedy)


def _slurm(facts: Facts) -> Iterator[Diagnosis]:
    missing = [name for name in _COMMANDS if not facts.first(f"command {name}")]
    yield _finding(
        "slurm",
        "login",
        holds=not missing,
        text=f"not on PATH: {', '.join(missing)}" if missing else facts.first("slurm"),
        remedy="the first host of the group login must be one that submits jobs",
    )
    if missing:
        return
    version = _version(facts.first("slurm"))
    yield _finding(
        "slurm version",
        "login",
        holds=version >= _SLURM,
        text=facts.first("slurm"),
        remedy="tested with Slurm 22.05 and newer",
        warn=True,
    )
    yield _finding(
        "slurmctld",
        "login",
        holds="is UP" in facts.first("ping"),
        text=facts.first("ping") or "no answer",
        remedy="start slurmctld; the login node needs its slurm.conf",
    )
    sacct = facts.first("sacct") == "works"
    yield _finding(
        "accounting",
        "login",
        holds=sacct,
        text="sacct answers" if sacct else facts.first("sacct_error"),
        remedy="ReFrame reads the end of jobs from sacct: set AccountingStorageType",
    )


def _python(facts: Facts, suite: str) -> Iterator[Diagnosis]:
    versions = {
        name.partition(" ")[2]: values[0]
        for name, values in facts.values.items()
        if name.startswith("python ")
    }
    newest = max(map(_version, versions.values()), default=())
    yield _finding(
        "python of Ansible",
        "login",
        holds=newest >= _ANSIBLE_PYTHON,
        text=_listed(versions) or "no python3",
        remedy="install Python 3.8 or newer (RHEL 8: `dnf install python3.11`), and "
        "name it in ansible_python_interpreter",
    )
    enough = [
        name for name, text in versions.items() if _version(text) >= _SUITE_PYTHON
    ]
    chosen = _version(versions.get(suite, ""))
    remedy = "install Python 3.11 or newer on the login and compute nodes"
    if enough:
        remedy = f"set suite_python to the path of {enough[0]}"
    yield _finding(
        "python of the suite",
        "login",
        holds=chosen >= _SUITE_PYTHON,
        text=f"{suite} {versions.get(suite, 'is missing')}",
        remedy=remedy,
    )


def _prefix(facts: Facts) -> Iterator[Diagnosis]:
    writable = facts.first("prefix") == "writable"
    yield _finding(
        "shared folder",
        "login",
        holds=writable,
        text=f"seatrial_prefix is {'' if writable else 'not '}writable",
        remedy="choose a seatrial_prefix below which the user may write",
    )
    if not writable:
        return
    free = int(facts.first("prefix_free_mib") or 0)
    yield _finding(
        "free space",
        "login",
        holds=free >= _FREE_MIB,
        text=f"{free} MiB ({facts.first('prefix_type')})",
        remedy=f"the suite needs {_FREE_MIB} MiB, and each run its output",
    )
    locks = facts.first("prefix_locks")
    yield _finding(
        "file locks",
        "login",
        holds=locks == "yes",
        text="flock works" if locks == "yes" else locks or "flock fails",
        remedy="mount the file system with locks (Lustre: -o flock), or choose another",
    )


def _classes(facts: Facts, classes: list[Mapping[str, Any]]) -> Iterator[Diagnosis]:
    partitions = {text.split("|")[0] for text in facts.values.get("partition", ())}
    hidden = partitions - set(facts.values.get("visible", ()))
    if not classes:
        text, remedy = "node_classes is empty", "name the classes of nodes there"
        yield Diagnosis("node classes", "inventory", "fail", text, remedy)
    for described in classes:
        name = described["name"]
        partition = described.get("partition", name)
        state = " (hidden)" if partition in hidden else ""
        known = ", ".join(sorted(partitions)) or "none"
        yield _finding(
            "partition",
            name,
            holds=partition in partitions,
            text=f"{partition}{state}"
            if partition in partitions
            else f"no {partition}",
            remedy=f"set partition of the class; Slurm has {known}",
        )
        if partition in partitions:
            yield from _node(facts, name)


def _node(facts: Facts, name: str) -> Iterator[Diagnosis]:
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
    yield _finding(
        "node name",
        name,
        holds=node["host"] == node["node"],
        text=f"{node['node']} calls itself {node['host']}",
        remedy="MPI starts by host name: NodeName and the host name must agree",
        warn=True,
    )
    seen = node.get("token") == facts.token
    writable = "seen and writable" if node.get("writable") else "seen, not writable"
    yield _finding(
        "shared folder",
        name,
        holds=seen and node.get("writable") == "yes",
        text=writable if seen else "a file of the login node is not seen",
        remedy="seatrial_prefix must be on a file system that all nodes share",
    )
    yield _finding(
        "file locks",
        name,
        holds=node.get("locks") == "yes",
        text="flock works" if node.get("locks") else "flock fails",
        remedy="mount the file system with locks (Lustre: -o flock)",
    )
    python = node.get("python", "")
    yield _finding(
        "python of the suite",
        name,
        holds=_version(python) >= _SUITE_PYTHON,
        text=python or "missing",
        remedy="PairSweep and NodeSweep run suite_python on this node: install it "
        "there, or on the shared file system",
    )
    own = facts.first("architecture")
    yield _finding(
        "architecture",
        name,
        holds=node.get("architecture") == own,
        text=node.get("architecture", ""),
        remedy=f"choose a login node of this architecture, not {own}",
    )
    memlock = node.get("memlock", "")
    limit = int(memlock) if memlock.isdecimal() else 0
    yield _finding(
        "memlock",
        name,
        holds=memlock == "unlimited" or limit >= _MEMLOCK_KIB,
        text=f"{memlock} KiB" if limit else memlock,
        remedy="RDMA registers memory: set LimitMEMLOCK=infinity for slurmd, or "
        "PropagateResourceLimitsExcept=MEMLOCK",
        warn=True,
    )
    runs = node.get("tmp_runs") == "yes"
    yield _finding(
        "/tmp",
        name,
        holds=runs,
        text="programs run there" if runs else "mounted noexec",
        remedy="set TMPDIR of jobs to a folder where programs run",
        warn=True,
    )
    difference = _clock_difference(facts, node)
    yield _finding(
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


def _stacks(facts: Facts, stacks: list[Mapping[str, Any]]) -> Iterator[Diagnosis]:
    offered = re.findall(r"[\w.-]+", facts.first("mpi"))
    for stack in stacks:
        name = stack["name"]
        manager = stack.get("srun_mpi")
        if manager:
            yield _finding(
                "srun --mpi",
                name,
                holds=manager in offered,
                text=manager,
                remedy=f"set srun_mpi; {facts.first('mpi')}",
            )
        errors = facts.values.get(f"stack_error {name}", [])
        yield _finding(
            "modules",
            name,
            holds=not errors,
            text=errors[0] if errors else "loaded",
            remedy="see modules and compiler of mpi_stacks, and `module avail`",
        )


def _version(text: str) -> tuple[int, ...]:
    """Return the first version number of a text; () without one."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
