"""Run `spack install` for a plan: progress, a log, and the causes of failures."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from rich.console import Console

from seatrial.errors import Exit, SeatrialError
from seatrial.interrupts import interruptible
from seatrial.progress import Display, TimeLeft, duration
from seatrial.system.spack_lock import Lock
from seatrial.system.spack_output import (
    CACHE,
    Event,
    Failure,
    Kind,
    SpackOutput,
    first_errors,
)
from seatrial.system.spack_plan import Step, Timing
from seatrial.system.spack_site import SpackSite, installed, record

_STOP_S = 30.0
_SOURCE = re.compile(
    r"((?:https?:/)?/[^/\s]\S*/_source-cache/archive/../([0-9a-f]{64})\.[.a-z0-9]*\w)"
)


def build(
    site: SpackSite, locks: Mapping[str, Lock], steps: Sequence[Step], console: Console
) -> Path:
    """Install all environments and show the progress; return the log of all output.

    Raises SeatrialError with each package that failed, its phase and its log, or with
    the exit status INTERRUPTED on Ctrl-C, after Spack has ended. The times of all
    builds are recorded in any case.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    log = site.logs / f"build-{stamp}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    waiting = [step for step in steps if step.to_do]
    failures: dict[str, tuple[str, Failure]] = {}  # a package fails once, in the first
    watch = Watch(waiting)
    try:
        with (
            interruptible(),
            log.open("w", encoding="utf-8") as copy,
            Display(console, waiting, {}, watch.left) as display,
        ):
            for name in site.environments:
                watch.enter(name, display)
                for failure in _install(site, name, locks[name], copy, watch):
                    key = failure.spec.hash if failure.spec else name
                    failures.setdefault(key, (name, failure))
    except KeyboardInterrupt as error:
        raise SeatrialError(
            "interrupted: Spack was stopped; what it has installed stays, and "
            f"`seatrial build {site.system}` goes on from there",
            Exit.INTERRUPTED,
        ) from error
    finally:
        record(site, watch.taken)
    prefixes = installed(site)
    missing = [step for step in waiting if step.hash not in prefixes]
    if failures:
        raise SeatrialError(failure_text(site.system, failures.values(), missing, log))
    if missing:
        raise SeatrialError(
            f"Spack ended without an error, but {_labels(missing)} is not installed; "
            f"what it printed is in {log}"
        )
    return log


def label(package: str, environment: str) -> str:
    """Return the label of a package in an environment: `hpcc@1.5.0 (openmpi)`."""
    return f"{package} ({environment})"


class BuildTimeLeft(TimeLeft):
    """The time left by the estimates of a plan; packages without one add nothing.

    It is an upper bound where several packages are built at once.
    """

    in_parallel = True

    def __init__(self, steps: Iterable[Step]) -> None:
        super().__init__((), {})
        self._estimates = {
            label(str(step), step.environment): step.seconds for step in steps
        }

    def finish(self, case: str) -> float:
        """Note that a package ended now; return its duration in seconds."""
        self._estimates.pop(case, None)
        return super().finish(case)

    def seconds(self) -> float | None:
        """Return the estimated seconds left; None if no package has an estimate."""
        now = time.monotonic()
        left = [
            max(seconds - (now - self._running.get(case, now)), 0.0)
            for case, seconds in self._estimates.items()
            if seconds is not None
        ]
        return sum(left) if left or not self._estimates else None

    def text(self) -> str:
        """Format the time left, and how many packages have no estimate."""
        unknown = sum(seconds is None for seconds in self._estimates.values())
        seconds = self.seconds()
        if seconds is None or not unknown:
            return super().text()
        return f"at least {duration(seconds)} left, {unknown} of unknown time"


