"""Stand-ins for login nodes: commands print what a site's transcript holds.

The transcripts are written in the forms of Slurm 20.11, 22.05, 23.11 and 25.05.

A transcript (tests/data/sites/NAME.txt) has lines `$ COMMAND` with the output below.
The output of `$ module load NAME` lists the modules that must be loaded before. The
lines of `$ programs NAME` are programs of a module, those of `$ programs` are on PATH.
"""

import os
import shlex
import shutil
from pathlib import Path

import pytest
from fake_home import fake_program, write

HOME = Path(__file__).resolve().parents[1]
SITES = HOME / "tests" / "data" / "sites"

_REPLAY = """
wanted=$(echo "$ ${{0##*/}} $*" | sed "s/user\\([ =]\\)$(id -un)/user\\1USER/")
awk -v wanted="$wanted" '
    $0 == wanted {{ known = 1; printing = 1; next }}
    /^[$] / {{ printing = 0 }}
    printing {{ print }}
    END {{ exit !known }}' {transcript}
"""
_TOOLS = (
    *("awk", "bash", "cat", "cut", "df", "dirname", "grep", "head", "hostname", "id"),
    *("sed", "sh", "sort", "stat", "tail", "timeout", "tr", "uname"),
)
"""All programs of this machine that a site has, so that its MPIs stay unseen."""

_PROFILE = """
export PATH={programs}
{variables}
module() {{
    local needed name
    if [ "$1" != load ]; then "{programs}/module" "$@" >&2; return; fi
    needed=$("{programs}/module" load "$2") || return
    for name in $needed; do
        case " $LOADED " in *" $name "*) ;; *) return 1;; esac
    done
    LOADED="$LOADED $2"
    PATH={modules}/$2/bin:$PATH
}}
{modules_system}
"""


def stand_in(site: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `ssh` reach a site: its commands run here, in a folder."""
    transcript = SITES / f"{site}.txt"
    programs, home = folder / "bin", folder / "home"
    lines = transcript.read_text().splitlines()
    commands = [shlex.split(line[2:]) for line in lines if line.startswith("$ ")]
    programs.mkdir(parents=True)
    for name in _TOOLS:
        (programs / name).symlink_to(str(shutil.which(name)))
    has_modules = any(command[0] == "module" for command in commands)
    for name in ("sinfo", "scontrol", "sbatch", "srun", "sacctmgr", "module"):
        if name != "module" or has_modules:
            fake_program(programs, name, _REPLAY.format(transcript=transcript))
    for command in commands:
        if command[0] == "programs":
            module = command[1] if command[1:] else ""
            _programs(lines, module, folder / "modules" / module / "bin")
    for program in (folder / "modules" / "bin").glob("*"):
        program.rename(programs / program.name)
    profile = _PROFILE.format(
        programs=programs,
        modules=folder / "modules",
        variables="\n".join(_section(lines, "$ export")),
        modules_system="" if has_modules else "unset -f module",
    )
    write(home / ".bash_profile", profile)
    fake_program(folder / "ssh", "ssh", _SSH.format(home=home, log=folder / "ssh.log"))
    monkeypatch.setenv("PATH", f"{folder / 'ssh'}:{os.environ['PATH']}")


_SSH = """
echo "$@" >>{log}
while [ $# -gt 1 ]; do shift; done
exec env -i HOME={home} USER=bench bash -c "$1"
"""


def _section(lines: list[str], heading: str) -> list[str]:
    """Return the lines below a heading."""
    if heading not in lines:
        return []
    start = lines.index(heading) + 1
    ends = [n for n in range(start, len(lines)) if lines[n].startswith("$ ")]
    return lines[start : ends[0] if ends else len(lines)]


def _programs(lines: list[str], module: str, folder: Path) -> None:
    """Write the programs of a module: `NAME: what it prints`."""
    for line in _section(lines, f"$ programs {module}".rstrip()):
        name, _, text = line.partition(": ")
        fake_program(folder, name, f"echo {shlex.quote(text)}")
