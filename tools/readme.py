"""Write the tables and pictures of the documentation; `make format` runs it.

Tables: the catalogue of checks and the comparisons of the papers. Pictures: screenshots
of `seatrial demo` by headless Chromium, taken only if a page has changed.
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

from reference_pages import commands_page, files_page

from seatrial import paths
from seatrial.checks.catalogue import catalogue, format_catalogue
from seatrial.compare.compare import compare
from seatrial.compare.records import Claim, Comparison
from seatrial.compare.sides import open_sides
from seatrial.criteria.published import load_published

PICTURES_FOLDER = Path("docs", "pictures")
COMPARED = (
    ("mt23108-pcix", "mt25208-pcie"),
    ("infinihost3-ddr", "connectx-ddr"),
    ("qlogic7300-qdr", "connectx3-qdr"),
    ("clovertown-ddr", "nehalem-ddr", "nehalem-qdr"),
    ("memfree-infiniband", "ne010e-iwarp", "myri-10g"),
)
"""The systems of each paper, the older or slower one first."""

PAGES = {"checks": "checks.md", "published": "compare.md"}
"""The page of each table, between comments with its name."""

PICTURES = {
    "example.png": ("slow-link/report.html", 1280, 900),
    "comparison.png": ("bakeoff/compare.html", 1280, 1000),
}
"""The page of the demo, and the visible part: width and height in px."""

LONG_NUMBER = re.compile(r"\d+\.\d{6,}(e-?\d+)?")

SOURCES = "pictures.json"
"""File with the SHA-256 of the page of each picture."""


def published_table(home: Path) -> str:
    """Format the results from the numbers of each paper, and their agreement."""
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
    """Return the SHA-256 of a page, its numbers to six digits.

    The last digits of logarithms differ from processor to processor.
    """
    text = page.read_text(encoding="utf-8")
    rounded = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.6g}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()


def stale_pictures(home: Path, demo: Path) -> dict[str, str]:
    """Return the pictures of changed pages, with the digests of these pages."""
    known_file = home / PICTURES_FOLDER / SOURCES
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    digests = {name: page_digest(demo / page) for name, (page, *_) in PICTURES.items()}
    return {name: each for name, each in digests.items() if each != known.get(name)}


def take_pictures(home: Path, demo: Path, stale: dict[str, str]) -> None:
    """Take the pictures again, and record the digests of their pages."""
    for name in stale:
        page, width, height = PICTURES[name]
        _picture(demo / page, home / PICTURES_FOLDER / name, width, height)
    file = home / PICTURES_FOLDER / SOURCES
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


def pages(home: Path) -> dict[Path, str]:
    """Return the texts of all pages with generated parts, as they should be."""
    folder = paths.checks_dir(home)
    checks = [
        entry
        for entry in catalogue(folder, home)
        if Path(entry.file).parts[0] != paths.SITE
    ]
    tables = {
        "checks": format_catalogue(checks, "markdown"),
        "published": published_table(home),
    }
    texts = {
        home / "docs" / "commands.md": commands_page(),
        home / "docs" / "files.md": files_page(home),
    }
    for name, table in tables.items():
        file = home / "docs" / PAGES[name]
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
        before, _, rest = file.read_text(encoding="utf-8").partition(start)
        _, marker, after = rest.partition(end)
        if not marker:
            raise SystemExit(f"{file}: expected the lines {start!r} and {end!r}")
        texts[file] = before + start + table + end + after
    return texts


def main() -> None:
    """Write stale pages and pictures; `--check DEMO` only names them.

    DEMO is the folder of `seatrial demo`.
    """
    home = paths.home()
    texts = {
        file: text
        for file, text in pages(home).items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    }
    if sys.argv[1:2] == ["--check"]:
        pictures = stale_pictures(home, Path(sys.argv[2]))
        if stale := [*(file.name for file in texts), *pictures]:
            raise SystemExit(f"stale: {', '.join(stale)}; run `make format`")
        return
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        show_demo(home, Path(folder))
        take_pictures(home, Path(folder), stale_pictures(home, Path(folder)))


if __name__ == "__main__":
    main()
