"""Find or fetch release archives, on the control machine.

Usage: find_archives.py PINS KEPT FOLDER FEATURE...

PINS is archives.yml or a file like it. KEPT is the folder that keeps fetched archives.
FOLDER is the user's folder of archives, or empty: then archives come from KEPT, from
their address, or from a source package of Debian.
Prints a JSON list with an item for each feature: its `archive`, or the `reason` why
there is none. Exits with 1 and one sentence if the user's folder has an archive of
unknown content.
"""

import hashlib
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

CONNECT_S = 10
APT_S = 120
FETCH_S = 300
TRIES = 3


class RefusedError(Exception):
    """An archive of unknown content in the user's folder."""


def sha256_of(file: Path) -> str:
    """Compute the SHA-256 of a file as hexadecimal digits."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def name_of(pin: dict[str, Any]) -> str:
    """Return the file name of a pinned archive."""
    return urllib.parse.unquote(pin["url"]).rpartition("/")[2]


def listed_sums(folder: Path) -> dict[str, str]:
    """Read SHA256SUMS of a folder; empty if there is none."""
    file = folder / "SHA256SUMS"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    lines = re.findall(r"^([0-9a-fA-F]{64}) [ *](?:\./)?(.+)$", text, re.MULTILINE)
    return {name: digest.lower() for digest, name in lines}


def from_folder(pin: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the archive of the user's folder, whose content is pinned or listed."""
    if not folder.is_dir():
        raise RefusedError(
            f"{folder}: no such folder; expected the one with release archives; change "
            "SEATRIAL_ARCHIVES"
        )
    pinned = name_of(pin)
    names = [file.name for file in sorted(folder.iterdir()) if file.is_file()]
    matches = {n: m[1] for n in names if (m := re.fullmatch(pin["names"], n))}
    if not matches:
        lacks = f"no {pin['name']}: {folder} has no {pinned}"
        return {"reason": f"{lacks}; {remedy(pinned)}"}
    if len(matches) > 1 and pinned not in matches:
        raise RefusedError(
            f"{folder}: expected one archive of the {pin['name']}, got "
            f"{', '.join(matches)}; remove all but one"
        )
    name = pinned if pinned in matches else next(iter(matches))
    digest, sums = sha256_of(folder / name), listed_sums(folder)
    known = {item["sha256"]: item["version"] for item in (pin, pin.get("debian", pin))}
    if digest not in known and digest != sums.get(name):
        wanted = sums.get(name) or f"{pin['sha256']} ({pinned}) or a line in SHA256SUMS"
        raise RefusedError(
            f"{folder / name}: expected the SHA-256 {wanted}, got {digest}; fetch the "
            f"archive again, or list it in {folder / 'SHA256SUMS'} if you trust it"
        )
    is_release = digest in known
    return {
        "archive": str(folder / name),
        "version": known.get(digest, matches[name]),
        "sha256": digest,
        "origin": "release" if is_release else "user",
    }


def remedy(name: str) -> str:
    """Describe the ways to an archive."""
    return (
        f"try again where the internet can be reached, or put {name} into a folder and "
        "name it in SEATRIAL_ARCHIVES"
    )


