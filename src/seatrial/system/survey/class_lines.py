"""A class of nodes of a survey as an entry of `node_classes`."""

from collections.abc import Iterator

from seatrial.output import one_line
from seatrial.system.survey.node_classes import SurveyedClass
from seatrial.system.survey.survey import Survey
from seatrial.system.survey.yaml_lines import TO_DECIDE, comment, value

_INDENT = 4


def class_lines(node_class: SurveyedClass, survey: Survey) -> Iterator[str]:
    """Yield the lines of a class, with the origin of each value."""
    node = node_class.nodes[0]
    parts = [f"{node.cores} cores on {node.sockets} sockets", f"{node.memory_mib} MiB"]
    parts += [f"gres {node.gres}"] if node.gres else []
    parts += [f"features {','.join(node.features)}"] if node.features else []
    count = f"{len(node_class.nodes)} node{'s' * (len(node_class.nodes) > 1)}"
    yield comment(f"{count}: {', '.join(parts)}", 2)
    for nodes, state in node_class.lost.items():
        yield comment(f"lost: {nodes} ({state})", 2)
    yield f"  - name: {value(node_class.name)}"
    yield f"    nodes: {value(node_class.host_list)}"
    partition = node_class.partition
    notes = [f"time limit {partition.limit or 'unknown'}"]
    notes += ["hidden"] if partition.is_hidden else []
    notes += [f"{TO_DECIDE} it is not up"] if not partition.is_up else []
    if node_class.others:
        notes.append(f"some nodes are in {', '.join(node_class.others)}, too")
    yield f"    partition: {value(partition.name)} # {one_line('; '.join(notes))}"
    yield from _account(node_class, survey)
    yield from _qos(node_class, survey)
    yield from _reservation(node_class)
    if node.gres:
        text = f"gres: {value(node.gres)} # where jobs must request it"
        yield comment(text, _INDENT)
    if "MEMORY" in survey.config.get("SelectTypeParameters", ""):
        yield '    mem: "0" # all memory of a node: Slurm shares it out by job'
    if survey.adapters:
        names = [adapter.split()[0] for adapter in survey.adapters]
        text = f"rails: {value(names)} # of the login node; to measure each on its own"
        yield comment(f"{text}, name those that all nodes have", _INDENT)


def _account(node_class: SurveyedClass, survey: Survey) -> Iterator[str]:
    accounts, name = node_class.accounts, node_class.partition.name
    if len(accounts) == 1:
        note = f"the only account of {survey.user} for {name}"
        yield f"    account: {value(accounts[0])} # {one_line(note)}"
    elif accounts:
        default = survey.default_account
        without = f"; without it, Slurm takes {default}" if default else ""
        text = f"account: # {TO_DECIDE} {' or '.join(accounts)}{without}"
        yield comment(text, _INDENT)
    elif survey.accounts:
        permitted = ", ".join(node_class.partition.accounts) or "others"
        text = f"account: # {TO_DECIDE} {name} permits {permitted}, and {survey.user} "
        yield comment(f"{text}has {', '.join(survey.accounts)}", _INDENT)


def _qos(node_class: SurveyedClass, survey: Survey) -> Iterator[str]:
    permitted = node_class.partition.qos
    if not permitted:
        return
    own = node_class.all_qos
    name = node_class.partition.name
    if len(own) == 1:
        yield f"    qos: {value(own[0])} # the only QOS of the user that {name} permits"
        return
    choice = (
        " or ".join(own) or f"none of the user's; {name} permits {', '.join(permitted)}"
    )
    yield comment(f"qos: # {TO_DECIDE} {choice}", _INDENT)


def _reservation(node_class: SurveyedClass) -> Iterator[str]:
    if node_class.reservation:
        ends = {r.name: r.end for r in node_class.touching}[node_class.reservation]
        yield (
            f"    reservation: {value(node_class.reservation)} "
            f"# covers all nodes of the class, until {one_line(ends)}"
        )
    own = {node.name for node in node_class.nodes}
    for reservation in node_class.touching:
        if reservation.name != node_class.reservation:
            holders = ",".join((*reservation.users, *reservation.accounts)) or "none"
            flags = ",".join(reservation.flags)
            yield comment(
                f"reservation {reservation.name} ({flags}) has "
                f"{len(reservation.nodes & own)} of these nodes for {holders}, "
                f"{reservation.start} to {reservation.end}",
                _INDENT,
            )
