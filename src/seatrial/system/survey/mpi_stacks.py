"""MPI stacks of a cluster: modules and compilers that its login node offers."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatrial.system.doctor.probe import Facts

_FAMILIES = {
    "hpcx": ("hpcx", "hpc-x"),
    "mvapich": ("mvapich",),
    "intelmpi": (
        "intel-oneapi-mpi",
        "intelmpi",
        "intel-mpi",
        "impi",
        "mpi/20",
        "oneapi",
    ),
    "cray-mpich": ("cray-mpich",),
    "mpich": ("mpich",),
    "openmpi": ("openmpi", "ompi"),
}
"""Names of MPIs by parts of their modules or folders; the first that fits counts."""

_PREFERRED = {"intelmpi": ("mpiicx", "mpiicc"), "cray-mpich": ("cc",)}
_MANAGERS = {"openmpi": ("pmix", "pmi2"), "hpcx": ("pmix", "pmi2")}
_OTHER_MANAGERS = ("pmi2", "pmix", "cray_shasta")


@dataclass(frozen=True)
class Stack:
    """An MPI stack: the modules to load in their order, and its C compiler.

    `compiler` is a name on PATH; `imb` is IMB-MPI1 if it is beside the compiler.
    `pmi2` is Slurm's libpmi2.so for Intel MPI, '' if it is not needed or not there.
    """

    name: str
    family: str
    modules: tuple[str, ...]
    compiler: str
    imb: str
    pmi2: str = ""

    def manager(self, offered: Sequence[str]) -> str:
        """Return the value of `srun --mpi` for the stack, '' if none fits."""
        wanted = _MANAGERS.get(self.family, _OTHER_MANAGERS)
        return next((name for name in wanted if name in offered), "")


@dataclass(frozen=True)
class _Compiler:
    modules: tuple[str, ...]
    name: str
    folder: str
    imb: str
    shown: str

    @property
    def family(self) -> str:
        """Return the MPI of its module, else that of the command that it shows."""
        texts = [self.modules[-1]] if self.modules else [self.name, self.shown]
        for text in (*texts, self.folder):
            for family, parts in _FAMILIES.items():
                if any(part in text.lower() for part in parts):
                    return family
        return ""


def find_stacks(facts: Facts) -> tuple[Stack, ...]:
    """Return the stacks: those of modules, and other MPIs on PATH without modules.

    A compiler that is on PATH without a module is not the module's.
    """
    of_modules: dict[tuple[str, ...], list[_Compiler]] = defaultdict(list)
    on_path: dict[str, list[_Compiler]] = defaultdict(list)
    places = set()
    for line in facts.all("compiler"):
        modules, name, folder, imb, shown = line.split("|", 4)
        compiler = _Compiler(tuple(modules.split()), name, folder, imb, shown)
        if not compiler.family:
            continue
        if not compiler.modules:
            on_path[compiler.family].append(compiler)
            places.add((name, folder))
        elif (name, folder) not in places:
            of_modules[compiler.modules].append(compiler)
    families = {group[0].family for group in of_modules.values()}
    others = [group for family, group in on_path.items() if family not in families]
    stacks: dict[str, Stack] = {}
    for group in (*of_modules.values(), *others):
        stack = _stack(group, facts.first("pmi2"), stacks)
        stacks[stack.name] = stack
    return tuple(stacks.values())


def _stack(group: Sequence[_Compiler], pmi2: str, others: Mapping[str, Stack]) -> Stack:
    """Return the stack of the compilers of one MPI, under a name of its own."""
    family = group[0].family
    preferred = [*_PREFERRED.get(family, ()), f"mpicc.{family}", "mpicc"]
    chosen = min(group, key=lambda compiler: _rank(compiler.name, preferred))
    name = family
    if name in others:
        name = re.sub(r"[^\w-]+", "-", chosen.modules[-1], flags=re.ASCII).lower()
    return Stack(
        name=name,
        family=family,
        modules=chosen.modules,
        compiler=chosen.name,
        imb=chosen.imb,
        pmi2=pmi2 if family == "intelmpi" else "",
    )


def _rank(name: str, preferred: Sequence[str]) -> int:
    return preferred.index(name) if name in preferred else len(preferred)
