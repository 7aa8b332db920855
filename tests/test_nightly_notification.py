"""Messages of the nights: told once, by channels that may hang or fail."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from email.policy import default
from http.client import InvalidURL
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import OpenerDirector, Request

import pytest
from fake_home import fake_program
from nights_state import (
    ACKNOWLEDGED,
    ALARMS,
    CLOSED,
    NIGHTS,
    OPEN,
    OUT,
    TODAY,
    Modelled,
    alarm,
    modelled,
    night,
)

from seatrial.errors import SeatrialError
from seatrial.nightly import channels
from seatrial.nightly.channels import send_mail, send_webhook
from seatrial.nightly.explanation import ticket
from seatrial.nightly.notification import digest, news_of, notify
from seatrial.nightly.settings import Form, Mail, Notify, Webhook

SECRET = "T0KEN-5ecret"
PATIENCE_S = 0.5
HOSTILE = 'cn1\nopen: cn9 <!channel> @all [x](http://e) ```*_"\x1b[2J'


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "PATIENCE_S", PATIENCE_S)


def in_time(do: Callable[[], Any]) -> Any:
    """Call a function; fail if it takes much longer than the patience."""
    start = time.monotonic()
    try:
        return do()
    finally:
        assert time.monotonic() - start < PATIENCE_S + 5


def refusal(do: Callable[[], Any]) -> str:
    """Return why a channel did not take a message, within its time."""
    with pytest.raises(SeatrialError) as caught:
        in_time(do)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Mail by a program


class Post:
    """A program that takes mail: its script is that of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder / "kept"
        self.mail = Mail(to=("ops@example.org",), sendmail=str(folder / "sendmail"))
        self.script(f"cat >> {self.kept}")

    def script(self, script: str) -> None:
        fake_program(self.folder, "sendmail", script)

    @property
    def mails(self) -> int:
        text = self.kept.read_text() if self.kept.exists() else ""
        return text.count("Auto-Submitted: auto-generated")


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "bin")


@pytest.fixture
def lab(tmp_path: Path, post: Post) -> Modelled:
    return modelled(tmp_path / "lab", notify=Notify(mail=post.mail))


def test_a_mail_has_its_headers(post: Post) -> None:
    send_mail(post.mail, "cn03: 10 % worse", "one\ntwo µs\n")
    mail = message_from_bytes(post.kept.read_bytes(), policy=default)
    assert (mail["To"], mail["From"]) == ("ops@example.org", "ops@example.org")
    assert mail["Subject"] == "cn03: 10 % worse"
    assert mail.get_content() == "one\ntwo µs\n"


def test_a_program_that_hangs_is_left(post: Post) -> None:
    post.script("exec sleep 60")
    assert "not taken within" in refusal(lambda: send_mail(post.mail, "s", "t"))


def test_a_child_with_open_pipes_holds_up_nothing(post: Post) -> None:
    post.script(f"cat >> {post.kept}; sleep 20 & echo $! > {post.folder}/pid")
    in_time(lambda: send_mail(post.mail, "s", "t"))
    with suppress(ProcessLookupError):
        os.kill(int((post.folder / "pid").read_text()), 9)
    assert post.mails == 1


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no such user; exit 67", "ended with status 67: no such user"),
        ("exit 75", "ended with status 75"),
        ("printf 'a\\nb\\033[2J'; exit 1", "ended with status 1: a␊b␛[2J"),
    ],
)
def test_a_program_that_fails_says_why(post: Post, script: str, words: str) -> None:
    post.script(f"cat > /dev/null; {script}")
    assert refusal(lambda: send_mail(post.mail, "s", "t")).endswith(words)


def test_a_missing_program_is_named(post: Post) -> None:
    (post.folder / "sendmail").unlink()
    text = refusal(lambda: send_mail(post.mail, "s", "t"))
    assert text.endswith("bin/sendmail: No such file or directory")


