"""Runs on a file system: within the share, and removed however they end.

Stand-ins of IOR and mdtest write real files, by a stand-in of srun.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_storage import FakeStorage, fake_storage
from hypothesis import given
from hypothesis import strategies as st

from seatrial.checks.storage.claim import is_running
from seatrial.checks.storage.room import (
    BLOCK_BYTES,
    FOLDERS,
    Room,
    block_bytes,
    files_of_rank,
)
from seatrial.errors import SeatrialError
from seatrial.parsers.ior import parse_ior
from seatrial.parsers.mdtest import parse_mdtest
from seatrial.parsers.steps import StepOutput, split_steps

MIB = 1 << 20
IOR = [
    f"{layout}-{MIB}{suffix}"
    for layout in ("file", "shared")
    for suffix in ("", "-verified")
]


@pytest.fixture
def storage(tmp_path: Path) -> FakeStorage:
    return fake_storage(tmp_path)


def outputs(storage: FakeStorage, *names: str) -> tuple[StepOutput, ...]:
    text = (storage.folder / "storage.txt").read_text()
    return split_steps(text, ["space", *names])


def room(
    free_bytes: int, share: float, total_files: int = 0, free_files: int = 0
) -> Room:
    return Room("scratch", "/s", share, 10**12, free_bytes, total_files, free_files)


def test_ior_writes_what_is_wanted_where_it_may(storage: FakeStorage) -> None:
    with storage.watched() as use:
        assert storage.run("ior", storage.share_of(64 * MIB)) == (0, "")
    assert 2 * MIB < use.bytes <= 8.1 * MIB
    space, *steps = outputs(storage, *IOR)
    assert json.loads(space.text)["used_bytes"] == 8 * MIB
    runs = [parse_ior(step.text) for step in steps]
    assert [(run.file_per_process, run.verified) for run in runs] == [
        (True, False),
        (True, True),
        (False, False),
        (False, True),
    ]
    assert {(run.nodes, run.ranks, run.block_bytes) for run in runs} == {
        (2, 4, 2 * MIB)
    }
    assert all(run.reordered for run in runs)
    assert storage.wait_until_gone()


def test_ior_writes_less_where_the_share_is_smaller(storage: FakeStorage) -> None:
    with storage.watched() as use:
        assert storage.run("ior", storage.share_of(6 * MIB)) == (0, "")
    space = json.loads(outputs(storage, *IOR)[0].text)
    assert space["wanted_bytes"] == 8 * MIB
    assert space["used_bytes"] == 4 * MIB  # a block is a multiple of a transfer
    assert space["used_bytes"] <= space["allowed_bytes"]
    assert 0 < use.bytes <= space["allowed_bytes"]


def test_mdtest_creates_fewer_files_where_the_share_is_smaller(
    storage: FakeStorage,
) -> None:
    share = storage.share_of(MIB)
    with storage.watched() as use:
        assert storage.run("mdtest", share) == (0, "")
    space, output = outputs(storage, "mdtest")
    row = json.loads(space.text)
    assert row["wanted_files"] == 200
    assert 0 < row["used_files"] < 130
    assert parse_mdtest(output.text).items == row["used_files"]
    assert 0 < use.bytes <= row["allowed_bytes"]
    assert storage.wait_until_gone()


@pytest.mark.parametrize("tool", ["ior", "mdtest"])
def test_share_that_is_too_small_is_refused(storage: FakeStorage, tool: str) -> None:
    status, errors = storage.run(tool, storage.share_of(10_000))
    assert status == 2
    assert "scratch (" in errors
    assert "of what is free allows 0.0 MiB" in errors
    assert "raise the share, free some space, or use fewer ranks" in errors
    assert len(errors.splitlines()) == 1
    assert storage.wait_until_gone()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    options = ("-o", "size=16m,nr_inodes=400", "seatrial-test", str(disk))
    if subprocess.run(["mount", "-t", "tmpfs", *options]).returncode:
        pytest.skip("no right to mount a file system")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_small_file_system_is_never_filled(tmp_path: Path, small_disk: Path) -> None:
    storage = fake_storage(tmp_path / "programs", small_disk)
    with storage.watched() as use:
        assert storage.run("ior", 0.5, "--node-mib=1000") == (0, "")
    assert 4 * MIB < use.bytes <= 8 * MIB
    with storage.watched() as use:
        assert storage.run("mdtest", 0.5, "--node-files=1000") == (0, "")
    assert 100 < use.files <= 200
    assert use.bytes <= 8 * MIB


@pytest.mark.parametrize(
    ("fault", "options", "status", "error"),
    [
        ("fail", (), 1, f"file-{MIB}: exit status 2; WARNING: Incorrect data on read"),
        ("damage", (), 1, f"file-{MIB}-verified: exit status 2; WARNING: Incorrect"),
        ("hang", ("--start-limit=0", "--step-limit=1"), 1, "no end in time"),
    ],
)
def test_data_of_a_failed_run_is_removed(
    storage: FakeStorage, fault: str, options: tuple[str, ...], status: int, error: str
) -> None:
    share = storage.share_of(64 * MIB)
    found, errors = storage.run("ior", share, *options, fault=fault)
    assert found == status
    assert f"seatrial.checks.storage: {error}" in errors or error in errors
    assert (storage.folder / "written").exists()
    assert storage.wait_until_gone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_data_of_a_run_that_is_killed_is_removed(
    storage: FakeStorage, number: signal.Signals
) -> None:
    """Slurm ends a job by SIGTERM; after SIGKILL, the keeper cancels the steps."""
    process = storage.start("ior", storage.share_of(64 * MIB), fault="hang")
    storage.wait_until_written()
    assert storage.data.is_dir()
    program = int((storage.folder / "srun.pid").read_text())
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 1)
    assert (f"ended by {number.name}" in errors) == (number != signal.SIGKILL)
    assert storage.wait_until_gone()
    assert not is_running(program)


def test_data_of_a_node_that_died_is_removed_by_the_next_run(
    storage: FakeStorage,
) -> None:
    process = storage.start("ior", storage.share_of(64 * MIB), fault="hang")
    storage.wait_until_written()
    owner: dict[str, Any] = json.loads((storage.data / "owner.json").read_text())
    program = int((storage.folder / "srun.pid").read_text())
    for pid in (*reversed(owner["pids"]), program):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert [*storage.data.iterdir()] != []
    assert storage.run("ior", storage.share_of(64 * MIB)) == (0, "")
    assert storage.wait_until_gone()


@pytest.mark.parametrize(
    ("owner", "is_left"),
    [
        ({"job": "8", "host": "cn05", "pids": [1, 2]}, False),
        ({"job": "9", "host": "cn05", "pids": [1, 2]}, True),  # Slurm knows no job 9
        ({}, False),  # it is being made
        ({"job": "", "host": "cn05", "pids": []}, False),
    ],
)
def test_folder_of_another_job_is_kept_while_it_runs(
    storage: FakeStorage, owner: dict[str, Any], is_left: bool
) -> None:
    storage.own(**owner)
    status, errors = storage.run("mdtest", storage.share_of(64 * MIB))
    if is_left:
        assert (status, errors) == (0, "")
        assert storage.wait_until_gone()
        return
    assert status == 2
    job, host = owner.get("job") or "unknown", owner.get("host")
    assert f"{storage.data} is in use by job {job} on {host}; try again" in errors
    assert (storage.data / "file").read_text() == "data"


def test_path_that_is_not_there_is_named(storage: FakeStorage) -> None:
    storage.disk.rmdir()
    status, errors = storage.run("ior", 0.1)
    assert status == 2
    assert f"{storage.data}: No such file or directory; the user of the" in errors


def test_stripes_are_set_by_lfs_or_refused(storage: FakeStorage) -> None:
    share = storage.share_of(64 * MIB)
    status, errors = storage.run("mdtest", share, "--stripe-count=4")
    assert status == 2
    assert "stripe_count: no program lfs; install the client tools" in errors
    lfs = storage.folder / "bin" / "lfs"
    lfs.write_text('#!/bin/sh\necho "$*" >"$FAKE_FOLDER/lfs"\n')
    lfs.chmod(0o755)
    assert storage.run("mdtest", share, "--stripe-count=-1") == (0, "")
    words = (storage.folder / "lfs").read_text()
    assert words == f"setstripe --stripe-count -1 {storage.data}\n"
    assert storage.wait_until_gone()


@given(
    free=st.integers(0, 2**50),
    share=st.floats(1e-6, 0.9),
    ranks=st.integers(1, 200_000),
    wanted=st.integers(1, 2**50),
    transfer=st.integers(1, 2**26),
)
def test_blocks_never_exceed_the_share(
    free: int, share: float, ranks: int, wanted: int, transfer: int
) -> None:
    place = room(free, share)
    try:
        block = block_bytes(place, ranks, wanted, transfer)
    except SeatrialError:
        assert min(wanted, place.allowed_bytes) < ranks * transfer
        return
    assert block % transfer == 0
    assert transfer <= block
    assert ranks * block <= min(wanted, place.allowed_bytes)


@given(
    free=st.integers(0, 2**40),
    files=st.integers(1, 2**32),
    counted=st.booleans(),
    share=st.floats(1e-6, 0.9),
    ranks=st.integers(1, 10_000),
    wanted=st.integers(1, 10**6),
    size=st.integers(0, 2**20),
)
def test_files_never_exceed_the_share(
    free: int, files: int, counted: bool, share: float, ranks: int, wanted: int,
    size: int,
) -> None:  # fmt: skip
    place = room(free, share, files if counted else 0, files)
    try:
        count = files_of_rank(place, ranks, wanted, size)
    except SeatrialError:
        return
    assert 1 <= count <= wanted
    taken = ranks * count * (max(size, BLOCK_BYTES) + BLOCK_BYTES)
    assert taken <= place.allowed_bytes
    if counted:
        assert place.allowed_files is not None
        assert ranks * (2 * count + FOLDERS) <= place.allowed_files
