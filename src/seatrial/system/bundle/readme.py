"""README.md of a bundle."""

from pathlib import Path

_TEXT = """\
# Seatrial for the system {system}, without internet

Copy this folder to the control machine, a machine that reaches the login node of
{system} over ssh, or to the login node itself. Then, in this folder:

    bash install.sh
    cd seatrial && . .venv/bin/activate
    ansible-playbook -i inventories/{system} playbooks/site.yml

`install.sh` verifies `SHA256SUMS` and makes `seatrial/.venv`. It needs one of these
Pythons: {pythons}{relocatable}.
On the login node itself, add `--connection local` to the last command.

`seatrial/` is a checkout of the suite, with its documentation in `seatrial/docs`.
`site.yml` verifies `SHA256SUMS` again and fetches nothing. You may change the files of
`seatrial/inventories`, `seatrial/reference-data` and `seatrial/spack-env/systems`: they
have no checksums.
"""


def readme(folder: Path, system: str) -> str:
    """Return the text for a bundle in a folder, whose other files are complete."""
    names = [file.stem.split("-") for file in sorted(folder.glob("control/*.tar"))]
    pythons = ", ".join(f"{version} ({machine})" for _, version, machine in names)
    archives = [*folder.glob("seatrial/build/archives/cpython-*")]
    relocatable = ", or takes the relocatable one of this folder" if archives else ""
    return _TEXT.format(system=system, pythons=pythons, relocatable=relocatable)
