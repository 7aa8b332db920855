"""ReFrame's deprecated variables: warned of where it is heard, cheap where not."""

import inspect
import warnings

import pytest
from reframe.core import fields
from reframe.core.warnings import ReframeDeprecationWarning, suppress_deprecations

from seatrial.checks.unheard_warnings import if_heard, spare_unheard_warnings


class Check:
    """Has a deprecated variable, as every check of ReFrame."""

    old = fields.DeprecatedField(fields.TypedField(int), "old is deprecated")

    def __init__(self) -> None:
        with suppress_deprecations():
            self.old = 1


@pytest.fixture
def spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """ReFrame with what seatrial.checks.base does to it; undone after the test."""
    kept = fields.user_deprecation_warning
    monkeypatch.setattr(fields, "user_deprecation_warning", kept)
    spare_unheard_warnings()


@pytest.mark.usefixtures("spared")
def test_warning_that_is_suppressed_costs_no_look_at_the_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = Check()
    monkeypatch.setattr(inspect, "stack", lambda: pytest.fail("looked at the stack"))
    with suppress_deprecations():
        assert check.old == 1


@pytest.mark.usefixtures("spared")
def test_warning_that_is_heard_stays() -> None:
    check = Check()
    with pytest.warns(ReframeDeprecationWarning, match="old is deprecated"):
        assert check.old == 1
    with suppress_deprecations():
        pass
    with pytest.warns(ReframeDeprecationWarning, match="old is deprecated"):
        check.old = 2


def test_other_filters_suppress_nothing() -> None:
    heard: list[str] = []
    warn = if_heard(lambda message, from_version: heard.append(message))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warn("one")
        warnings.simplefilter("ignore", ReframeDeprecationWarning)
        warn("two")
        warnings.resetwarnings()
        warn("three")
    assert heard == ["one", "three"]
