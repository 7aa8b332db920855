"""The playbooks, their roles and the sample inventory, without any host."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.audit.hardware_types import Hardware
from seatrial.fabric.declaration import Declaration
from seatrial.system.playbooks import problems

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
PLAYBOOKS = sorted(ROOT.glob("playbooks/*.yml"))
ROLES = sorted(path.name for path in ROOT.glob("playbooks/roles/*"))
SAMPLE = ROOT / "inventories" / "sample"
RESULTS = {"mpi_found", "nodes_found"}
"""Arguments of roles that other roles register, so that no inventory gives them."""


@cache
def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text()) if path.exists() else None


def options_of(role: str) -> dict[str, Any]:
    specs = load(ROOT / "playbooks" / "roles" / role / "meta" / "argument_specs.yml")
    options: dict[str, Any] = specs["argument_specs"]["main"]["options"]
    return options


def defaults_of(role: str) -> dict[str, Any]:
    return load(ROOT / "playbooks" / "roles" / role / "defaults" / "main.yml") or {}


def sample_settings(*, with_defaults: bool) -> dict[str, Any]:
    """Settings of the sample; those in comments, `# name: value`, are the defaults."""
    known = {name for role in ROLES for name in options_of(role)}
    lines = []
    inside = False
    for path in sorted(SAMPLE.glob("group_vars/all/*.yml")):
        for line in path.read_text().replace("---\n", "").splitlines():
            name = re.match(r"# (\w+):", line)
            goes_on = inside and line.startswith("#   ")
            inside = goes_on or bool(name and name[1] in known)
            lines.append(line[2:] if inside and with_defaults else line)
    settings: dict[str, Any] = yaml.safe_load("\n".join(lines))
    return settings


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command[0]), *map(str, command[1:])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_syntax() -> None:
    done = run("ansible-playbook", "--syntax-check", "-i", SAMPLE, *PLAYBOOKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall("^playbook: (.*)", done.stdout, re.MULTILINE) == [
        str(playbook) for playbook in PLAYBOOKS
    ]


def test_lint_production_profile_skips_nothing() -> None:
    config = load(ROOT / ".ansible-lint")
    assert config["profile"] == "production"
    assert not config.get("skip_list")
    assert not config.get("warn_list")
    assert "ansible-lint --offline --strict\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("role", ROLES)
def test_argument_specs_and_defaults_agree(role: str) -> None:
    options, defaults = options_of(role), defaults_of(role)
    optional = {name for name, option in options.items() if not option.get("required")}
    assert optional == set(defaults)
    for name in optional:
        assert options[name].get("default") == defaults[name], name


@pytest.mark.parametrize("role", ROLES)
def test_variables_of_a_role_are_described_and_named_after_it(role: str) -> None:
    def undescribed(options: dict[str, Any]) -> list[str]:
        return [
            name
            for name, option in options.items()
            if not (option.get("description") and option.get("type"))
            or undescribed(option.get("options", {}))
        ]

    assert undescribed(options_of(role)) == []
    internal = load(ROOT / "playbooks" / "roles" / role / "vars" / "main.yml") or {}
    assert [name for name in defaults_of(role) if not name.startswith(f"{role}_")] == []
    assert [name for name in internal if not name.startswith(f"__{role}_")] == []


@pytest.mark.parametrize(
    "role", [role for role in ROLES if role not in ("lab", "foreign", "standins")]
)
def test_sample_documents_every_variable_and_its_default(role: str) -> None:
    settings = sample_settings(with_defaults=True)
    active = sample_settings(with_defaults=False)
    assert set(options_of(role)) - RESULTS <= set(settings)
    for name, value in defaults_of(role).items():
        if name not in active:
            assert settings[name] == value, name


def test_sample_sets_nothing_that_no_role_knows() -> None:
    known = {name for role in ROLES for name in options_of(role)}
    known |= {*Hardware.__struct_fields__}  # of the audit, which reads them itself
    known |= {*Declaration.__struct_fields__}
    settings = sample_settings(with_defaults=True)
    assert {name for name in settings if not name.startswith("ansible_")} <= known


@pytest.mark.parametrize(
    "inventory", ["sample", "lab", "lab-trixie", "rdma-lab", "scale-lab"]
)
def test_inventory_fits_argument_specs(inventory: str, tmp_path: Path) -> None:
    (said,) = validate(ROOT / "inventories" / inventory, tmp_path, {})
    assert said == ""


def test_wrong_value_is_named(tmp_path: Path) -> None:
    cache = {
        **{"name": "x", "provider": "distribution", "srun_mpi": "pmix"},
        "registration_cache": {"enable": {}},
    }
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"mpi_stacks": [{"name": "x", "provider": "rpm"}]}, "provider"),
        ({"mpi_stacks": [cache]}, "registration_cache"),
        ({"suite_modules_system": "tcl"}, "suite_modules_system"),
        ({"node_classes": [{"group": "cpu"}]}, "node_classes"),
        ({"node_classes": [{"name": "x", "node": "cn01"}]}, "node"),
        ({"nodes_facts_by": "telnet"}, "nodes_facts_by"),
        ({"suite_file_systems": [{"name": "x", "path": "/x"}]}, "share"),
    ]
    said = validate(SAMPLE, tmp_path, *(variables for variables, _ in wrong))
    for (variables, named), words in zip(wrong, said, strict=True):
        assert named in words, variables


GOOD = {"name": "scratch", "path": "/scratch/seatrial", "share": 0.05}


def test_wrong_file_systems_are_refused(tmp_path: Path) -> None:
    tasks = load(ROOT / "playbooks/roles/suite/tasks/main.yml")
    (check,) = [task for task in tasks if "File systems" in task["name"]]
    wrong = [
        [GOOD, {**GOOD, "path": "/home"}],
        [GOOD, {**GOOD, "name": "home"}],
        [{**GOOD, "name": "none"}],
        [{**GOOD, "name": "a b"}],
        [{**GOOD, "path": "scratch"}],
        [{**GOOD, "path": "/it's"}],
        [{**GOOD, "path": "/scratch/x/"}],
        [{**GOOD, "path": "/scratch//x"}],
        [{**GOOD, "path": "//scratch/x"}],
        [{**GOOD, "share": 0}],
        [{**GOOD, "share": 1}],
    ]
    right = [[], [GOOD], [GOOD, {"name": "home", "path": "/home", "share": 0.9}]]
    results = [{**check, "ignore_errors": True, "register": "done"}]
    results.append({"debug": {"msg": "{{ 'refused' if done is failed else 'taken' }}"}})
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {"suite_file_systems": value},
            "tasks": results,
        }
        for value in (*wrong, *right)
    ]
    playbook = tmp_path / "check.yml"
    playbook.write_text(yaml.safe_dump(plays))
    done = run("ansible-playbook", "-i", "localhost,", playbook)
    found = re.findall(r"msg: (refused|taken)", done.stdout)
    assert found == ["refused"] * len(wrong) + ["taken"] * len(right), done.stdout


def validate(inventory: Path, folder: Path, *extra: dict[str, Any]) -> list[str]:
    """Check variables against the specs of site.yml's roles; no host is contacted.

    Each of `extra` replaces some of the inventory's; what is wrong then, or "".
    """
    roles = [role["role"] for role in load(ROOT / "playbooks/site.yml")[-1]["roles"]]
    results: dict[str, Any] = {name: {"stacks": []} for name in RESULTS}
    tasks = [
        {
            "ansible.builtin.validate_argument_spec": {
                "argument_spec": options_of(role),
                "provided_arguments": {
                    name: f"{{{{ {name} }}}}" for name in options_of(role)
                },
            },
        }
        for role in roles
    ]
    defaults = {k: v for role in roles for k, v in defaults_of(role).items()}
    plays = [
        {
            "name": "validate",
            "hosts": "login[0]",
            "connection": "local",
            "gather_facts": False,
            "ignore_errors": True,
            "vars": variables,
            "roles": ["defaults"],
            "tasks": tasks,
        }
        for variables in extra
    ]
    (folder / "roles" / "defaults" / "defaults").mkdir(parents=True)
    role_defaults = folder / "roles" / "defaults" / "defaults" / "main.yml"
    role_defaults.write_text(yaml.safe_dump({**defaults, **results}))
    playbook = folder / "validate.yml"
    playbook.write_text(yaml.safe_dump(plays))
    done = run("ansible-playbook", "-i", inventory, playbook)
    assert done.returncode == 0, done.stdout + done.stderr
    _, *parts = re.split(r"^PLAY \[validate\].*", done.stdout, flags=re.MULTILINE)
    failed = re.compile(r"^fatal: .*?(?=^\.\.\.ignoring)", re.MULTILINE | re.DOTALL)
    for part in parts:
        assert len(re.findall("^(?:ok|fatal): ", part, re.M)) == len(tasks), part
    return ["".join(failed.findall(part)) for part in parts]


def test_failed_tasks_of_a_log_are_sentences() -> None:
    log = """
