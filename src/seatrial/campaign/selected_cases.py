"""The cases of a campaign on a system, and why a check has none."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.campaign.campaign_file import Campaign
from seatrial.checks.listing import describe_checks, list_cases, unset_variables
from seatrial.errors import SeatrialError
from seatrial.model.cases import ListedCase
from seatrial.paths import checks_dir
from seatrial.system.description import NodeClass, System
from seatrial.system.features import needed, reasons_not_built, why_not

_NOT_CHOSEN = "the campaign chooses classes, partitions or stacks without a case of it"


def selected_cases(
    home: Path, system: System, campaign: Campaign
) -> tuple[tuple[ListedCase, ...], dict[str, str]]:
    """Return the cases, and the missing features by check without a case.

    Raises SeatrialError if a check is unknown, or a class, partition or stack that the
    campaign chooses; also as `check_variables` does.
    """
    checks = checks_dir(home)
    check_variables(home, campaign)
    phase = campaign.stability
    sizes = {name: len(known.nodes) for name, known in system.classes.items()}
    mix = phase.mix(sizes) if phase else ""
    listed = list_cases(system.settings, system.name, checks, home, mix)
    without = set(campaign.checks) - {case.check for case in listed}
    needs = needed(describe_checks(checks, home)) if without else {}
    unknown = sorted(without - needs.keys())
    if unknown:
        raise SeatrialError(
            f"campaign {campaign.name!r} names unknown checks: "
            f"{', '.join(unknown)}; known checks: {', '.join(sorted(needs))}"
        )
    not_built = reasons_not_built(system.software)
    missing = {
        check: why_not(needs[check], system.features, not_built) for check in without
    }
    cases = select(campaign, system.classes, listed)
    left_out = {case.check for case in listed} - {case.check for case in cases}
    missing |= dict.fromkeys(left_out.intersection(campaign.checks), _NOT_CHOSEN)
    return phase.chosen(cases, sizes) if phase else cases, missing


def check_variables(home: Path, campaign: Campaign) -> None:
    """Raise SeatrialError for a variable that no check has, or a value of a wrong kind.

    For ReFrame a variable that no check has is only a warning. Of a variable with
    several values, the one of the last block is looked at.
    """
    blocks, checks = campaign.all_blocks, checks_dir(home)
    variables = {key: value for each in blocks for key, value in each.variables.items()}
    if not variables:
        return
    try:
        unset = unset_variables(checks, home, variables)
    except SeatrialError as error:
        raise SeatrialError(f"campaign {campaign.name!r}: variables: {error}") from None
    for block in blocks:
        for key in block.variables:
            check, _, name = key.rpartition(".")
            owners = [check] if check else block.checks
            if all(name in unset.get(owner, ()) for owner in owners):
                raise SeatrialError(
                    f"campaign {campaign.name!r}: block {block.name!r}: no variable "
                    f"{name!r} in {', '.join(owners)}; `seatrial checks {owners[0]}` "
                    "lists its variables"
                )


def select(
    campaign: Campaign, classes: Mapping[str, NodeClass], listed: Sequence[ListedCase]
) -> tuple[ListedCase, ...]:
    """Return the cases of the classes, partitions and stacks that a campaign chooses.

    Raises SeatrialError if the system lacks one of them.
    """
    partitions = {name: described.partition for name, described in classes.items()}
    for key, chosen, known in (
        ("classes", campaign.classes, partitions.keys()),
        ("partitions", campaign.partitions, partitions.values()),
        ("stacks", campaign.stacks, [case.environment for case in listed]),
    ):
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise SeatrialError(
                f"campaign {campaign.name!r}: {key}: expected some of "
                f"{', '.join(sorted(set(known)))}; got {', '.join(unknown)}"
            )

    def is_chosen(case: ListedCase) -> bool:
        node_class = case.partition.partition(":")[2]
        return all(
            not chosen or name in chosen
            for chosen, name in (
                (campaign.classes, node_class),
                (campaign.partitions, partitions[node_class]),
                (campaign.stacks, case.environment),
            )
        )

    return tuple(filter(is_chosen, listed))
