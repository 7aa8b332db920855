"""Write the folder of a model machine: its programs, its truth, the marks of faults."""

import compileall
import shlex
import shutil
from pathlib import Path

import msgspec

import seatrial
from seatrial.standins.programs import PERFTEST, names
from seatrial.standins.truth import Truth, TruthError

_WRAPPER = """\
#!/bin/sh
# Written by seatrial.standins: prints what a model of {program} measures.
program={program} folder={folder}
node=${{SLURMD_NODENAME:-}}
[ -z "$node" ] || [ ! -e "$folder/faults/$node" ] || . "$folder/faults/$node"
{before}exec {python} -I -S "$folder/start.py" "$program" "$@"
"""
_FIRST_RANK = '[ "${SLURM_PROCID:-0}" = 0 ] || exit 0\n'
_ON_EVERY_RANK = ("memlat", "fixedwork", "osnoise", *PERFTEST)
"""Programs without MPI: a job step may start them on many nodes."""
_SWEEPS = ("pairsweep", "pairsweep_verbs")
_PREFLIGHT = """\
for word; do
    [ "$word" = --preflight ] || continue
    node=${node:-$(uname -n)}
    start='{"type": "preflight", "stage": "start", "host": "'$node'"}'
    init='{"type": "preflight", "stage": "init", "host": "'$node'"}'
    hello='{"type": "preflight", "stage": "hello", "host": "'$node'"}'
    printf '%s\\n%s\\n%s\\n' "$start" "$init" "$hello"
    exit
done
"""
_LATE = "sleep {seconds:g}\n"
_DEAD = """\
starts=$program
case " $* " in *" --preflight "*) starts= ;; esac
if [ "$starts" = {program} ] || [ -e "$folder/dead/$node" ]; then
    : >>"$folder/dead/$node"
    {end}
fi
"""
_ENDS = {
    "hang": "exec sleep 86400",
    "exit": 'echo "$program: model: $node dies" >&2; exit 1',
}
_MAIN = """\
# Written by seatrial.standins.
import sys

sys.path.insert(0, {folder!r} + "/lib")

from seatrial.standins.run import main

sys.exit(main({truth!r}, {folder!r}, sys.argv[1:]))
"""


def install(folder: Path, truth: Truth, python: str = "/usr/bin/python3") -> None:
    """Write the folder; TruthError if a node dies in an unknown program.

    `python` runs the stand-ins, on every node; `folder` has the same path there. An
    earlier machine in the folder is replaced, with its dead nodes.
    """
    for dead in truth.faults.dead_nodes:
        if dead.program not in names():
            raise TruthError(
                f"faults.dead_nodes: no stand-in of {dead.program!r}; expected one of "
                f"{', '.join(names())}"
            )
    folder = folder.absolute()
    for name in ("bin", "lib", "faults", "dead", "clock"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    (folder / "dead").chmod(0o1777)  # the nodes of any user's job mark themselves
    values = msgspec.to_builtins(truth)
    text = msgspec.json.format(msgspec.json.encode(truth), indent=1)
    (folder / "truth.json").write_bytes(text + b"\n")
    start = _MAIN.format(truth=values, folder=str(folder))
    (folder / "start.py").write_text(start)
    _write_library(folder)
    for program in names():
        file = folder / "bin" / program
        before = _PREFLIGHT if program in _SWEEPS else ""
        before += "" if program in _ON_EVERY_RANK else _FIRST_RANK
        file.write_text(
            _WRAPPER.format(
                program=program,
                folder=shlex.quote(str(folder)),
                python=shlex.quote(python),
                before=before,
            )
        )
        file.chmod(0o755)
    _write_faults(folder / "faults", truth)
    for khz in truth.clocks_khz:
        (folder / "clock" / str(khz)).write_text(f"{khz}\n")


def _write_library(folder: Path) -> None:
    """Copy the modules that a stand-in needs, compiled: no node can write there."""
    package = Path(seatrial.__file__).parent
    to = folder / "lib" / "seatrial"
    shutil.copytree(
        package / "standins",
        to / "standins",
        ignore=shutil.ignore_patterns("__pycache__", "truth.py", "install.py"),
    )
    shutil.copy(package / "__init__.py", to)
    compileall.compile_dir(to, quiet=2)


def _write_faults(folder: Path, truth: Truth) -> None:
    """Write what the shell of a stand-in does first on a node with a fault."""
    for late in truth.faults.late_nodes:
        with (folder / late.node).open("a") as file:
            file.write(_LATE.format(seconds=late.seconds))
    for dead in truth.faults.dead_nodes:
        with (folder / dead.node).open("a") as file:
            file.write(_DEAD.format(program=dead.program, end=_ENDS[dead.how]))