TASK [x] ***
[ERROR]: Task failed: Action failed: no such folder
Origin: /x/tasks/main.yml:19:3
fatal: [head]: FAILED! =>
    msg: no such folder
TASK [y] ***
[ERROR]: Task failed: Module failed: localhost lacks it
fatal: [localhost]: FAILED! =>
TASK [z] ***
[ERROR]: Task failed: unreachable
fatal: [head]: UNREACHABLE! =>
...ignoring
[ERROR]: YAML parsing failed
"""
    expected = ["head: no such folder", "localhost lacks it", "YAML parsing failed"]
    assert problems(log.splitlines()) == expected
    assert problems(["fatal: [x]: UNREACHABLE!", "y"]) == ["fatal: [x]: UNREACHABLE!"]
    assert problems(["usage"]) == ["usage"]


def test_failures_of_each_host_are_told(tmp_path: Path) -> None:
    """Ansible prints an error once, even if several hosts have it."""
    scripts = {
        "localhost": "echo first >&2; echo 'bad: {x}' >&2; echo out; exit 3",
        "h2": "echo it is >&2; exit 1",
        "h3": "echo out; echo last; exit 1",
        "h4": "exit 1",
    }
    fails = {"ansible.builtin.command": {"argv": ["sh", "-c", "{{ script }}"]}}
    echoes = "echo {{ item }}; exit 1"
    items = {"ansible.builtin.command": {"argv": ["sh", "-c", echoes]}}
    tasks = [
        {**fails, "when": "inventory_hostname == 'h5'"},
        {**fails, "ignore_errors": True},
        {**items, "loop": ["a", "b"], "ignore_errors": True},
        {**items, "loop": ["c", "d"], "when": "inventory_hostname == 'h6'"},
        {**fails, "when": "inventory_hostname != 'h6'"},
    ]
    scripts |= {"h5": "echo early; exit 1", "h6": "exit 2"}
    hosts = {
        host: {"script": script, "ansible_python_interpreter": sys.executable}
        for host, script in scripts.items()
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    inventory = ("-i", tmp_path / "hosts.yml", "-c", "local")
    done = run("ansible-playbook", *inventory, tmp_path / "play.yml")
    assert sorted(problems(done.stdout.splitlines())) == [
        *("bad: {x}", "h2: it is", "h3: last", "h4: non-zero return code"),
        *("h5: early", "h6: c", "h6: d"),
    ]
