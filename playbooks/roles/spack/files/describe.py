"""Print the packages of an environment as JSON; `spack -e ENV python describe.py`.

The keys: `mpi` (name, version, prefix; null if nothing is installed), `compiler`,
`packages` (by name: version, prefix, module), `modules` (their folder), and `lock`
(path and sha256 of the lock file).
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Dict

import spack.environment
import spack.modules


def describe() -> Dict[str, Any]:
    """Look at the roots of the active environment that are installed."""
    environment = spack.environment.active_environment()
    roots = [spec for spec in environment.concrete_roots() if spec.installed]
    mpi = next((spec for spec in roots if spec.package.provides("mpi")), None)
    compilers = {
        str(spec["c"].format("{name}@{version}")) for spec in roots if "c" in spec
    }
    lock = Path(environment.lock_path)
    return {
        "mpi": mpi
        and {
            "name": mpi.name,
            "version": str(mpi.version),
            "prefix": str(mpi.prefix),
        },
        "compiler": ", ".join(sorted(compilers)),
        "packages": {
            spec.name: {
                "version": str(spec.version),
                "prefix": str(spec.prefix),
                "module": module_of(spec),
            }
            for spec in roots
        },
        "modules": str(Path(environment.path, "modules")),
        "lock": {
            "path": str(lock),
            "sha256": hashlib.sha256(lock.read_bytes()).hexdigest(),
        },
    }


def module_of(spec: Any) -> str:
    """Name the module of an installed package."""
    return str(spack.modules.module_types["tcl"](spec, "default").layout.use_name)


if __name__ == "__main__":
    print(json.dumps(describe(), indent=1, sort_keys=True))
