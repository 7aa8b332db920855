"""Write the catalogue of checks into the README; `make format` does it."""

import re

from seatrial import paths
from seatrial.catalogue import catalogue, format_catalogue

_TABLE = re.compile(r"(?<=^## What is checked\n\n)(\|.*\n)+", re.MULTILINE)


def main() -> None:
    """Replace the table of checks; nothing else is touched."""
    home = paths.home()
    file = home / "README.md"
    table = format_catalogue(catalogue(paths.checks_dir(home), home), "markdown")
    text, count = _TABLE.subn(lambda _: table, file.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{file}: expected one table below '## What is checked'")
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
