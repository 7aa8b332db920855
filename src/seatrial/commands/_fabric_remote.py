"""Discover a fabric over ssh, and Ethernet by the LLDP daemons of all nodes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.audit.collect import Collected
    from seatrial.fabric.records import Fabric
    from seatrial.fabric.tools import Output

_LLDP = """\
PATH=$PATH:/usr/sbin:/sbin
out=$(lldpctl -f json 2>&1) || out=$(sudo -n lldpctl -f json 2>&1)
printf '%s\\n' "$out"
"""

ssh_option = click.option(
    "--ssh", is_flag=True, help="Run the tools on the login node, or on fabric_host."
)
lldp_option = click.option(
    "--lldp", is_flag=True, help="Ethernet: ask all nodes by lldpctl, through Slurm."
)


def require_one(files: object, ssh: bool, lldp: bool) -> None:
    """Raise SeatrialError if the fabric is to come from several sources."""
    if sum(map(bool, (files, ssh, lldp))) > 1:
        raise SeatrialError(
            "--from, --fabric, --ssh and --lldp: expected one of them, got more"
        )


def discovered_remotely(
    home: Path,
    system: str,
    save: Path | None,
    *,
    lldp: bool,
    tables: bool = False,
) -> "tuple[Fabric, Sequence[Output]]":
    """Run the tools of a system over ssh, or lldpctl on its nodes.

    With `tables` also dump_fts, whose outputs are the second value. Raises
    SeatrialError if the system has no login node, or a tool fails.
    """
    from seatrial.console import Terminal
    from seatrial.fabric.declaration import declared_for
    from seatrial.fabric.discover import TOOLS, by_lldp, of_outputs
    from seatrial.fabric.remote_tools import command_of, run_remotely
    from seatrial.system.login_node import load_remote

    with Terminal(stderr=True).status(f"discovering the fabric of {system}"):
        if lldp:
            texts, silent = _lldp_texts(_asked_nodes(home, system))
            return by_lldp(texts, silent, save), ()
        host = declared_for(home, system).declaration.fabric_host
        command = command_of(load_remote(home, system), host)
        wanted = [*TOOLS, *([("dump_fts",)] if tables else [])]
        outputs = run_remotely(command, wanted)
    told = [one for one in outputs if one.tool == "dump_fts"]
    rest = [one for one in outputs if one.tool != "dump_fts"]
    return of_outputs(rest, save), told


def _asked_nodes(home: Path, system: str) -> "Collected":
    """Run lldpctl on all nodes by Slurm, from here or from the login node."""
    from seatrial.audit.audit import SETTINGS
    from seatrial.audit.collect import collect, login_script
    from seatrial.system.description import is_provisioned
    from seatrial.system.doctor.probe import access, host_list
    from seatrial.system.login_node import load_remote, login_variables
    from seatrial.system.login_shell import SHELL

    remote = load_remote(home, system)
    settings = login_variables(home / "inventories" / system, home, SETTINGS)
    classes = [
        (one["name"], host_list(one, settings["groups"]), access(one))
        for one in settings["classes"]
    ]
    script, token = login_script(
        remote.prefix, classes, "", node_script=_LLDP, job="seatrial-lldp"
    )
    here = is_provisioned(home, system)
    return collect(SHELL if here else remote.ssh(SHELL), script, token)


def _lldp_texts(collected: "Collected") -> tuple[dict[str, str], list[str]]:
    """Return the outputs by node, and why others have none; SeatrialError: all."""
    texts, silent = dict[str, str](), [*collected.errors]
    for node in dict.fromkeys(n for own in collected.classes.values() for n in own):
        text = collected.raw.get(node, "").strip()
        if text.startswith("{"):
            texts[node] = text
        else:
            reason = text.splitlines()[-1] if text else "no answer"
            reason = collected.missing.get(node, reason)
            silent.append(f"{node}: lldpctl: {reason}")
    if not texts:
        raise SeatrialError(
            f"no node answers: {silent[0] if silent else 'no node is known'}. Install "
            "lldpd on the nodes, or name files of `lldpctl -f json` with --from."
        )
    return texts, silent
