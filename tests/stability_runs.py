"""A home with a stability phase, and a stand-in for Slurm that runs jobs side by side.

The jobs are scripts of a real ReFrame. A job named in `at`/fault.MIX runs that file at
its end. What is in `at`/NODE.lost sinfo prints as `state|user|time|reason`; a node with
a file `at`/NODE.gone it does not list; with a file `at`/silent the controller does not
answer.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_home import CHECK, SETTINGS, fake_program, write, write_home

JOBS = (
    CHECK.partition("@rfm.simple_test")[0]
    + """
import os
from seatrial.checks.job_mix import MIX_VARIABLE, SMALLEST, job_of, nodes_of, parse_mix

MIX = parse_mix(os.environ.get(MIX_VARIABLE) or SMALLEST)


@rfm.simple_test
class StabilityJob(rfm.RunOnlyRegressionTest):
    usable_nodes = variable(typ.Dict[str, int], value={})
    calibrate = variable(bool, value=True)
    typical_s = variable(int, value=1)
    extent = variable(str, value="one class")
    mix = parameter([*MIX])
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi"]
    executable = "sh"
    reference_file = "echo.yaml"

    @run_after("init")
    def take_place(self):
        self.size, self.seconds, _ = job_of(self.mix)
        node_class, _, stack = MIX[self.mix].partition("+")
        if stack:
            self.valid_systems = [f"*:{node_class}"]
            self.valid_prog_environs = [stack]

    @run_before("run")
    def commands(self):
        fault = f"AT/fault.{self.mix}"
        script = f"sleep {self.seconds}; [ ! -e {fault} ] || . {fault}; echo done"
        self.executable_opts = [f"-c '{script}'"]

    @sanity_function
    def ended(self):
        is_done = sn.evaluate(sn.count(sn.findall("done", self.stdout))) > 0
        number = {"metric": "exchange_time", "value": 50.0, "size_bytes": 8192}
        names = ["cn01", "cn02"][: nodes_of(self.size, 2)]
        names = ["cn02"] if self.mix == "1x1-2" else names
        record = {
            "check": "StabilityJob",
            "environment": self.current_environ.name,
            "parameters": {"mix": self.mix},
            "job_id": str(self.job.jobid),
            "nodes": names,
            "declared": [],
            "payload_s": float(self.seconds),
            "samples": [number] if is_done else [],
        }
        with open(f"{self.stagedir}/seatrial.json", "w") as file:
            json.dump(record, file)
        return sn.assert_true(is_done)
"""
)

PHASE = """
max_jobs: 8
stability:
  duration: 12 s
  round: 6 s
  load: 0.5
  jobs: [{nodes: 1, time: 1 s, weight: 2}, {nodes: 100%, time: 1 s}]
blocks: [{name: mix, checks: [StabilityJob]}]
"""

CRITERIA = """
schema: 1
risks: {seller: 0.1, buyer: 0.1}
defaults: {document: contract, clause: "7"}
criteria:
  - kind: stability
    availability: {at_least: 0.5}
  - kind: stability
    name: failures
    mtbf: {accepted: 10 h, rejected: 1 h}
    burst: 1 s
"""

ALLOWED = """
schema: 1
risks: {seller: 0.1, buyer: 0.1}
defaults: {kind: promised, document: contract, clause: "7"}
criteria:
  - kind: stability
    availability: {at_least: 0.1}
    unobserved: 0.9
"""
"""Criteria that a phase with some failures meets."""

LIMIT = """
  - check: StabilityJob
    model: every
    limits: {exchange_time_8KiB: 100 us}
"""

_SINFO = """
[ ! -e {at}/silent ] || exit 1
state() {{
  cat {at}/$1.lost 2>/dev/null || echo 'idle|Unknown|Unknown|none'
}}
for node in cn01 cn02; do
  [ ! -e {at}/$node.gone ] || continue
  case "$*" in
    *%u*) echo "$node|batch*|$(state $node)";;
    *) echo "$node|$(state $node | cut -d'|' -f1)|$(state $node | cut -d'|' -f4)";;
  esac
done
"""
_SBATCH = """
n=1
while ! mkdir {at}/$n 2>/dev/null; do n=$((n+1)); done
sed -n 's/^#SBATCH --comment=//p' $1 > {at}/$n/comment
(
  export SLURM_JOB_ID=$n at={at} job={at}/$n
  option() {{ sed -n "s/^#SBATCH --$1=//p" $2; }}
  bash $1 > $(option output $1) 2> $(option error $1)
  code=$?
  [ $code = 0 ] && state=COMPLETED || state=FAILED
  [ -e {at}/$n/state ] || echo $state > {at}/$n/state
) < /dev/null > /dev/null 2>&1 &
echo Submitted batch job $n
"""
_SQUEUE = """
[ ! -e {at}/silent ] || exit 1
for job in {at}/[0-9]*; do
  [ -e $job/state ] && continue
  case "$*" in
    *"-t PD"*) ;;
    *%T*) echo "${{job##*/}}|RUNNING|$(cat $job/comment)|cn01|None|/x";;
  esac
done
exit 0
"""
_SACCT = """
while [ "$1" != -j ]; do [ $# -gt 0 ] || exit 0; shift; done
for n in $(echo "$2" | tr , ' '); do
  state=$(cat {at}/$n/state 2>/dev/null || echo RUNNING)
  case "$*" in
    *State,Start*) echo "$state|2026-11-21T06:30:15";;
    *) echo "$n|$state|0:0|2026-11-21T06:30:15|cn01";;
  esac
done
"""


def write_phase(
    folder: Path, monkeypatch: pytest.MonkeyPatch, criteria: str = CRITERIA
) -> tuple[Path, Path]:
    """Write a home with the campaign `phase`; return it, and the folder of Slurm."""
    home = write_home(folder / "home", criteria)
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partition = settings["systems"][0]["partitions"][0]
    partition |= {"scheduler": "slurm", "environs": ["openmpi"]}
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    write(home / "reframe-checks" / "campaigns" / "phase.yaml", PHASE)
    at, programs = folder / "slurm", folder / "bin"
    at.mkdir()
    check = home / "reframe-checks" / "checks" / "stability" / "stability.py"
    write(check, JOBS.replace("AT/", f"{at}/"))
    scripts = {"sinfo": _SINFO, "sbatch": _SBATCH, "squeue": _SQUEUE, "sacct": _SACCT}
    for name, script in scripts.items():
        fake_program(programs, name, script.format(at=at))
    fake_program(programs, "scontrol", "for last; do :; done; echo $last")
    fake_program(programs, "sacctmgr", "exit 1")
    cancel = f"for job; do echo 'CANCELLED by 0' > {at}/$job/state; done"
    fake_program(programs, "scancel", cancel)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.delenv("SEATRIAL_RESULTS", raising=False)
    return home, at


LOST = 'echo "down|slurm|$(date +%FT%T)|Not responding" > $at/cn02.lost; '
"""Shell: node cn02 dies, and the job with it."""

DIES = f"{LOST}echo NODE_FAIL > $job/state; sleep 2; exit 9"
"""A job dies with its node."""

VANISHES = f"{LOST}sleep 12; mv $at/cn02.lost $at/cn02.gone; exit 9"
"""A job fails on a node that dies, and that Slurm then no longer lists."""

NO_ROUTE = 'echo "connect() to 10.0.0.2: No route to host" >&2; exit 1'
CRASHES = "kill -SEGV $$"
