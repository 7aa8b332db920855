"""A stand-in for Slurm on two nodes: shell programs over a folder of jobs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_home import SETTINGS, fake_program, write

_SINFO = """
state() {{
  cat {at}/$1.lost 2>/dev/null || echo 'idle|Unknown|Unknown|none'
}}
for node in cn01 cn02; do
  case "$*" in
    *%u*) echo "$node|batch*|$(state $node)";;
    *) echo "$node|$(state $node | cut -d'|' -f1)|$(state $node | cut -d'|' -f4)";;
  esac
done
"""
_SBATCH = """
n=1
while ! mkdir {at}/$n 2>/dev/null; do n=$((n+1)); done
sed -n 's/^#SBATCH --comment=//p' rfm_job.sh > {at}/$n/comment
if [ -e {at}/cn02.lost ] && ! grep -q 'nodes 1$' rfm_job.sh; then
  echo PENDING > {at}/$n/state
else
  bash rfm_job.sh > rfm_job.out 2> rfm_job.err
  echo COMPLETED > {at}/$n/state
fi
[ -e {at}/after.$n ] && . {at}/after.$n
echo Submitted batch job $n
"""
_SQUEUE = """
reason='{reason}'
for job in {at}/[0-9]*; do
  [ "$(cat $job/state)" = PENDING ] || continue
  n=${{job##*/}} comment=$(cat $job/comment)
  case "$*" in
    *%D*) echo "batch|2||rfm_Echo_0123abcd";;
    *-w*) ;;
    *%T*) echo "$n|PENDING|$comment||$reason|/x";;
    *) echo "$n|$comment|$reason";;
  esac
done
"""
_SACCT = """
while [ "$1" != -j ]; do [ $# -gt 0 ] || exit 0; shift; done
for n in $(echo "$2" | tr , ' '); do
  case "$*" in
    *State,Start*) echo "$(cat {at}/$n/state)|$(cat {at}/$n/start || echo Unknown)";;
    *) node=$(cat {at}/$n/node || echo cn01)
       echo "$n|$(cat {at}/$n/state)|0:0|2026-11-21T06:30:15|$node";;
  esac
done
"""
_SCONTROL = """
for last; do :; done
[ "$last" = cn02 ] && echo cn02 || echo cn01
"""
LACK = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
)


def stand_in(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch, reason: str = LACK
) -> Path:
    """Put a stand-in first on PATH, and let the system of a home be one of Slurm.

    Jobs run at once, on all nodes or on one; `reason` is that of jobs that need two
    while cn02 is lost. Gives the folder of its state: what is in `cn02.lost` sinfo
    prints as `state|user|time|reason`; `after.N` is run after job N. A job's folder has
    its `state`, and may have its `start` and `node` for sacct.
    """
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    partition = settings["systems"][0]["partitions"][0]
    partition.update(scheduler="slurm")
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    at, programs = folder / "slurm", folder / "bin"
    at.mkdir()
    fake_program(programs, "sinfo", _SINFO.format(at=at))
    fake_program(programs, "sbatch", _SBATCH.format(at=at))
    fake_program(programs, "squeue", _SQUEUE.format(at=at, reason=reason))
    fake_program(programs, "sacct", _SACCT.format(at=at))
    fake_program(programs, "scontrol", _SCONTROL)
    fake_program(programs, "sacctmgr", f"cat {at}/events 2>/dev/null")
    cancel = f"for job; do echo 'CANCELLED by 1000' > {at}/$job/state; done"
    fake_program(programs, "scancel", cancel)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return at
