"""`seatrial build`: plan and build the software of a system with Spack."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._runs import run_there
from seatrial.output import complain, write_data

if TYPE_CHECKING:
    from seatrial.system.spack_lock import Lock
    from seatrial.system.spack_plan import Step
    from seatrial.system.spack_site import SpackSite


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.option(
    "--plan", "only_plan", is_flag=True, help="Print the plan; build nothing."
)
@options.form("Format of the plan.")
@options.stop_on_eof
def build(system: str, only_plan: bool, form: str) -> None:
    """Build the software of SYSTEM with Spack, where its MPI stacks come from Spack.

    The plan lists each package: installed, of the system (external), from a build
    cache or from source, with the recorded build time. The build shows its progress and
    the time left; a failure names package, phase and log. After Ctrl-C, or after you
    fixed a failure, run the same command again: it continues.

    The build runs on the login node of SYSTEM, over ssh from the machine that holds
    inventories/SYSTEM. Afterwards playbooks/site.yml creates modules of new packages.

    Exit status: 0; 2 usage, environment or a failed build; 130 interrupted.

    Example: seatrial build lab --plan
    """
    from seatrial.console import Terminal
    from seatrial.system.description import is_provisioned, load_system
    from seatrial.system.spack_build import build as install
    from seatrial.system.spack_plan import format_plan, plan_table, summary, total
    from seatrial.system.spack_site import load_site, read_locks

    if form != "table" and not only_plan:
        raise click.UsageError(f"--format {form} is for --plan")
    home = paths.home()
    if not is_provisioned(home, system):
        plan = ["--plan", "--format", form] if only_plan else []
        run_there(home, system, ["build", system, *plan], "the build")
        return
    site = load_site(load_system(home, system))
    locks = read_locks(site)
    steps, warning = _plan(site, locks)
    if warning:
        complain(warning)
    console = Terminal()
    if form != "table":
        write_data(format_plan(system, steps, form))
        return
    if only_plan:
        console.print(plan_table(steps))
    console.print_line(summary(steps))
    if only_plan:
        return
    log = install(site, locks, steps, console)
    console.print_whole(f"log: {log}")
    if total(steps).source + total(steps).cache:
        console.print_whole(
            f"next: `ansible-playbook -i inventories/{system} playbooks/site.yml` "
            "makes modules and ReFrame's environments of it"
        )


def _plan(site: "SpackSite", locks: Mapping[str, "Lock"]) -> "tuple[list[Step], str]":
    """Plan all environments; packages of one are installed for the next."""
    from seatrial.system.spack_plan import plan
    from seatrial.system.spack_site import in_build_caches, installed, timings

    prefixes = installed(site)
    specs = {
        hash_: spec
        for lock in locks.values()
        for hash_, spec in lock.specs.items()
        if not spec.external and hash_ not in prefixes
    }
    cached, warning = in_build_caches(site, specs.values())
    known = timings(site, prefixes)
    present = set(prefixes)
    steps: list[Step] = []
    for name, lock in locks.items():
        roots = lock.chosen(site.wanted(name))
        steps += plan(name, lock, roots, present, cached, known)
        present |= {step.hash for step in steps}
    return steps, warning
