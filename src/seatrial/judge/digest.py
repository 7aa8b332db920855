"""The digest of a judgement: the same on any machine, and in newer versions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

_DIGITS = 9
"""Significant digits: further digits differ between machines."""

_LATER = ("waivers", "accepted")
"""Names that the first versions lacked: they count if they have a value."""


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of records, texts and numbers."""
    text = json.dumps(_canonical(content), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Convert numbers to text of nine digits, and records to dicts.

    asdict() copies its content: seconds for a large machine.
    """
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, Mapping):
        return {
            key: _canonical(item)
            for key, item in value.items()
            if item or key not in _LATER
        }
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value
