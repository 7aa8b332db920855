"""Read power, temperature and throttling of one node beside a load.

    python -m seatrial.checks.loadsensors [--power-command COMMAND]

It prints a row `began` after the first reading, reads again every few seconds, and
after SIGUSR1 or SIGTERM a last time. Then it prints a row `load`: joules, mean and
highest power by source, highest temperature, and the growth of the counters of
throttling. What cannot be read is null there; `absent` has the reasons. A node that
shows no CPUs prints both rows at once: the load need not wait for it.
"""

import argparse
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from seatrial.checks.loadsensors.energy import Board, Energy, Rapl, printed_watts
from seatrial.checks.nodesweep.readings import (
    AbsentError,
    read_power_limits,
    read_temperatures,
    read_throttling,
)
from seatrial.checks.nodesweep.topology import Topology, read_topology

_END = (signal.SIGUSR1, signal.SIGTERM)
_COUNTERS = {
    "throttle_events": read_throttling,
    "power_limit_events": read_power_limits,
}


class LoadSensors:
    """The sensors of a node, from the start of a load to its end."""

    def __init__(
        self, root: Path, topology: Topology, command: str, now: float
    ) -> None:
        self._root, self._topology, self._began = root, topology, now
        self._absent: dict[str, str] = {}
        self._sources: dict[str, Rapl | Board] = {}
        self._hottest: float | None = None
        self._samples = 0
        self._open("rapl", lambda: Rapl(root, now))
        if command:
            self._open("board", lambda: Board(partial(printed_watts, command), now))
        else:
            self._absent["board"] = "no power_command in the class of nodes"
        self._before = self._counters()
        self._heat()

    def _open(self, name: str, source: Callable[[], Rapl | Board]) -> None:
        try:
            self._sources[name] = source()
        except AbsentError as error:
            self._absent[name] = str(error)

    def read(self, now: float) -> None:
        """Read power and temperature; a source that fails is absent from then on."""
        self._samples += 1
        for name, source in [*self._sources.items()]:
            try:
                source.read(now)
            except AbsentError as error:
                self._absent[name] = str(error)
                del self._sources[name]
        self._heat()

    def _heat(self) -> None:
        try:
            readings = read_temperatures(self._root, self._topology)
        except AbsentError as error:
            if self._hottest is None:
                self._absent["temperature"] = str(error)
            return
        self._hottest = max([*readings.values(), self._hottest or -273.15])
        self._absent.pop("temperature", None)

    def _counters(self) -> dict[str, int]:
        counts = {}
        for name, read in _COUNTERS.items():
            try:
                counts[name] = read(self._root, self._topology)
            except AbsentError as error:
                self._absent[name] = str(error)
        return counts

    def row(self, node: str, now: float) -> dict[str, Any]:
        """Return the row of the load that ends now."""
        after, grown = self._counters(), dict.fromkeys(_COUNTERS, None)
        for name in self._before.keys() & after.keys():
            if after[name] < self._before[name]:
                words = f"from {self._before[name]} to {after[name]}"
                self._absent[name] = f"the counter went back {words}"
            else:
                grown[name] = after[name] - self._before[name]
        energies = {name: source.energy for name, source in self._sources.items()}
        row: dict[str, Any] = {"type": "load", "node": node, "samples": self._samples}
        row |= {"seconds": round(now - self._began, 3)}
        row |= {name: _energy_row(energies.get(name)) for name in ("rapl", "board")}
        row |= {"temperature_max_c": self._hottest, **grown}
        return row | {"absent": self._absent}


def _energy_row(energy: Energy | None) -> dict[str, float] | None:
    if energy is None or energy.mean_w is None:
        return None
    peak_w = energy.mean_w if energy.peak_w is None else energy.peak_w
    numbers = {"joules": energy.joules, "mean_w": energy.mean_w, "peak_w": peak_w}
    return {name: round(value, 6) for name, value in numbers.items()}


def main(arguments: Sequence[str]) -> int:
    """Read and write until a signal ends it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _END)
    parser = argparse.ArgumentParser(
        prog="seatrial.checks.loadsensors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--power-command", default="", metavar="COMMAND")
    parser.add_argument("--interval", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    began = json.dumps({"type": "began", "node": node})
    try:
        topology = read_topology(options.root)
    except (OSError, ValueError) as error:
        row = {"type": "load", "node": node, "seconds": 0.0, "samples": 0}
        absent = {"sensors": f"the CPUs of the node are unknown: {error}"}
        print(f"{began}\n{json.dumps(row | {'absent': absent})}", flush=True)
        return 1
    now = time.monotonic()
    sensors = LoadSensors(options.root, topology, options.power_command, now)
    with suppress(BrokenPipeError):
        print(began, flush=True)
        while signal.sigtimedwait(_END, options.interval) is None:
            sensors.read(time.monotonic())
        sensors.read(time.monotonic())
        print(json.dumps(sensors.row(node, time.monotonic())), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
