"""Packed runs that a command opened: their files, in place of temporary folders."""

import re

import click

PACKS = "seatrial.packs"
"""Key of click's `meta`: the file of each packed run by the folder where it is open."""


def with_pack_names(text: str) -> str:
    """Replace in a text each folder of an opened pack, with its run, by the file."""
    context = click.get_current_context(silent=True)
    packs: dict[str, str] = context.meta.get(PACKS, {}) if context else {}
    for folder, file in packs.items():
        run = re.compile(rf"{re.escape(folder)}(?:/[^/\s:;,]+)?")
        text = run.sub(file.replace("\\", r"\\"), text)
    return text
