"""Man pages and shell completion that the role `suite` installs."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from seatrial import __version__
from seatrial.cli import main
from seatrial.manual import shared_files, write_shared_files

FILES = shared_files()
PAGES = [name for name in FILES if name.endswith(".1")]
CONTEXT = click.Context(main)
BASH = "bash-completion/completions/seatrial"
SEAL = rf""".TH "SEATRIAL-SEAL" 1 "" "Seatrial {__version__}"
.nh
.ad l
.SH NAME
seatrial-seal \- Verify a closed run, then sign its manifest with an SSH key
.SH SYNOPSIS
.B seatrial seal
[OPTIONS] RUN
.SH DESCRIPTION
Verify a closed run, then sign its manifest with an SSH key.
.PP
RUN is the path of a run, its id, SYSTEM/latest or latest. The manifest holds the
checksums of all other files. \(gassh\-keygen \-Y sign \-n seatrial\-run\(ga writes the
signature to manifest.json.sig beside it. A run can be sealed once.
.SH OPTIONS
.TP
.B \-\-key FILE
Private SSH key, or the public half of a key in ssh\-agent.  [required]
.TP
.B \-h, \-\-help
Show this message and exit.
.SH EXIT STATUS
0 sealed, 1 the run was changed, 2 usage, or the run cannot be sealed.
.SH EXAMPLE
seatrial seal lab/latest \-\-key \(ti/.ssh/id_ed25519
"""


def test_every_command_has_a_page() -> None:
    names = {f"man/man1/seatrial-{name}.1" for name in main.list_commands(CONTEXT)}
    assert names < {*PAGES}
    assert {"man/man1/seatrial.1", "man/man1/seatrial-lab-slow-link.1"} < {*PAGES}


def test_a_page_has_all_of_the_help() -> None:
    assert FILES["man/man1/seatrial-seal.1"] == SEAL


@pytest.mark.parametrize("name", PAGES)
def test_groff_accepts_every_page(name: str) -> None:
    command = ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z"]
    done = subprocess.run(
        command, input=FILES[name], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_second_run_changes_nothing_and_old_pages_go(tmp_path: Path) -> None:
    assert write_shared_files(tmp_path) == [*FILES]
    assert write_shared_files(tmp_path) == []
    old = tmp_path / "man/man1/seatrial-former.1"
    old.touch()
    (tmp_path / BASH).write_text("changed")
    assert write_shared_files(tmp_path) == ["man/man1/seatrial-former.1", BASH]
    assert not old.exists()
    assert (tmp_path / BASH).read_text() == FILES[BASH]


def test_module_prints_what_changed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seatrial.manual", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [*FILES]
    assert (tmp_path / "share" / BASH).stat().st_mode & 0o022 == 0
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == ""


def test_bash_completes_commands(tmp_path: Path) -> None:
    write_shared_files(tmp_path)
    script = (
        f"source {tmp_path / BASH}; COMP_WORDS=(seatrial verif) COMP_CWORD=1; "
        '_seatrial_completion seatrial; echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "verify\n", done.stderr


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("zsh/site-functions/_seatrial", "#compdef seatrial"),
        ("fish/vendor_completions.d/seatrial.fish", "function _seatrial_completion;"),
    ],
)
def test_zsh_and_fish_have_clicks_scripts(file: str, first: str) -> None:
    assert FILES[file].strip().splitlines()[0] == first
