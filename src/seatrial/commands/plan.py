"""`seatrial plan`: print the cost of a campaign, and what it will find."""

from dataclasses import asdict, fields

import click

from seatrial.commands import _options as options
from seatrial.commands._rows import write_json, write_rows
from seatrial.paths import home


@click.command()
@click.argument("system", type=options.SYSTEM)
@click.option(
    "--campaign", type=options.CAMPAIGN, required=True, help="Name of the campaign."
)
@options.count(
    "--repeats", help="Repeats of every block (default: those of the campaign)."
)
@click.option(
    "--slowdown",
    type=options.Share(),
    help="Print the repeats that find a place this far beyond its limit: 5%.",
)
@options.form("Format of the output; csv has the criteria, json has all.")
def plan(
    system: str, campaign: str, repeats: int | None, slowdown: float | None, form: str
) -> None:
    """Print the cost of a campaign on SYSTEM, and the verdicts that it can reach.

    Jobs, wall time and node-hours come from recorded cases; for a case that never ran,
    from the typical time that its check states, scaled by nodes, sizes and steps. For
    each criterion the plan shows the scatter of the newest runs of one configuration,
    and the slowdowns that the repeats find at the declared risks. It also shows the
    chance of each verdict on a machine a little inside its limits, by simulation, and
    who bears the burden of proof. Nothing is submitted.

    Exit status: 0; 2 usage or environment.

    Example: seatrial plan lab --campaign acceptance --repeats 8 --slowdown 10%
    """
    from seatrial.calibration.detection_limits import Prospect
    from seatrial.calibration.plan import plan_campaign
    from seatrial.calibration.plan_table import print_plan
    from seatrial.console import Terminal

    planned = plan_campaign(home(), system, campaign, repeats, slowdown)
    if form == "table":
        print_plan(planned, Terminal())
    elif form == "json":
        write_json(asdict(planned))
    else:
        columns = [field.name for field in fields(Prospect)]
        write_rows(map(asdict, planned.criteria), form, columns)
