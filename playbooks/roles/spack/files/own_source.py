"""Put the tarball of our own benchmarks into a source mirror, where Spack finds it.

Usage: own_source.py CHECKOUT MIRROR

Prints its name if it was not there. The checksum must be the one in the recipe, which
`make dist` puts there. A checkout without git is that of a bundle: only git can tell
which files belong to the tarball, so the mirror of the bundle must have it.
"""

import hashlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType


def load_dist(checkout: Path) -> ModuleType:
    """Load tools/dist.py of the checkout, which makes the tarball."""
    spec = importlib.util.spec_from_file_location("dist", checkout / "tools/dist.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def file_of(mirror: Path, sha256: str) -> Path:
    """Return where Spack looks for an archive with this checksum."""
    return mirror / "_source-cache/archive" / sha256[:2] / f"{sha256}.tar.gz"


def main(checkout: Path, mirror: Path) -> None:
    """Build the tarball, compare it with the recipe, and write it if it is missing."""
    dist = load_dist(checkout)
    recipe = (checkout / dist.RECIPE).read_text(encoding="utf-8")
    if not (checkout / ".git").exists():
        named = re.search(r'sha256="([0-9a-f]{64})"', recipe)
        if named is None or not file_of(mirror, named[1]).is_file():
            sys.exit(
                f"{checkout}: no git checkout, and {mirror} lacks the tarball of "
                f"{dist.NAME} that {dist.RECIPE} names; make the bundle again"
            )
        return
    folder = f"{dist.NAME}-{dist.version_of(checkout)}"
    content = dist.gzip_of(dist.tar_of(checkout, folder))
    sha256 = hashlib.sha256(content).hexdigest()
    if f'"{sha256}"' not in recipe:
        sys.exit(
            f"benchmarks/ of {checkout} gives a tarball with the sha256 {sha256}, "
            f"which {dist.RECIPE} does not name; run `make dist` there"
        )
    file = file_of(mirror, sha256)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_bytes(content)
        part.rename(file)
        print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
