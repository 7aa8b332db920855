"""Progress of a run: a bar on a terminal, one line per finished case elsewhere."""

import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

Durations = Mapping[str, Sequence[float]]

_LEAST_CASES = 3
"""Cases of this run that must have ended before they say how fast it is."""


_REASON = 300
"""Most characters of a reason here; the record of the run has all."""


class TimeLeft:
    """Estimates the time left from the typical time of each case.

    `known` maps the text of a case to its durations in seconds in earlier runs; their
    median counts, times a factor: how much slower than that this run is, the median
    over its cases. A case without earlier times takes what it took in this run, else
    what a typical case takes. One case that waited for hours thus changes nothing.
    """

    in_parallel = False
    """Whether cases that begin while another runs do run, and do not wait for it."""

    def __init__(self, cases: Iterable[object], known: Durations) -> None:
        self._waiting = [str(case) for case in cases]
        self._earlier = {key: median(times) for key, times in known.items() if times}
        self._own: dict[str, list[float]] = {}
        self._running: dict[str, float] = {}
        self._last = time.monotonic()

    def start(self, case: str, spent: float = 0.0) -> None:
        """Note that a case began `spent` seconds ago."""
        if self._running and not spent and not self.in_parallel:
            return
        self._running[case] = time.monotonic() - spent

    def finish(self, case: str) -> float:
        """Note that a case ended now; return its duration in seconds.

        If it began while another ran, the duration counts from the last end: of several
        cases in the queue, each takes what it adds to the run.
        """
        now = time.monotonic()
        duration = now - self._running.pop(case, self._last)
        self._last = now
        if case in self._waiting:
            self._waiting.remove(case)
        self.learn(case, duration)
        return duration

    def wait_for(self, cases: Iterable[str]) -> None:
        """Note that cases that ended will run again."""
        self._waiting += cases

    def learn(self, case: str, seconds: float) -> None:
        """Note how long a case took in this run."""
        self._own.setdefault(case, []).append(seconds)

    def seconds(self) -> float | None:
        """Estimate the seconds left; None while too few cases have ended."""
        typical = self._typical()
        if not typical or not (self._earlier or len(self._own) >= _LEAST_CASES):
            return None
        usual = median(typical.values())
        left = sum(typical.get(case, usual) for case in self._waiting)
        for case, began in self._running.items():
            left -= min(time.monotonic() - began, typical.get(case, usual))
        return max(left, 0.0)

    def _typical(self) -> dict[str, float]:
        """Return the seconds that each known case typically takes in this run."""
        slower = [
            median(times) / self._earlier[case]
            for case, times in self._own.items()
            if self._earlier.get(case)
        ]
        factor = median(slower) if len(slower) >= _LEAST_CASES else 1.0
        own = {case: median(times) for case, times in self._own.items()}
        return own | {case: factor * took for case, took in self._earlier.items()}

    def text(self) -> str:
        """Format it, for example `2 min 05 s left`."""
        seconds = self.seconds()
        return "time left unknown" if seconds is None else f"{duration(seconds)} left"


class Display:
    """Shows the progress of a run, or of builds, on a console.

    `cases` are known by their texts; `left` estimates the time in place of `TimeLeft`.
    """

    def __init__(
        self,
        console: Console,
        cases: Sequence[object],
        known: Durations,
        left: TimeLeft | None = None,
    ) -> None:
        self.console = console
        self._total = len(cases)
        self._done = 0
        self._failed = 0
        self._explained: set[tuple[str, str]] = set()
        self._left = left or TimeLeft(cases, known)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal:
            self._bar = Progress(
                BarColumn(bar_width=10),
                MofNCompleteColumn(),
                TextColumn("{task.fields[failed]} failed", table_column=_one_line()),
                _LeftColumn(self._left, _one_line()),
                TextColumn(
                    "{task.description}", markup=False, table_column=_one_line(ratio=1)
                ),
                console=console,
                transient=True,
                expand=True,
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, failed=0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, case: str) -> None:
        """Show that a case is running."""
        self._left.start(case)
        self.note(f"running {case}")

    def try_again(self, cases: Sequence[str]) -> None:
        """Note that cases that failed run again: they are not done yet."""
        self._done -= len(cases)
        self._failed -= len(cases)
        self._left.wait_for(cases)

    def finish(self, case: str, status: str, word: str = "") -> bool:
        """Show that a case is done; return True if it failed.

        `status` is ReFrame's, for example OK or FAIL; `word` says it in another word
        than that of a check.
        """
        took = self._left.finish(case)
        self._done += 1
        self._total = max(self._total, self._done)  # a session may start anew
        failed = status not in ("OK", "SKIP", "XFAIL")
        self._failed += failed
        words = {"OK": "pass", "SKIP": "skip", "XFAIL": "known"}
        word = word or words.get(status, "FAIL")
        if self._bar is not None:
            self._bar.update(
                self._task,
                total=self._total,
                completed=self._done,
                failed=self._failed,
            )
            if failed:
                self._print(f"{word} {case}")
            return failed
        width = len(str(self._total))
        counts = f"{self._failed} failed, {self._left.text()}"
        self._print(
            f"[{self._done:{width}}/{self._total}] {word} {case} "
            f"({took:.1f} s; {counts})"
        )
        return failed

    def explain(self, ended: Iterable[tuple[str, str, str | None]]) -> None:
        """Say why checks failed or were skipped, each reason once.

        `ended` are check, result and reason, which a pass has not.
        """
        reasons: dict[tuple[str, str], dict[str, None]] = {}
        for check, result, reason in ended:
            if reason:
                key = (result, " ".join(reason.split()))
                reasons.setdefault(key, {})[check] = None
        for key, checks in reasons.items():
            if key in self._explained:
                continue
            self._explained.add(key)
            result, text = key
            if len(text) > _REASON:
                text = f"{text[:_REASON]} ..."
            word = "skipped" if result == "skip" else "failed"
            self._print(f"  {', '.join(checks)} {word}: {text}")

    def note(self, text: str) -> None:
        """Show what is going on, on a terminal only."""
        if self._bar is not None:
            self._bar.update(self._task, description=text)

    def warn(self, text: str) -> None:
        """Print a line that stays."""
        self._print(text)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _one_line(ratio: int | None = None) -> Column:
    """Make a column whose text is shortened where the terminal is narrow."""
    return Column(no_wrap=True, overflow="ellipsis", ratio=ratio)


class _LeftColumn(ProgressColumn):
    def __init__(self, left: TimeLeft, column: Column) -> None:
        super().__init__(column)
        self._left = left

    def render(self, task: Task) -> Text:
        return Text(self._left.text())


def duration(seconds: float) -> str:
    """Write a duration for people: `41 s`, `2 min 05 s`, `1 h 02 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