class Watch:
    """Progress of a build: feeds the display, and takes the time of each package."""

    def __init__(self, waiting: Iterable[Step]) -> None:
        self._steps = {step.hash: step for step in waiting}
        self._started: dict[str, float] = {}
        self._environment = ""
        self._display: Display | None = None
        self.left = BuildTimeLeft(self._steps.values())
        self.taken: list[Timing] = []

    def enter(self, environment: str, display: Display) -> None:
        """Note that an environment begins."""
        self._environment = environment
        self._display = display
        display.note(f"{environment}: Spack reads the environment")

    def see(self, event: Event) -> None:
        """Record an event of a package."""
        assert self._display is not None
        spec = event.spec
        name = label(str(spec), self._environment)
        planned = spec.hash in self._steps
        if event.kind is Kind.BEGIN:
            self._started[spec.hash] = time.monotonic()
            if planned:
                self._display.start(name)
        if event.kind in (Kind.BEGIN, Kind.PHASE):
            self._display.note(f"{name}: {event.phase}")
            return
        failed = event.kind is Kind.FAILED
        cache = event.phase == CACHE
        began = self._started.pop(spec.hash, None)
        if began is not None and not failed:
            seconds = round(time.monotonic() - began, 3)
            self.taken.append(Timing(spec.hash, spec.name, cache, seconds))
        if planned:
            word = "FAIL" if failed else "cached" if cache else "built"
            self._display.finish(name, "FAIL" if failed else "OK", word)


def failure_text(
    system: str,
    failures: Collection[tuple[str, Failure]],
    missing: Iterable[Step],
    log: Path,
) -> str:
    """Return the failures with phases, causes and logs, and the remedies.

    `missing` are the planned packages that are not installed.
    """
    parts = [_failure_text(system, name, failure) for name, failure in failures]
    failed = {failure.spec.hash for _, failure in failures if failure.spec}
    skipped = [step for step in missing if step.hash not in failed]
    if skipped:
        parts.append(f"Not built because of that: {_labels(skipped)}")
    if "No public key" in _log_text(str(log)):
        parts.append(
            "The build cache has builds whose key is not trusted; put it into the "
            "folder keys of spack_build_folder, and run playbooks/site.yml."
        )
    parts.append(
        f"What Spack printed is in {log}. What it has installed stays: once the cause "
        f"is fixed, `seatrial build {system}` goes on from there."
    )
    return "\n".join(parts)


def _labels(steps: Iterable[Step]) -> str:
    return ", ".join(label(str(step), step.environment) for step in steps)


def _failure_text(system: str, environment: str, failure: Failure) -> str:
    text = _log_text(failure.log)
    lines = first_errors(text) if text else failure.lines
    quoted = "".join(f"\n  {line[:300]}" for line in lines)
    if failure.spec is None:
        return f"Spack cannot install the environment {environment}:{quoted}"
    where = f"build log: {failure.log}" if failure.log else "no build log yet"
    advice = _advice(system, "\n".join((*failure.lines, text)))
    return (
        f"{label(str(failure.spec), environment)} failed in phase {failure.phase}:"
        f"{quoted}\n  {where}{advice}"
    )


def _advice(system: str, text: str) -> str:
    """Return the remedy for a source that is missing or the wrong one."""
    source = _SOURCE.search(text)
    if "ChecksumError" in text:
        place = f" ({source[1]})" if source else ""
        return (
            f"\n  the source is not what the recipe names, so it is refused: replace "
            f"the file in the source mirror{place}, or remove it there"
        )
    if source and "FetchError" in text:
        return (
            f"\n  its source (sha256 {source[2]}) is not in the mirror and cannot be "
            f"fetched: run `ansible-playbook -i inventories/{system} "
            "playbooks/mirror.yml` on a machine with internet and carry the folder "
            f"over, or put the file there as {source[1]}"
        )
    return ""


def _log_text(log: str) -> str:
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace") if log else ""
    except OSError:  # it lay on another machine's disk, or is gone
        return ""


def _install(
    site: SpackSite, environment: str, lock: Lock, copy: IO[str], watch: Watch
) -> tuple[Failure, ...]:
    """Run `spack install` in an environment to its end; return the failures."""
    options = ["--only-concrete", *([f"--jobs={site.jobs}"] if site.jobs else [])]
    packages = site.wanted(environment)
    command = site.command(environment, "install", *options, *packages)
    output = SpackOutput(lock.specs)
    copy.write(f"$ {' '.join(command)}\n")
    last: list[str] = []
    process = subprocess.Popen(
        command,
        env=site.variables(),
        stdin=subprocess.PIPE,  # Spack watches its input: not /dev/null, nor ours
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            copy.write(line)
            copy.flush()
            last = [*last[-4:], line.rstrip()]
            if event := output.feed(line):
                watch.see(event)
        process.wait()
    except BaseException:
        _stop(process)
        raise
    if not process.returncode:
        return ()
    return output.failures() or (Failure(None, "", "", tuple(last)),)


def _stop(process: "subprocess.Popen[str]") -> None:
    """End Spack and its child processes, first by SIGINT so that it cleans up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            break
