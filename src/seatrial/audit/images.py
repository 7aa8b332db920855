"""Firmware images on the control machine, before the first node is touched."""

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.hardware_types import Firmware
from seatrial.model.yaml_file import Place
from seatrial.parsers.errors import ParseError
from seatrial.parsers.hardware.mstflint import parse_mstflint_query

_TIMEOUT_S = 120


def image_path(declaration: HardwareFile, image: Firmware) -> Path:
    """Return the path of an image; a relative one starts at the inventory's folder."""
    inventory = declaration.yaml.path.parents[2]
    return inventory / (image.file or "")


def check_images(declaration: HardwareFile) -> list[Path]:
    """Check all images of the models in use, and return their paths.

    Raises SeatrialError with file and line if one is missing, has another checksum, or
    is not what it is declared to be: mstflint reads PSID and version of the image
    itself, and verifies it.
    """
    slots = declaration.hardware.hca_slots.values()
    used = {slot.psid for of_class in slots for slot in of_class}
    checked = []
    for psid, place, image in _images(declaration):
        if psid in used and image.file:
            path = image_path(declaration, image)
            _check_file(declaration, (*place, "file"), path, image)
            _check_content(declaration, (*place, "file"), path, psid, image)
            checked.append(path)
    return checked


def _images(declaration: HardwareFile) -> Iterator[tuple[str, Place, Firmware]]:
    for psid, model in declaration.hardware.hca_models.items():
        place = ("hca_models", psid)
        if model.firmware:
            yield psid, (*place, "firmware"), model.firmware
        for index, image in enumerate(model.previous):
            yield psid, (*place, "previous", index), image


def _check_file(
    declaration: HardwareFile, place: Place, path: Path, image: Firmware
) -> None:
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        declaration.yaml.refuse(place, f"{path}: {error.strerror}.")
    if digest != image.sha256:
        declaration.yaml.refuse(
            place, f"{path} has SHA-256 {digest}, declared is {image.sha256}."
        )


def _check_content(
    declaration: HardwareFile, place: Place, path: Path, psid: str, image: Firmware
) -> None:
    try:
        query = parse_mstflint_query(_mstflint(path, "-qq", "query"))
    except ParseError as error:
        declaration.yaml.refuse(place, f"{path} is no image: {error}.")
    found = (query.psid, query.stored_version)
    if found != (psid, image.version):
        declaration.yaml.refuse(
            place,
            f"{path} is an image of {found[0]}, version {found[1]}; declared is "
            f"{psid}, version {image.version}.",
        )
    verified = _mstflint(path, "verify")
    if "FW image verification succeeded" not in verified:
        last = (verified.strip().splitlines() or ["no output"])[-1]
        declaration.yaml.refuse(place, f"{path}: mstflint does not verify it: {last}.")


def _mstflint(path: Path, *arguments: str) -> str:
    """Return what mstflint says of an image; '-E- ...' if it cannot be asked."""
    try:
        done = subprocess.run(
            ["mstflint", "-i", str(path), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return "-E- mstflint is not installed on this machine\n"
    except OSError as error:
        return f"-E- mstflint: {error.strerror}\n"
    except subprocess.TimeoutExpired:
        return f"-E- mstflint: no end within {_TIMEOUT_S} s\n"
    if done.returncode and "-E-" not in done.stdout:
        return f"-E- mstflint: exit status {done.returncode}\n"
    return done.stdout
