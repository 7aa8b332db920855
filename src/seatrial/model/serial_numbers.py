"""Serial numbers, and the texts that firmware has in place of one."""

import re

_WORDS = (
    "to be filled by oem",
    "default string",
    "not specified",
    "not available",
    "not applicable",
    "not present",
    "system serial number",
    "chassis serial number",
    "base board serial number",
    "serial number",
    "none",
    "null",
    "na",
    "oem",
    "unknown",
    "unspecified",
    "empty",
    "invalid",
)
_FILLED = re.compile(r"[0\W_]*|[xX\W_]+|0?123456789\w*")
"""Zeros, x and punctuation only, or the digits in their order."""


def is_placeholder(text: str) -> bool:
    """Return True if firmware has this text in place of a serial number."""
    words = " ".join(re.sub(r"[./]", "", text).casefold().split())
    return words in _WORDS or _FILLED.fullmatch(text) is not None
