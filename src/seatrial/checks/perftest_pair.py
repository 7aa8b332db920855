"""Run a program of perftest between two nodes: a server on one, a client on the other.

    python -m seatrial.checks.perftest_pair --meet FILE --limit SECONDS -- PROGRAM..

A launcher starts it as two ranks, one on each node. Rank 1 starts the server on a free
TCP port. As soon as it listens there, the rank writes host and port into FILE, on a
file system that both nodes share. Rank 0 waits for FILE and starts the client, which
sends. Standard output is that of the client, if it succeeds.

Each rank ends its program after SECONDS, and if it is terminated itself. Exit status 1,
with one line on standard error: the program or the rank failed.
"""

import argparse
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import IO

from seatrial.parsers.perftest_errors import remedy

PROGRAM = "perftest_pair"
"""The word that begins each line of an error."""

_LOOK_S = 0.05
_LISTENS = "0A"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


class PairError(Exception):
    """A reason why a side failed; one line."""


@dataclass
class Deadline:
    """The end of the time limit of `seconds`, which begins now; a signal is another."""

    seconds: float

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds
        self._signal = 0

    def terminate(self, number: int, _: FrameType | None) -> None:
        """Remember a signal: an exception here could lose a program that just began."""
        self._signal = number

    def look_again(self, waits_for: str) -> None:
        """Pause shortly; PairError if the time is over, SystemExit after a signal."""
        if self._signal:
            sys.exit(128 + self._signal)
        if time.monotonic() > self._end:
            raise PairError(f"{waits_for} within {self.seconds:g} s")
        time.sleep(_LOOK_S)


@dataclass
class Program:
    """A running program, and the files that receive its output."""

    _process: subprocess.Popen[bytes]
    _output: IO[bytes]
    _errors: IO[bytes]

    def is_running(self) -> bool:
        """Return True until the program ends."""
        return self._process.poll() is None

    def verify_end(self) -> None:
        """Raise PairError with the lines of an ended program unless it succeeded."""
        status = self._process.returncode
        if status == 0:
            return
        end = f"exit status {status}"
        if status < 0:
            end = f"killed by {signal.Signals(-status).name}"
        text = _read(self._errors).strip() or _read(self._output)[-500:]
        reason = "; ".join(line.strip() for line in text.splitlines() if line.strip())
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        raise PairError("; ".join(filter(None, (end, reason, remedy(text, limit)))))

    def wait(self, deadline: Deadline) -> str:
        """Return the standard output; PairError if it fails or takes too long."""
        while self.is_running():
            deadline.look_again("no end")
        self.verify_end()
        return _read(self._output)


@contextmanager
def started(command: Sequence[str]) -> Iterator[Program]:
    """Run a program, and kill it at the end; PairError if it is not installed."""
    with TemporaryFile() as output, TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
            )
        except OSError as error:
            raise PairError(
                f"{error.strerror}; install perftest on the nodes, or load a module "
                "that has it"
            ) from None
        try:
            yield Program(process, output, errors)
        finally:
            process.kill()
            process.wait()


def serve(program: Sequence[str], meet: Path, deadline: Deadline) -> None:
    """Run the server; `meet` exists while it listens. PairError if it fails."""
    tcp_port = _free_port()
    with started([*program, "-p", str(tcp_port)]) as server:
        try:
            while not _is_listening(tcp_port):
                if not server.is_running():
                    server.verify_end()
                    raise PairError("ended before it listened; exit status 0")
                deadline.look_again(f"server does not listen on TCP port {tcp_port}")
            hidden = meet.with_name(f".{meet.name}")
            hidden.write_text(f"{_host()} {tcp_port}\n")
            hidden.replace(meet)
            server.wait(deadline)
        finally:
            with suppress(FileNotFoundError):
                meet.unlink()


def ask(program: Sequence[str], meet: Path, deadline: Deadline) -> str:
    """Run the client as soon as `meet` exists; return its standard output.

    Raises PairError if the server does not come, or if the client fails.
    """
    # To list a folder makes NFS look: a file of another node shows at once.
    while meet not in meet.parent.iterdir():
        deadline.look_again("server is not there")
    host, tcp_port = meet.read_text().split()
    with started([*program, "-p", tcp_port, host]) as client:
        return client.wait(deadline)


def main(arguments: Sequence[str]) -> int:
    """Run one side; return 0, or 1 after a line on standard error."""
    parser = argparse.ArgumentParser(prog=f"seatrial.checks.{PROGRAM}")
    parser.add_argument("--meet", type=Path, required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--rail", default="", help="named in errors")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args(arguments)
    deadline = Deadline(options.limit)
    signal.signal(signal.SIGTERM, deadline.terminate)
    meet = options.meet.absolute()
    side = "client"
    try:
        if _rank() == 0:
            sys.stdout.write(ask(options.program, meet, deadline))
        else:
            side = "server"
            serve(options.program, meet, deadline)
    except (PairError, OSError) as error:
        rail = options.rail and f" ({options.rail})"
        place = f"{side} {options.program[0]}{rail} on {_host()}"
        print(f"{PROGRAM}: {place}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def _rank() -> int:
    """Return the rank of this process, 0 or 1."""
    ranks = [os.environ[name] for name in _RANKS if name in os.environ]
    if not ranks or ranks[0] not in ("0", "1"):
        raise PairError(f"rank {ranks[0] if ranks else 'unknown'}, expected 0 or 1")
    return int(ranks[0])


def _host() -> str:
    """Return the name by which the other node knows this one: Slurm's, if any."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _free_port() -> int:
    """Return a TCP port that no process uses now."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


def _is_listening(tcp_port: int) -> bool:
    """Return True if a process listens on a port; no connection is made.

    A connection would be the only one that perftest accepts.
    """
    for table in _TABLES:
        with suppress(FileNotFoundError), table.open() as rows:
            for row in rows:
                _, local, _, state = row.split()[:4]
                if state == _LISTENS and local.endswith(f":{tcp_port:04X}"):
                    return True
    return False


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
