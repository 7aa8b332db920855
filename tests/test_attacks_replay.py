"""Attacks by recordings of somebody else, and by a login node."""

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from closed_runs import rewrite_manifest
from fake_home import CRITERIA, fake_program, write, write_home
from test_replay import CAMPAIGNS, CHECK, settings

from seatrial.campaign.remote import fetch, resume_remotely
from seatrial.checks.replay import staged
from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.limits import RAW_SIZE, Limit
from seatrial.runs.closed_run import load_run
from seatrial.runs.raw_output import recordings
from seatrial.system.description import load_system
from seatrial.system.login_node import Remote

EVIL = "$(touch $EVIL/it-ran)"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = write_home(tmp_path_factory.mktemp("home"))
    write(home / "reframe-checks" / "checks" / "fake" / "fake.py", CHECK)
    criteria = home / "reference-data" / "lab" / "criteria.yaml"
    write(criteria, CRITERIA.replace("Echo", "Count"))
    for name, text in CAMPAIGNS.items():
        write(home / "reframe-checks" / "campaigns" / f"{name}.yaml", text)
    write(home / "etc" / "lab" / "settings.yaml", json.dumps(settings()))
    return home


@pytest.fixture(scope="module")
def measured(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("measured")
    environment = {"SEATRIAL_HOME": str(home), "RUNS": str(results)}
    command = ("run", "lab", "--campaign", "all", "--run-id", "m", "--repeats", "1")
    done = CliRunner(env=environment).invoke(
        main, [*command, "--no-judge", "--results", str(results / "r")]
    )
    assert done.exit_code == 0, done.output
    return results / "r" / "lab" / "m"


@pytest.fixture
def vendor(measured: Path, home: Path, tmp_path: Path) -> Path:
    """A copy of the run that a vendor may change, on a machine of ours."""
    copy = tmp_path / "vendor" / "m"
    shutil.copytree(measured, copy)
    return copy


@pytest.fixture
def replay(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SEATRIAL_HOME", str(home))
    monkeypatch.setenv("SEATRIAL_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("RUNS", str(tmp_path))
    monkeypatch.setenv("EVIL", str(tmp_path))

    def run(folder: Path, campaign: str = "all") -> Result:
        command = ("run", "lab", "--campaign", campaign, "--run-id", "r", "--no-judge")
        return CliRunner().invoke(main, [*command, "--replay", str(folder)])

    return run


def test_settings_of_a_vendor_run_no_command(
    vendor: Path, replay: Any, tmp_path: Path
) -> None:
    """Even where the manifest fits: variables, modules, commands, containers."""
    evil = settings(
        env_vars=[["X", EVIL]],
        prepare_cmds=[EVIL],
        modules=[EVIL],
        access=[EVIL],
        container_platforms=[{"type": "Docker", "env_vars": [["X", EVIL]]}],
        extras={"nodes": ["cn01"], "unknown": EVIL},
    )
    evil["systems"][0] |= {"env_vars": [["X", EVIL]], "modules": [EVIL]}
    evil["environments"][0] |= {
        "env_vars": [["X", EVIL]],
        "prepare_cmds": [EVIL],
        "modules": [EVIL],
        "extras": {"tuning": {"evil": {"X": EVIL}}},
    }
    write(vendor / "system" / "settings.yaml", json.dumps(evil))
    rewrite_manifest(vendor)
    result = replay(vendor)
    assert result.exit_code == 0, result.output
    assert not (tmp_path / "it-ran").exists()
    run = load_run(tmp_path / "results" / "lab" / "r")
    assert {"pass", "fail"} < {case.result for case in run.cases}
    for script in run.path.rglob("rfm_job.sh"):
        assert "EVIL" not in script.read_text()
        assert "export" not in script.read_text()


@pytest.mark.parametrize(
    "change",
    [
        {"name": EVIL},
        {"name": "../../evil"},
        {"launcher": "$(id)"},
        {"features": ["a;b"]},
        {"extras": {"nodes": ["$(id)"]}},
        {"extras": {"nodes": ["cn01"], "rails": ["`id`"]}},
        {"extras": {"nodes": ["cn01"], "memory_mib": "all"}},
        {"processor": {"num_cpus": 10**12}},
    ],
    ids=str,
)
def test_values_of_another_shape_are_refused(
    vendor: Path, replay: Any, change: dict[str, Any]
) -> None:
    write(vendor / "system" / "settings.yaml", json.dumps(settings(**change)))
    rewrite_manifest(vendor)
    result = replay(vendor)
    assert result.exit_code == 2, result.output
    assert re.search(r"settings\.yaml:\d+: \S+: expected .*, got ", result.stderr)


def edited_settings(run: Path, secret: Path) -> None:
    write(run / "system" / "settings.yaml", json.dumps(settings(descr="edited")))


def linked_output(run: Path, secret: Path) -> None:
    file = next(run.rglob("numbers.txt"))
    file.unlink()
    file.symlink_to(secret)


def added_link(run: Path, secret: Path) -> None:
    folder = next(run.rglob("numbers.txt")).parent
    (folder / "evil").symlink_to(secret)
    (folder / "evil.gz").write_bytes(gzip.compress(b"overwritten"))


@pytest.mark.parametrize("attack", [edited_settings, linked_output, added_link])
def test_recorded_run_is_verified_before_its_replay(
    vendor: Path, replay: Any, tmp_path: Path, attack: Any
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42")
    attack(vendor, secret)
    result = replay(vendor)
    assert result.exit_code == 2, result.output
    assert not (tmp_path / "results").exists()
    assert secret.read_text() == "42"


@pytest.mark.parametrize("attack", [linked_output, added_link])
def test_links_in_bare_recordings_are_refused(
    vendor: Path, replay: Any, tmp_path: Path, attack: Any
) -> None:
    """Recordings without a manifest: no file is overwritten, none is copied."""
    secret = tmp_path / "secret"
    secret.write_text("42")
    (vendor / "manifest.json").unlink()
    attack(vendor, secret)
    replay(vendor, "once")
    assert secret.read_text() == "42"
    copies = (tmp_path / "results").rglob("numbers.txt")
    assert "42" not in [file.read_text().strip() for file in copies]
    assert not list((tmp_path / "results").rglob("evil"))


def one(folder: Path, **files: bytes) -> Path:
    record = {"check": "A", "parameters": {}, "environment": "e"}
    write(folder / "x" / "seatrial.json", json.dumps(record))
    write(folder / "x" / "rfm_job.out", "told\n")
    for name, content in files.items():
        (folder / "x" / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"seatrial.job": b"status=0; touch evil\n"}, "status is '0; touch evil'"),
        ({"a": b"", "a.gz": gzip.compress(b"")}, "there twice"),
        ({"a.gz": b"no gzip"}, "damaged: "),
        ({"a.gz": gzip.compress(bytes(5000))}, "size of a recorded file"),
    ],
)
def test_file_of_a_recording_that_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, bytes],
    said: str,
) -> None:
    small = Limit(RAW_SIZE.what, 4000, "bytes")
    monkeypatch.setattr("seatrial.runs.raw_output.RAW_SIZE", small)
    (tmp_path / "stage").mkdir()
    (recording,) = recordings(one(tmp_path / "there", **files))
    with pytest.raises(SeatrialError, match=said):
        staged(recording, tmp_path / "stage")


