"""A finding of the doctor."""

import re
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Diagnosis:
    """One finding: a topic, its subject (a class, a stack or the login node)."""

    topic: str
    subject: str
    verdict: Verdict
    text: str
    remedy: str = ""


def finding(
    topic: str, subject: str, *, holds: bool, text: str, remedy: str, warn: bool = False
) -> Diagnosis:
    """Return a finding; `warn`: a run can do without it."""
    if holds:
        return Diagnosis(topic, subject, "ok", text)
    return Diagnosis(topic, subject, "warn" if warn else "fail", text, remedy)


def version_of(text: str) -> tuple[int, ...]:
    """Return the first version number of a text; () without one."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def number_of(text: str) -> int:
    """Return a decimal number; 0 for any other text."""
    return int(text) if text.isdecimal() else 0
