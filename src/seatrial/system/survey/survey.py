"""A survey: what a login node prints about its cluster, as typed records."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from seatrial.errors import SeatrialError
from seatrial.system.doctor.finding import version_of
from seatrial.system.doctor.node_findings import SUITE_PYTHON
from seatrial.system.doctor.probe import Facts, run_probe
from seatrial.system.login_node import Remote
from seatrial.system.survey.mpi_stacks import Stack, find_stacks
from seatrial.system.survey.slurm_records import (
    Partition,
    Reservation,
    SlurmNode,
    parse_nodes,
    parse_partitions,
    parse_reservations,
)

_SHARED = (
    *("nfs", "lustre", "gpfs", "beegfs", "ceph", "wekafs", "panfs", "pvfs2", "afs"),
    *("fuse", "fhgfs"),
)
"""File systems of a network: how `stat -f` or /proc/mounts begin their names."""


@dataclass(frozen=True)
class Folder:
    """A writable folder of the user, with its variable, file system and free MiB."""

    variable: str
    path: str
    kind: str
    free_mib: int

    @property
    def is_shared(self) -> bool:
        """Return True if its file system is one of a network."""
        return self.kind.startswith(_SHARED)


@dataclass(frozen=True)
class Survey:
    """A cluster, as its login node sees it.

    `accounts` are the user's, each with its QOS; `pythons` maps full paths to versions,
    the newest first; `modules` is lmod, envmod or ''; `adapters` are those of the login
    node. `config` is Slurm's configuration.
    """

    host: str
    user: str
    groups: tuple[str, ...]
    architecture: str
    slurm: str
    config: dict[str, str]
    nodes: tuple[SlurmNode, ...]
    partitions: tuple[Partition, ...]
    reservations: tuple[Reservation, ...]
    accounts: dict[str, tuple[str, ...]]
    default_account: str
    stacks: tuple[Stack, ...]
    mpi_types: tuple[str, ...]
    mpi_modules: tuple[str, ...]
    failures: tuple[str, ...]
    modules: str
    pythons: dict[str, str]
    folders: tuple[Folder, ...]
    mounts: tuple[str, ...]
    adapters: tuple[str, ...]

    @property
    def qos(self) -> tuple[str, ...]:
        """Return the user's QOS, of all accounts."""
        return _names(name for names in self.accounts.values() for name in names)

    @property
    def suite_python(self) -> str:
        """Return the newest Python that can run the suite; '' if there is none."""
        path, version = next(iter(self.pythons.items()), ("", ""))
        return path if version_of(version) >= SUITE_PYTHON else ""


def survey(remote: Remote) -> Survey:
    """Survey a cluster through its login node.

    Raises SeatrialError if ssh fails, Slurm's commands are missing, or slurmctld does
    not answer.
    """
    scripts = files("seatrial.system")
    names = ("doctor/facts.sh", "survey/login.sh")
    script = "\n".join(scripts.joinpath(name).read_text() for name in names)
    return read_survey(run_probe(remote, script), remote.host)


def read_survey(facts: Facts, host: str) -> Survey:
    """Convert the facts of a login node; SeatrialError as `survey`."""
    if facts.error:
        raise SeatrialError(
            f"ssh {host}: {facts.error}; expected a login node that you reach by ssh "
            "without a password; see --login and --user"
        )
    if missing := facts.all("missing"):
        raise SeatrialError(
            f"{host}: not on PATH: {', '.join(missing)}; expected a login node that "
            "submits jobs to Slurm"
        )
    nodes = parse_nodes(facts.all("node"), _members(facts))
    if not nodes:
        raise SeatrialError(
            f"{host}: `scontrol show node` prints no node; expected a cluster with "
            "slurmctld running; see `scontrol ping` there"
        )
    return Survey(
        host=facts.first("host"),
        user=facts.first("user"),
        groups=tuple(facts.first("groups").split()),
        architecture=facts.first("architecture"),
        slurm=facts.first("slurm")
        .removeprefix("slurm-wlm")
        .removeprefix("slurm")
        .strip(),
        config=_config(facts.all("config")),
        nodes=nodes,
        partitions=parse_partitions(facts.all("partition"), facts.all("visible")),
        reservations=parse_reservations(facts.all("reservation"), _hosts(facts)),
        accounts=_accounts(facts.all("association")),
        default_account=facts.first("default_account"),
        stacks=find_stacks(facts),
        mpi_types=tuple(_mpi_types(facts.first("mpi"))),
        mpi_modules=tuple(facts.all("module")),
        failures=tuple(facts.all("failure")),
        modules=facts.first("modules").partition(" ")[0],
        pythons=_pythons(facts),
        folders=tuple(_folders(facts)),
        mounts=tuple(line.replace("|", " ") for line in facts.all("mount")),
        adapters=tuple(facts.all("adapter")),
    )


def _members(facts: Facts) -> dict[str, set[str]]:
    """Return the partitions of each node, hidden ones too."""
    members: dict[str, set[str]] = defaultdict(set)
    for line in facts.all("member"):
        node, _, partition = line.partition("|")
        members[node].add(partition)
    return members


def _hosts(facts: Facts) -> dict[str, frozenset[str]]:
    """Return the nodes of each host list."""
    pairs = (line.split("|", 1) for line in facts.all("hosts"))
    return {expression: frozenset(names.split()) for expression, names in pairs}


def _config(lines: list[str]) -> dict[str, str]:
    """Parse `scontrol show config`: `Name   = value`."""
    pairs = (line.partition("=") for line in lines)
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}


def _mpi_types(text: str) -> Iterator[str]:
    """Parse `srun --mpi=list`: a heading, the types, and versions of pmix.

    Slurm 20.11 prints `srun: MPI types are...` and each as `srun: pmi2`; since 22.05
    `MPI plugin types are...` and `specific pmix plugin versions available: pmix_v4`.
    """
    for word in re.findall(r"[\w.-]+", text.partition("...")[2]):
        if word == "specific":
            return
        if word not in ("srun", "none", "openmpi"):
            yield word


def _pythons(facts: Facts) -> dict[str, str]:
    """Return paths and versions of Pythons, the newest first."""
    pairs = [line.rsplit(" ", 1) for line in facts.all("python")]
    full = {path: version for path, version in pairs if path.startswith("/")}
    newest = sorted(full.items(), key=lambda item: version_of(item[1]), reverse=True)
    return dict(newest)


def _folders(facts: Facts) -> Iterator[Folder]:
    for line in facts.all("folder"):
        variable, path, kind, free = line.split("|")
        yield Folder(variable, path, kind, int(free) if free.isdecimal() else 0)


def _accounts(associations: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the QOS of each account; an account has an association per partition."""
    accounts: dict[str, tuple[str, ...]] = {}
    for row in associations:
        account, *_, names = row.split("|")
        if account:
            accounts[account] = _names((*accounts.get(account, ()), *names.split(",")))
    return accounts


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in their order, each once."""
    return tuple(dict.fromkeys(filter(None, names)))
