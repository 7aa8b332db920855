"""Conducts `pairsweep` inside a batch job; see `__main__`."""
