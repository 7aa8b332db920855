"""Signals end a program as an interrupt, whatever it is doing."""

import os
import signal
import threading

import pytest

from seatrial.errors import SeatrialError
from seatrial.interrupts import interruptible, postponed

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def send(number: int) -> None:
    """Send this process a signal."""
    os.kill(os.getpid(), number)


class Torn(threading.Condition):
    """A condition whose wait gets a signal before it has taken its lock again."""

    number = signal.SIGTERM

    def _acquire_restore(self, state: object) -> None:
        send(self.number)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_while_a_lock_is_taken(number: signal.Signals) -> None:
    condition = Torn(threading.Lock())
    condition.number = number
    with pytest.raises(KeyboardInterrupt) as caught, interruptible(), condition:
        condition.wait(0.001)
    assert "release unlocked lock" in repr(caught.value.__cause__)


def test_error_of_the_clean_up_after_an_interrupt_is_told() -> None:
    with pytest.raises(SeatrialError, match="cannot cancel"), interruptible():
        try:
            send(signal.SIGTERM)
        except KeyboardInterrupt as error:
            raise SeatrialError("cannot cancel the jobs") from error


def test_error_without_an_interrupt_stays() -> None:
    with pytest.raises(RuntimeError, match="a defect"), interruptible():
        try:
            raise ValueError
        except ValueError:
            raise RuntimeError("a defect") from None


def test_postponed_signal_comes_at_the_end() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        with postponed():
            send(signal.SIGHUP)
            steps.append("guarded")
        steps.append("not reached")
    assert steps == ["guarded"]


def test_handlers_are_those_from_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(ZeroDivisionError), interruptible():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in SIGNALS] == before
