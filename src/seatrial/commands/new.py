"""`seatrial new`: write the files of a new system, or of a check of a site."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.system.survey.inventory import Order
    from seatrial.system.survey.node_classes import SurveyedClass
    from seatrial.system.survey.survey import Survey

_NAME = re.compile(r"[A-Za-z0-9]([\w-]*[A-Za-z0-9])?", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9_][\w.:-]*", re.ASCII)


_CHECK = re.compile(r"[A-Z][A-Za-z0-9]*")


@click.group()
def new() -> None:
    """Write the files of a new system, or of a check of your own.

    Example: seatrial new system hulk --login login1.example.org
    """


@new.command()
@click.argument("name")
def check(name: str) -> None:
    """Write the check NAME of an application of your site, with a metric of its own.

    It writes reframe-checks/checks/site/NAME.py, and a campaign of that name, in lower
    case, and overwrites no file. Change them to your application. All commands treat
    it like Seatrial's own checks.

    Exit status: 0; 2 usage, or a check that exists.

    Example: seatrial new check OceanModel
    """
    from seatrial.checks.skeleton import campaign_skeleton, check_skeleton
    from seatrial.checks.sources import known_checks
    from seatrial.console import Terminal

    home = paths.home()
    folder = paths.checks_dir(home)
    if not _CHECK.fullmatch(name):
        raise SeatrialError(
            f"NAME: {name!r} is no name of a check; expected a capital, then letters "
            "and digits, such as OceanModel"
        )
    short = name.lower()
    if short in map(str.lower, known_checks(folder)):
        raise SeatrialError(f"NAME: there is a check {name}; choose another name")
    texts = {
        folder / paths.SITE / f"{short}.py": check_skeleton(name),
        paths.campaigns_dir(home) / f"{short}.yaml": campaign_skeleton(name),
    }
    _refuse_existing(texts)
    _write(texts)
    console = Terminal()
    for file in texts:
        console.print_whole(f"wrote {file}")
    console.print_line(f"next: change {short}.py to your application, then")
    for line in (
        "seatrial checks",
        "# a limit, in criteria of reference-data/SYSTEM/criteria.yaml:",
        f"#   - check: {name}",
        "#     kind: promised",
        "#     document: contract 4711",
        "#     clause: '5.2'",
        f"#     campaigns: [{short}]",
        f"#     limits: {{{short}_rate: 1000 steps/s}}",
        "ansible-playbook -i inventories/SYSTEM playbooks/site.yml",
        f"seatrial run SYSTEM --campaign {short}",
    ):
        console.print_whole(f"  {line}")


@new.command()
@click.argument("name")
@click.option(
    "--login", required=True, metavar="HOST", help="Login node, as ssh knows it."
)
@click.option("--user", default="", help="User there (default: that of ssh).")
@click.option(
    "--prefix",
    default="",
    metavar="DIR",
    help="Folder for the suite that all nodes share (default: a shared folder of the "
    "user).",
)
@options.option(
    "--campaign",
    type=options.CAMPAIGN,
    default="smoke",
    help="Campaign with the checks that get criteria.",
)
def system(name: str, login: str, user: str, prefix: str, campaign: str) -> None:
    """Write the inventory and criteria of the cluster NAME from its login node.

    It reads Slurm's nodes, partitions, reservations and accounts, modules, Pythons and
    folders over ssh. It submits no job and changes nothing there: HCAs of the compute
    nodes are read later, by playbooks/site.yml. It writes inventories/NAME and
    reference-data/NAME/criteria.yaml, and overwrites no file.

    Exit status: 0; 2 usage, a file that exists, or a login node that does not answer.

    Example: seatrial new system hulk --login login1.example.org
    """
    from seatrial.campaign.campaign_file import load_campaign
    from seatrial.checks.listing import describe_checks
    from seatrial.checks.sources import own_metrics
    from seatrial.console import Terminal
    from seatrial.criteria.skeleton import metrics_of, skeleton
    from seatrial.model.metrics import METRICS
    from seatrial.system.login_node import Remote
    from seatrial.system.survey.inventory import Order, inventory_files, stack_names
    from seatrial.system.survey.node_classes import node_classes
    from seatrial.system.survey.survey import survey

    home = paths.home()
    order = Order(name, login, user, prefix)
    _check(order, home)
    checks = load_campaign(home, campaign).checks
    with Terminal(stderr=True).status(f"reading {login}"):
        site = survey(Remote(login, "", ("-l", user) if user else ()))
        folder = paths.checks_dir(home)
        known = METRICS | own_metrics(folder)
        metrics = metrics_of(describe_checks(folder, home), checks, known)
    classes = node_classes(site)
    if not classes:
        raise SeatrialError(
            f"{login}: no node is in a partition; expected some in `sinfo -a`"
        )
    names = [node_class.name for node_class in classes]
    criteria = skeleton(name, campaign, metrics, names, stack_names(site))
    texts = {
        home / "inventories" / name / path: text
        for path, text in inventory_files(order, site, classes).items()
    } | {paths.criteria_file(home, name): criteria}
    _write(texts)
    _print_summary(order, site, classes, texts, campaign)


def _check(order: "Order", home: Path) -> None:
    """Raise SeatrialError for a name that is none, or a system that exists."""
    if not _NAME.fullmatch(order.name):
        raise SeatrialError(
            f"NAME: {order.name!r} is no name of a system; expected letters, digits, "
            "dash and underscore, such as hulk"
        )
    if not _HOST.fullmatch(order.login):
        raise SeatrialError(
            f"--login: {order.login!r} is no host; expected a name such as "
            "login1.example.org, and the user in --user"
        )
    if order.prefix and not Path(order.prefix).is_absolute():
        raise SeatrialError(f"--prefix: expected a full path, got {order.prefix!r}")
    folder = home / "inventories" / order.name
    _refuse_existing((folder, paths.criteria_file(home, order.name)))


def _refuse_existing(files: Iterable[Path]) -> None:
    for path in files:
        if path.exists():
            raise SeatrialError(
                f"{path}: exists, and nothing is overwritten; choose another NAME, or "
                "remove it"
            )


def _write(texts: dict[Path, str]) -> None:
    from seatrial.plain_files import write_exclusively

    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_exclusively(file, [text.encode()])


def _print_summary(
    order: "Order",
    site: "Survey",
    classes: "tuple[SurveyedClass, ...]",
    texts: dict[Path, str],
    campaign: str,
) -> None:
    """Print what was found and written, the open decisions, and the next commands."""
    from seatrial.console import Terminal
    from seatrial.system.survey.yaml_lines import TO_DECIDE

    console = Terminal()
    nodes = [node for node_class in classes for node in node_class.nodes]
    lost = sum(bool(node.loss) for node in nodes)
    console.print_line(
        f"{order.name}: Slurm {site.slurm}, {len(nodes)} nodes ({lost} lost) in "
        f"{len(classes)} class{'es' * (len(classes) > 1)}, "
        f"{len(site.stacks)} MPI stack{'s' * (len(site.stacks) != 1)}"
    )
    for node_class in classes:
        text = f"  {node_class.name}: {node_class.host_list}"
        console.print_line(f"{text}, partition {node_class.partition.name}")
    for file in texts:
        console.print_whole(f"wrote {file}")
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if f"# {TO_DECIDE} " in line:
                place = f"{file.name}:{number}"
                console.print_line((place, "yellow"), f": {line.strip(' #')}")
    name = order.name
    console.print_line("next:")
    for command in (
        f"seatrial doctor {name}",
        f"ansible-playbook -i inventories/{name} playbooks/site.yml",
        f"seatrial run {name} --campaign {campaign}",
        f"seatrial report {name}/latest",
    ):
        console.print_whole(f"  {command}")
