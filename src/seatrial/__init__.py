"""Seatrial: the acceptance test suite of an HPC cluster."""

__version__: str


def __getattr__(name: str) -> str:
    """Return `__version__`: its import takes most of the start of a job's rank."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("seatrial")
