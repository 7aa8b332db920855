"""Recognise a crash of the MPI library at start, and drop the output of such a try.

A try may be repeated only if no timed loop had begun. The dead rank proves that: a
loop begins with a message from every rank of it, and a rank in MPI_Init has sent none.
So each rank that died must state that it was in MPI_Init, and standard output must
hold nothing but lines that the program prints before its first timed loop.

What counts as such a statement:

- a backtrace (of Open MPI or UCX) with a frame of MPI_Init, as in open-mpi/ompi#12495;
- an error that the library reports from MPI_Init: Open MPI ("An error occurred in
  MPI_Init"), MPICH and Intel MPI ("Fatal error in internal_Init", "in PMPI_Init");
- Open MPI 4.1: a jump to address 0, which leaves no frame to trace back, while a peer
  failed to connect to a rank. A message arrived before the library had set the
  functions that take it. (In 61 such crashes in the lab the dead rank had never left
  MPI_Init, as its missing first line showed; in 57 a peer failed to connect. The other
  4 look like a null pointer of the program itself: no evidence, no further try.)
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

TRIES = 3
"""Most starts of a program after crashes of the MPI library at start."""

GAVE_UP = f"MPI library crashed at start, {TRIES} of {TRIES} tries"
"""The reason of a failure that repeating did not cure."""

_MARK = re.compile(r"# crashed at start (\S+) try (\d+) lines (\d+)\n?")
_SIGNAL = re.compile(
    r"\[(?P<host>[^\s:\]]+):\d+\] \*\*\* Process received signal \*\*\*"
)
_CAUGHT = re.compile(r"\[(?P<host>[^\s:\]]+):[\d: ]+\] Caught signal \d+ \(.*\)")
_END = re.compile(r"\*\*\* End of error message \*\*\*|={30,}\s*$")
_FRAME = re.compile(r"(?:\[ *\d+\]|^ *\d+ ) *(?P<object>[^\s([]+)(?P<rest>.*)")
_OF_SIGNALS = re.compile(r"/?(\S*/)?lib(c|pthread|ucs)[.-]")
_INIT = re.compile(r"\b(P?MPI_Init(_thread)?|ompi_mpi_init|internal_Init(_thread)?)\b")
_ADDRESS_0 = re.compile(r"Failing at address: \(nil\)|at address \(nil\)")
_UNCONNECTED = "failed to TCP connect to a peer MPI process"
_ERROR = re.compile(r"(?:\*\*\* An error occurred in|Fatal error in) (\w+)")
_OTHER_CAUSE = re.compile(
    r"Node failure on|DUE TO (NODE FAILURE|TIME LIMIT|PREEMPTION)|[Oo]ut[ -][Oo]f[ -]"
    r"[Mm]emory|oom[-_]kill|Exceeded .* memory limit"
)
_TASKS = re.compile(
    r"srun: error: (?P<nodes>\S+): tasks? (?P<ranks>[0-9,-]+): (?P<end>.*)"
)
_ENDED_BY_SRUN = ("Killed", "Terminated")


@dataclass(frozen=True)
class StartCrash:
    """A program that died in MPI_Init.

    `dead` are the nodes of the ranks that died of it and `nodes` those of all ranks,
    both empty if the launcher names none; `ranks` as srun writes them, '' if unknown.
    """

    reason: str
    ranks: str = ""
    dead: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Report:
    """The report of the end of a rank, by itself or by the library."""

    host: str
    text: str
    at_start: bool
    address_0: bool = False


def crash_at_start(errors: str, printed: str, preamble: str = "") -> StartCrash | None:
    """Return the crash if a failed program died in MPI_Init; None without evidence.

    `errors` and `printed` are its standard error and output. `preamble` is a regular
    expression for the lines that it may print before its first timed loop.
    """
    has_begun = any(
        line.strip() and not re.fullmatch(preamble, line)
        for line in printed.splitlines()
    )
    if _OTHER_CAUSE.search(errors) or has_begun:
        return None
    reports = [*_reports(errors.splitlines())]
    unconnected = _UNCONNECTED in errors
    if not reports or not all(
        report.at_start or (report.address_0 and unconnected) for report in reports
    ):
        return None
    ends = [match.groupdict() for match in _TASKS.finditer(errors)]
    own = [end for end in ends if not end["end"].startswith(_ENDED_BY_SRUN)]
    dead = _nodes(end["nodes"] for end in own)
    hosts = {_short(report.host) for report in reports if report.host}
    if hosts and not {_short(node) for node in dead} <= hosts:
        return None  # some rank died of something else
    return StartCrash(
        reason=reports[0].text,
        ranks=",".join(end["ranks"] for end in own),
        dead=dead or tuple(sorted(hosts)),
        nodes=_nodes(end["nodes"] for end in ends),
    )


def mark(name: str, attempt: int, printed: str) -> str:
    """Return the line that follows the standard output of a try that crashed."""
    newline = "" if printed.endswith("\n") or not printed else "\n"
    lines = (printed + newline).count("\n")
    return f"{newline}# crashed at start {name} try {attempt} lines {lines}\n"


def without_crashed_tries(text: str) -> str:
    """Remove the lines that crashed tries printed, and their marks."""
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        if match := _MARK.fullmatch(line):
            del kept[max(0, len(kept) - int(match[3])) :]
        else:
            kept.append(line)
    return "".join(kept)


def _reports(lines: list[str]) -> Iterator[_Report]:
    """Find the reports of crashes and errors.

    Lines of several ranks may alternate: a frame belongs to its rank by the prefix
    [host:pid], and without one (UCX) to the report before it.
    """
    for number, line in enumerate(lines):
        if match := _SIGNAL.search(line):
            prefix = line[match.start() : match.start() + line.find("]") + 1]
            own = (below for below in lines[number:] if below.startswith(prefix))
            yield _crash(match["host"], own, "Signal: ")
        elif match := _CAUGHT.search(line):
            yield _crash(match["host"], iter(lines[number:]), "Caught signal ")
        elif match := _ERROR.search(line):
            yield _Report("", line.strip(), bool(_INIT.fullmatch(match[1])))


def _crash(host: str, lines: Iterator[str], title: str) -> _Report:
    """Read the report of one rank, from its first line to the end of its backtrace."""
    signal, address_0, at_start, foreign = "", False, False, False
    for line in lines:
        if _END.search(line):
            break
        if title in line and not signal:
            signal = line.partition(title)[2].strip()
        address_0 = address_0 or bool(_ADDRESS_0.search(line))
        if frame := _FRAME.search(re.sub(r"^\[[^\]]*:\d+\] ", "", line)):
            at_start = at_start or bool(_INIT.search(line))
            foreign = foreign or not _OF_SIGNALS.match(frame["object"])
    where = "in MPI_Init" if at_start else "before MPI_Init ended"
    text = f"{signal or 'signal'} {where}"
    return _Report(host, text, at_start, address_0 and not foreign)


def _nodes(lists: Iterable[str]) -> tuple[str, ...]:
    """Expand lists of nodes as srun writes them, cn[01,03-04]; each node once."""
    nodes: dict[str, None] = {}
    for text in lists:
        for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?[^,\[]*", text):
            prefix, _, rest = part.partition("[")
            numbers, _, suffix = rest.partition("]")
            for span in numbers.split(",") if rest else ("",):
                first, _, last = span.partition("-")
                if not last:
                    nodes[prefix + first + suffix] = None
                    continue
                for number in range(int(first), int(last) + 1):
                    nodes[f"{prefix}{number:0{len(first)}}{suffix}"] = None
    return tuple(nodes)


def _short(host: str) -> str:
    return host.partition(".")[0]
