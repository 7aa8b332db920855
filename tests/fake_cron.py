"""Stand-ins for scrontab, sbatch, squeue, scancel, scontrol and sacctmgr.

`scrontab` behaves as that of Slurm 24.11: its messages, streams and statuses are read
from its source.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_home import SETTINGS, fake_program, write, write_home

_SCRONTAB = """
if [ -e {at}/off ]; then
  echo 'scrontab: fatal: scrontab is disabled on this cluster' >&2; exit 1
fi
if [ -e {at}/silent ]; then
  echo 'scrontab: fatal: slurm_request_crontab failed: Unable to contact slurm' >&2
  exit 1
fi
case "$1" in
-l)
  if [ ! -e {at}/crontab ]; then echo "no crontab for me"; exit 1; fi
  cat {at}/crontab; exit 0;;
-r) rm -f {at}/crontab; exit 0;;
-*) echo 'Usage: scrontab [-u user] [ -e | -l | -r ]' >&2; exit 1;;
esac
echo write >> {at}/writes
refused='^#SCRON .*--(array|begin|hold|requeue|wrap)'
if bad=$(grep -E "$refused" "$1") || [ -e {at}/refuse ]; then
  echo "scrontab: error: Invalid option found in #SCRON line: $bad" >&2
  echo 'There are errors in your crontab.'; exit 1
fi
if grep -vE '^[ \t]*(#|$)|^[A-Za-z_]+ *=' "$1" | grep -qvE '^([0-9*/,-]+ +){{5}}.'; then
  echo 'scrontab: error: something is broken' >&2
  echo 'There are errors in your crontab.'; exit 1
fi
[ -e {at}/deaf ] || cp "$1" {at}/crontab
"""
_SBATCH = """
n=$(($(ls {at}/jobs | wc -l) + 1))
printf '%s\\n' "$@" > {at}/jobs/$n
for word; do
  case "$word" in --job-name=*) echo "${{word#*=}}" > {at}/names.$n;; esac
done
echo "$n;cluster"
"""
_SQUEUE = """
for word; do case "$word" in --name=*) name=${{word#*=}};; esac; done
for job in {at}/names.*; do
  [ -e "$job" ] && [ "$(cat $job)" = "$name" ] && echo "${{job##*.}}"
done
exit 0
"""
_SCONTROL = """
case "$*" in
  *partition*) cat {at}/partitions;;
  *hostnames*) echo "$3" | tr , '\\n';;
  *reservation*) cat {at}/reservations;;
esac
"""
_SACCTMGR = """
case "$*" in
  *qos*) printf 'normal\\nnight\\n';;
  *assoc*) printf 'ops\\nops\\n';;
  *user*) echo guests;;
esac
"""
PARTITIONS = (
    "PartitionName=batch AllowAccounts=ALL Default=YES MaxTime=UNLIMITED "
    "PreemptMode=OFF State=UP\n"
    "PartitionName=short AllowAccounts=ALL Nodes=cn02,cn09 Default=NO MaxTime=01:00:00 "
    "PreemptMode=CANCEL State=UP\n"
    "PartitionName=closed AllowAccounts=ops,hpc Default=NO MaxTime=UNLIMITED "
    "PreemptMode=OFF State=UP\n"
)
NIGHTLY = """\
schema: 1
window: {start: '01:00', end: '05:00'}
node_hours: 2
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-ins first on PATH; return the folder of their state.

    The file `off` disables scrontab, `silent` lets it fail, `refuse` refuses each new
    scrontab, `deaf` drops it.
    """
    at, programs = folder / "slurm", folder / "bin"
    (at / "jobs").mkdir(parents=True)
    write(at / "partitions", PARTITIONS)
    write(at / "reservations", "ReservationName=nights StartTime=2026-01-01T00:00:00\n")
    for name, script in (
        ("scrontab", _SCRONTAB),
        ("sbatch", _SBATCH),
        ("squeue", _SQUEUE),
        ("scontrol", _SCONTROL),
        ("sacctmgr", _SACCTMGR),
    ):
        fake_program(programs, name, script.format(at=at))
    fake_program(programs, "scancel", f"for job; do rm -f {at}/names.$job; done")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return at


def nightly_home(folder: Path, text: str = NIGHTLY) -> Path:
    """Write a home whose system is Slurm's and declares nights."""
    home = write_home(folder)
    settings: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    settings["systems"][0]["partitions"][0]["scheduler"] = "slurm"
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings))
    campaigns = home / "reframe-checks" / "campaigns"
    write(campaigns / "nightly.yaml", "blocks: [{name: echo, checks: [Echo]}]\n")
    write(home / "reference-data" / "lab" / "nightly.yaml", text)
    return home
