"""The lab's inventory script."""

import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "inventories/lab/hosts.py"


def run(count: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LAB_NODES": count}
    return subprocess.run(
        [SCRIPT], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("count", [1, 4, 8, 64])
def test_names_and_addresses(count: int) -> None:
    groups = json.loads(run(str(count)).stdout)
    nodes = groups["compute"]["hosts"]
    assert nodes == [f"cn{i:02}" for i in range(1, count + 1)]
    variables = groups["_meta"]["hostvars"]
    assert list(variables) == ["head", *nodes]
    assert len({host["lab_address"] for host in variables.values()}) == count + 1


@pytest.mark.parametrize("count", ["0", "65", "-1", "four", "1.5"])
def test_absurd_counts(count: str) -> None:
    done = run(count)
    assert done.returncode != 0
    assert done.stderr == f"LAB_NODES={count}: expected a number from 1 to 64\n"
