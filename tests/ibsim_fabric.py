"""A simulated InfiniBand fabric: ibsim with real infiniband-diags and opensm on it."""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from seatrial.fabric.ibsim_net import ibsim_network
from seatrial.fabric.plan import Cable, PlannedKind

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
START_S = 20.0
_PROMPT = "sim> "


class IbsimFabric:
    """A running ibsim, its console, and the environment of the tools on it."""

    def __init__(self, folder: Path, network: str, host: str) -> None:
        self.folder = folder
        (folder / "net").write_text(network)
        self.environment = {
            "IBSIM_SOCKNAME": f"seatrial-{os.getpid()}-{folder.name}",
            "LD_PRELOAD": str(LIBRARY),
            "SIM_HOST": host,
        }
        nodes = network.count("guid=")
        own = {
            name: text for name, text in self.environment.items() if "PRE" not in name
        }
        sizes = ("-N", str(nodes + 16), "-S", str(network.count("Switch\t") + 16))
        self.log = folder / "ibsim.log"
        with self.log.open("w") as log:
            self.simulator = subprocess.Popen(
                ["ibsim", "-s", *sizes, "-P", str(nodes * 48 + 4096), "net"],
                cwd=folder,
                env=os.environ | own,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.manager: subprocess.Popen[bytes] | None = None
        self._wait(1)

    def _text(self) -> str:
        return self.log.read_text(errors="replace")

    def _wait(self, prompts: int) -> None:
        """Wait for so many prompts of ibsim; fail the test if they do not come."""
        end = time.monotonic() + START_S
        while self._text().count(_PROMPT) < prompts:
            if self.simulator.poll() is not None or time.monotonic() > end:
                pytest.fail(f"ibsim: {self._text()[-2000:]}")
            time.sleep(0.02)

    def console(self, *commands: str) -> None:
        """Send commands to the console of ibsim; each ends with another prompt."""
        assert self.simulator.stdin is not None
        for command in commands:
            prompts = self._text().count(_PROMPT)
            self.simulator.stdin.write(f"{command}\n")
            self.simulator.stdin.flush()
            self._wait(prompts + 1)

    def start_manager(self) -> None:
        """Start opensm and wait until it is master."""
        with (self.folder / "opensm.out").open("w") as out:
            self.manager = subprocess.Popen(
                ["opensm", "-f", str(self.folder / "opensm.log"), "-p", "14"],
                cwd=self.folder,
                env=os.environ | self.environment | {"OSM_CACHE_DIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.wait_active()

    def wait_active(self) -> None:
        """Wait until opensm has made all ports with a link active."""
        end = time.monotonic() + START_S
        while not self._is_active():
            assert self.manager is not None
            assert time.monotonic() < end and self.manager.poll() is None
            time.sleep(0.05)

    def _is_active(self) -> bool:
        """Return True if all ports with a link are Active."""
        done = subprocess.run(
            ["iblinkinfo"],
            cwd=self.folder,
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return not re.search(r"(Initialize|Armed)/", done.stdout)

    def close(self) -> None:
        """End opensm and ibsim."""
        for process in (self.manager, self.simulator):
            if process is not None:
                process.kill()
                process.wait()
        if self.simulator.stdin is not None:
            self.simulator.stdin.close()


@contextmanager
def ibsim(
    folder: Path,
    cables: Iterable[Cable],
    kinds: Mapping[str, PlannedKind],
) -> Iterator[IbsimFabric]:
    """Run the network of these cables; the tools run on its first host, in `folder`.

    A tool that is killed leaves a folder of the simulation where it ran.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cables = [*cables]
    host = next(
        end for end in (cables[0].a, cables[0].b) if kinds[end.device] == "host"
    )
    network = ibsim_network(cables, kinds)
    name = f"{host.device}/{host.port.rpartition(':')[0] or 'mlx5_0'}"
    fabric = IbsimFabric(folder, network, name)
    try:
        with chdir(folder):
            yield fabric
    finally:
        fabric.close()
