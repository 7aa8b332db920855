"""Run on another machine: start on the login node, fetch the folder of the run."""

import io
import json
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.errors import Exit, SeatrialError
from seatrial.interrupts import interruptible
from seatrial.names import checked_name
from seatrial.paths import references_dir
from seatrial.runs.open_run import publish, try_folder
from seatrial.runs.pack import extract_plain
from seatrial.runs.run_contents import read_contents
from seatrial.system.login_node import Remote

_SSH_FAILED = 255
_RESULTS = "results"
"""The folder of runs below the prefix on the login node."""
_REPLACE = """
if [ ! -d "${1%/*}" ]; then exit 0; fi
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
tar -xf - -C "$new"
diff -rq "$new" "$1" >/dev/null 2>&1 && exit
mkdir -p "$1"
rm -f "$1"/*.yaml
find "$new" -type f -exec cp {} "$1" ";"
"""
"""Shell script: replace the files of the folder $1 by those of an archive."""


def run_remotely(
    remote: Remote,
    home: Path,
    system: str,
    campaign: str,
    checks: tuple[str, ...],
    run_id: str,
    results: Path,
    repeats: int | None = None,
    folder: str = _RESULTS,
    *,
    beside: bool = False,
) -> Path:
    """Run a campaign on the login node and copy the closed run to `results`.

    The criteria and references of `home` replace those on the login node. `repeats`
    replaces those of the campaign; `folder` is that of the runs there, below the
    prefix; `beside` allows another run of the system at the same time. Its output is
    shown as it comes. Raises SeatrialError if `results` cannot take the copy, before
    anything runs; with the exit status of the run there if it was not closed; and if
    the copy is not complete.
    """
    options = [part for check in checks for part in ("--checks", check)]
    options += [] if repeats is None else ["--repeats", str(repeats)]
    options += ["--beside"] if beside else []
    final = results / system / run_id
    _check_new(final)
    copy_references(remote, home, system)
    command = ["run", system, "--campaign", campaign]
    return _run_and_fetch(remote, folder, final, command, options)


def repeat_remotely(
    remote: Remote, home: Path, run: Path, run_id: str, *, beside: bool = False
) -> Path:
    """Repeat the spoiled cases of a run on the login node, and copy that run here.

    `run` is the copy of the run here. Raises SeatrialError as `run_remotely` does.
    """
    final = run.parent / run_id
    _check_new(final)
    copy_references(remote, home, final.parent.name)
    there = f"{remote.prefix}/{_RESULTS}/{final.parent.name}/{run.name}"
    options = ["--beside"] if beside else []
    return _run_and_fetch(remote, _RESULTS, final, ["repeat", there], options)


def resume_remotely(
    remote: Remote,
    system: str,
    run_id: str | None,
    results: Path,
    *,
    beside: bool = False,
) -> Path:
    """Resume a run on the login node, and copy it to `results` once it is closed.

    Without an id it is the newest that is open there. Raises SeatrialError as
    `run_remotely` does.
    """
    final = results / system / (run_id or _newest_open(remote, system))
    if final.is_dir():
        return final
    _check_new(final)
    options = ["--beside"] if beside else []
    command = ["run", system, "--resume"]
    return _run_and_fetch(remote, _RESULTS, final, command, options)


def _check_new(final: Path) -> None:
    if final.exists():
        raise SeatrialError(
            f"{final}: this run exists already; nothing was started; choose another "
            "--run-id"
        )
    try_folder(final.parent)


def copy_references(remote: Remote, home: Path, system: str) -> None:
    """Copy criteria and references of a system to the login node, if they differ."""
    folder = references_dir(home, system)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file in sorted(folder.glob("*.yaml")):
            archive.add(file, file.name)
    there = str(references_dir(Path(remote.prefix), system))
    done = subprocess.run(
        remote.ssh(["sh", "-euc", _REPLACE, "sh", there]),
        input=packed.getvalue(),
        capture_output=True,
        check=False,
    )
    if done.returncode == _SSH_FAILED:
        raise _unreachable(remote)
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()
        raise SeatrialError(f"cannot copy {folder} to {remote.host}: {problem}")


def _run_and_fetch(
    remote: Remote, folder: str, final: Path, command: list[str], options: list[str]
) -> Path:
    """Run a command on the login node, then copy its closed run to `final`.

    A repeat is beside the run that it repeats.
    """
    system, run_id, there = final.parent.name, final.name, f"{remote.prefix}/{folder}"
    place = [] if command[0] == "repeat" else ["--results", there]
    arguments = [*command, "--run-id", run_id, *place, "--no-judge", *options]
    seatrial_there(remote, arguments, system, "the run")
    again = "repeat the self-test"
    if folder == _RESULTS:
        results = shlex.quote(str(final.parent.parent))
        again = (
            f"fetch it with `seatrial run {system} --resume --run-id {run_id} "
            f"--results {results}` (or with another folder of results)"
        )
    return fetch(remote, f"{there}/{system}", final, again)


