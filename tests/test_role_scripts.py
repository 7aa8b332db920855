"""The scripts that roles of playbooks/site.yml run, away from Ansible."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
import yaml
from fake_home import fake_program
from jinja2 import Environment

ROLES = Path(__file__).parents[1] / "playbooks" / "roles"
# As Ansible finds what the modules of a role share.
MODULE_UTILS = importlib.import_module("ansible.module_utils")
MODULE_UTILS.__path__.append(str(ROLES / "mpi" / "module_utils"))


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROLES / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheel_is_packed_with_links_for_equal_files_and_ends_with_a_mark() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, mode in (("lib/a.so.1", 0o644), ("lib/a.so", 0o644), ("x", 0o644)):
            info = zipfile.ZipInfo(f"w.data/data/{name}")
            info.external_attr = mode << 16
            wheel.writestr(info, "other" if name == "x" else "library")
        program = zipfile.ZipInfo("w.data/data/bin/run")
        program.external_attr = 0o755 << 16
        wheel.writestr(program, "#!/bin/sh")
    packed = io.BytesIO()
    pattern = re.compile(r"[^/]+\.data/data/((?:lib|bin)/.*)")
    with (
        zipfile.ZipFile(buffer) as source,
        tarfile.open(fileobj=packed, mode="w") as out,
    ):
        load("mpi/files/pack_wheel.py").pick(source, out, "w-1", pattern)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        found = [(m.name, m.linkname, m.mode) for m in archive.getmembers()]
    assert found == [
        ("w-1/lib/a.so.1", "", 0o644),
        ("w-1/lib/a.so", "w-1/lib/a.so.1", 0o644),
        ("w-1/bin/run", "", 0o755),
        ("w-1/.complete", "", 0o644),
    ]


@pytest.mark.parametrize(
    ("stack", "problem"),
    [
        ({"provider": "distribution"}, "needs `compiler`"),
        (
            {"provider": "distribution", "compiler": "mpicc.none", "package": "x-dev"},
            "no compiler wrapper mpicc.none on PATH; install x-dev",
        ),
        ({"provider": "wheels", "wheel": "w", "programs": {"imb": "none"}}, "none"),
        (
            {"provider": "wheels", "wheel": "w", "programs": {"imb": "sh"}},
            "uses no MPI library, expected the stack's own",
        ),
    ],
)
def test_mpi_stack_says_what_is_wrong(
    stack: dict[str, object], problem: str, tmp_path: Path
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.1").touch()
    wheels = {"w": {"version": "1", "folder": str(tmp_path)}}
    with pytest.raises(info.ProblemError, match=problem):
        info.examine({"name": "s", **stack}, str(tmp_path), wheels)


def test_mpi_stack_finds_compiler_and_names_a_renamed_program(tmp_path: Path) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    compiler = tmp_path / "mpicc"
    compiler.write_text(
        '#!/bin/sh\ncase $1 in --showme:version) echo "mpicc: Some MPI 5.0.1";;\n'
        '-o) echo "$2" >"$0.probe"\n'
        "echo 'int main(void){return 0;}' | cc -x c -o $2 -;; esac\n"
    )
    folder = tmp_path / "mpi"
    folder.mkdir()
    program = tmp_path / "lmp_mpi"
    program.write_bytes(Path(sys.executable).resolve().read_bytes())
    for file in (compiler, program):
        file.chmod(0o755)
    stack: dict[str, Any] = {
        "name": "s",
        "provider": "distribution",
        "compiler": str(compiler),
        "programs": {"lammps": str(program)},
    }
    info.examine(stack, str(folder), {})
    assert stack["version"] == "5.0.1"
    assert stack["programs"] == {"lammps": str(program)}
    links = f"{folder}/links/s"
    assert stack["links"] == [{"path": f"{links}/lmp", "target": str(program)}]
    assert stack["paths"] == [links, str(tmp_path)]
    probe = Path((tmp_path / "mpicc.probe").read_text())
    assert probe.parents[1] == folder, "ldd needs a program outside a noexec /tmp"


def folder_stack(folder: Path, feature: str, *names: str) -> dict[str, Any]:
    """A stack of wheels without any library, and with programs below a folder."""
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(Path(sys.executable).resolve().read_bytes())
        file.chmod(0o755)
    return {
        "name": "s",
        "provider": "wheels",
        "wheel": "w",
        "programs": {feature: str(folder)},
    }


@pytest.fixture
def wheels(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "wheel").mkdir()
    return {"w": {"version": "1", "folder": str(tmp_path / "wheel")}}


def test_mpi_stack_finds_all_programs_of_a_folder_at_any_depth(
    tmp_path: Path, wheels: dict[str, Any]
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    programs = ["pt2pt/standard/osu_bw", "collective/osu_bcast", "osu_init"]
    others = ["oshmem/osu_oshm_put", "xccl/osu_xccl_bw", "get_local_rank"]
    folder = tmp_path / "osu"
    stack = folder_stack(folder, "osu", *programs, *others)
    (folder / "osu_notes").write_text("#!/bin/sh\n")
    (folder / "osu_notes").chmod(0o755)
    (folder / "osu_bw.o").write_text("")
    info.examine(stack, "/prefix/mpi", wheels)
    assert sorted(stack["executables"]) == ["osu_bcast", "osu_bw", "osu_init"]
    assert {Path(link["path"]).name: link["target"] for link in stack["links"]} == {
        Path(name).name: str(folder / name) for name in programs
    }
    assert stack["programs"] == {"osu": str(folder)}
    assert stack["paths"][0] == "/prefix/mpi/links/s"


@pytest.mark.parametrize("is_link", [False, True])
def test_mpi_stack_takes_imb_rma_from_beside_imb_mpi1(
    is_link: bool, tmp_path: Path, wheels: dict[str, Any]
) -> None:
    """Beside the executable as it is named, or beside the one it is a link to."""
    info = load("mpi/library/mpi_stack_info.py")
    folder = tmp_path / "imb"
    stack = folder_stack(folder, "imb", "IMB-MPI1", "IMB-RMA", "IMB-NBC")
    named = folder / "IMB-MPI1"
    if is_link:
        named = tmp_path / "imb-mpi1"
        named.symlink_to(folder / "IMB-MPI1")
    stack["programs"] = {"imb": str(named)}
    info.examine(stack, "/prefix/mpi", wheels)
    assert stack["programs"] == {"imb": str(named)}
    assert stack["executables"] == ["IMB-MPI1", "IMB-RMA"]
    assert stack["links"] == [
        {"path": "/prefix/mpi/links/s/IMB-MPI1", "target": str(named)},
        {"path": "/prefix/mpi/links/s/IMB-RMA", "target": str(folder / "IMB-RMA")},
    ]


def test_mpi_stack_needs_no_imb_rma(tmp_path: Path, wheels: dict[str, Any]) -> None:
    """Checks that need it are skipped; a script of that name is no program."""
    info = load("mpi/library/mpi_stack_info.py")
    stack = folder_stack(tmp_path / "imb", "imb", "IMB-MPI1")
    script = tmp_path / "imb" / "IMB-RMA"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    stack["programs"] = {"imb": str(tmp_path / "imb" / "IMB-MPI1")}
    info.examine(stack, "/prefix/mpi", wheels)
    assert stack["executables"] == ["IMB-MPI1"]


def test_mpi_stack_refuses_imb_rma_of_another_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    library = tmp_path / "wheel" / "lib" / "libmpi.so.12"
    library.parent.mkdir(parents=True)
    library.touch()
    stack = folder_stack(tmp_path / "wheel" / "bin", "imb", "IMB-MPI1", "IMB-RMA")
    stack["programs"] = {"imb": "IMB-MPI1"}
    used = {"IMB-MPI1": str(library), "IMB-RMA": "/opt/other/libmpi.so.40"}
    monkeypatch.setattr(
        "ansible.module_utils.mpi_programs.mpi_libraries",
        lambda program, env: [used[Path(program).name]],
    )
    wheels = {"w": {"version": "1", "folder": str(tmp_path / "wheel")}}
    problem = f"program imb: .*/IMB-RMA uses /opt/other/libmpi.so.40, .* {library}"
    with pytest.raises(info.ProblemError, match=problem):
        info.examine(stack, "/prefix/mpi", wheels)


def test_mpi_stack_knows_names_of_npb(tmp_path: Path, wheels: dict[str, Any]) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    names = ["cg.A.x", "is.C.32", "bt.S.x.ep_io", "setparams", "xx.A.x"]
    stack = folder_stack(tmp_path / "npb", "npb", *names)
    info.examine(stack, "/prefix/mpi", wheels)
    assert sorted(stack["executables"]) == ["cg.A.x", "is.C.32"]


@pytest.mark.parametrize(
    ("programs", "problem"),
    [
        ({"osu": "/no/such/folder"}, "osu: /no/such/folder is no folder"),
        ({"npb": "bin"}, "npb: bin is no folder; expected the full path"),
        ({"npb": "{folder}"}, r"no executables cg\.A\.x and so on below"),
        ({"osu": "{folder}"}, "expected one of each name"),
    ],
)
def test_mpi_stack_says_what_is_wrong_with_a_folder(
    programs: dict[str, str], problem: str, tmp_path: Path, wheels: dict[str, Any]
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    stack = folder_stack(tmp_path / "two", "osu", "a/osu_bw", "b/osu_bw")
    stack["programs"] = {
        name: wanted.format(folder=tmp_path / "two")
        for name, wanted in programs.items()
    }
    with pytest.raises(info.ProblemError, match=problem):
        info.examine(stack, "/prefix/mpi", wheels)


def test_mpi_stack_refuses_a_program_in_a_folder_with_another_mpi(
    tmp_path: Path, wheels: dict[str, Any]
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    (tmp_path / "wheel/lib").mkdir()
    (tmp_path / "wheel/lib/libmpi.so.12").touch()
    stack = folder_stack(tmp_path / "osu", "osu", "osu_bw")
    with pytest.raises(info.ProblemError, match="osu_bw uses no MPI library, expected"):
        info.examine(stack, "/prefix/mpi", wheels)


@pytest.mark.parametrize("wrong", ["y", ["A"], {"A": ["x"]}, {"A": True}, {"A": None}])
def test_mpi_stack_refuses_tuning_that_is_no_set_of_variables(
    wrong: object, wheels: dict[str, Any]
) -> None:
    info = load("mpi/library/mpi_stack_info.py")
    stack = {"name": "s", "provider": "wheels", "wheel": "w", "tuning": {"t": wrong}}
    with pytest.raises(info.ProblemError, match=r"tuning t: .* expected var"):
        info.examine(stack, "/prefix/mpi", wheels)


def test_links_of_a_stack_are_those_it_names_and_no_others(tmp_path: Path) -> None:
    links = load("mpi/library/mpi_links.py")
    folder = tmp_path / "links/s"
    wanted = {"osu_bw": "/opt/osu_bw", "lmp": "/opt/lmp_mpi"}
    make, remove = links.changes(folder, wanted)
    assert (make, remove) == ([folder / "lmp", folder / "osu_bw"], [])
    links.link(make, remove, wanted)
    assert links.changes(folder, wanted) == ([], [])
    wanted = {"osu_bw": "/new/osu_bw"}
    make, remove = links.changes(folder, wanted)
    assert (make, remove) == ([folder / "osu_bw"], [folder / "lmp"])
    links.link(make, remove, wanted)
    assert {link.name: str(link.readlink()) for link in folder.iterdir()} == wanted


def test_suite_settings_name_programs_and_tuning_of_a_stack() -> None:
    """Programs and tuning that a stack lacks are not there, for checks to see it."""
    jinja = Environment(trim_blocks=True)
    jinja.filters.update(to_json=json.dumps, bool=bool)
    template = ROLES / "suite/templates/settings.yml.j2"
    tuned = {"executables": ["cg.A.x"], "tuning": {"rails": {"UCX_MAX_RAILS": 2}}}
    stacks = [
        {"name": name, "srun_mpi": "pmix", "programs": {}, **more}
        for name, more in (("plain", {"executables": []}), ("tuned", tuned))
    ]
    text = jinja.from_string(template.read_text()).render(
        mpi_found={"stacks": stacks},
        seatrial_system="x",
        seatrial_prefix="/x",
        node_classes=[],
        suite_description="x",
        suite_modules_system="lmod",
        suite_poll_rate_min=1,
        benchmarks_programs=[],
    )
    plain, found = (each["extras"] for each in yaml.safe_load(text)["environments"])
    assert plain == {"srun_mpi": "pmix"}
    assert found == {
        "srun_mpi": "pmix",
        "programs": ["cg.A.x"],
        "tuning": {"rails": {"UCX_MAX_RAILS": 2}},
    }


def test_node_facts_list_hcas_with_firmware_board_and_driver(tmp_path: Path) -> None:
    """Read HCAs from sysfs, also one without a board, a driver or its version."""
    script = ROLES / "nodes/files/node_facts.sh"
    folder = tmp_path / "class" / "infiniband"

    def facts() -> dict[str, Any]:
        command = ["sh", str(script), "cn01", str(tmp_path)]
        line = subprocess.check_output(command, text=True)
        node, _, text = line.partition(" ")
        assert node == "cn01"
        return cast("dict[str, Any]", json.loads(text))

    assert facts()["hcas"] == []
    for name, version in (("mlx5_core", "24.10-1.1.4"), ("irdma", None)):
        module = tmp_path / "module" / name
        module.mkdir(parents=True)
        if version:
            (module / "version").write_text(version + "\n")
    for hca, module_name in (("mlx5_0", "mlx5_core"), ("irdma0", "irdma")):
        driver = folder / hca / "device" / "driver"
        driver.mkdir(parents=True)
        (driver / "module").symlink_to(tmp_path / "module" / module_name)
        (folder / hca / "fw_ver").write_text("20.41.1000\n")
    (folder / "mlx5_0" / "board_id").write_text("MT_0000000223\n")
    (folder / "rxe0").mkdir()
    (folder / "rxe0" / "fw_ver").write_text("\n")
    names = ("name", "firmware", "board", "driver")
    assert [tuple(hca[name] for name in names) for hca in facts()["hcas"]] == [
        ("irdma0", "20.41.1000", "", "irdma"),
        ("mlx5_0", "20.41.1000", "MT_0000000223", "mlx5_core 24.10-1.1.4"),
        ("rxe0", "", "", ""),
    ]


def test_node_facts_count_cpus_as_lscpu_does(tmp_path: Path) -> None:
    """Two sockets of two cores with two threads; one CPU is offline."""
    rows = ["0,0,0", "1,1,0", "2,0,1", "3,1,1", "4,0,0", "5,1,0", "6,0,1"]
    table = "\n".join(["# CPU,Core,Socket", *rows])
    programs = tmp_path / "bin"
    programs.mkdir()
    fake_program(
        programs,
        "lscpu",
        f'[ -n "$1" ] && echo "{table}" || echo \'Model name:   Quote " Inside\'',
    )
    line = subprocess.check_output(
        ["sh", str(ROLES / "nodes/files/node_facts.sh")],
        text=True,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "SLURMD_NODENAME": "n7"},
    )
    node, _, text = line.partition(" ")
    facts = json.loads(text)
    assert (node, facts["cpu_model"]) == ("n7", 'Quote " Inside')
    counts = ("cpus", "sockets", "cores_per_socket", "threads_per_core")
    assert [facts[name] for name in counts] == [7, 2, 2, 2]
    assert facts["memory_mib"] > 0
    assert facts["architecture"] == os.uname().machine


def test_suite_is_packed_without_what_running_leaves(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in (
        "checks/a.py",
        "checks/__pycache__/a.pyc",
        "checks/.hidden",
        "reports/out/r.html",
        "reports/r.j2",
        "src/p/__init__.py",
        "src/p.egg-info/SOURCES.txt",
        "README.md",
    ):
        file = checkout / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (checkout / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\n'
        'build-backend = "setuptools.build_meta"\n'
        '[project]\nname = "seatrial"\nversion = "7.0"\n'
        '[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    first, again = pack(checkout, tmp_path), pack(checkout, tmp_path)
    assert first == again
    assert first["version"] == "7.0"
    assert (first["git_commit"], first["dirty"]) == (None, None)
    wheel = "dist/seatrial-7.0-py3-none-any.whl"
    assert first["wheel"] == wheel
    assert sorted(first["paths"]) == [
        "checks",
        "checks/a.py",
        wheel,
        "reports",
        "reports/r.j2",
    ]
    (checkout / "src/p/__init__.py").write_text("x = 1\n")
    assert pack(checkout, tmp_path)["key"] != first["key"]


def pack(checkout: Path, folder: Path) -> dict[str, Any]:
    script = ROLES / "suite/files/pack.py"
    command = [sys.executable, str(script), str(checkout), str(folder / "out")]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)}
    text = subprocess.check_output([*command, "checks", "reports"], env=environment)
    result: dict[str, Any] = json.loads(text)
    return result


@pytest.mark.parametrize("mask", ["000", "077"])
def test_installed_files_are_not_for_others_to_change(mask: str) -> None:
    """Every script that installs on the system, and the wrapper, restrict the umask."""
    scripts = [
        *("suite/templates/wrapper.j2", "suite/files/install.sh"),
        *("benchmarks/files/build.sh", "spack/files/install.sh"),
        "spack/files/unpack.sh",
    ]
    for script in scripts:
        lines = (ROLES / script).read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("umask "))
        command = f"umask {mask}\n{line}\numask"
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=True
        )
        assert done.stdout == {"000": "0022\n", "077": "0077\n"}[mask]
