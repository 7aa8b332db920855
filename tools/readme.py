"""Write what the README shows of the suite itself; `make format` does it.

The catalogue of checks, the comparisons of the papers, and the pictures: these are
taken of `seatrial demo` by headless Chromium, and only when a page has changed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from seatrial import paths
from seatrial.bakeoff.compare import compare
from seatrial.bakeoff.comparison import Claim, Comparison
from seatrial.bakeoff.sides import open_sides
from seatrial.catalogue import catalogue, format_catalogue
from seatrial.published import load_published

CATALOGUE = re.compile(r"(?<=^## What is checked\n\n)(\|.*\n)+", re.MULTILINE)
PAPERS = re.compile(r"(?<=^<!-- published -->\n)(.*\n)*?(?=<!-- /published -->)", re.M)
COMPARED = (
    ("mt23108-pcix", "mt25208-pcie"),
    ("infinihost3-ddr", "connectx-ddr"),
    ("qlogic7300-qdr", "connectx3-qdr"),
    ("clovertown-ddr", "nehalem-ddr", "nehalem-qdr"),
    ("memfree-infiniband", "ne010e-iwarp", "myri-10g"),
)
"""The systems of each paper, the older or slower one first."""

PICTURES = {
    "example.png": ("slow-link/report.html", 1280, 900),
    "comparison.png": ("bakeoff/compare.html", 1280, 1000),
}
"""The page of the demo, and what of it is shown: width and height in px."""

SOURCES = "pictures.json"
"""Beside the pictures: the SHA-256 of the page of each."""


def published_table(home: Path) -> str:
    """Lay out what follows from the numbers of each paper, and whether it agrees."""
    published = load_published(paths.published_dir(home))
    lines = [
        "| paper | better than the first | of it the paper says |",
        "|---|---|---|",
    ]
    for names in COMPARED:
        texts = [f"published:{name}" for name in names]
        entrants = open_sides(texts, Path, lambda: published)
        found = compare(entrants, published=published)
        paper = published.papers[published.systems[names[0]].paper]
        authors = f"{paper.authors[0].split()[-1]} et al. {paper.year}"
        lines.append(
            f"| {authors}: {', '.join(names)} | {_groups(found)} | "
            f"{_claims(found.claims)} |"
        )
    return "\n".join(lines) + "\n"


def _groups(found: Comparison) -> str:
    said = []
    for at, side in enumerate(found.sides[1:], 1):
        ratios = [(group.name, group.ratios[at]) for group in found.groups]
        each = ", ".join(
            f"{name} {ratio.value:.2f}" for name, ratio in ratios if ratio is not None
        )
        said.append(f"{side.name}: {each}" if len(found.sides) > 2 else each)
    return "; ".join(said)


def _claims(claims: tuple[Claim, ...]) -> str:
    judged = [each for each in claims if each.agrees is not None]
    agree = sum(each.agrees is True for each in judged)
    rest = len(claims) - len(judged)
    said = (
        f"{agree} of {len(judged)} that follow agree" if judged else "nothing follows"
    )
    return said + (f", {rest} cannot be computed" if rest else "")


def page_digest(page: Path) -> str:
    """Give the SHA-256 of a page."""
    return hashlib.sha256(page.read_bytes()).hexdigest()


def pictures(home: Path) -> None:
    """Take the pictures whose pages have changed."""
    known_file = home / "reports" / SOURCES
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        demo(home, Path(folder))
        digests = {
            name: page_digest(Path(folder, page))
            for name, (page, *_) in PICTURES.items()
        }
        for name, (page, width, height) in PICTURES.items():
            if digests[name] != known.get(name):
                _picture(Path(folder, page), home / "reports" / name, width, height)
    known_file.write_text(json.dumps(digests, indent=1) + "\n")


def demo(home: Path, folder: Path) -> None:
    """Write the pages of the demo into a folder."""
    subprocess.run(
        [Path(sys.executable).with_name("seatrial"), "demo", "--out", folder],
        env={**os.environ, "SEATRIAL_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _picture(page: Path, file: Path, width: int, height: int) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit(f"{file} is older than its page; its picture needs chromium")
    subprocess.run(
        [
            *(chromium, "--headless=new", "--no-sandbox", "--hide-scrollbars"),
            *("--disable-gpu", "--virtual-time-budget=20000"),
            *(f"--window-size={width},{height}", f"--screenshot={file}"),
            page.as_uri(),
        ],
        stderr=subprocess.DEVNULL,
        check=True,
    )
    print(file)


def main() -> None:
    """Replace both tables and the pictures; nothing else is touched."""
    home = paths.home()
    file = home / "README.md"
    text = file.read_text(encoding="utf-8")
    checks = catalogue(paths.checks_dir(home), home)
    for pattern, table in (
        (CATALOGUE, format_catalogue(checks, "markdown")),
        (PAPERS, published_table(home)),
    ):
        place = pattern.search(text)
        if place is None:
            raise SystemExit(f"{file}: expected a place for {pattern.pattern}")
        text = text[: place.start()] + table + text[place.end() :]
    file.write_text(text, encoding="utf-8")
    pictures(home)


if __name__ == "__main__":
    main()
