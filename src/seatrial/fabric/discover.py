"""Discover a fabric by the tools of this machine, or from the files of operators."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.fabric.merge import Subnet, ethernet, infiniband
from seatrial.fabric.records import Fabric
from seatrial.fabric.tools import Output, run_tool
from seatrial.limits import RAW_SIZE
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.db_csv import parse_db_csv
from seatrial.parsers.fabric.iblinkinfo import parse_iblinkinfo
from seatrial.parsers.fabric.ibnetdiscover import parse_ibnetdiscover
from seatrial.parsers.fabric.lldpctl import Neighbour, parse_lldpctl
from seatrial.parsers.fabric.seen import Seen
from seatrial.parsers.fabric.sminfo import SeenManager, parse_sminfo, parse_smir
from seatrial.plain_files import write_exclusively

TOOLS: tuple[tuple[str, ...], ...] = (
    ("ibnetdiscover",),
    ("iblinkinfo", "--line"),
    ("sminfo",),
    ("saquery", "SMIR"),
)
"""Tools of a discovery."""

_PARSERS: dict[str, Callable[[str], Seen]] = {
    "ibnetdiscover": parse_ibnetdiscover,
    "ibdiagnet2": parse_db_csv,
    "iblinkinfo": parse_iblinkinfo,
}
"""By tool, the one whose devices and links count first."""

_NAMES = {
    "ibnetdiscover.txt": "ibnetdiscover",
    "ibdiagnet2.db_csv": "ibdiagnet2",
    "iblinkinfo.txt": "iblinkinfo",
    "sminfo.txt": "sminfo",
    "saquery.txt": "saquery",
}
ROUTES_NAME = "dump_fts.txt"
"""Forwarding tables: no part of the fabric, but kept beside it."""

_COMPLAINT = re.compile(
    r"(?:\S+\.c:\d+; |ibwarn: |ibpanic: |\S+: iberror: |ibnd_\w+|\S*src/\S+\.c:\d+; ).*"
)


def by_tools(save: Path | None = None) -> Fabric:
    """Run the tools of this machine; `save` is a folder for what they print.

    Raises SeatrialError if ibnetdiscover is missing, a tool fails, or a saved file
    exists.
    """
    return of_outputs([one for tool in TOOLS for one in run_tool(*tool)], save)


def of_outputs(outputs: Sequence[Output], save: Path | None = None) -> Fabric:
    """Return the fabric that tools printed now; SeatrialError as `by_tools`."""
    if save is not None:
        _save(save, outputs)
    return replace(_fabric(outputs, {}), time=_utc(time.time()))


def by_lldp(
    texts: Mapping[str, str], silent: Iterable[str] = (), save: Path | None = None
) -> Fabric:
    """Return the Ethernet fabric of what lldpctl printed now, by node.

    `silent` says which nodes did not answer, and why. SeatrialError if an output is
    damaged, or a saved file exists.
    """
    outputs = {
        node: Output("lldpctl", text, f"{node}: lldpctl -f json")
        for node, text in texts.items()
    }
    if save is not None:
        for node, one in outputs.items():
            _write(save / "lldp" / f"{node}.json", one.text)
    fabric = _ethernet([], outputs)
    problems = (*fabric.problems, *silent)
    return replace(fabric, problems=problems, time=_utc(time.time()))


def _save(folder: Path, outputs: Iterable[Output]) -> None:
    """Write outputs as `from_files` reads them, each of several subnets in a folder."""
    names = {tool: name for name, tool in _NAMES.items()}
    for one in outputs:
        _write(folder / one.subnet.replace(":", "-") / names[one.tool], one.text)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_exclusively(file, [text.encode()])
    except FileExistsError:
        raise SeatrialError(
            f"{file}: exists, and nothing is overwritten; name another folder"
        ) from None


def from_files(paths: Iterable[Path]) -> Fabric:
    """Read files of operators, or folders of them: one for each subnet.

    Raises SeatrialError if a name is unknown, a file is damaged, or none tells the
    links of the fabric.
    """
    outputs, nodes = [], dict[str, Path]()
    paths = [*paths]
    for path in paths:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            if file.is_dir() and file.name == "lldp":
                nodes |= {one.stem: one for one in sorted(file.glob("*.json"))}
            elif file.name in _NAMES:
                subnet = str(path) if path.is_dir() else ""
                tool = _NAMES[file.name]
                outputs.append(Output(tool, _read(file), str(file), subnet))
            elif file.suffix == ".json" and file.parent.name == "lldp":
                nodes[file.stem] = file
            elif not path.is_dir() and file.name != ROUTES_NAME:
                known = ", ".join((*_NAMES, "lldp/NODE.json"))
                raise SeatrialError(
                    f"{file}: unknown file; expected one of {known}. Rename it."
                )
    if not nodes and not any(one.tool in _PARSERS for one in outputs):
        listed = ", ".join(map(str, paths))
        raise SeatrialError(
            f"{listed}: no output that tells the links; expected ibnetdiscover.txt, "
            "ibdiagnet2.db_csv, iblinkinfo.txt or lldp/NODE.json"
        )
    read = [*(Path(one.where) for one in outputs), *nodes.values()]
    newest = max(file.stat().st_mtime for file in read)
    return replace(_fabric(outputs, nodes), time=_utc(newest))


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _read(file: Path) -> str:
    RAW_SIZE.check(file.stat().st_size, file)
    return file.read_text("utf-8", errors="replace")


def _fabric(outputs: Sequence[Output], nodes: dict[str, Path]) -> Fabric:
    """Parse outputs and join them; SeatrialError with file and line of a damage."""
    if nodes:
        told = {
            node: Output("lldpctl", _read(file), str(file))
            for node, file in nodes.items()
        }
        return _ethernet(outputs, told)
    names = dict.fromkeys(one.subnet for one in outputs)
    subnets = [
        _subnet(name, [one for one in outputs if one.subnet == name]) for name in names
    ]
    problems = [
        f"{one.tool}: {text}"
        for one in outputs
        if one.tool in _PARSERS  # others complain if there is no subnet manager
        for text in one.complaints
    ]
    return infiniband(subnets, [one.source for one in outputs], problems)


def _subnet(name: str, outputs: Sequence[Output]) -> Subnet:
    """Parse the outputs of one subnet; SeatrialError if none tells its links."""
    by_tool: dict[str, Output] = {}
    for one in outputs:
        if one.tool in by_tool:
            raise SeatrialError(
                f"{one.where}: a second output of {one.tool}; expected one of each "
                "subnet. Put those of a subnet into a folder, and name the folders."
            )
        by_tool[one.tool] = one
    parsed = [
        (tool, _parsed(by_tool[tool], parser))
        for tool, parser in _PARSERS.items()
        if tool in by_tool
    ]
    if not parsed:
        listed = ", ".join(one.where for one in outputs)
        raise SeatrialError(
            f"{listed}: no output beside it that tells the links; expected "
            "ibnetdiscover.txt, ibdiagnet2.db_csv or iblinkinfo.txt in the same folder"
        )
    (tool, base), *others = parsed
    if base.ambiguous:
        reason = "several devices have this LID; run `iblinkinfo --line`, or name the "
        reason += "output of ibnetdiscover, too"
        raise _damaged(by_tool[tool], ParseError(base.ambiguous, reason))
    asked = [by_tool[tool] for tool in ("sminfo", "saquery") if tool in by_tool]
    managers = [one for output in asked for one in _managers(output)]
    return Subnet(name, base, others, managers if asked else None)


def _parsed(output: Output, parser: Callable[[str], Seen]) -> Seen:
    """Parse an output; messages of the tool in it become its complaints."""
    lines = output.text.split("\n")
    for index, line in enumerate(lines):
        if _COMPLAINT.fullmatch(line):
            output.complaints.append(line)
            lines[index] = "#"
    try:
        return parser("\n".join(lines))
    except ParseError as error:
        raise _damaged(output, error) from error


def _managers(output: Output) -> list[SeenManager]:
    """Return the subnet managers of an output; none if the tool found none."""
    if output.tool == "sminfo" and "sminfo: sm " not in output.text:
        return []
    try:
        parser = parse_sminfo if output.tool == "sminfo" else parse_smir
        return parser(output.text)
    except ParseError as error:
        raise _damaged(output, error) from error


def _damaged(output: Output, error: ParseError) -> SeatrialError:
    line = f":{error.line}" if error.line else ""
    return SeatrialError(f"{output.where}{line}: {error.reason}")


def _ethernet(outputs: Sequence[Output], nodes: Mapping[str, Output]) -> Fabric:
    if outputs:
        names = ", ".join(one.where for one in outputs)
        raise SeatrialError(
            f"{names}: InfiniBand beside lldp/; expected one fabric. Discover each on "
            "its own."
        )
    neighbours: dict[str, list[Neighbour]] = {}
    sources = []
    for node, output in nodes.items():
        try:
            neighbours[node] = parse_lldpctl(output.text)
        except ParseError as error:
            raise _damaged(output, error) from error
        sources.append(output.source)
    return ethernet(neighbours, sources)
