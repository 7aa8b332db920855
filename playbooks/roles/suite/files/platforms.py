"""Print this Python's version (X.Y) and the platforms of its wheels, best first.

One line each; the system's Python runs it by `python -c`. A wheel for glibc 2.N runs
with every later glibc (PEP 600). Without glibc it exits with a message. With a platform
as argument, such as manylinux_2_28_x86_64, prints that one and those of earlier glibc.
"""

import os
import platform
import re
import sys

OLDEST = {"x86_64": 5}
"""The first glibc 2.N with wheels for a machine, by default 17."""

LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""Former names of platforms by their glibc 2.N."""


def platforms(machine, glibc):
    """Return the platforms of wheels for a machine with glibc 2.N, best first."""
    names = []
    for minor in range(glibc, OLDEST.get(machine, 17) - 1, -1):
        names.append(f"manylinux_2_{minor}_{machine}")
        if minor in LEGACY:
            names.append(f"{LEGACY[minor]}_{machine}")
    return names


def glibc_minor():
    """Return N of glibc 2.N; exit if the system has another C library."""
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    except (AttributeError, OSError, ValueError):
        name, version = "unknown", "0.0"
    major, minor = version.split(".")[:2]
    if name != "glibc" or major != "2":
        sys.exit(
            f"wheels need glibc 2, found {name} {version}; set "
            "suite_wheel_platforms to the platforms of its wheels"
        )
    return int(minor)


def expand(name):
    """Return a platform and those of earlier glibc."""
    match = re.match(r"manylinux_2_(\d+)_(.+)", name)
    return platforms(match.group(2), int(match.group(1))) if match else [name]


if __name__ == "__main__" and len(sys.argv) > 1:
    print("\n".join(expand(sys.argv[1])))
elif __name__ == "__main__":
    print(".".join(map(str, sys.version_info[:2])))
    print("\n".join(platforms(platform.machine(), glibc_minor())))
