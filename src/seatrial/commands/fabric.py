"""`seatrial fabric`: the cables of a system, planned, found, watched and located."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._fabric import (
    discovered,
    fabric_option,
    keep_fabric,
    known_nodes,
    save_text,
    shape_of,
    write_findings,
)
from seatrial.commands._fabric_load import locate, watch
from seatrial.commands._fabric_remote import (
    discovered_remotely,
    lldp_option,
    require_one,
    ssh_option,
)
from seatrial.errors import Exit, SeatrialError
from seatrial.output import complain, echo

if TYPE_CHECKING:
    from seatrial.fabric.plan import Plan

_from = options.repeated(
    "--from",
    "sources",
    type=click.Path(exists=True, path_type=Path),
    help="Read this file, or folder of files, instead of running the tools.",
)
_plan = click.option(
    "--plan",
    "plan_file",
    type=options.PRESENT_FILE,
    help="Cable plan (default: fabric_plan of the inventory).",
)


@click.group()
def fabric() -> None:
    """Compare the cables of a system with their plan, watch errors, find slow parts.

    inventories/SYSTEM/group_vars/all/fabric.yml declares the plan, the subnet manager
    and the firmware of switches. Everything is read only.

    Example: seatrial fabric diff SYSTEM
    """


@fabric.command()
@click.argument("system", type=options.SYSTEM)
@_from
@click.option(
    "--output",
    type=options.FILE,
    default="fabric.json",
    show_default=True,
    help="File to write.",
)
@click.option("--keep", is_flag=True, help="Later runs of SYSTEM keep it, too.")
@click.option(
    "--save",
    type=options.FOLDER,
    help="Folder for what the tools print, as --from reads it again.",
)
@ssh_option
@lldp_option
@options.stop_on_eof
@click.pass_context
def discover(
    ctx: click.Context,
    system: str,
    sources: tuple[Path, ...],
    output: Path,
    keep: bool,
    save: Path | None,
    ssh: bool,
    lldp: bool,
) -> None:
    """Record the devices, links and subnet managers of SYSTEM in a file.

    Runs ibnetdiscover, iblinkinfo, sminfo and saquery on this machine, as root; with
    --ssh on the login node, or on fabric_host of fabric.yml. With --from it reads
    ibnetdiscover.txt, iblinkinfo.txt (with or without --line), ibdiagnet2.db_csv,
    sminfo.txt and saquery.txt; on Ethernet lldp/NODE.json, the output of `lldpctl -f
    json` on each node. With --keep, runs also keep the forwarding tables: those of
    dump_fts, or of dump_fts.txt.

    Exit status: 0; 1 no subnet manager; 2 usage, a tool that failed, or output that is
    damaged or cut off; 3 a device did not answer.

    Example: seatrial fabric discover SYSTEM --from ufm/ --output fabric.json
    """
    from seatrial.fabric.declaration import declared_for
    from seatrial.fabric.records import write_fabric
    from seatrial.model.units import counted

    home = paths.home()
    declared_for(home, system)
    if save and sources:
        raise SeatrialError("--from and --save: expected one of them, got both")
    require_one(sources, ssh, lldp)
    told = None
    if ssh or lldp:
        found, told = discovered_remotely(home, system, save, lldp=lldp, tables=keep)
    else:
        found = discovered(sources, save=save)
    write_fabric(output, found)
    if keep:
        keep_fabric(home, system, found, sources, told)
    kinds = [device.kind for device in found.devices]
    nodes = {device.name for device in found.devices if device.kind == "host"}
    switches = kinds.count("switch")
    echo(
        f"{system}: {counted(len(nodes), 'node')}, "
        f"{switches} switch{'es' * (switches != 1)}, "
        f"{counted(len(found.links), 'link')}: {output}"
    )
    silent = [str(port.end) for port in found.open_ports if port.silent]
    for text in (*found.problems, *(f"{end}: no answer beyond it" for end in silent)):
        complain(text)
    if found.managers is not None and not any(
        one.state == "master" for one in found.managers
    ):
        complain("no subnet manager is master; start opensm, or UFM, on the fabric")
        ctx.exit(Exit.FAILED)
    ctx.exit(Exit.UNDECIDED if silent or found.problems else Exit.PASS)


@fabric.command()
@click.option("--kind", required=True, metavar="KIND", help="Shape of the fabric.")
@options.count("--hosts", required=True, help="Number of hosts.")
@options.count("--radix", default=40, help="Ports of a switch.")
@options.count("--blocking", default=1, help="Hosts for one up-link of a leaf.")
@click.option("--dims", default="", help="Switches of a torus, such as 8x8x8.")
@options.count("--rails", default=1, help="HCAs of a host, each with its own fabric.")
@options.option("--prefix", default="cn", help="Begin of the names of hosts.")
@options.option("--width", default="4x", help="Width of all links.")
@options.option("--speed", default="HDR", help="Speed of all links.")
@options.form("Form of the plan: CSV, or a network for ibsim.", ("csv", "ibsim"))
@click.option("--output", type=options.FILE, help="File to write.")
def plan(form: str, output: Path | None, **numbers: object) -> None:
    """Write a cable plan from a few numbers.

    KIND is fat-tree-2, fat-tree-3 (levels), dragonfly, dragonfly+ or torus. All links
    have one width and speed; correct names and labels in the CSV. A network for ibsim
    is what the plan's fabric would look like to the tools of InfiniBand.

    Exit status: 0; 2 usage, or numbers that do not fit together.

    Example: seatrial fabric plan --kind fat-tree-2 --hosts 648 --radix 36
    """
    from seatrial.fabric.generate import generate
    from seatrial.fabric.ibsim_net import ibsim_network
    from seatrial.fabric.plan import plan_csv, read_plan

    cables = generate(shape_of(numbers))
    text = plan_csv(cables)
    if form == "ibsim":
        text = ibsim_network(cables, read_plan(text, "plan").kinds)
    save_text(text, output)


@fabric.command()
@click.argument("system", type=options.SYSTEM)
@_from
@fabric_option
@_plan
@ssh_option
@lldp_option
@options.form("Format of the findings.")
@options.stop_on_eof
@click.pass_context
def diff(
    ctx: click.Context,
    system: str,
    sources: tuple[Path, ...],
    fabric_file: Path | None,
    plan_file: Path | None,
    ssh: bool,
    lldp: bool,
    form: str,
) -> None:
    """Compare the cables of SYSTEM with the plan of its inventory.

    The fabric is discovered now, by the tools of this machine, with --ssh by those of
    the login node, or read with --from or --fabric. A swap of cables is one finding.
    Without a plan, only what needs none is found: subnet managers, GUIDs that exist
    twice, firmware, states, up-links.

    Exit status: 0 as planned, 1 drift or absent, 2 usage, inventory, plan or damaged
    output, 3 something is unknown.

    Example: seatrial fabric diff SYSTEM --fabric fabric.json
    """
    from seatrial.fabric.compare import compare
    from seatrial.fabric.declaration import declared_for
    from seatrial.fabric.findings import exit_status
    from seatrial.fabric.plan import load_plan

    home = paths.home()
    declared = declared_for(home, system)
    planned = load_plan(plan_file) if plan_file else declared.plan()
    require_one(sources or fabric_file, ssh, lldp)
    if ssh or lldp:
        found, _ = discovered_remotely(home, system, None, lldp=lldp)
    else:
        found = discovered(sources, fabric_file)
    nodes = partial(known_nodes, home, system)
    findings = compare(found, planned, declared.declaration, nodes)
    write_findings(findings, form)
    if form == "table" and planned is None:
        echo(f"{system}: no plan; set fabric_plan in {declared.file}")
    ctx.exit(exit_status(findings))


@fabric.command()
@click.argument("system", type=options.SYSTEM)
@fabric_option
@_plan
@options.form(
    "topology.conf, or topology.yaml of Slurm 25.05 and later.", ("conf", "yaml")
)
@click.option("--output", type=options.FILE, help="File to write.")
@click.option(
    "--check",
    "site_file",
    type=options.PRESENT_FILE,
    help="Compare this topology.conf or .yaml, or output of `scontrol show topology`.",
)
@click.pass_context
def topology(
    ctx: click.Context,
    system: str,
    fabric_file: Path | None,
    plan_file: Path | None,
    form: str,
    output: Path | None,
    site_file: Path | None,
) -> None:
    """Write Slurm's topology of SYSTEM, or check that of the site.

    It comes from the discovered fabric (--fabric), else from the plan. Spines with the
    same leafs below them are one switch, as Slurm's topology is a tree.

    Exit status: 0; with --check 1 if a node is on another leaf or missing; 2 usage,
    plan or a damaged file.

    Example: seatrial fabric topology SYSTEM --fabric fabric.json --check topology.conf
    """
    from seatrial.fabric.findings import exit_status
    from seatrial.fabric.records import read_fabric
    from seatrial.fabric.topology import conf, of_fabric, of_plan, yaml_text
    from seatrial.fabric.topology_check import check
    from seatrial.fabric.topology_file import read_topology

    if fabric_file is not None:
        switches = of_fabric(read_fabric(fabric_file))
    else:
        switches = of_plan(_planned(system, plan_file))
    if site_file is None:
        write = conf if form == "conf" else yaml_text
        save_text(write(switches), output)
        return
    text = site_file.read_text("utf-8", errors="replace")
    findings = check(read_topology(text, str(site_file)), switches)
    write_findings(findings, "table")
    ctx.exit(exit_status(findings))


fabric.add_command(watch)
fabric.add_command(locate)


def _planned(system: str, plan_file: Path | None) -> "Plan":
    from seatrial.fabric.declaration import declared_for
    from seatrial.fabric.plan import load_plan

    declared = declared_for(paths.home(), system)
    planned = load_plan(plan_file) if plan_file else declared.plan()
    if planned is None:
        raise SeatrialError(
            f"{declared.file}: fabric_plan: expected the path of a cable plan, got "
            "nothing. Set it, or name a file with --plan or --fabric."
        )
    return planned
