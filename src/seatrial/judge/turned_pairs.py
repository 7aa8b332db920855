"""Pairs without direction: which node starts may differ from session to session."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from seatrial.judge.row_numbers import RowNumbers, numbered
from seatrial.model.places import PLACE, turned


def with_turned(
    place: RowNumbers, places: pl.DataFrame, of_unit: RowNumbers, units: pl.DataFrame
) -> tuple[RowNumbers, pl.DataFrame]:
    """Merge the two directions of a pair that has no direction, see `turned`.

    `place` and `of_unit` have the place and the allocation of each number; returns the
    place of each, and the places.
    """
    once = turned(places, _sessions(place, places, of_unit, units))
    if once is places:
        return place, places
    of_place, merged = numbered([once], PLACE)
    return of_place[place], merged


def _sessions(
    place: RowNumbers, places: pl.DataFrame, of_unit: RowNumbers, units: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    """Yield the places of each session."""
    of_session, sessions = numbered([units], ("run", "session"))
    for number in range(sessions.height):
        seen = np.zeros(places.height, dtype=bool)
        seen[place[(of_session == number)[of_unit]]] = True
        yield places.filter(pl.Series(seen))
