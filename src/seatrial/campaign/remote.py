"""A run on another machine: start it on the login node, fetch its folder back."""

import json
import shlex
import subprocess
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from seatrial.campaign.login_node import Remote
from seatrial.errors import Exit, SeatrialError
from seatrial.interrupts import interruptible
from seatrial.names import checked_name
from seatrial.runs.open_run import publish, try_folder
from seatrial.runs.pack import extract_plain
from seatrial.runs.run_contents import read_contents

_SSH_FAILED = 255
_RESULTS = "results"
"""The folder of runs below the prefix on the login node."""


def run_remotely(
    remote: Remote,
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

    `repeats` replaces those of the campaign; `folder` is where runs are kept there,
    below the prefix; `beside` allows another run of the system at the same time. Its
    output is shown as it comes. Raises SeatrialError, with the exit status of the run
    there, if `results` cannot take the copy, before anything runs; if the run was not
    closed; and if the copy is not complete.
    """
    there, final = f"{remote.prefix}/{folder}", results / system / run_id
    _require_room(final)
    arguments = [
        "run",
        system,
        "--campaign",
        campaign,
        "--run-id",
        run_id,
        "--results",
        there,
        "--no-judge",
        *(part for check in checks for part in ("--checks", check)),
        *(() if repeats is None else ("--repeats", str(repeats))),
        *(("--beside",) if beside else ()),
    ]
    seatrial_there(remote, arguments, system, "the run")
    again = "repeat the self-test"
    if folder == _RESULTS:
        again = _fetch_command(system, final)
    return fetch(remote, f"{there}/{system}", final, again)


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
    there = f"{remote.prefix}/{_RESULTS}"
    run_id = run_id or _newest_open(remote, there, system)
    final = results / system / run_id
    if final.is_dir():
        return final
    _require_room(final)
    arguments = ["run", system, "--resume", "--run-id", run_id]
    arguments += ["--results", there, "--no-judge"]
    arguments += ["--beside"] if beside else []
    seatrial_there(remote, arguments, system, "the run")
    return fetch(remote, f"{there}/{system}", final, _fetch_command(system, final))


def _newest_open(remote: Remote, there: str, system: str) -> str:
    """Return the id of the open run there that started last, as `status` lists them."""
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
        runs = [str(each["run"]) for each in json.loads(listed.stdout)]
    if not runs:
        problem = f": {listed.stderr.strip()}" if listed.returncode else ""
        raise SeatrialError(
            f"no open run of system {system!r} in {there}/{system} on "
            f"{remote.host}{problem}; nothing was cut off, or say --run-id ID for one "
            "that is closed there and not yet here"
        )
    return checked_name(runs[-1], f"{remote.host}: its newest open run")


def _require_room(final: Path) -> None:
    """Check that a run can be copied to `final`, before it runs for hours."""
    if final.exists():
        raise SeatrialError(
            f"{final}: this run exists already; nothing was started; choose another "
            "--run-id"
        )
    try_folder(final.parent)


def _fetch_command(system: str, final: Path) -> str:
    """Return the advice how to fetch a closed run once more."""
    results = shlex.quote(str(final.parent.parent))
    return (
        "fetch it with "
        f"`seatrial run {system} --resume --run-id {final.name} --results {results}` "
        "(or with another folder of results)"
    )


def seatrial_there(
    remote: Remote, arguments: list[str], system: str, what: str
) -> None:
    """Run a command of the suite on the login node; its output is shown as it comes.

    Raises SeatrialError, with its exit status, if it fails: `what` did not finish.
    """
    command = [f"{remote.prefix}/bin/seatrial", *arguments]
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    with interruptible():
        status = _run_there(remote, command, tty=tty)
    if status == _SSH_FAILED:
        raise SeatrialError(
            f"cannot reach the login node {remote.host} over ssh, or lost it; try "
            f"`{shlex.join(remote.ssh(['true']))}`"
        )
    if status == 127:
        raise SeatrialError(
            f"{command[0]} is missing on {remote.host}: system {system!r} is not "
            f"provisioned; run `ansible-playbook -i inventories/{system} "
            "playbooks/site.yml`"
        )
    if status:
        code = Exit(status) if status in set(Exit) else Exit.USAGE
        raise SeatrialError(f"{what} on {remote.host} did not finish", code)


def fetch(remote: Remote, there: str, final: Path, again: str) -> Path:
    """Copy one closed run from the folder `there`; it counts once it is verified.

    Raises SeatrialError if that fails. It tells where the run is safe, and `again`,
    what to do then.
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
                pass  # tar pads its archive, and must get rid of that too
        except SeatrialError:
            process.kill()
            raise
        except tarfile.TarError as error:
            process.kill()
            raise SeatrialError(
                f"the copy of run {target.name} from {remote.host} broke off: {error}"
            ) from error
    if process.returncode:
        raise SeatrialError(
            f"cannot copy run {target.name} from {remote.host}: tar over ssh ended "
            f"with status {process.returncode}"
        )


def _verify(path: Path, system: str) -> None:
    """Verify a copy; only now is it known that it is the run that was asked for."""
    contents = read_contents(path)
    for first in contents.differences[:1]:
        raise SeatrialError(f"{path / first.file}: damaged on the way: {first.problem}")
    if contents.manifest["system"] != system:
        raise SeatrialError(
            f"{path}: a run of system {contents.manifest['system']}; expected one of "
            f"{system}; the login node sent another run"
        )


def _run_there(remote: Remote, command: list[str], *, tty: bool) -> int:
    """Run the suite there; without a terminal, its end of input is our end."""
    if tty:
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
