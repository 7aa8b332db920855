"""Forwarding tables to keep with a fabric: of dump_fts here, or a file of operators."""

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import SeatrialError
from seatrial.fabric.discover import ROUTES_NAME
from seatrial.fabric.measured_paths import graph_of
from seatrial.fabric.records import Fabric
from seatrial.fabric.table_fit import fit_of, forwarded
from seatrial.fabric.tools import Output, run_tool
from seatrial.limits import RAW_SIZE
from seatrial.parsers.errors import ParseError
from seatrial.parsers.fabric.dump_fts import parse_dump_fts


def forwarding_text(
    sources: Sequence[Path], told: Sequence[Output] | None = None
) -> str:
    """Return the output of dump_fts: of files or folders, `told`, or by the tool here.

    '' if there is none. Raises SeatrialError if it is damaged, or the tool fails.
    """
    outputs = _read(sources) if sources else told
    if outputs is None:
        outputs = run_tool("dump_fts")
    text = "".join(one.text for one in outputs)
    if not text:
        return ""
    where = ", ".join(one.where for one in outputs)
    try:
        parse_dump_fts(text)
    except ParseError as error:
        raise SeatrialError(f"{where}:{error.line}: {error.reason}") from error
    return text


def misfit(fabric: Fabric, text: str) -> str:
    """Describe what of the tables does not fit the fabric, on each of its rails.

    '' if everything does, or without tables; of rails, the first that differs. A rail
    with several links of a node has no pairs to locate: it is not compared.
    """
    if not text:
        return ""
    tables = parse_dump_fts(text)
    hcas = {one.hca for one in fabric.devices if one.kind == "host"}
    for hca in sorted(hcas) if len(hcas) > 1 else [""]:
        try:
            graph = graph_of(fabric, hca)
        except SeatrialError:
            continue
        routes = forwarded(fabric, graph, tables, hca)
        if words := fit_of(fabric, routes, tables, hca).words:
            return f"{hca}: {words}" if hca else words
    return ""


def _read(sources: Sequence[Path]) -> list[Output]:
    files = [path / ROUTES_NAME if path.is_dir() else path for path in sources]
    outputs = []
    for file in files:
        if file.name == ROUTES_NAME and file.is_file():
            RAW_SIZE.check(file.stat().st_size, file)
            text = file.read_text("utf-8", errors="replace")
            outputs.append(Output("dump_fts", text, str(file)))
    return outputs
