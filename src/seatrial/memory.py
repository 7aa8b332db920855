"""Memory of the process: arrays that are freed go back to the system at once."""

import ctypes
import os

_M_MMAP_THRESHOLD = -3
"""Option of mallopt(3)."""

_LARGE_BYTES = 1 << 20


def return_large_arrays() -> None:
    """Return memory to the system when a large array is freed.

    glibc keeps arrays of up to 32 MiB for reuse once one was freed. Between smaller
    ones they add up to several hundred MiB. No effect with another C library. Polars
    has an allocator of its own, jemalloc, which keeps memory for 10 s; it reads this
    variable when polars is imported.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
