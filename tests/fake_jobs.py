"""A stand-in for Slurm that runs the jobs of a real ReFrame at once, here."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_home import SETTINGS, fake_program, write

SBATCH = """
n=1
while ! mkdir {at}/$n 2>/dev/null; do n=$((n+1)); done
cp $1 {at}/$n/script
(
  export SLURM_JOB_ID=$n SLURM_JOB_NODELIST=cn[01-02]
  option() {{ sed -n "s/^#SBATCH --$1=//p" $2; }}
  first=$(option dependency $1 | tr -c '0-9\\n' ' ')
  until [ -z "$first" ] || (cd {at} && cat $(printf '%s/state ' $first)) 2>/dev/null |
    grep -q .; do sleep 0.05; done
  bash $1 > $(option output $1) 2> $(option error $1)
  [ -e {at}/$n/state ] || echo COMPLETED > {at}/$n/state
) < /dev/null > /dev/null 2>&1 &
echo Submitted batch job $n
"""
SACCT = """
while [ "$1" != -j ]; do [ $# -gt 0 ] || exit 0; shift; done
for n in $(echo "$2" | tr , ' '); do
  state=$(cat {at}/$n/state 2>/dev/null || echo RUNNING)
  case "$*" in
    *State,Start*) echo "$state|2026-11-21T06:30:15";;
    *) echo "$n|$state|0:0|2026-11-21T06:30:15|cn01";;
  esac
done
"""


def slurm_jobs(home: Path, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let the system of a home use the stand-in; its jobs are in `folder`/slurm."""
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partition = settings["systems"][0]["partitions"][0]
    partition |= {"scheduler": "slurm", "environs": ["openmpi"], "features": ["slurm"]}
    partition["processor"] = {"num_cpus": 2}
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    at, programs = folder / "slurm", folder / "bin"
    at.mkdir()
    fake_program(programs, "sinfo", "printf 'cn01|idle|\\ncn02|idle|\\n'")
    fake_program(programs, "sbatch", SBATCH.format(at=at))
    fake_program(programs, "sacct", SACCT.format(at=at))
    fake_program(programs, "scontrol", "echo cn01")
    fake_program(programs, "squeue", "true")
    patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
