"""`seatrial bundle`: make a folder to install a system without internet from."""

from pathlib import Path

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.output import echo


@click.command()
@click.argument("system", type=options.SYSTEM)
@options.out(help="New folder of the bundle (default: build/bundle-SYSTEM).")
def bundle(system: str, out: Path | None) -> None:
    """Make one folder from which SYSTEM is installed without internet.

    Run it on a machine with internet, in a checkout that has inventories/SYSTEM. The
    folder has this checkout; wheels for the Python, processor and glibc of the system,
    and of a control machine like this one; the archives of programs; a relocatable
    Python (suite_python: bundled); Spack and its sources if a stack comes from Spack;
    a README.md and SHA256SUMS. site.yml of the folder's checkout fetches nothing.

    Python and glibc are read from the login node over ssh. State suite_python_version
    and suite_wheel_platforms in the inventory if it cannot be reached.

    After an interruption or a failure, run the same command again: it continues.

    Exit status: 0 written, 2 usage, inventory, or something cannot be fetched.

    Example: seatrial bundle lab --out /media/usb/lab
    """
    from seatrial.console import Terminal
    from seatrial.system.bundle.make import make_bundle
    from seatrial.system.description import unknown_system

    home = paths.home()
    if not (home / "inventories" / system).is_dir():
        raise unknown_system(home, system)
    (home / "build").mkdir(exist_ok=True)
    folder = out or home / "build" / f"bundle-{system}"
    with Terminal(stderr=True).status("") as status:
        make_bundle(home, system, folder, status.update)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    echo(f"{folder}: {size / 1e6:.0f} MB; its README.md has the next steps")
