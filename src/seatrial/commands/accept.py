"""`seatrial accept`: test the suite on the lab, without and with a planted fault."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial import paths
from seatrial.commands import _options as options
from seatrial.commands._runs import judged
from seatrial.errors import Exit, SeatrialError

if TYPE_CHECKING:
    from seatrial.console import Terminal
    from seatrial.judge.judge import Judgement

SYSTEM = "lab"


@click.command()
@options.option("--campaign", type=options.CAMPAIGN, default="functional")
@options.option(
    "--fault-campaign",
    type=options.CAMPAIGN,
    default="selftest",
    help="Campaign whose PairSweep must find the slow link.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="Repeats of the clean run (default: those of the campaign). With 3, the "
    "scatter of a busy machine leaves numbers undecided.",
)
@options.option("--node", default="cn03", help="Node with the slow link.")
@options.option(
    "--rate", type=options.Rate(), default="100mbit", help="Rate of the slow link."
)
def accept(
    campaign: str, fault_campaign: str, repeats: int | None, node: str, rate: str
) -> None:
    """Accept the lab: provision, campaign, report; then find a slow link.

    Passes if the clean run passes, and the run with the slow link on one node fails
    and names that node and no other. If the clean run is undecided, it is repeated
    once, and both runs are judged together. The lab stays up; results, reports and the
    playbooks' logs (build/log) are kept.

    Example: seatrial accept --node cn02
    """
    from seatrial.campaign.campaign_file import load_campaign
    from seatrial.commands.lab import require_root_on_debian
    from seatrial.console import Terminal
    from seatrial.runs.open_run import try_folder
    from seatrial.system.lab import cluster
    from seatrial.system.playbooks import playbook

    require_root_on_debian()
    home, console = paths.home(), Terminal()
    for name in (campaign, fault_campaign):
        load_campaign(home, name)
    try_folder(paths.results_dir(home) / SYSTEM)
    try_folder(home / "reports" / "out" / SYSTEM)
    for name, step in (
        ("lab", "lab: nodes start (the first time, their image is built)"),
        ("cluster", "cluster: munge, slurmdbd, Slurm"),
        ("site", "site: MPI stacks, our benchmarks, the suite"),
    ):
        with _timed(console, step):
            playbook(home, SYSTEM, name, home / "build" / "log" / f"{name}.log")
    cluster.slow_link(node, None)
    run_clean = partial(_campaign, console, home, campaign, "clean", repeats=repeats)
    path, clean, clean_report = run_clean()
    if clean.verdict == "undecided":
        console.print("undecided: the run is repeated, and judged with the first one")
        _, clean, clean_report = run_clean(further=(path,))
    cluster.slow_link(node, rate)
    try:
        label = f"{node} at {rate}"
        _, slow, slow_report = _campaign(
            console, home, fault_campaign, label, checks=("PairSweep",)
        )
    finally:
        cluster.slow_link(node, None)
    expected = {
        "the clean run passes": clean.verdict == "pass",
        f"the run with {node} at {rate} fails": slow.verdict == "fail",
        f"it names {node} and no other node": slow.convicted == (node,),
    }
    console.rule("result")
    for statement, holds in expected.items():
        console.print_line(f"{'yes' if holds else 'NO '}  {statement}")
    console.print_whole(f"clean run:  {clean.verdict}, {clean_report}")
    console.print_whole(f"slow link:  {slow.verdict}, {slow_report}")
    console.print("The lab stays up: `seatrial lab status`, `seatrial lab down`.")
    if not all(expected.values()):
        raise SeatrialError("the lab was not accepted, see above", Exit.FAILED)


def _campaign(
    console: "Terminal",
    home: Path,
    campaign: str,
    label: str,
    repeats: int | None = None,
    checks: tuple[str, ...] = (),
    further: tuple[Path, ...] = (),
) -> "tuple[Path, Judgement, Path]":
    """Run a campaign on the lab, judge it with `further` runs, write its report.

    Returns the folder of the run, the judgement, and the page of the report.
    """
    from seatrial.campaign.remote import run_remotely
    from seatrial.judge.summary import print_summary
    from seatrial.report import write_report
    from seatrial.runs.open_run import new_run_id
    from seatrial.system.login_node import load_remote

    console.rule(f"{campaign}, {label}")
    run_id = new_run_id(campaign)
    remote = load_remote(home, SYSTEM)
    results = paths.results_dir(home)
    path = run_remotely(
        remote, home, SYSTEM, campaign, checks, run_id, results, repeats
    )
    run, judgement = judged(home, path, further)
    print_summary(judgement, str(path), console)
    out = home / "reports" / "out" / SYSTEM / run_id
    return path, judgement, write_report(run, judgement, out, home)["report.html"]


@contextmanager
def _timed(console: "Terminal", step: str) -> Iterator[None]:
    """Show a step while it runs, then its duration."""
    started = time.monotonic()
    with console.status(step):
        yield
    console.print(f"{time.monotonic() - started:5.1f} s  {step}")
