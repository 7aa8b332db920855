# mypy: disable-error-code="misc,untyped-decorator,has-type"
"""Power, temperature and throttling beside every load, without help of its check.

A step of one task on each node reads the sensors while the programs of a job run:
see seatrial.checks.loadsensors. A load is a check that computes.
"""

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, variable

from seatrial.checks.tags import Tag
from seatrial.model.energy import work_rates
from seatrial.model.metrics import Metric
from seatrial.model.records import Sample
from seatrial.names import node_set
from seatrial.parsers.errors import ParseError
from seatrial.parsers.load_sensors import (
    LOAD_FILE,
    LOAD_STEP,
    LoadReadings,
    parse_load_sensors,
)
from seatrial.paths import home, suite_python
from seatrial.system.description import SLURM

_LOADS = {Tag.COMPUTE, Tag.APPLICATION}
_ERRORS = "loadsensors.err"
_ONE_MACHINE = "all nodes share one machine: its sensors are not those of a node"
_BEGIN_TENTHS, _END_TENTHS, _TERM_TENTHS = 300, 200, 50


class LoadSensed(rfm.RegressionTestPlugin):
    """A check whose nodes are watched while it runs, if it is a load."""

    load_sensors = variable(typ.Bool, value=True)
    """Read power, temperature and throttling of the nodes beside a load."""
    known_metrics: Mapping[str, Metric]
    absent_sensors: dict[str, str]
    rates: dict[str, float]

    @run_before("run")
    def forget_sensors(self) -> None:
        """Begin a run without readings."""
        self.absent_sensors, self.rates = {}, {}

    def work_rates(self, samples: Sequence[Sample]) -> dict[str, float]:
        """Return the work of the job's program per second, by kind of work."""
        rates = (
            (s.metric, self.known_metrics[s.metric].unit, s.value) for s in samples
        )
        return work_rates(rates, self.num_nodes)

    @property
    def _is_load(self) -> bool:
        scheduler = self.current_partition.scheduler.registered_name
        slurm = scheduler in SLURM and not self.local
        return bool(self.load_sensors and slurm and _LOADS & {*self.tags})

    @property
    def _shares_machine(self) -> bool:
        return bool(self.current_partition.extras.get("demonstration"))

    def sensors_begin(self) -> list[str]:
        """Return the commands that start the sensors, and wait for the first reading.

        The job runs without them if they do not start.
        """
        if not self._is_load or self._shares_machine:
            return []
        nodes = self.num_nodes
        command = ["srun", "--overlap", f"--nodes={nodes}", f"--ntasks={nodes}"]
        command += ["--ntasks-per-node=1", "--cpus-per-task=1", "--cpu-bind=none"]
        command += ["--mpi=none", "--input=none", "--quiet", f"--job-name={LOAD_STEP}"]
        command += [suite_python(home()), "-I", "-m", "seatrial.checks.loadsensors"]
        if watts := self.current_partition.extras.get("power_command"):
            command += ["--power-command", str(watts)]
        return [
            f": >{LOAD_FILE}",
            f"{shlex.join(command)} >>{LOAD_FILE} 2>{_ERRORS} </dev/null &",
            "seatrial_sensors=$!",
            "disown",
            f"for _ in {{1..{_BEGIN_TENTHS}}}; do",
            f'    [ "$(grep -c began {LOAD_FILE})" -lt {nodes} ] || break',
            "    kill -0 $seatrial_sensors 2>/dev/null && sleep 0.1 || break",
            "done",
        ]

    def sensors_end(self) -> list[str]:
        """Return the commands that end the sensors, and wait for the last reading.

        srun passes USR1 on to its tasks. Tasks that hang end by TERM, on which srun
        ends the step; by KILL, srun would leave them in a shared job.
        """
        if not self._is_load or self._shares_machine:
            return []
        signals = {"USR1": _END_TENTHS, "TERM": _TERM_TENTHS}
        lines = [_ended(name, tenths) for name, tenths in signals.items()]
        return [*chain(*lines), "kill -KILL $seatrial_sensors 2>/dev/null"]

    def sensed(self, nodes: Sequence[str], samples: Sequence[Sample]) -> list[Sample]:
        """Return what the sensors read, without metrics that the check has itself."""
        if self._is_load and self._shares_machine:
            self.absent_sensors[_ONE_MACHINE] = ""
        file = Path(self.stagedir, LOAD_FILE)
        self.rates = self.work_rates(samples)
        if not file.is_file():
            return []
        readings = _read(file, nodes)
        for reason, without in readings.absent.items():
            every = len(without) == len(nodes)
            self.absent_sensors[reason] = "" if every else node_set(without)
        known = {sample.metric for sample in samples}
        found = readings.samples(len(nodes), self.rates)
        return [sample for sample in found if sample.metric not in known]

    def sensors_record(self) -> dict[str, Any]:
        """Return what the record of the case says about its sensors."""
        if not self._is_load:
            return {}
        return {"absent_sensors": self.absent_sensors, "work_rates": self.rates}


def _ended(name: str, tenths: int) -> list[str]:
    """Return the commands that send a signal to the sensors, and wait for their end."""
    return [
        f"kill -{name} $seatrial_sensors 2>/dev/null",
        f"for _ in {{1..{tenths}}}; do",
        "    kill -0 $seatrial_sensors 2>/dev/null && sleep 0.1 || break",
        "done",
    ]


def _read(file: Path, nodes: Sequence[str]) -> LoadReadings:
    try:
        return parse_load_sensors(file.read_text(errors="replace"), nodes)
    except ParseError as error:
        return LoadReadings(absent={f"{LOAD_FILE}: {error}": nodes})