# Servers on loopback


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    """Start servers: each handles one connection, and has a port."""
    sockets: list[socket.socket] = []
    over = threading.Event()

    def start(handle: Callable[[socket.socket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)

        def answer() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    handle(connection)
                    over.wait(30)

        threading.Thread(target=answer, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    over.set()
    for listener in sockets:
        listener.close()


def drip(connection: socket.socket) -> None:
    """Send a byte now and then: each read succeeds, the whole never ends."""
    for _ in range(200):
        connection.sendall(b"2")
        time.sleep(PATIENCE_S / 4)


def by(port: int) -> Mail:
    return Mail(to=("ops@example.org",), smtp=f"127.0.0.1:{port}")


@pytest.mark.parametrize("handle", [lambda connection: None, drip])
def test_a_mail_server_that_hangs_is_left(serve: Any, handle: Any) -> None:
    mail = by(serve(handle))
    text = refusal(lambda: send_mail(mail, "s", "t"))
    assert text.startswith(f"mail by {mail.smtp}: ")


class Smtp:
    """A mail server that offers TLS, and answers each command."""

    def __init__(self, *, starttls: bytes = b"454 not now") -> None:
        self.starttls, self.lines = starttls, list[bytes]()

    def __call__(self, connection: socket.socket) -> None:
        connection.sendall(b"220 here\r\n")
        with connection.makefile("rb") as stream:
            for line in stream:
                self.lines.append(line.strip())
                verb = line.split(b" ")[0].strip().upper()
                answers = {
                    b"EHLO": b"250-here\r\n250 STARTTLS",
                    b"STARTTLS": self.starttls,
                    b"DATA": b"354 go on",
                    b"QUIT": b"221 bye",
                }
                connection.sendall(answers.get(verb, b"250 ok") + b"\r\n")
                if verb == b"QUIT":
                    return
                if verb == b"DATA":
                    self._take(stream)
                    connection.sendall(b"250 taken\r\n")

    def _take(self, stream: Any) -> None:
        for line in stream:
            if line == b".\r\n":
                return
            self.lines.append(line.strip())


def test_a_mail_server_takes_a_mail(serve: Any) -> None:
    server = Smtp()
    send_mail(by(serve(server)), "cn03: worse", "text\n")
    assert b"Subject: cn03: worse" in server.lines
    assert b"STARTTLS" not in server.lines  # loopback needs none


def test_mail_to_another_host_is_encrypted_if_it_offers_that(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "_is_loopback", lambda host: False)
    server = Smtp()
    mail = by(serve(server))
    assert "454" in refusal(lambda: send_mail(mail, "secret", "t"))
    assert b"STARTTLS" in server.lines
    assert b"Subject: secret" not in server.lines


def test_nothing_listens(serve: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "refused" in refusal(lambda: send_mail(by(port), "s", "t"))


class Room(BaseHTTPRequestHandler):
    """A chat room that keeps what it is sent."""

    got: list[Any]
    status, location = 200, ""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, json.loads(content)))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()

    def do_GET(self) -> None:
        self.got.append((self.path, None))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def room() -> Iterator[tuple[type[Room], int]]:
    """A chat room on loopback, and its port."""
    kind = type("OwnRoom", (Room,), {"got": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield kind, server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def webhook(folder: Path, content: str, form: Form = "slack") -> Webhook:
    """Return a webhook whose address is kept as it should be."""
    folder.mkdir(exist_ok=True)
    file = folder / "webhook"
    file.touch(mode=0o600)
    file.write_text(content)
    return Webhook(file=str(file), form=form)


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/{SECRET}\n"


def test_a_chat_room_gets_the_message(tmp_path: Path, room: Any) -> None:
    kind, port = room
    send_webhook(webhook(tmp_path, address(port)), "cn03: worse", "a < b\n")
    assert kind.got == [(f"/{SECRET}", {"text": "```\ncn03: worse\n\na &lt; b\n\n```"})]


def test_a_proxy_never_sees_an_address_of_loopback(
    tmp_path: Path, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, port = room
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    send_webhook(webhook(tmp_path, address(port)), "s", "t")
    assert len(kind.got) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308, 403, 500])
def test_an_answer_that_is_no_success(tmp_path: Path, room: Any, status: int) -> None:
    kind, port = room
    kind.status = status
    kind.location = f"http://127.0.0.1:{port}/elsewhere" if status < 400 else ""
    to = webhook(tmp_path, address(port))
    text = refusal(lambda: send_webhook(to, "s", "t"))
    assert text == f"webhook: the server answered {status}"
    assert len(kind.got) == 1  # no redirection was followed


@pytest.mark.parametrize("handle", [lambda connection: None, drip])
def test_a_chat_room_that_hangs_is_left(
    tmp_path: Path, serve: Any, handle: Any
) -> None:
    to = webhook(tmp_path, address(serve(handle)))
    assert refusal(lambda: send_webhook(to, "s", "t")).startswith("webhook: ")


@pytest.mark.parametrize(
    "content",
    [
        "",
        f"https://example.org/{SECRET}\nhttps://example.org/{SECRET}\n",
        f"https://example.org/{SECRET} x",
        f"https://example.org:port/{SECRET}",
        f"https://example.org:99999/{SECRET}",
        f"https://[::1/{SECRET}",
        f"http://example.org/{SECRET}",
        f"http://127.0.0.1.example.org/{SECRET}",
        f"file:///{SECRET}",
        f"ftp://localhost/{SECRET}",
        f"https:///{SECRET}",
        f"https://exämple.org/{SECRET}",
        SECRET,
    ],
)
def test_an_address_that_is_none_is_not_shown(tmp_path: Path, content: str) -> None:
    to = webhook(tmp_path, content)
    text = refusal(lambda: send_webhook(to, "s", "t"))
    assert text == f"{to.file}: expected one line with an address of https"


@pytest.mark.parametrize(
    "start", ["https://a..b.invalid/", f"https://{'a' * 64}.invalid/", "https://%41/"]
)
def test_no_later_error_shows_the_address(tmp_path: Path, start: str) -> None:
    to = webhook(tmp_path, f"{start}{SECRET}")
    assert refusal(lambda: send_webhook(to, "s", "t")).startswith("webhook: ")


def test_an_unknown_error_is_only_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(opener: object, request: Request, **more: object) -> None:
        raise InvalidURL(f"{request.full_url} is none")

    monkeypatch.setattr(OpenerDirector, "open", fail)
    to = webhook(tmp_path, address(1))
    assert refusal(lambda: send_webhook(to, "s", "t")) == "webhook: InvalidURL"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_an_address_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    to = webhook(tmp_path, f"https://example.org/{SECRET}")
    Path(to.file).chmod(mode)
    assert "`chmod 600` it" in refusal(lambda: send_webhook(to, "s", "t"))


def test_an_address_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = webhook(tmp_path, f"https://example.org/{SECRET}")
    owner = Path(to.file).stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert "that you own" in refusal(lambda: send_webhook(to, "s", "t"))


def test_an_address_behind_a_link_is_refused(tmp_path: Path) -> None:
    to = webhook(tmp_path, f"https://example.org/{SECRET}")
    link = tmp_path / "link"
    link.symlink_to(to.file)
    text = refusal(lambda: send_webhook(Webhook(file=str(link)), "s", "t"))
    assert "no link" in text


# The forms of services


def payload(form: Form, subject: str = HOSTILE, text: str = HOSTILE) -> Any:
    return channels._payload(form, subject, text)


def test_slack_has_no_markup_of_names() -> None:
    (text,) = payload("slack").values()
    assert "<" not in text
    assert (text[:4], text[-4:], text.count("```")) == ("```\n", "\n```", 2)


def test_mattermost_has_all_in_a_code_block() -> None:
    (text,) = payload("mattermost").values()
    assert (text[:4], text[-4:], text.count("```")) == ("```\n", "\n```", 2)
    assert "<!channel>" in text  # it knows no such sign


def test_teams_has_plain_runs_of_text() -> None:
    (attachment,) = payload("teams")["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    title, text = attachment["content"]["body"]
    assert (title["type"], title["inlines"][0]["type"]) == ("RichTextBlock", "TextRun")
    assert (text["type"], text["codeSnippet"]) == ("CodeBlock", HOSTILE)


def test_a_long_message_is_cut_for_a_chat_room(tmp_path: Path, room: Any) -> None:
    kind, port = room
    send_webhook(webhook(tmp_path, address(port), "teams"), "s", "line\n" * 20_000)
    ((_, message),) = kind.got
    assert 10_000 < len(json.dumps(message)) < 28_000
    assert "`seatrial nightly status` has the rest" in json.dumps(message)


# What is told, and when


def told(lab: Modelled, days: int = 0) -> tuple[int, list[str]]:
    """Notify; return how many mails were sent, and the problems."""
    assert lab.notify.mail is not None
    post = Path(lab.notify.mail.sendmail).with_name("kept")
    before = post.read_text().count("Message-ID") if post.exists() else 0
    problems = notify(lab.state(), TODAY + timedelta(days=days))
    after = post.read_text().count("Message-ID") if post.exists() else 0
    return after - before, problems


def test_changes_are_told_once(lab: Modelled) -> None:
    assert told(lab) == (1, [])
    assert dict(lab.events("notified")) == {
        CLOSED.name: "closed",
        ALARMS[1].name: "closed",
        ALARMS[2].name: "open",
        ALARMS[3].name: "open",
        ACKNOWLEDGED.name: "acknowledged",
        OPEN.name: "open",
        f"out-{OUT}": "quarantined",
        "unseen-cn10": "not measured for too long",
        "unseen-fat2": "not measured for too long",
    }
    assert told(lab) == (0, [])


def test_nothing_new_is_no_message(tmp_path: Path, post: Post) -> None:
    lab = Modelled(tmp_path / "lab", Notify(mail=post.mail), alarms=())
    lab.classes = {"batch": ("cn01", "cn02")}
    assert told(lab) == (0, [])
    assert not lab.events("notified")


def test_a_change_of_the_standing_is_told(lab: Modelled, post: Post) -> None:
    told(lab)
    until = str(TODAY + timedelta(days=3))
    lab.note("acknowledged", alarm=OPEN.name, until=until, reason="known")
    assert told(lab) == (1, [])
    assert told(lab) == (0, [])
    assert told(lab, days=4) == (1, [])  # open again
    closed = replace(OPEN, closed=night(NIGHTS))
    lab.alarms = (*ALARMS[:-1], closed)
    assert told(lab, days=4) == (1, [])
    states = [state for name, state in lab.events("notified") if name == OPEN.name]
    assert states == ["open", "acknowledged", "open", "closed"]


def test_a_node_that_comes_back_is_told(lab: Modelled) -> None:
    told(lab)
    lab.note("released", node=OUT, alarm=ACKNOWLEDGED.name, reason="three good nights")
    state = lab.state()
    (news,) = news_of(state, TODAY)
    assert digest(state, [news], TODAY)[0] == f"[seatrial] lab: released: {OUT}"
    assert told(lab) == (1, [])
    assert told(lab) == (0, [])


def test_a_message_about_a_model_machine_says_so(lab: Modelled) -> None:
    measured = lab.state()
    news = news_of(measured, TODAY)
    assert "Model machine." not in digest(measured, news, TODAY)[1]
    model = digest(replace(measured, model=True), news, TODAY)[1]
    assert model.startswith("Model machine. The numbers are made by a model")


def test_a_node_that_is_measured_again_is_told(lab: Modelled) -> None:
    told(lab)
    lab.classes["fat"] = ("fat1",)
    lab.rules = replace(lab.rules, every=100)
    state = lab.state()
    assert {one.state for one in news_of(state, TODAY)} == {"over"}
    assert "measured again: cn10" in digest(state, news_of(state, TODAY), TODAY)[1]


def test_unseen_nodes_are_not_told_in_the_first_nights(tmp_path: Path) -> None:
    lab = Modelled(tmp_path / "lab", alarms=(), nights=3)
    assert not news_of(lab.state(), (night(2)).astype(object))
    assert news_of(lab.state(), (night(3)).astype(object))


def test_what_no_channel_took_is_told_the_next_night(lab: Modelled, post: Post) -> None:
    post.script("exit 75")
    sent, (problem,) = told(lab)
    assert (sent, problem.startswith("notification: mail: ")) == (0, True)
    assert not lab.events("notified")
    post.script(f"cat >> {post.kept}")
    assert told(lab) == (1, [])
    assert told(lab) == (0, [])


def test_one_channel_is_enough(lab: Modelled, post: Post, tmp_path: Path) -> None:
    bad = webhook(tmp_path / "w", "no address")
    lab.notify = Notify(mail=post.mail, webhook=bad)
    sent, (problem,) = told(lab)
    assert (sent, "expected one line" in problem) == (1, True)
    assert told(lab) == (0, [])


def test_without_a_channel_nothing_waits(lab: Modelled) -> None:
    lab.notify = Notify()
    assert notify(lab.state(), TODAY) == []
    assert not news_of(lab.state(), TODAY)


# The message


def text_of(lab: Modelled) -> tuple[str, str]:
    state = lab.state()
    return digest(state, news_of(state, TODAY), TODAY)


def test_a_message_explains_open_alarms_and_counts_the_rest(lab: Modelled) -> None:
    subject, text = text_of(lab)
    assert subject == "[seatrial] lab: fat[1-2]: 10.0 % worse in bw_4MiB and 2 more"
    for words in (
        "onset: 2026-03-17 to 2026-03-19",
        "ring bw_4MiB (mpi): 100 MB/s before, 90 MB/s after: 10.0 % worse",
        "they share: leaf l3",
        "limits of a night: ring bw_4MiB: slow",
        "measure it again: seatrial nightly retest lab cn03",
        "ReservationName=seatrial-cn03",
        "these nodes lost more than the unchanged ones",
        f"\nclosed: {CLOSED.name}\n",
        f"\nacknowledged: {ACKNOWLEDGED.name}\n",
        "\nquarantined: cn07\n",
        "\nnot measured for too long: cn10,fat2\n",
        "expected false alarms: 2.5 a year",
    ):
        assert words in text, words
    assert f"{CLOSED.name}: one node" not in text


def test_a_message_has_a_limited_length(lab: Modelled) -> None:
    lab.alarms = tuple(alarm("node", 30, [f"x{number}"]) for number in range(100))
    subject, text = text_of(lab)
    assert subject.endswith("and 99 more")
    assert "and 80 more alarms" in text
    long = "f" * 5000
    lab.alarms = (alarm("common", 30, [], losses=(), faults=(long,)),)
    assert len(text_of(lab)[0]) <= 150


def test_a_report_is_a_subject_without_alarms(lab: Modelled) -> None:
    lab.alarms = (ALARMS[1],)
    subject, text = text_of(lab)
    assert subject == "[seatrial] lab: cn[01-10]: 10.0 % worse in bw_4MiB"
    assert "state:" not in text


def test_names_make_no_lines_and_no_commands(lab: Modelled) -> None:
    lab.alarms = (
        alarm("node", 30, [HOSTILE]),
        alarm("common", 31, [], shared=HOSTILE, losses=(), faults=(HOSTILE,)),
        replace(OPEN, name="2026-04-09-leafS1;reboot"),
    )
    subject, text = text_of(lab)
    assert subject.isprintable()
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\nopen: cn9" not in text
    assert "ack lab '2026-04-09-leafS1;reboot' --until" in text


def test_a_ticket_is_markdown(lab: Modelled) -> None:
    lines = ticket(lab.state(), OPEN)
    assert lines[0].startswith("# lab: cn03: ")
    assert "    seatrial nightly retest lab cn03" in lines
    text = "\n".join(ticket(lab.state(), ALARMS[3]))
    assert "| metric | before | after | worse by |" in text
    assert "- Shared: leaf l3." in text
    hostile = alarm("common", 30, [HOSTILE], shared=HOSTILE, losses=())
    for line in ticket(lab.state(), hostile):
        assert "\n" not in line
        assert "](" not in line.replace("\\](", "")
