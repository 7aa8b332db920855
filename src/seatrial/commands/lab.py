"""`seatrial lab`: start, stop and show the embedded cluster, and plant a fault."""

import os
import platform
import sys

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.errors import SeatrialError
from seatrial.output import echo


@click.group()
def lab() -> None:
    """Manage the lab, a cluster of containers inside this machine.

    With LAB_DISTRIBUTION=trixie, it is the second lab, which is arranged like a foreign
    site. One of them runs at a time.

    Example: seatrial lab up && seatrial lab status
    """


@lab.command()
@click.option(
    "--nodes",
    type=click.IntRange(1, 64),
    help="Compute nodes (default 4, or LAB_NODES).",
)
@click.option(
    "--scale",
    type=click.IntRange(8, 1024),
    help="Model nodes of the scale lab, whose programs print numbers of a model.",
)
def up(nodes: int | None, scale: int | None) -> None:
    """Start the nodes of the lab that do not run yet.

    With --scale, it is the scale lab: Slurm with up to 1,024 nodes in a few containers.

    Example: seatrial lab up --nodes 8
    """
    from seatrial.system.lab.distribution import lab_system

    if nodes is not None and scale is not None:
        raise click.UsageError("--nodes and --scale: expected one of them, got both")
    require_root_on_debian()
    system = "scale-lab" if scale else lab_system()
    _refuse_another(scale or 0)
    if nodes is not None:
        os.environ["LAB_NODES"] = str(nodes)
    if scale is not None:
        os.environ["LAB_SCALE"] = str(scale)
    changed = _playbook("lab-up", system)
    echo("the lab is up" if changed else "the lab was up already")


@lab.command()
def down() -> None:
    """Remove the lab: its processes, mounts, namespaces, cgroups and files.

    Example: seatrial lab down
    """
    from seatrial.system.lab.distribution import lab_system

    changed = _playbook("lab-down", lab_system(), "-e", "lab_state=absent")
    echo("the lab is down" if changed else "there was no lab")


@lab.command()
def status() -> None:
    """Show every node: container, ssh, Slurm's state, link.

    Example: seatrial lab status
    """
    from rich.table import Table

    from seatrial.console import Terminal
    from seatrial.system.lab import cluster

    require_root_on_debian()
    table = Table("node", "address", "container", "ssh", "slurm", "link")
    for node in cluster.status():
        table.add_row(
            node.node,
            node.address,
            "running" if node.running else "ended",
            "answers" if node.ssh else "silent",
            node.slurm,
            node.link,
        )
    Terminal().print(table)


@lab.command("slow-link")
@click.argument("node")
@options.option(
    "--rate",
    type=options.Rate(),
    default="100mbit",
    help="A number and a unit of tc: kbit, mbit, gbit.",
)
@click.option("--off", is_flag=True, help="Remove the limit.")
def slow_link(node: str, rate: str, off: bool) -> None:
    """Limit the link of NODE in both directions, a fault that a campaign must find.

    Example: seatrial lab slow-link cn03 --rate 10mbit
    """
    from seatrial.system.lab import cluster

    require_root_on_debian()
    cluster.slow_link(node, None if off else rate)
    echo(f"{node}: link at {'full rate' if off else rate + ' both ways'}")


def require_root_on_debian() -> None:
    """Raise SeatrialError unless this process is root on a Debian machine."""
    release = platform.freedesktop_os_release() if sys.platform == "linux" else {}
    release_name = release.get("PRETTY_NAME", sys.platform)
    if os.geteuid() != 0 or release.get("ID") != "debian":
        user = "root" if os.geteuid() == 0 else "an ordinary user"
        raise SeatrialError(
            f"the lab needs root on Debian 12, found {user} on {release_name}. "
            "Containers and network namespaces cannot be made otherwise. To test a "
            "real cluster, no root is needed: see 'Point it at your cluster' in the "
            "README"
        )


def _refuse_another(scale: int) -> None:
    """Raise SeatrialError if a lab runs with another number of model nodes."""
    from seatrial.system.lab import state

    lab = state.load()
    if lab and lab.nodes and lab.scale != scale:
        wanted = f"{scale} model nodes" if scale else "no model nodes"
        raise SeatrialError(
            f"the lab runs with {lab.size}, asked for {wanted}; stop it first with "
            "`seatrial lab down`"
        )


def _playbook(log: str, system: str, *arguments: str) -> int:
    """Run the playbook of the lab; return the number of changes."""
    from seatrial.system.playbooks import playbook

    require_root_on_debian()
    home = paths.home()
    file = home / "build" / "log" / f"{log}.log"
    return playbook(home, system, "lab", file, *arguments)
