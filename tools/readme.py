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
from seatrial.checks.catalogue import catalogue, format_catalogue
from seatrial.compare.compare import compare
from seatrial.compare.records import Claim, Comparison
from seatrial.compare.sides import open_sides
from seatrial.criteria.published import load_published

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

LONG_NUMBER = re.compile(r"\d+\.\d{6,}(e-?\d+)?")

SOURCES = "pictures.json"
"""Beside the pictures: the SHA-256 of the page of each."""


def published_table(home: Path) -> str:
    """Lay out what follows from the numbers of each paper, and whether it agrees."""
    published = load_published(paths.published_dir(home))
    lines = [
        "| systems | times better than the first, by its numbers | compared in it |",
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
            f"{name.replace('_', ' ')} {ratio.value:.2f}"
            for name, ratio in ratios
            if ratio is not None
        )
        said.append(f"{side.name}: {each}" if len(found.sides) > 2 else each)
    return "; ".join(said)


def _claims(claims: tuple[Claim, ...]) -> str:
    judged = [each.agrees for each in claims if each.agrees is not None]
    computed = f"of {len(judged)} that can be computed {sum(judged)} agree"
    return f"{len(claims)} times; {computed if judged else 'none can be computed'}"


def page_digest(page: Path) -> str:
    """Give the SHA-256 of a page, its numbers to six digits.

    The last digits of logarithms differ from processor to processor.
    """
    text = page.read_text(encoding="utf-8")
    rounded = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.6g}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()


def stale_pictures(home: Path, demo: Path) -> dict[str, str]:
    """Give those whose pages are others by now, with the digests of these."""
    known_file = home / "reports" / SOURCES
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    digests = {name: page_digest(demo / page) for name, (page, *_) in PICTURES.items()}
    return {name: each for name, each in digests.items() if each != known.get(name)}


def take_pictures(home: Path, demo: Path, stale: dict[str, str]) -> None:
    """Take pictures anew, and note of which pages."""
    for name in stale:
        page, width, height = PICTURES[name]
        _picture(demo / page, home / "reports" / name, width, height)
    file = home / "reports" / SOURCES
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | stale, indent=1, sort_keys=True) + "\n")


def show_demo(home: Path, folder: Path) -> None:
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
    """Replace both tables and the pictures; with --check only say what is stale."""
    home = paths.home()
    file = home / "README.md"
    before = text = file.read_text(encoding="utf-8")
    checks = catalogue(paths.checks_dir(home), home)
    for pattern, table in (
        (CATALOGUE, format_catalogue(checks, "markdown")),
        (PAPERS, published_table(home)),
    ):
        place = pattern.search(text)
        if place is None:
            raise SystemExit(f"{file}: expected a place for {pattern.pattern}")
        text = text[: place.start()] + table + text[place.end() :]
    with tempfile.TemporaryDirectory() as folder:
        show_demo(home, Path(folder))
        stale = stale_pictures(home, Path(folder))
        if sys.argv[1:] == ["--check"]:
            old = [*([file.name] if text != before else []), *stale]
            if old:
                raise SystemExit(f"stale: {', '.join(old)}; run `make format`")
            return
        file.write_text(text, encoding="utf-8")
        take_pictures(home, Path(folder), stale)


if __name__ == "__main__":
    main()
