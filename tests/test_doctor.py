"""`seatrial doctor`: facts of a login node and of nodes, and what follows from them."""

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_home import fake_program, write_home

from seatrial.cli import main
from seatrial.system import login_node
from seatrial.system.doctor import probe
from seatrial.system.doctor.diagnosis import diagnose
from seatrial.system.doctor.finding import Diagnosis
from seatrial.system.doctor.probe import Facts, probe_script, read_facts

SETTINGS: dict[str, Any] = {
    "classes": [{"name": "cpu", "partition": "standard", "account": "acc"}],
    "stacks": [
        {
            "name": "openmpi",
            "provider": "distribution",
            "compiler": "fakecc",
            "srun_mpi": "pmix",
        }
    ],
    "python": "/usr/bin/python3",
    "groups": {"compute": ["cn1"]},
    "modules_system": "lmod",
}
PROGRAMS = {
    "sbatch": "",
    "squeue": "",
    "scancel": "",
    "sacct": "",
    "sacctmgr": """
case "$*" in
  *assoc*) echo 'acc||normal,high';;
  *) echo 'normal|||'; echo 'high|cpu=999,node=2||1-00:00:00';;
esac
""",
    "scontrol": """
case "$*" in
  ping) echo 'Slurmctld(primary) at head is UP';;
  *hostnames*) echo "$3" | tr , '\\n';;
esac
""",
    "sinfo": """
case "$*" in
  --version) echo slurm 24.11.5;;
  *%R*%a*)
    echo 'standard|up|1-00:00:00'; echo 'secret|up|infinite'; echo 'old|down|1:00';;
  *-N*) echo 'cn1|standard|idle'; echo 'cn2|standard|down*'; echo 'cn1|secret|idle';;
  *) echo standard;;
esac
""",
    "srun": """
case "$*" in
  --mpi=list) echo 'MPI plugin types are...'; echo pmix; echo pmi2; exit;;
esac
case "$*" in
  *--account=acc*) ;;
  *) echo 'srun: error: Invalid account' >&2; exit 1;;
esac
while [ "$1" != sh ]; do shift; done
SLURMD_NODENAME=$(hostname -s) exec "$@"
""",
    "fakecc": "",
}


Findings = Mapping[tuple[str, str], Diagnosis]


class Login:
    """A login node of stand-ins: the probe runs on this machine."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / "prefix"
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name, script in PROGRAMS.items():
            fake_program(self.programs, name, script)

    def diagnosis(self, profile: str = "", **changes: Any) -> Findings:
        """Run the probe's script; return the findings by topic and subject."""
        settings = SETTINGS | changes
        facts = Facts("token", sent=0.0)
        path = f"export PATH={shlex.quote(str(self.programs))}:$PATH\n"
        script = path + profile + probe_script(str(self.prefix), "token", settings)
        done = subprocess.run(
            ["bash", "-s"], input=script, capture_output=True, text=True, check=True
        )
        read_facts("Welcome to the login node!\n" + done.stdout, facts)
        facts.received = 600.0
        findings = diagnose(facts, settings)
        assert all(bool(f.remedy) == (f.verdict != "ok") for f in findings), findings
        return {(finding.topic, finding.subject): finding for finding in findings}


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


def test_a_sound_system_is_go_and_keeps_no_file(login: Login) -> None:
    found = login.diagnosis()
    assert found["nodes", "cpu"].text == "Slurm has all 1"
    assert {f.verdict for key, f in found.items() if key[0] != "memlock"} == {"ok"}
    assert found["slurm version", "login"].text == "slurm 24.11.5"
    assert found["job", "cpu"].text.startswith("ran on ")
    assert found["shared folder", "cpu"].text == "seen and writable"
    assert [*login.prefix.iterdir()] == []


def test_programs_of_verbs_that_are_missing_are_named(login: Login) -> None:
    """Only of a class with verbs; our own once a stack's benchmarks are installed."""
    plain = SETTINGS["classes"][0] | {"name": "plain"}
    classes = [{**SETTINGS["classes"][0], "features": ["verbs"]}, plain]
    for name in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat"):
        fake_program(login.programs, name, "")
    (login.programs / "ib_write_bw").unlink(missing_ok=True)
    found = login.diagnosis(classes=classes)
    assert ("perftest", "plain") not in found
    assert "ib_write_lat" not in found["perftest", "cpu"].text
    assert ("programs of verbs", "cpu") not in found
    own = login.prefix / "benchmarks/openmpi/bin"
    own.parents[1].mkdir()  # as site.yml leaves it for stand-ins, which are not built
    assert ("programs of verbs", "cpu") not in login.diagnosis(classes=classes)
    own.mkdir(parents=True)
    for name in ("mp_rdma_bw", "mp_rdma_lat", "mqp_lat", "mr_cost", "pairsweep_verbs"):
        fake_program(own, name, "")
    own_programs = login.diagnosis(classes=classes)["programs of verbs", "cpu"]
    verdict = (own_programs.verdict, own_programs.text)
    assert verdict == ("warn", "not built: winbw")


