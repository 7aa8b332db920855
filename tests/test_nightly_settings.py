"""Declared nights: every key, every fault with its line, and the window."""

import re
from datetime import date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from fake_cron import NIGHTLY
from fake_home import write

from seatrial.errors import SeatrialError
from seatrial.nightly.settings import (
    OFF,
    Caps,
    Notify,
    _Nightly,
    load_settings,
    settings_file,
)
from seatrial.nightly.window import Window, parse_time

HOME = Path(__file__).resolve().parents[1]

FULL = """\
schema: 1
window: {start: 22:30, end: '05:00'}
node_hours: 40
every: 7
alarms: 0.5
margin: 2 %
autocorrelation: 0.4
partition: service
qos: night
account: ops
reservation: nights
nice: 5
action: drain
caps: {night: 2, at_once: 4, share: 5 %}
spool: /var/spool/seatrial
notify:
  mail: {to: [ops@example.org], from: hpc@example.org, smtp: 'mail.example.org:25'}
  webhook: {file: /etc/seatrial/hook, form: teams}
  metrics: /var/lib/node_exporter/seatrial.prom
"""


def load(home: Path, text: str) -> str:
    """Read settings; return the error, without the path of the file."""
    write(settings_file(home, "lab"), text)
    with pytest.raises(SeatrialError) as caught:
        load_settings(home, "lab")
    return str(caught.value).replace(f"{settings_file(home, 'lab')}", "FILE")


def test_all_keys(tmp_path: Path) -> None:
    write(settings_file(tmp_path, "lab"), FULL)
    settings = load_settings(tmp_path, "lab")
    rules, mail = settings.rules, settings.notify.mail
    assert str(settings.window) == "22:30 to 05:00"
    assert (rules.every, rules.alarms_a_year, rules.margin) == (7, 0.5, 0.02)
    assert (rules.autocorrelation, rules.most_suspects) == (0.4, 2)
    assert settings.driver == ("--partition=service", "--account=ops")
    assert settings.jobs == (
        *("--qos=night", "--account=ops", "--reservation=nights", "--nice=5"),
    )
    assert (settings.node_hours, settings.share, settings.action) == (
        *(40, 0.05, "drain"),
    )
    assert mail is not None
    assert (mail.to, mail.sender) == (("ops@example.org",), "hpc@example.org")


def test_defaults(tmp_path: Path) -> None:
    write(settings_file(tmp_path, "lab"), NIGHTLY)
    settings = load_settings(tmp_path, "lab")
    assert (settings.rules.every, settings.rules.alarms_a_year) == (5, 1)
    assert (settings.driver, settings.jobs) == ((), ("--nice=1000",))
    assert (settings.action, settings.spool, settings.share) == (
        "recommend",
        None,
        0.02,
    )
    assert not settings.off
    settings.file.with_name(OFF).touch()
    assert settings.off


BAD = [
    ("window: {start: '01:00', end: '01:00'}", "FILE:2: window: expected an end after"),
    ("window: {start: '25:00', end: '05:00'}", "FILE:2: window.start: expected a time"),
    ("window: {start: one, end: '05:00'}", "FILE:2: window.start: expected a time"),
    ("window: {start: '01:00'}", "window"),
    ("window: {start: '1:00', end: '05:00'}", "FILE:2: window.start: expected a time"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_window_faults(line: str, message: str, tmp_path: Path) -> None:
    text = NIGHTLY.replace("window: {start: '01:00', end: '05:00'}", line)
    found = load(tmp_path, text)
    assert message in found
    assert found.count("\n") == 0


FURTHER = [
    ("every: 0", "every"),
    ("alarms: 0", "alarms"),
    ("margin: 100 %", "FILE:4: margin: expected a percentage below 100"),
    ("margin: 1", "margin"),
    ("autocorrelation: 1", "autocorrelation"),
    ("qos: --wrap=evil", "FILE:4: qos: expected a name of Slurm"),
    ("qos: a b", "FILE:4: qos: expected a name of Slurm"),
    ("action: reboot", "action"),
    ("spool: relative", "FILE:4: spool: expected an absolute path"),
    ("notify: {metrics: /a/b.txt}", "metrics: expected a path that ends in .prom"),
    ("notify: {webhook: {file: hook}}", "webhook.file: expected an absolute path"),
    ("notify: {mail: {to: [ops]}}", "a mail address"),
    ("caps: {share: much}", "caps.share: expected a percentage"),
    ("evry: 5", "evry"),
]


@pytest.mark.parametrize(("line", "message"), FURTHER)
def test_faults_of_other_keys(line: str, message: str, tmp_path: Path) -> None:
    found = load(tmp_path, f"{NIGHTLY}{line}\n")
    assert found.startswith("FILE:4: ")
    assert message in found
    assert found.count("\n") == 0


def test_a_missing_file_shows_an_example(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match="missing; it declares the nights of lab"):
        load_settings(tmp_path, "lab")


@pytest.mark.parametrize("system", ["lab", "lab-trixie"])
def test_examples_of_the_suite(system: str) -> None:
    settings = load_settings(HOME, system)
    assert settings.action == "recommend"
    assert settings.window.length >= timedelta(hours=1)


WINDOWS = [
    ("01:00", "05:00", "25 04:59", 25),
    ("01:00", "05:00", "25 05:00", None),
    ("01:00", "05:00", "25 00:59", None),
    ("22:00", "05:00", "25 23:00", 25),
    ("22:00", "05:00", "26 04:59", 25),
    ("22:00", "05:00", "26 05:00", None),
]


@pytest.mark.parametrize(("start", "end", "now", "night"), WINDOWS)
def test_window(start: str, end: str, now: str, night: int | None) -> None:
    first, last = parse_time(start), parse_time(end)
    assert first is not None and last is not None
    window = Window(first, last)
    moment = datetime.strptime(f"2026-11-{now}", "%Y-%m-%d %H:%M")
    expected = None if night is None else date(2026, 11, night)
    assert window.night(moment) == expected
    opening = window.next_opening(moment)
    assert timedelta(0) < opening - moment <= timedelta(days=1)
    assert opening.time() == first
    if expected is not None:
        assert window.closing(expected) > moment


def test_two_reservations_do_not_fit(tmp_path: Path) -> None:
    found = load(tmp_path, f"{NIGHTLY}action: reservation\nreservation: night\n")
    assert found.startswith("FILE:4: action: expected recommend or drain")


def test_every_key_is_documented() -> None:
    """The table of docs/nightly.md has all keys, with their defaults."""
    text = (HOME / "docs" / "nightly.md").read_text().partition("\n## Plan")[0]
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", text, re.MULTILINE))
    fields = msgspec.structs.fields(_Nightly)
    notify = [f"notify.{one.name}" for one in msgspec.structs.fields(Notify)]
    caps = {f"caps.{one.name}": one.default for one in msgspec.structs.fields(Caps)}
    top = [one.name for one in fields if one.name != "notify"]
    assert set(rows) == {*top, *notify, *caps}
    defaults = caps | {one.name: one.default for one in fields if not one.required}
    for name, default in defaults.items():
        if isinstance(default, int | float | str):
            stated = rows[name].strip("`")
            assert stated == (default if isinstance(default, str) else f"{default:g}")