def fetch(url: str, file: Path, connected: threading.Event) -> None:
    """Fetch a file; after a transfer that broke off, try again."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(url, timeout=CONNECT_S) as answer:
                connected.set()
                expected = answer.headers.get("Content-Length")
                with partial.open("wb") as out:
                    while block := answer.read(1 << 16):
                        out.write(block)
            if expected and partial.stat().st_size != int(expected):
                raise ConnectionError("the transfer broke off")
            partial.replace(file)
        except (OSError, http.client.HTTPException):
            partial.unlink(missing_ok=True)
            if not connected.is_set() or not left:
                raise
            time.sleep(2)
        else:
            return


class Download(threading.Thread):
    """Fetch a pinned archive beside the other one."""

    def __init__(self, pin: dict[str, Any], kept: Path) -> None:
        """Prepare the fetch of the archive of `pin` into the folder `kept`."""
        super().__init__(daemon=True)  # a name server that hangs must not stop the exit
        self.pin = pin
        self.file = kept / name_of(pin)
        self.connected = threading.Event()
        self.problem = f"no answer within {CONNECT_S} s"

    def run(self) -> None:
        """Fetch, and keep the archive if it has the pinned content."""
        if self.is_kept():
            self.connected.set()
            return
        try:
            fetch(self.pin["url"], self.file, self.connected)
        except (OSError, http.client.HTTPException) as error:
            self.problem = str(getattr(error, "reason", None) or error)
            return
        if not self.is_kept():
            self.problem = f"it sends the SHA-256 {sha256_of(self.file)}"
            self.file.unlink()

    def is_kept(self) -> bool:
        """Return True if the archive is there, with the pinned content."""
        return self.file.is_file() and sha256_of(self.file) == self.pin["sha256"]

    def result(self, started: float) -> dict[str, Any]:
        """Wait for the end, shortly for an answer; return archive or reason."""
        until = started + CONNECT_S
        while self.is_alive() and time.monotonic() < until:
            self.join(0.1)
            if self.connected.is_set():
                until = started + FETCH_S
        pin = self.pin
        if self.is_alive() or not self.is_kept():
            url, name = pin["url"], self.file.name
            cannot = f"{url} cannot be fetched: {self.problem}"
            return {"reason": f"no {pin['name']}: {cannot}; {remedy(name)}"}
        return {
            "archive": str(self.file),
            "version": pin["version"],
            "sha256": pin["sha256"],
            "origin": "release",
        }


def everywhere(pins: dict[str, dict[str, Any]], kept: Path) -> dict[str, Any]:
    """Return an archive of each pin: kept, else upstream's, else Debian's source."""
    sources = {f: pin["debian"] for f, pin in pins.items() if "debian" in pin}
    found = {f: item for f, s in sources.items() if (item := kept_source(s, kept))}
    started = time.monotonic()
    downloads = {f: Download(pins[f], kept) for f in pins if f not in found}
    for download in downloads.values():
        download.start()
    found |= {f: download.result(started) for f, download in downloads.items()}
    for feature, source in sources.items():
        if "archive" not in found[feature] and fetch_source(source, kept):
            found[feature] = kept_source(source, kept) or found[feature]
    return found


def kept_source(source: dict[str, Any], kept: Path) -> dict[str, Any] | None:
    """Return the archive of a source package of Debian if it is kept."""
    file = kept / source["file"]
    if not file.is_file() or sha256_of(file) != source["sha256"]:
        return None
    item = {"archive": str(file), "origin": "release"}
    return {**item, "version": source["version"], "sha256": source["sha256"]}


def fetch_source(source: dict[str, Any], kept: Path) -> bool:
    """Fetch the archive of a source package by apt-get, from the machine's mirrors.

    apt's own lists stay as they are. Returns False if this is not Debian, or if the
    mirror does not answer.
    """
    if not shutil.which("apt-get"):
        return False
    asked = ["apt-get", "indextargets", "Created-By: Packages", "Origin: Debian"]
    form = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
    mirrors = subprocess.run(
        [*asked, "--format", form], capture_output=True, text=True, check=False
    ).stdout
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lists" / "partial").mkdir(parents=True)
        lines = sorted({*mirrors.splitlines()})
        (folder / "sources.list").write_text("".join(f"{line}\n" for line in lines))
        options = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "APT::Sandbox::User": "",
            "Acquire::Retries": 0,
            "Acquire::http::Timeout": CONNECT_S,
            "Acquire::https::Timeout": CONNECT_S,
        }
        apt = ["apt-get", "-qq", *(f"-o{key}={v}" for key, v in options.items())]
        source_words = ["source", "--download-only", "--tar-only", source["package"]]
        for words in (["update"], source_words):
            try:
                subprocess.run(
                    [*apt, *words],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=APT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return False
        file = folder / source["file"]
        if not file.is_file():
            return False
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, kept / f"{file.name}.partial")
        (kept / f"{file.name}.partial").replace(kept / file.name)
    return True


def main(pins: str, kept: str, folder: str, *features: str) -> None:
    """Print the archives of all features."""
    known = yaml.safe_load(Path(pins).read_text(encoding="utf-8"))
    if folder:
        found = {f: from_folder(known[f], Path(folder).resolve()) for f in features}
    else:
        found = everywhere({f: known[f] for f in features}, Path(kept))
    common = ("name", "version", "sha256")
    archives = [
        {"feature": f, **{key: known[f][key] for key in common}, **found[f]}
        for f in features
    ]
    print(json.dumps(archives))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except RefusedError as error:
        sys.exit(str(error))
