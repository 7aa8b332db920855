"""Seatrial: the acceptance test suite of an HPC cluster."""

from importlib.metadata import version

__version__ = version("seatrial")