def _newest_open(remote: Remote, system: str) -> str:
    """Return the id of the open run that started last there, as `status` lists them."""
    there = f"{remote.prefix}/{_RESULTS}"
    command = [f"{remote.prefix}/bin/seatrial", "status", system, "--format", "json"]
    listed = subprocess.run(
        remote.ssh(["env", f"SEATRIAL_RESULTS={there}", *command]),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    runs = []
    with suppress(ValueError, TypeError, KeyError):
        runs = [str(status["run"]) for status in json.loads(listed.stdout)]
    if not runs:
        problem = f": {listed.stderr.strip()}" if listed.returncode else ""
        raise SeatrialError(
            f"no open run of system {system!r} in {there}/{system} on "
            f"{remote.host}{problem}; nothing to resume; use --run-id ID to fetch a "
            "run that is closed there"
        )
    return checked_name(runs[-1], f"{remote.host}: its newest open run")


def seatrial_there(
    remote: Remote,
    arguments: list[str],
    system: str,
    task: str,
    answers: Collection[int] = (),
) -> int:
    """Run a command of the suite on the login node; its output is shown as it comes.

    Returns its exit status: 0, or one of the `answers`. Raises SeatrialError with any
    other one: `task` did not finish.
    """
    command = [f"{remote.prefix}/bin/seatrial", *arguments]
    with interruptible():
        status = _run_there(remote, command)
    if status == _SSH_FAILED:
        raise _unreachable(remote)
    if status == 127:
        raise SeatrialError(
            f"{command[0]} is missing on {remote.host}: system {system!r} is not "
            f"provisioned; run `ansible-playbook -i inventories/{system} "
            "playbooks/site.yml`"
        )
    if status and status not in answers:
        code = Exit(status) if status in set(Exit) else Exit.USAGE
        raise SeatrialError(f"{task} on {remote.host} did not finish", code)
    return status


def _unreachable(remote: Remote) -> SeatrialError:
    return SeatrialError(
        f"cannot reach the login node {remote.host} over ssh, or lost it; try "
        f"`{shlex.join(remote.ssh(['true']))}`"
    )


def fetch(remote: Remote, there: str, final: Path, again: str) -> Path:
    """Copy one closed run from the folder `there`, and verify it.

    Raises SeatrialError if that fails, with the place of the run there and the remedy
    `again`.
    """
    source = f"{there}/{final.name}"
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{final.name}.", dir=final.parent) as folder:
            copy = Path(folder, final.name)
            _copy(remote, source, copy)
            _verify(copy, final.parent.name)
            publish(copy, final)
    except (OSError, SeatrialError, KeyboardInterrupt) as error:
        reason, code = str(error), Exit.USAGE
        if isinstance(error, OSError):
            reason = f"cannot write below {final.parent}: {error.strerror}"
        elif isinstance(error, KeyboardInterrupt):
            reason, code = "interrupted while the run was copied", Exit.INTERRUPTED
        raise SeatrialError(
            f"{reason}\nRun {final.name} is closed and safe on {remote.host}, in "
            f"{source}. Remove the cause, then {again}.",
            code,
        ) from error
    return final


def _copy(remote: Remote, source: str, target: Path) -> None:
    command = remote.ssh(["tar", "-C", source, "-cf", "-", "."])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            extract_plain(process.stdout, target, f"{remote.host}: {source}")
            while process.stdout.read(65536):
                pass  # tar pads its archive, and must write all of it
        except (SeatrialError, tarfile.TarError) as error:
            process.kill()
            if isinstance(error, SeatrialError):
                raise
            raise SeatrialError(
                f"the copy of run {target.name} from {remote.host} broke off: {error}"
            ) from error
    if process.returncode:
        raise SeatrialError(
            f"cannot copy run {target.name} from {remote.host}: tar over ssh ended "
            f"with status {process.returncode}"
        )


def _verify(path: Path, system: str) -> None:
    """Verify that a copy is whole and of the requested run."""
    contents = read_contents(path)
    for first in contents.differences[:1]:
        raise SeatrialError(f"{path / first.file}: damaged on the way: {first.problem}")
    if contents.manifest["system"] != system:
        raise SeatrialError(
            f"{path}: a run of system {contents.manifest['system']}; expected one of "
            f"{system}; the login node sent another run"
        )


def _run_there(remote: Remote, command: list[str]) -> int:
    """Run the suite there; without a terminal, it stops when its input ends with us."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return subprocess.run(remote.ssh(command, tty=True), check=False).returncode
    line = remote.ssh([*command, "--stop-on-eof"])
    with subprocess.Popen(line, stdin=subprocess.PIPE) as process:
        try:
            return process.wait()
        except BaseException:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
            raise
