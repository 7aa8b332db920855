"""`seatrial build`: the software that Spack builds for a system, planned and built."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

import click
from rich.table import Table

from seatrial import interrupts, paths
from seatrial.campaign.remote import load_remote, seatrial_there
from seatrial.commands._names import SYSTEM
from seatrial.commands._options import format_option
from seatrial.console import Terminal
from seatrial.model.csv_text import csv_text
from seatrial.model.units import rounded
from seatrial.output import complain, write_data
from seatrial.progress import duration
from seatrial.system.description import is_provisioned, load_system
from seatrial.system.spack_build import build as install
from seatrial.system.spack_lock import Lock
from seatrial.system.spack_plan import Origin, Step, plan, total
from seatrial.system.spack_site import (
    SpackSite,
    in_build_caches,
    installed,
    load_site,
    read_locks,
    timings,
)

_COLOURS = {Origin.SOURCE: "yellow", Origin.CACHE: "cyan"}


@click.command()
@click.argument("system", type=SYSTEM)
@click.option("--plan", "only_plan", is_flag=True, help="Say what, and build nothing.")
@format_option("How to print the plan.")
@click.option("--stop-on-eof", is_flag=True, hidden=True)
def build(system: str, only_plan: bool, form: str, stop_on_eof: bool) -> None:
    """Build the software of SYSTEM with Spack, where its MPI stacks come from Spack.

    The plan says of each package whether it is installed or the system's own
    (external), or comes from a build cache or from source, and how long that took
    before. The build shows its progress with the time left; a failure names package,
    phase and log. After Ctrl-C, or once a failure is mended, the same command goes on.

    It works on the login node of SYSTEM; on the machine that holds inventories/SYSTEM
    it does so over ssh. Afterwards playbooks/site.yml makes modules of what is new.

    Exit status: 0; 2 usage, environment or a failed build; 130 interrupted.

    Example: seatrial build lab --plan
    """
    if form != "table" and not only_plan:
        raise click.UsageError(f"--format {form} is for --plan")
    home = paths.home()
    if not is_provisioned(home, system):
        arguments = [
            "build",
            system,
            *(["--plan", "--format", form] if only_plan else []),
        ]
        seatrial_there(load_remote(home, system), arguments, system, "the build")
        return
    if stop_on_eof:
        interrupts.stop_on_eof()
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
        console.print(_table(steps))
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


def _plan(site: SpackSite, locks: Mapping[str, Lock]) -> tuple[list[Step], str]:
    """Plan all environments; what one installs is there for the next."""
    prefixes = installed(site)
    specs = {
        hash_: spec
        for lock in locks.values()
        for hash_, spec in lock.specs.items()
        if not spec.external and hash_ not in prefixes
    }
    cached, warning = in_build_caches(site, specs.values())
    known = timings(site, prefixes)
    there = set(prefixes)
    steps: list[Step] = []
    for name, lock in locks.items():
        roots = lock.chosen(site.wanted(name))
        steps += plan(name, lock, roots, there, cached, known)
        there |= {step.hash for step in steps}
    return steps, warning


def summary(steps: Sequence[Step]) -> str:
    """Say in one line how much is to be done."""
    sums = total(steps)
    if not sums.source + sums.cache:
        return "All of it is installed."
    return f"{sums.source} from source, {sums.cache} from a build cache: {_time(steps)}"


def format_plan(system: str, steps: Sequence[Step], form: str) -> str:
    """Write a plan as `json`, with its sums, or as `csv`."""
    rows = [asdict(step) for step in steps]
    if form == "json":
        sums = asdict(total(steps))
        content = {"system": system, "total": sums, "steps": rows}
        return json.dumps(content, indent=1) + "\n"
    return csv_text([field.name for field in fields(Step)], rows)


def _time(steps: Sequence[Step]) -> str:
    sums = total(steps)
    if sums.unknown == sums.source + sums.cache:
        return "time unknown, no build of them is recorded"
    if sums.unknown:
        return f"at least {duration(sums.seconds)}, {sums.unknown} of unknown time"
    return f"about {duration(sums.seconds)}"


def _table(steps: Sequence[Step]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("environment", "package", "hash", "from"):
        table.add_column(heading, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("recorded", no_wrap=True)
    for step in steps:
        took = "unknown" if step.seconds is None else f"{rounded(step.seconds, 3)} s"
        table.add_row(
            step.environment,
            str(step),
            step.hash[:7],
            step.origin,
            took if step.to_do else "",
            step.basis,
            style=_COLOURS.get(step.origin, "dim"),
        )
    return table
