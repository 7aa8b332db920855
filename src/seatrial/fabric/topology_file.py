"""Readers of a site's topology of Slurm: topology.conf, topology.yaml, and scontrol."""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from msgspec import Struct

from seatrial.errors import SeatrialError
from seatrial.fabric.topology import Switch
from seatrial.model.yaml_file import Place, Text, YamlFile
from seatrial.standins.hostlist import expand

_FIELD = re.compile(r"(\w+)=(\S+)")
_OTHER = ("blocksizes", "aggregatedblock")
"""Parameters that tell nothing of leafs."""


def read_topology(text: str, file: str) -> list[Switch]:
    """Read topology.conf or .yaml, or `scontrol show topology` or `show topoconf`.

    Blocks are leafs. Raises SeatrialError with file and line.
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    read = _of_yaml if first.startswith(("-", "%YAML")) else _of_conf
    switches = read(text, file)
    known: dict[str, int] = {}
    for one in switches:
        if one.name in known:
            raise SeatrialError(
                f"{file}:{one.line}: switch {one.name!r} of line {known[one.name]} "
                "again."
            )
        known[one.name] = one.line
    if not switches:
        raise SeatrialError(f"{file}: no switch; expected lines with SwitchName=")
    for one in switches:
        for child in one.children:
            if child not in known:
                raise SeatrialError(
                    f"{file}:{one.line}: {one.name}: unknown switch {child!r}. Add it."
                )
    try:
        TopologicalSorter({one.name: one.children for one in switches}).prepare()
    except CycleError as error:
        name = error.args[1][0]
        raise SeatrialError(
            f"{file}:{known[name]}: switch {name!r} is above itself. Expected a tree."
        ) from error
    return switches


def _of_conf(text: str, file: str) -> list[Switch]:
    """Read lines of SwitchName= or BlockName=; keys in any case, as Slurm does."""
    switches = []
    for number, line in _joined(text):
        fields = {key.lower(): value for key, value in _FIELD.findall(line)}
        name = fields.get("switchname") or fields.get("blockname")
        if name is None:
            if line and not line.lower().startswith(_OTHER):
                raise SeatrialError(
                    f"{file}:{number}: expected SwitchName=, got {line!r}."
                )
            continue
        where = f"{file}:{number}"
        children = _expanded(fields.get("switches", ""), f"{where}: Switches")
        nodes = _expanded(fields.get("nodes", ""), f"{where}: Nodes")
        if children:  # scontrol also shows all nodes below
            nodes = ()
        switches.append(Switch(name, nodes, children, (), number))
    return switches


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, and their numbers; a backslash joins two."""
    whole, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        part = line.partition("#")[0].strip()
        first = first or number
        whole += part.removesuffix("\\")
        if not part.endswith("\\"):
            yield first, whole
            whole, first = "", 0
    yield first, whole


class _Row(Struct, frozen=True):
    """A switch of a tree, or a block: its nodes, or the switches below."""

    switch: str = ""
    block: str = ""
    nodes: str | None = ""
    children: str | None = ""


class _Tree(Struct, frozen=True):
    switches: tuple[_Row, ...] = ()


class _Blocks(Struct, frozen=True):
    blocks: tuple[_Row, ...] = ()


class _Topology(Struct, frozen=True):
    """A topology: of scontrol, it has all kinds, the others empty."""

    topology: Text
    cluster_default: bool = False
    tree: _Tree = _Tree()
    block: _Blocks = _Blocks()


def _of_yaml(text: str, file: str) -> list[Switch]:
    """Read the tree or the blocks of the cluster's default topology."""
    yaml = YamlFile(Path(file), text.encode())
    topologies = yaml.convert(tuple[_Topology, ...])
    if not topologies:
        yaml.expected("a list of topologies", yaml.data, ())
    defaults = (at for at, one in enumerate(topologies) if one.cluster_default)
    index = next(defaults, 0)
    place: Place = (index, "tree", "switches")
    rows = topologies[index].tree.switches
    if not rows:
        place = (index, "block", "blocks")
        rows = topologies[index].block.blocks
    if not rows:
        yaml.refuse((index,), "expected a tree or blocks, got neither.")
    switches = []
    for at, row in enumerate(rows):
        line = yaml.lines[(*place, at)]
        name = row.switch or row.block
        if not name:
            yaml.expected("the name of the switch", None, (*place, at, "switch"))
        nodes = _expanded(row.nodes or "", f"{file}:{line}: nodes")
        children = _expanded(row.children or "", f"{file}:{line}: children")
        switches.append(Switch(name, nodes, children, (), line))
    return switches


def _expanded(text: str, where: str) -> tuple[str, ...]:
    try:
        return tuple(expand(text)) if text and text != "(null)" else ()
    except ValueError as error:
        raise SeatrialError(f"{where}: {error}.") from error
