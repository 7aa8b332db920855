"""Name the sources that an environment lacks: `spack -e ENV python missing.py MIRROR`.

After MIRROR the packages that were asked for; none: all. Prints a line for each source
that is neither in a mirror of files nor kept from before: package, checksum, and where
in the folder MIRROR Spack would find it.
"""

import sys
from pathlib import Path
from typing import Any, Iterator, List

import spack.caches
import spack.environment
import spack.mirrors.mirror
import spack.util.url


def folders() -> Iterator[Path]:
    """Yield the folders that Spack searches for sources."""
    yield Path(spack.caches.FETCH_CACHE.root)
    for mirror in spack.mirrors.mirror.MirrorCollection(source=True).values():
        path = spack.util.url.local_file_path(mirror.fetch_url)
        if path:
            yield Path(path)


def missing(mirror: str, names: List[str]) -> List[str]:
    """Look at everything that was asked for and has to be built."""
    environment = spack.environment.active_environment()
    roots = [spec for spec in environment.concrete_roots() if spec.name in names]
    specs = {
        spec
        for root in roots or environment.concrete_roots()
        for spec in root.traverse()
        if not (spec.external or spec.installed)
    }
    lines = []
    places = [Path(mirror), *folders()]
    for spec in sorted(specs, key=lambda spec: str(spec.name)):
        for stage in spec.package.stage:
            layout = getattr(stage, "mirror_layout", None)
            # What only stands for files of others, as gcc-runtime, has no URL.
            if layout is None or not getattr(stage.default_fetcher, "url", None):
                continue
            if any((place / layout.path).exists() for place in places):
                continue
            lines.append(
                f"{spec.name} {spec.version}: {source_of(stage)}; put it at "
                f"{Path(mirror, layout.path)}"
            )
    return lines


def source_of(stage: Any) -> str:
    """Name what a stage fetches, and the checksum or commit that it must have."""
    fetcher = stage.default_fetcher
    digest = getattr(fetcher, "digest", None) or getattr(fetcher, "commit", None)
    return f"{fetcher.url} ({digest})"


if __name__ == "__main__":
    print("\n".join(missing(sys.argv[1], sys.argv[2:])))
