"""The ways to tell people: mail by sendmail or SMTP, and the webhook of a chat room.

None of them can hold up a night: each has ten seconds.
"""

import json
import os
import smtplib
import stat
import subprocess
import urllib.request
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from seatrial.errors import SeatrialError
from seatrial.limits import YAML_SIZE
from seatrial.nightly.settings import Form, Mail, Webhook
from seatrial.output import one_line
from seatrial.plain_files import read_plain

PATIENCE_S = 10.0
_SECRET = 0o077
_MOST_SAID = 1000
_MOST_TEXT = 15_000
"""Characters of a message in a chat room: Teams refuses more than 28 KB."""


def send_mail(mail: Mail, subject: str, text: str) -> None:
    """Send a mail; SeatrialError if it is not taken within ten seconds."""
    message = EmailMessage()
    message["To"] = ", ".join(mail.to)
    message["From"] = mail.sender or mail.to[0]
    message["Subject"] = subject
    message["Date"] = formatdate(localtime=True)
    message["Message-ID"] = make_msgid(domain="seatrial")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    if mail.smtp is not None:
        _in_time(f"mail by {mail.smtp}", lambda: _by_smtp(str(mail.smtp), message))
        return
    _by_program(mail.sendmail, message.as_bytes())


def _by_program(program: str, message: bytes) -> None:
    # Not by pipes: a child that sendmail leaves behind would keep them open.
    with TemporaryFile() as said:
        try:
            done = subprocess.run(
                [program, "-oi", "-t"],
                input=message,
                stdout=said,
                stderr=said,
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _late(program) from None
        except OSError as error:
            raise SeatrialError(f"mail: {program}: {error.strerror}") from error
        if done.returncode:
            said.seek(0)
            problem = one_line(said.read(_MOST_SAID).decode(errors="replace").strip())
            reason = f"{program} ended with status {done.returncode}"
            raise SeatrialError(": ".join(filter(None, ("mail", reason, problem))))


def _by_smtp(server: str, message: EmailMessage) -> None:
    host, _, port = server.rpartition(":")
    with smtplib.SMTP(host, int(port), timeout=PATIENCE_S) as connection:
        connection.ehlo_or_helo_if_needed()  # asks for the extensions
        if connection.has_extn("starttls") and not _is_loopback(host):
            connection.starttls()
        connection.send_message(message)


def send_webhook(webhook: Webhook, subject: str, text: str) -> None:
    """Send a message to a chat room; SeatrialError if it is not taken in ten seconds.

    The address is a secret, and no message of ours has it.
    """
    address = _address(Path(webhook.file))
    request = urllib.request.Request(
        address,
        json.dumps(_payload(webhook.form, subject, _cut(text))).encode(),
        {"Content-Type": "application/json"},
    )
    handlers: list[Any] = [_NoRedirect]
    if urlsplit(address).scheme == "http":
        handlers.append(urllib.request.ProxyHandler({}))  # loopback needs none
    opener = urllib.request.build_opener(*handlers)

    def send() -> None:
        try:
            opener.open(request, timeout=PATIENCE_S).close()
        except HTTPError as error:
            raise SeatrialError(f"the server answered {error.code}") from None
        except URLError as error:
            raise SeatrialError(str(error.reason)) from None

    _in_time("webhook", send)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: it could lead anywhere."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        """Return no other request."""


def _address(file: Path) -> str:
    """Read the address of a webhook; SeatrialError if others may read it, too."""
    text = read_plain(file, YAML_SIZE).decode(errors="replace").strip()
    state = file.stat()
    if state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & _SECRET:
        raise SeatrialError(
            f"{file}: expected a file that you own and nobody else can read: "
            "`chmod 600` it"
        )
    if not _is_safe(text):
        raise SeatrialError(f"{file}: expected one line with an address of https")
    return text


def _is_safe(address: str) -> bool:
    """Check an address, so that no later error shows a part of it."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or not address.isascii() or not address.isprintable() or " " in address:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cut(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}\n... `seatrial nightly status` has the rest\n"


def _payload(form: Form, subject: str, text: str) -> dict[str, Any]:
    """Return the message as the service expects it.

    Code blocks keep its lines, and no name in it is markup or calls people.
    """
    if form in ("slack", "mattermost"):
        safe = f"{subject}\n\n{text}".replace("```", "'''")
        if form == "slack":  # its three signs of markup
            for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
                safe = safe.replace(sign, name)
        return {"text": f"```\n{safe}\n```"}
    title = {"type": "TextRun", "text": subject, "weight": "bolder"}
    blocks = [
        {"type": "RichTextBlock", "inlines": [title]},
        {"type": "CodeBlock", "codeSnippet": text, "language": "PlainText"},
    ]
    card = {"type": "AdaptiveCard", "version": "1.5", "body": blocks}
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _in_time(what: str, send: Callable[[], None]) -> None:
    """Call `send`; SeatrialError if it fails, or takes longer than ten seconds.

    A time limit of each read would not do: a server may send a byte now and then.
    """
    problems: list[Exception] = []

    def attempt() -> None:
        try:
            send()
        except Exception as error:
            problems.append(error)

    thread = Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if thread.is_alive():
        raise _late(what)
    for error in problems:
        known = isinstance(error, SeatrialError | OSError | smtplib.SMTPException)
        reason = str(error) if known and str(error) else type(error).__name__
        raise SeatrialError(f"{what}: {one_line(reason)}") from None


def _late(what: str) -> SeatrialError:
    return SeatrialError(f"{what}: not taken within {PATIENCE_S:.0f} s")
