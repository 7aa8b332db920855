"""Put the tarball of our own benchmarks into a source mirror, where Spack finds it.

Usage: own_source.py CHECKOUT MIRROR

Prints its name if it was not there. The checksum must be the one in the recipe, which
`make dist` puts there.
"""

import hashlib
import importlib.util
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


def main(checkout: Path, mirror: Path) -> None:
    """Build the tarball, compare it with the recipe, and write it if it is missing."""
    dist = load_dist(checkout)
    folder = f"{dist.NAME}-{dist.version_of(checkout)}"
    content = dist.gzip_of(dist.tar_of(checkout, folder))
    sha256 = hashlib.sha256(content).hexdigest()
    if f'"{sha256}"' not in (checkout / dist.RECIPE).read_text(encoding="utf-8"):
        sys.exit(
            f"benchmarks/ of {checkout} gives a tarball with the sha256 {sha256}, "
            f"which {dist.RECIPE} does not name; run `make dist` there"
        )
    file = mirror / "_source-cache/archive" / sha256[:2] / f"{sha256}.tar.gz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_bytes(content)
        part.rename(file)
        print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