MODULE = """module() {
  case "$1 $2" in
    --version*) echo 'Modules Release 5.2.0' >&2;;
    'load gcc') ;;
    'load openmpi') [ -n "$GCC" ] || { echo 'no such module' >&2; false; };;
    'use '*) GCC=yes;;
  esac
}
"""


def no_program(name: str) -> Callable[[Login], None]:
    return lambda login: (login.programs / name).unlink()


def program(name: str, script: str) -> Callable[[Login], None]:
    return lambda login: fake_program(login.programs, name, script)


FAULTS = [
    [
        (
            no_program("sbatch"),
            "slurm commands",
            "login",
            "not on PATH: sbatch",
            "submits jobs",
        ),
        (
            program("getconf", "echo glibc 2.17"),
            *("C library", "login", "glibc 2.17", "need glibc 2.28"),
        ),
        (
            program("srun", "echo 'srun: error: A\ttab\tor two' >&2; exit 1"),
            *("job", "cpu", "A tab or two", "see account"),
        ),
        (no_program("fakecc"), "modules", "openmpi", "fakecc is not on PATH", "module"),
        (
            program("flock", "echo 'flock: Function not implemented' >&2; exit 1"),
            *("file locks", "login", "Function not implemented", "-o flock"),
        ),
    ],
    [
        (
            program("getconf", "exit 1"),
            *("C library", "login", "no glibc", "need glibc 2.28"),
        ),
        (
            program("scontrol", "echo 'Slurmctld(primary) at head is DOWN'"),
            *("slurmctld", "login", "is DOWN", "start slurmctld"),
        ),
        (
            program("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1"),
            *("accounting", "login", "storage is disabled", "AccountingStorageType"),
        ),
        (
            program("srun", '[ "$1" = --mpi=list ] && echo none pmi2'),
            *("srun --mpi", "openmpi", "pmix", "none pmi2"),
        ),
    ],
    [
        (
            program("srun", "echo 'srun: error: Invalid qos' >&2; exit 1"),
            *("job", "cpu", "Invalid qos", "acc||normal,high"),
        ),
    ],
]
"""Faults of three login nodes: what is wrong, and the finding that it leads to."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> list[Findings]:
    """The findings on each of the three login nodes."""
    found = []
    for faults in FAULTS:
        login = Login(tmp_path_factory.mktemp("faulty"))
        for fault, *_ in faults:
            fault(login)
        found.append(login.diagnosis())
    return found


@pytest.mark.parametrize(
    ("number", "topic", "subject", "text", "remedy"),
    [
        (number, *expected)
        for number, faults in enumerate(FAULTS)
        for _, *expected in faults
    ],
)
def test_a_fault_is_found_and_has_a_remedy(
    faulty: list[Findings],
    number: int,
    topic: str,
    subject: str,
    text: str,
    remedy: str,
) -> None:
    finding = faulty[number][topic, subject]
    assert finding.verdict == "fail"
    assert text in finding.text
    assert remedy in finding.remedy


CPU: dict[str, Any] = SETTINGS["classes"][0]
CLASSES = [
    {"name": "cpu", "partition": "standard"},
    {"name": "fat", "partition": "secret", "account": "acc"},
    {"name": "gpu", "account": "acc"},
    {"name": "old", "account": "acc"},
    CPU | {"name": "three", "nodes": "cn1,cn2,cn3"},
    CPU | {"name": "none", "nodes": "x1,x2"},
    CPU | {"name": "two of high", "qos": "high", "nodes": "cn1,cn2"},
    CPU | {"name": "three of high", "qos": "high", "nodes": "cn1,cn2,cn3"},
]


@pytest.fixture(scope="module")
def of_classes(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """The findings on a sound login node with several classes."""
    return Login(tmp_path_factory.mktemp("classes")).diagnosis(classes=CLASSES)


def test_an_account_of_the_class_reaches_srun(of_classes: Findings) -> None:
    finding = of_classes["job", "cpu"]
    assert finding.verdict == "fail"
    assert "Invalid account" in finding.text


def test_a_bundled_python_need_not_be_there(login: Login) -> None:
    found = login.diagnosis(python="bundled")
    assert found["python of the suite", "login"].verdict == "ok"
    assert ("python of the suite", "cpu") not in found
    finding = login.diagnosis(python="/no/python")["python of the suite", "cpu"]
    assert finding.verdict == "fail"
    assert "set suite_python to bundled" in finding.remedy


def test_a_partition_may_be_hidden_but_must_exist(of_classes: Findings) -> None:
    hidden, absent = (of_classes["partition", name] for name in ("fat", "gpu"))
    assert hidden.text.startswith("secret (hidden) is up")
    assert absent.verdict == "fail"
    assert "Slurm has old, secret, standard" in absent.remedy
    assert ("job", "gpu") not in of_classes


def test_a_partition_must_be_up(of_classes: Findings) -> None:
    finding = of_classes["partition", "old"]
    assert finding.verdict == "fail"
    assert finding.text == "old (hidden) is down, time limit 1:00"


def test_a_node_in_maintenance_is_ready_for_its_reservation(login: Login) -> None:
    fake_program(
        login.programs,
        "sinfo",
        PROGRAMS["sinfo"].replace("cn1|standard|idle", "cn1|standard|maint"),
    )
    cpu = CPU | {"nodes": "cn1"}
    ours = cpu | {"name": "reserved", "reservation": "ours"}
    found = login.diagnosis(classes=[cpu | {"reservation": None}, ours])
    assert ("node states", "cpu") in found
    assert ("node states", "reserved") not in found


def test_delivered_nodes_are_compared_with_those_of_slurm(of_classes: Findings) -> None:
    nodes = of_classes["nodes", "three"]
    assert nodes.verdict == "warn"
    assert nodes.text.startswith("cn3 not in partition standard")
    assert of_classes["node states", "three"].text == "cn2 down* of 3"
    assert of_classes["nodes", "none"].verdict == "fail"


def test_the_qos_of_a_class_must_allow_its_nodes(of_classes: Findings) -> None:
    assert of_classes["qos", "two of high"].verdict == "ok"
    finding = of_classes["qos", "three of high"]
    assert finding.verdict == "warn"
    assert finding.text == "high: cpu=999,node=2, 1-00:00:00"


def test_a_constraint_may_hold_characters_of_the_shell(login: Login) -> None:
    fake_program(login.programs, "srun", 'echo "got $1 $2" >&2; exit 1')
    cpu = {"name": "cpu", "partition": "standard", "constraint": "(a|b)&c"}
    finding = login.diagnosis(classes=[cpu])["job", "cpu"]
    assert finding.text == "got --partition=standard --constraint=(a|b)&c"


def test_modules_load_from_their_folders_in_order(login: Login, tmp_path: Path) -> None:
    stack = SETTINGS["stacks"][0] | {"modules": ["gcc", "openmpi"]}
    found = login.diagnosis(stacks=[stack])
    assert found["module system", "login"].text == "no command module"
    found = login.diagnosis(MODULE, stacks=[stack])
    assert "suite_modules_system: envmod" in found["module system", "login"].remedy
    error = "module load openmpi: no such module"
    assert found["modules", "openmpi"].text == error
    right = stack | {"module_folders": [str(tmp_path)]}
    wrong = stack | {"name": "other", "module_folders": ["/no/such"]}
    found = login.diagnosis(MODULE, stacks=[right, wrong], modules_system="envmod")
    assert found["modules", "openmpi"].text == "loaded"
    assert found["module system", "login"].text == "Environment Modules 5.2.0"
    assert found["modules", "other"].text == "no folder /no/such"


def test_a_stack_that_mpirun_starts_needs_mpirun_and_no_plugin(login: Login) -> None:
    stack = SETTINGS["stacks"][0] | {"launcher": "mpirun", "srun_mpi": "none_of_them"}
    without = 'command() { [ "$2" != mpirun ] && builtin command "$@"; }\n'
    found = login.diagnosis(without, stacks=[stack])
    assert found["modules", "openmpi"].text == "mpirun is not on PATH"
    assert ("srun --mpi", "openmpi") not in found
    fake_program(login.programs, "mpirun", "")
    assert login.diagnosis(stacks=[stack])["modules", "openmpi"].verdict == "ok"


def test_a_broken_installation_is_found(login: Login) -> None:
    fake_program(login.prefix / "venv/bin", "python", "echo no such lib >&2; exit 1")
    finding = login.diagnosis()["installed suite", "cpu"]
    assert (finding.verdict, finding.text) == ("fail", "no such lib")


def test_an_empty_inventory_is_no_go(login: Login) -> None:
    assert login.diagnosis(classes=[])["node classes", "inventory"].verdict == "fail"


def node_facts(**changes: str) -> Facts:
    """Return the facts of a sound node of the class cpu, but for `changes`."""
    facts = Facts("token", sent=100.0, received=110.0)
    login = {
        **{"clock": "1000.0", "architecture": "x86_64", "user": "bench"},
        **{"partition": "standard|up|1-0", "visible": "standard", "end": "yes"},
        **{"node": "cn1|standard|idle", "memlock": "unlimited"},
    }
    node = {
        **{"clock": "1005.0", "node": "cn1", "host": "cn1", "memlock": "unlimited"},
        **{"architecture": "x86_64", "token": "token", "writable": "yes"},
        **{"locks": "yes", "python": "3.11.2", "tmp_runs": "yes", "end": "yes"},
        **{"tmp_free_mib": "999", "delivered": "cn1"},
        **changes,
    }
    for subject, values in (("login", login), ("class cpu", node)):
        for name, value in values.items():
            facts.values[subject, name].append(value)
    return facts


@pytest.mark.parametrize(
    ("changes", "topic", "verdict", "text"),
    [
        ({}, "clock", "ok", "0.0 s"),
        ({"clock": "1013.0"}, "clock", "warn", "3.0 s"),
        ({"clock": "990.0"}, "clock", "warn", "10.0 s"),
        ({"memlock": "64"}, "memlock", "warn", "64 KiB"),
        ({"memlock": "1048576"}, "memlock", "ok", "1048576 KiB"),
        (
            {"memlock": "sh: ulimit: no such option"},
            "memlock",
            "warn",
            "no such option",
        ),
        ({"host": "node1"}, "node name", "warn", "cn1 calls itself node1"),
        ({"token": ""}, "shared folder", "fail", "is not seen"),
        ({"writable": ""}, "shared folder", "fail", "seen, not writable"),
        ({"locks": ""}, "file locks", "fail", "flock fails"),
        ({"python": "3.9.18"}, "python of the suite", "fail", "3.9.18"),
        ({"python": "python3.11: not found"}, "python of the suite", "fail", "not"),
        ({"architecture": "aarch64"}, "architecture", "fail", "aarch64"),
        ({"tmp_runs": ""}, "/tmp", "warn", "mounted noexec"),
        ({"tmp_free_mib": "12"}, "/tmp", "warn", "12 MiB free"),
        ({"perftest_lacks": ""}, "perftest", "ok", "on PATH"),
        ({"perftest_lacks": "ib_read_lat"}, "perftest", "warn", "PATH: ib_read_lat"),
        ({"verbs_lacks": ""}, "programs of verbs", "ok", "built"),
        ({"verbs_lacks": "winbw"}, "programs of verbs", "warn", "not built: winbw"),
    ],
)
def test_findings_on_a_node(
    changes: dict[str, str], topic: str, verdict: str, text: str
) -> None:
    classes = [{**SETTINGS["classes"][0], "features": ["verbs"]}]
    (finding,) = (
        finding
        for finding in diagnose(node_facts(**changes), SETTINGS | {"classes": classes})
        if (finding.topic, finding.subject) == (topic, "cpu")
    )
    assert finding.verdict == verdict
    assert text in finding.text


def test_ssh_that_fails_is_the_only_finding() -> None:
    facts = Facts("token", error="Permission denied (publickey)")
    (finding,) = diagnose(facts, SETTINGS)
    assert (finding.topic, finding.verdict) == ("ssh", "fail")
    assert "Permission denied" in finding.text


@pytest.mark.parametrize(("fault", "status"), [({}, 0), ({"token": ""}, 1)])
def test_the_command_prints_go_or_no_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, str], status: int
) -> None:
    write_home(tmp_path)
    (tmp_path / "inventories/far").mkdir(parents=True)
    monkeypatch.setattr(
        login_node,
        "login_variables",
        lambda *_: {
            **SETTINGS,
            **{"stacks": [], "host": "head", "prefix": "/p"},
            **dict.fromkeys(("port", "user", "key", "arguments"), ""),
        },
    )
    facts = node_facts(**fault)
    for name, value in {
        **{"slurm": "slurm 23.02", "ping": "is UP", "prefix_type": "nfs"},
        **{"python": "/usr/bin/python3 3.11.2", "prefix_free_mib": "9999"},
        **{"prefix_locks": "yes", "libc": "glibc 2.36"},
    }.items():
        facts.values["login", name].append(value)
    monkeypatch.setattr(probe, "probe", lambda *_: facts)
    runner = CliRunner(env={"SEATRIAL_HOME": str(tmp_path)})
    result = runner.invoke(main, ["doctor", "far"])
    assert result.exit_code == status, result.output
    assert ("no go: " in result.output) == bool(status)
    printed = runner.invoke(main, ["doctor", "far", "--format", "json"])
    verdicts = {row["verdict"] for row in json.loads(printed.stdout)}
    assert verdicts == ({"ok", "fail"} if status else {"ok"})
