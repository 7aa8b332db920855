"""Ctrl-C, SIGTERM and a lost terminal as one exception, KeyboardInterrupt."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from seatrial.errors import SeatrialError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on each of the three signals, at once.

    Polars replaces Python's handler of SIGINT by one that lets system calls go on,
    so that Ctrl-C would wait for the end of a child; a handler of ours does not.
    Errors that follow from it become a KeyboardInterrupt, too: Python raises a
    RuntimeError if the signal comes while it takes a lock.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    except SeatrialError:
        raise
    except Exception as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def interrupted(error: BaseException) -> bool:
    """Return True if an error came while a KeyboardInterrupt was handled."""
    while error.__context__ is not None:
        error = error.__context__
        if isinstance(error, KeyboardInterrupt):
            return True
    return False


@contextmanager
def postponed() -> Iterator[None]:
    """Within `interruptible`: let the signals wait for the end of what this guards.

    An asynchronous exception can get lost in libraries that are not written in Python,
    and in what Python calls by itself.
    """
    came = []
    handlers = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in _SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def stop_on_eof() -> None:
    """Interrupt this program when its standard input ends: the caller is gone."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
