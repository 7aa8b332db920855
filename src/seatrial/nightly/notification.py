"""Notify people of changes since the last message: one message a night at most."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from seatrial.errors import SeatrialError
from seatrial.history.records import Alarm
from seatrial.names import node_set
from seatrial.nightly.channels import send_mail, send_webhook
from seatrial.nightly.explanation import explained, title
from seatrial.nightly.settings import Notify
from seatrial.nightly.state import State
from seatrial.output import one_line
from seatrial.report.render.text import shortened
from seatrial.report.wording import MODEL_NOTICE
from seatrial.runs.ledger import note_nights

_OUT, _UNSEEN = "quarantined", "not measured for too long"
_UNREADABLE = "left out, as it cannot be read"
_MOST_ALARMS = 20
"""Alarms that a message explains; the rest is counted."""

_MOST_SUBJECT = 150


@dataclass(frozen=True)
class News:
    """A subject with a new state; `alarm` is None for other subjects."""

    subject: str
    state: str
    alarm: Alarm | None = None


def news_of(state: State, today: date) -> list[News]:
    """Return the changes since the last message.

    Subjects are alarms, nodes in quarantine, runs that cannot be read, and nodes that
    were not measured for too long; these from one window of nights after the first
    night on.
    """
    told = {
        entry.alarm: entry.reason
        for entry in state.ledger.entries
        if entry.event == "notified"
    }
    now = [News(one.name, state.standing(one, today), one) for one in state.alarms]
    now += [News(f"out-{node}", _OUT) for node in state.quarantined]
    now += [News(f"unseen-{node}", _UNSEEN) for node in _unseen(state, today)]
    now += [News(f"unreadable-{run}", _UNREADABLE) for run in state.unreadable]
    known = {one.subject for one in now}
    nodes = {node for of_class in state.classes.values() for node in of_class}
    over = [
        News(subject, "over")
        for subject, was in told.items()
        if was in (_OUT, _UNSEEN)
        and subject not in known
        and (was == _OUT or subject.partition("-")[2] in nodes)
    ]
    return [one for one in (*now, *over) if told.get(one.subject) != one.state]


def _unseen(state: State, today: date) -> list[str]:
    every = state.settings.rules.every
    nights = state.visits.nights.tolist()
    if not nights or (today - nights[0]).days <= every:
        return []
    ages = state.unseen(today)
    return [node for node, age in ages.items() if age is None or age > every]


def notify(state: State, today: date) -> list[str]:
    """Send the news, and record that in the ledger; return the problems.

    News that no channel accepts are sent again the next night.
    """
    news = news_of(state, today)
    if not news:
        return []
    subject, text = digest(state, news, today)
    channels = _channels(state.settings.notify)
    problems = []
    for send in channels:
        try:
            send(subject, text)
        except SeatrialError as error:
            problems.append(f"notification: {error}")
    if not channels or len(problems) < len(channels):
        told = [{"alarm": one.subject, "reason": one.state} for one in news]
        note_nights(state.folder, "notified", told)
    return problems


def _channels(to: Notify) -> list[Callable[[str, str], None]]:
    channels: list[Callable[[str, str], None]] = []
    mail, webhook = to.mail, to.webhook
    if mail is not None:
        channels.append(lambda subject, text: send_mail(mail, subject, text))
    if webhook is not None:
        channels.append(lambda subject, text: send_webhook(webhook, subject, text))
    return channels


def digest(state: State, news: Sequence[News], today: date) -> tuple[str, str]:
    """Return the subject and the text of a message, without control characters."""
    alarms = [one for one in news if one.alarm is not None]
    opened = [one.alarm for one in alarms if one.alarm and one.state == "open"]
    reports = [one.alarm for one in alarms if one.alarm and _is_report(one.alarm)]
    groups = _groups(news)
    if opened:
        more = f" and {len(opened) - 1} more" if len(opened) > 1 else ""
        subject = f"{title(opened[0])}{more}"
    elif reports:
        subject = title(reports[0])
    else:
        subject = "; ".join(groups)
    lines = [MODEL_NOTICE, ""] if state.model else []
    for alarm in (*opened, *reports)[:_MOST_ALARMS]:
        lines += [*explained(state, alarm, today), ""]
    if len(opened) + len(reports) > _MOST_ALARMS:
        lines += [f"and {len(opened) + len(reports) - _MOST_ALARMS} more alarms", ""]
    lines += groups
    lines.append(
        f"{state.system}: nights so far: {len(state.visits.nights)}; expected false "
        f"alarms: {state.settings.rules.alarms_a_year:g} a year"
    )
    subject = shortened(f"[seatrial] {state.system}: {subject}", _MOST_SUBJECT)
    return one_line(subject), "".join(f"{one_line(line)}\n" for line in lines)


def _is_report(alarm: Alarm) -> bool:
    return alarm.kind == "explained"


def _groups(news: Sequence[News]) -> list[str]:
    """Return a line for each thing that happened and needs no explanation."""
    alarms: dict[str, list[str]] = {}
    nodes: dict[str, list[str]] = {}
    for one in news:
        if one.alarm is None:
            kind, _, name = one.subject.partition("-")
            over = {"out": "released", "unseen": "measured again"}
            words = over[kind] if one.state == "over" else one.state
            group = alarms if one.state == _UNREADABLE else nodes
            group.setdefault(words, []).append(name)
        elif one.state != "open" and not _is_report(one.alarm):
            alarms.setdefault(one.state, []).append(one.subject)
    return [
        *(f"{words}: {', '.join(names)}" for words, names in alarms.items()),
        *(f"{words}: {node_set(names)}" for words, names in nodes.items()),
    ]
