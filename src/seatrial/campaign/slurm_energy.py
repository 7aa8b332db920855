"""Energy of the loads of a session, from Slurm's own accounting."""

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.model.cases import Case
from seatrial.model.records import Sample
from seatrial.parsers.load_sensors import LOAD_STEP, results_per_joule
from seatrial.system.slurm import printed, printed_rows

_KEY = "AcctGatherEnergyType"
_NO_PLUGIN = ("", "(null)", "acct_gather_energy/none")
_SHORTEST_S = 60
"""Accounting has whole seconds, and plugins read every half minute or so."""


@dataclass
class Loads:
    """The loads of a session that passed, with the work of their programs per second.

    `absent` has the reasons of readings that are missing, and the nodes; '': all.
    """

    cases: list[tuple[Case, Mapping[str, float]]] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)

    def add(self, case: Case, record: Mapping[str, object]) -> None:
        """Add a case by the record of its check; a check that is no load adds none."""
        absent, rates = record.get("absent_sensors"), record.get("work_rates")
        if not isinstance(absent, dict) or not isinstance(rates, dict):
            return
        self.absent |= absent
        if case.result == "pass" and case.job_id:
            self.cases.append((case, rates))

    def slurm_samples(self) -> Iterator[tuple[Case, list[Sample]]]:
        """Yield energy, power and results per joule of each case by Slurm."""
        if not self.cases:
            return
        plugin = energy_plugin()
        if plugin in _NO_PLUGIN:
            reason = f"Slurm: {_KEY} is {plugin or 'unknown'}"
            self.absent[reason] = ""
            return
        jobs = Counter(case.job_id for case, _ in self.cases)
        of = job_energies([str(job_id) for job_id in jobs])
        for case, rates in self.cases:
            energy = of.get(str(case.job_id))
            if jobs[case.job_id] > 1:
                self.absent[
                    "Slurm: cases that share a job have no energy of their own"
                ] = ""
            elif energy is None:
                self.absent[f"Slurm: {plugin} counted nothing in a job"] = ""
            else:
                yield case, [*energy.samples(rates)]


@dataclass(frozen=True)
class JobEnergy:
    """Joules of the steps of a job, and the seconds that they ran."""

    joules: float
    seconds: int

    def samples(self, rates: Mapping[str, float]) -> Iterator[Sample]:
        """Yield the energy; of a job that is long enough, power and work per joule."""
        yield Sample("slurm_energy", self.joules)
        if self.seconds >= _SHORTEST_S:
            watts = self.joules / self.seconds
            yield Sample("slurm_power", watts)
            yield from results_per_joule("slurm", watts, rates)


@functools.cache
def energy_plugin() -> str:
    """Return the type of Slurm's energy plugin; '' if the controller does not say."""
    for line in printed("scontrol", "show", "config") or ():
        name, _, value = line.partition("=")
        if name.strip() == _KEY:
            return value.strip()
    return ""


def job_energies(job_ids: Sequence[str]) -> dict[str, JobEnergy]:
    """Ask the accounting for the energy of jobs."""
    columns = "JobIDRaw,JobName,ElapsedRaw,ConsumedEnergyRaw"
    options = ("-n", "-P", "-j", ",".join(job_ids), "-o", columns)
    return parse_energies(printed_rows(4, "sacct", *options) or ())


def parse_energies(rows: Iterable[Sequence[str]]) -> dict[str, JobEnergy]:
    """Add up the energy of the numbered steps of each job.

    Rows have job or step, name, seconds and joules. A step counts the energy of its
    nodes: the one that reads the sensors runs beside the others, and is left out. A job
    with a step without a count has none; a count of 0 is no count.
    """
    steps: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for name, step_name, seconds, joules in rows:
        job_id, _, step = name.partition(".")
        counts = step.isdecimal() and step_name != LOAD_STEP
        if counts and seconds.isdecimal() and int(seconds):
            steps[job_id].append((int(seconds), _joules(joules)))
    return {
        job_id: JobEnergy(math.fsum(j for _, j in own), sum(s for s, _ in own))
        for job_id, own in steps.items()
        if all(joules > 0 for _, joules in own)
    }


def _joules(text: str) -> float:
    """Return a number of joules; 0 for none, and for Slurm's NO_VAL."""
    return float(text) if text.isdecimal() and int(text) < 0xFFFFFFFFFFFFFFFE else 0.0
