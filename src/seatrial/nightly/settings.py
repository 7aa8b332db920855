"""The declared nights of a site: reference-data/SYSTEM/nightly.yaml."""

import re
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from seatrial.errors import SeatrialError
from seatrial.history.rules import Rules
from seatrial.model.yaml_file import Count, Place, Text, YamlFile
from seatrial.nightly.window import Window, parse_time
from seatrial.paths import criteria_file

FILE = "nightly.yaml"
"""Name of the file beside the criteria of a system."""

OFF = "nightly.off"
"""Name of the off-switch beside it: while this file exists, no node is changed."""

EXAMPLE = """\
schema: 1
window: {start: '01:00', end: '05:00'}  # local time of the login node
every: 5                                # every node within 5 nights
node_hours: 40                          # a night, at most
alarms: 1                               # false alarms a year, expected at most
"""

Mode = Literal["recommend", "reservation", "drain"]
Form = Literal["slack", "mattermost", "teams"]
Name = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][\w.-]*$", description="a name of Slurm")
]
_Positive = Annotated[float, Meta(gt=0, description="a number above 0")]
_Nice = Annotated[int, Meta(ge=0, le=2**31 - 4, description="a whole number >= 0")]
_Correlation = Annotated[
    float, Meta(ge=0, lt=1, description="a number from 0, below 1")
]
_Address = Annotated[
    str, Meta(pattern=r"^[^@\s,]+@[^@\s,]+$", description="a mail address")
]
_Server = Annotated[
    str, Meta(pattern=r"^[^\s:/]+:[0-9]{1,5}$", description="host:port")
]
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


class Caps(Struct, forbid_unknown_fields=True, frozen=True):
    """Most nodes to take out: in a night, and at once; `share` is of the class."""

    night: Count = 1
    at_once: Count = 8
    share: str = "2 %"


class Mail(Struct, forbid_unknown_fields=True, frozen=True, rename={"sender": "from"}):
    """Mail to some addresses, by a `smtp` server or by the program `sendmail`."""

    to: Annotated[tuple[_Address, ...], Meta(min_length=1)]
    sender: _Address | None = None
    smtp: _Server | None = None
    sendmail: Text = "/usr/sbin/sendmail"


class Webhook(Struct, forbid_unknown_fields=True, frozen=True):
    """A chat room; `file` has its address, which is a secret: mode 0600."""

    file: Text
    form: Form = "slack"


class Notify(Struct, forbid_unknown_fields=True, frozen=True):
    """Channels of notification; `metrics` is a file for Prometheus' node exporter."""

    mail: Mail | None = None
    webhook: Webhook | None = None
    metrics: Text | None = None


class _Window(Struct, forbid_unknown_fields=True):
    start: Any
    end: Any


class _Nightly(Struct, forbid_unknown_fields=True, kw_only=True):
    schema: Literal[1]
    window: _Window
    node_hours: _Positive
    every: Count = 5
    alarms: _Positive = 1.0
    margin: str = "1 %"
    autocorrelation: _Correlation = 0.3
    partition: Name | None = None
    qos: Name | None = None
    account: Name | None = None
    reservation: Name | None = None
    nice: _Nice = 1000
    action: Mode = "recommend"
    caps: Caps = msgspec.field(default_factory=Caps)
    spool: Text | None = None
    notify: Notify = msgspec.field(default_factory=Notify)


@dataclass(frozen=True)
class Settings:
    """The declared nights of a system.

    `node_hours` are the budget of a night. `driver` are options of Slurm for the job
    that drives the night, `jobs` those for its measurements; `reservation` of the site
    has the nodes to measure, '' without. `action` is what happens to a bad node;
    `share` of a class is the most that may be out at once. `spool` is the folder of
    the agent on the controller, None if the driver itself may change nodes.
    """

    file: Path
    window: Window
    node_hours: float
    rules: Rules
    driver: tuple[str, ...]
    jobs: tuple[str, ...]
    reservation: str = ""
    action: Mode = "recommend"
    caps: Caps = field(default_factory=Caps)
    share: float = 0.02
    spool: Path | None = None
    notify: Notify = field(default_factory=Notify)

    @property
    def off(self) -> bool:
        """Return True if the off-switch is set: nothing may be done to nodes."""
        return self.file.with_name(OFF).exists()


def settings_file(home: Path, system: str) -> Path:
    """Return the path of the declared nights of a system."""
    return criteria_file(home, system).with_name(FILE)


def load_settings(home: Path, system: str) -> Settings:
    """Read the nights of a system; SeatrialError with file and line for a fault."""
    path = settings_file(home, system)
    if not path.is_file():
        raise SeatrialError(
            f"{path}: missing; it declares the nights of {system}, for example:\n"
            f"{EXAMPLE.rstrip()}"
        )
    return _Reading(path).settings()


class _Reading:
    """A file of nights while it is read."""

    def __init__(self, path: Path) -> None:
        self.yaml = YamlFile(path)
        self.content = self.yaml.convert(_Nightly)

    def settings(self) -> Settings:
        """Return the settings; SeatrialError with file and line for a fault."""
        content, read = self.content, self.yaml
        window = Window(*(self._time(key) for key in ("start", "end")))
        if not window.length:
            read.expected("an end after the start", str(window), ("window",))
        rules = Rules(
            alarms_a_year=content.alarms,
            every=content.every,
            margin=self._share(content.margin, ("margin",)),
            autocorrelation=content.autocorrelation,
            most_suspects=content.caps.night,
        )
        notify, spool = content.notify, content.spool
        if notify.metrics is not None and not notify.metrics.endswith(".prom"):
            place = ("notify", "metrics")
            read.expected("a path that ends in .prom", notify.metrics, place)
        paths: dict[Place, str | None] = {("spool",): spool}
        paths["notify", "metrics"] = notify.metrics
        if notify.mail is not None:
            paths["notify", "mail", "sendmail"] = notify.mail.sendmail
        if notify.webhook is not None:
            paths[("notify", "webhook", "file")] = notify.webhook.file
        if content.action == "reservation" and content.reservation:
            words = "recommend or drain: two reservations cannot share a job"
            read.expected(words, content.action, ("action",))
        for place, path in paths.items():
            if path is not None and not Path(path).is_absolute():
                read.expected("an absolute path", path, place)
        return Settings(
            file=self.yaml.path,
            window=window,
            node_hours=content.node_hours,
            rules=rules,
            driver=_options(partition=content.partition, account=content.account),
            jobs=_options(
                qos=content.qos,
                account=content.account,
                reservation=content.reservation,
                nice=str(content.nice),
            ),
            reservation=content.reservation or "",
            action=content.action,
            caps=content.caps,
            share=self._share(content.caps.share, ("caps", "share")),
            spool=None if spool is None else Path(spool),
            notify=notify,
        )

    def _time(self, key: str) -> time:
        """Return a time of the window as written: YAML takes 01:00 for a number."""
        place = ("window", key)
        text = self.yaml.texts.get(place, "")
        known = parse_time(text)
        return known or self.yaml.expected("a time, such as '01:00'", text, place)

    def _share(self, text: str, place: Place) -> float:
        match = _PERCENT.fullmatch(text)
        if match is None or float(match[1]) >= 100:
            self.yaml.expected("a percentage below 100, such as 1 %", text, place)
        return float(match[1]) / 100


def _options(**values: str | None) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in values.items() if value)