def test_names_of_recorded_files_are_no_commands(tmp_path: Path) -> None:
    names = ("-rf", "a\nb", "$(touch evil)", "a'b", "seatrial.job")
    files = dict.fromkeys(names, b"status=4\n")
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "-rf").symlink_to(tmp_path / "victim")
    (recording,) = recordings(one(tmp_path / "there", **files))
    commands = staged(recording, tmp_path / "stage")
    assert commands[1:] == [
        "cat seatrial.recorded/rfm_job.out",
        "cat seatrial.recorded/rfm_job.err >&2",
        "exit 4",
    ]
    assert {name for name in names if (tmp_path / "stage" / name).is_file()} == {*names}
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("lock", ["../../../secret", "/etc/passwd", "a/b"])
def test_lock_file_of_a_system_is_beside_it(tmp_path: Path, lock: str) -> None:
    """The files of a system are copied into every run."""
    home = write_home(tmp_path / "home")
    file = home / "etc" / "lab" / "system.json"
    described = json.loads(file.read_text())
    environment = {"name": "e", "lock": lock, "sha256": "0"}
    spack = {"commit": "c", "packages_commit": "c", "environments": [environment]}
    described["software"]["spack"] = spack
    write(file, json.dumps(described))
    with pytest.raises(SeatrialError, match="is no name"):
        load_system(home, "lab")


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """A login node that answers `status` as it likes, and runs nothing."""
    answer = (
        'for last in "$@"; do :; done\ncase "$last" in *status*) cat "$ANSWER";; esac'
    )
    fake_program(tmp_path / "bin", "ssh", answer)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("ANSWER", str(tmp_path / "answer"))
    return Remote("head", "/opt/seatrial")


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "-evil", "$(id)", ""])
def test_login_node_names_no_folder_outside(
    login: Remote, tmp_path: Path, name: str
) -> None:
    (tmp_path / "answer").write_text(json.dumps([{"run": name}]))
    with pytest.raises(SeatrialError, match="is no name"):
        resume_remotely(login, "lab", None, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_login_node_sends_another_run(
    login: Remote, measured: Path, tmp_path: Path
) -> None:
    command = f"exec tar -C {tmp_path}/sent -cf - ."
    fake_program(tmp_path / "bin", "ssh", command)
    final = tmp_path / "results" / "other" / "m"
    shutil.copytree(measured, tmp_path / "sent")
    with pytest.raises(SeatrialError, match="a run of system lab; expected one of oth"):
        fetch(login, "/there", final, "again")
    with pytest.raises(SeatrialError, match="holds run m; expected a folder of"):
        fetch(login, "/there", final.with_name("n"), "again")
    (tmp_path / "sent" / "added").touch()
    with pytest.raises(SeatrialError, match="added: damaged on the way: not in the"):
        fetch(login, "/there", tmp_path / "results" / "lab" / "m", "again")
    assert not list((tmp_path / "results").glob("*/*"))
