"""The sensors of a node: fake trees of /sys and /proc, and those of this machine."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_node import CPUS, INTERRUPTS, cpu_stat, fake_node, write

from seatrial.checks.nodesweep.readings import (
    AbsentError,
    read_clocks,
    read_machine_checks,
    read_memory_errors,
    read_quota_stops,
    read_temperatures,
    read_throttling,
)
from seatrial.checks.nodesweep.sensors import Sampler
from seatrial.checks.nodesweep.topology import parse_list, read_topology

Rows = list[dict[str, Any]]


def sample(root: Path, *phases: str | Callable[[], None]) -> Rows:
    """Read a node through phases; a function changes the tree between readings."""
    steps = iter(phases)

    def next_phase(seconds: float) -> str | None:
        step = next(steps, None)
        if callable(step):
            step()
            return ""
        return step

    return list(Sampler(root, 0.0).run(next_phase))


def of_type(rows: Rows, kind: str) -> Rows:
    return [row for row in rows if row["type"] == kind]


def absent(rows: Rows) -> dict[str, str]:
    return {row["what"]: row["reason"] for row in of_type(rows, "absent")}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0", [0]), ("0-3", [0, 1, 2, 3]), ("0-1,8,10-11\n", [0, 1, 8, 10, 11]), ("", [])],
)
def test_list_of_the_kernel(text: str, numbers: list[int]) -> None:
    assert parse_list(text) == numbers


def test_topology_of_two_sockets_with_two_threads_per_core(tmp_path: Path) -> None:
    topology = read_topology(fake_node(tmp_path, sockets=2, cores=4, threads=2))
    assert topology.sockets == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert len(topology.socket_of) == 16
    assert (topology.core_of[13], topology.socket_of[13]) == (5, 1)
    assert topology.cache_bytes == 2 * 32 << 20
    assert topology.memory_bytes == 64 << 30


def test_sockets_count_from_zero_whatever_the_kernel_calls_them(tmp_path: Path) -> None:
    topology = read_topology(fake_node(tmp_path, sockets=2, packages=(36, 3620)))
    assert topology.sockets == ((0, 1), (2, 3))
    assert topology.packages == (36, 3620)
    assert read_temperatures(tmp_path, topology) == {0: 45.0, 1: 45.0}


def test_core_whose_first_thread_is_offline(tmp_path: Path) -> None:
    fake_node(tmp_path, cores=2, threads=2)
    write(tmp_path, {f"{CPUS}/online": "0,2-3"})
    topology = read_topology(tmp_path)
    assert topology.sockets == ((0, 3),)
    assert topology.core_of == {0: 0, 2: 0, 3: 3}


def test_package_that_the_firmware_does_not_name(tmp_path: Path) -> None:
    topology = read_topology(fake_node(tmp_path, packages=(-1,)))
    assert topology.sockets == ((0, 1),)


def test_quiet_node(tmp_path: Path) -> None:
    rows = sample(fake_node(tmp_path, sockets=2), "", "hpcc", "")
    assert [row["type"] for row in rows] == ["node", *4 * ["sensors"], "counters"]
    assert rows[0]["sockets"] == [[0, 1], [2, 3]]
    for row in of_type(rows, "sensors"):
        assert row["clock_p50_ghz"] == row["clock_min_ghz"] == 2.6
        assert row["temperature_max_c"] == 45.0
        assert row["n"] == 2
    (counters,) = of_type(rows, "counters")
    assert counters["machine_checks_before"] == 3
    added = ("throttle_events", "ecc_corrected", "ecc_uncorrected", "machine_checks")
    assert [counters[name] for name in added] == [0, 0, 0, 0]


def test_throttled_cpu_is_seen_by_its_clock_and_its_counter(tmp_path: Path) -> None:
    fake_node(tmp_path, sockets=2, cores=4, threads=2)

    def heat() -> None:
        write(
            tmp_path,
            {
                f"{CPUS}/cpu5/cpufreq/scaling_cur_freq": 800000,
                f"{CPUS}/cpu5/thermal_throttle/core_throttle_count": 7,
                f"{CPUS}/cpu13/thermal_throttle/core_throttle_count": 7,
                "sys/class/hwmon/hwmon2/temp2_input": 99000,
            },
        )

    rows = sample(tmp_path, "hpcc", heat, "")
    load = [row for row in of_type(rows, "sensors") if row["phase"] == "hpcc"]
    assert [row["clock_p50_ghz"] for row in load] == [2.6, 2.6]
    assert [row["clock_min_ghz"] for row in load] == [2.6, 0.8]
    assert [row["temperature_max_c"] for row in load] == [45.0, 99.0]
    (counters,) = of_type(rows, "counters")
    assert counters["throttle_events"] == 7  # two threads of one core


def test_package_that_throttles_counts_once_for_its_cpus(tmp_path: Path) -> None:
    fake_node(tmp_path, sockets=2, cores=4)
    for cpu in range(4):
        folder = f"{CPUS}/cpu{cpu}/thermal_throttle"
        write(tmp_path, {f"{folder}/package_throttle_count": 5})
    assert read_throttling(tmp_path, read_topology(tmp_path)) == 5


def test_memory_errors_are_seen_apart_from_those_before(tmp_path: Path) -> None:
    fake_node(tmp_path, sockets=2)
    mc = "sys/devices/system/edac/mc"
    write(tmp_path, {f"{mc}/mc0/ce_count": 40})

    def damage() -> None:
        counts = {"mc0/ce_count": 41, "mc1/ce_count": 2, "mc1/ue_count": 1}
        write(tmp_path, {f"{mc}/{name}": count for name, count in counts.items()})

    (counters,) = of_type(sample(tmp_path, damage), "counters")
    assert (counters["ecc_corrected_before"], counters["ecc_corrected"]) == (40, 3)
    assert (counters["ecc_uncorrected_before"], counters["ecc_uncorrected"]) == (0, 1)


def test_machine_check_is_seen(tmp_path: Path) -> None:
    fake_node(tmp_path)
    text = INTERRUPTS.replace("1          2   Machine", "1          4   Machine")
    rows = sample(tmp_path, lambda: write(tmp_path, {"proc/interrupts": text}))
    (counters,) = of_type(rows, "counters")
    assert (counters["machine_checks_before"], counters["machine_checks"]) == (3, 2)


V1 = "5:cpuacct:/other\n4:memory:/job_1\n3:cpu:/slurm/job_1\n0::/elsewhere"
BOTH = "3:cpu,cpuacct:/slurm/job_1\n1:name=systemd:/init.scope"
GROUPS = "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        pytest.param("0::/a/b", {"a/b": 3}, 3, id="v2"),
        pytest.param("0::/a/b", {"a/b": 0, "a": 5}, 5, id="v2, of a parent"),
        pytest.param("0::/", {"": 4}, 4, id="v2, of a container"),
        pytest.param(
            "0::/a/b", {"c": 9, "a/b/c": 9, "a": 1}, 1, id="v2, not of others"
        ),
        pytest.param(V1, {"cpu/slurm/job_1": 2}, 2, id="v1"),
        pytest.param(V1, {"cpu/slurm": 2, "cpu": 1}, 3, id="v1, of parents"),
        pytest.param("1:cpu:/", {"cpu": 6}, 6, id="v1, of a container"),
        pytest.param(BOTH, {"cpu,cpuacct/slurm/job_1": 7}, 7, id="v1, two controllers"),
        pytest.param(BOTH, {"cpu/slurm/job_1": 7}, 7, id="v1, mounted as cpu"),
        pytest.param("0::/a", {"unified/a": 8}, 8, id="v2 beside v1"),
    ],
)
def test_quotas_are_found_in_every_layout_of_control_groups(
    tmp_path: Path, groups: str, files: dict[str, int], expected: int
) -> None:
    write(tmp_path, {"proc/self/cgroup": groups})
    if "cpu" not in groups and "unified/a" not in files:
        write(tmp_path, {f"{GROUPS}/cgroup.procs": ""})
    for group, throttled in files.items():
        write(tmp_path, {f"{GROUPS}/{group}/cpu.stat": cpu_stat(throttled)})
    assert read_quota_stops(tmp_path) == expected


def test_root_group_without_a_quota_counts_nothing(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/", f"{GROUPS}/cgroup.procs": ""}
    write(tmp_path, {**files, f"{GROUPS}/cpu.stat": "usage_usec 5\nuser_usec 2"})
    with pytest.raises(AbsentError, match="no nr_throttled in cpu"):
        read_quota_stops(tmp_path)


def test_quota_that_stops_a_node_is_counted(tmp_path: Path) -> None:
    fake_node(tmp_path)
    file = f"{GROUPS}/system.slice/job_1/cpu.stat"
    write(tmp_path, {file: cpu_stat(4)})
    rows = sample(tmp_path, "hpcc", lambda: write(tmp_path, {file: cpu_stat(90)}), "")
    (counters,) = of_type(rows, "counters")
    assert (counters["quota_stops_before"], counters["quota_stops"]) == (4, 86)


def test_node_without_sensors_says_why_and_never_zero(tmp_path: Path) -> None:
    rows = sample(fake_node(tmp_path, sensors=False), "hpcc", "")
    assert absent(rows) == {
        "temperature": "no sensor of a processor: /sys/class/hwmon has nothing, and "
        "/sys/class/thermal no zone of one",
        "throttle_events": "no thermal_throttle in /sys/devices/system/cpu/cpu*",
        "quota_stops": "no nr_throttled in cpu.stat of any control group of this "
        "process",
        "ecc_corrected": "no memory controller in /sys/devices/system/edac/mc: no EDAC "
        "driver is loaded, or memory has no ECC",
        "ecc_uncorrected": "no memory controller in /sys/devices/system/edac/mc: no "
        "EDAC driver is loaded, or memory has no ECC",
        "machine_checks": "no line MCE in /proc/interrupts",
    }
    (counters,) = of_type(rows, "counters")
    assert {value for name, value in counters.items() if "_" in name} == {None}
    for row in of_type(rows, "sensors"):
        assert row["temperature_max_c"] is None
        assert row["clock_p50_ghz"] == 2.6  # of /proc/cpuinfo


def test_node_without_clocks(tmp_path: Path) -> None:
    fake_node(tmp_path, sensors=False)
    write(tmp_path, {"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 100.00"})
    rows = sample(tmp_path)
    assert "no cpufreq in" in absent(rows)["clock"]
    assert of_type(rows, "sensors")[0]["clock_p50_ghz"] is None


def test_sensor_that_fails_at_times_is_not_absent(tmp_path: Path) -> None:
    fake_node(tmp_path, sockets=1)
    chip = tmp_path / "sys/class/hwmon/hwmon1"
    for name in ("temp1_input", "temp2_input"):
        (chip / name).write_text("")
    rows = sample(tmp_path, lambda: write(chip, {"temp1_input": 61000}), "hpcc")
    assert "temperature" not in absent(rows)
    quiet, load = of_type(rows, "sensors")
    assert (quiet["temperature_max_c"], load["temperature_max_c"]) == (61.0, 61.0)


@pytest.mark.parametrize("reading", ["", "-128000", "255000", "error", "nan"])
def test_reading_that_cannot_be_is_no_temperature(tmp_path: Path, reading: str) -> None:
    fake_node(tmp_path)
    for name in ("temp1_input", "temp2_input"):
        write(tmp_path, {f"sys/class/hwmon/hwmon1/{name}": reading})
    with pytest.raises(AbsentError, match="none of 2 sensors can be read"):
        read_temperatures(tmp_path, read_topology(tmp_path))


def test_counter_that_goes_back_is_absent(tmp_path: Path) -> None:
    fake_node(tmp_path)
    file = "sys/devices/system/edac/mc/mc0/ce_count"
    write(tmp_path, {file: 9})
    rows = sample(tmp_path, lambda: write(tmp_path, {file: 0}))
    assert absent(rows) == {"ecc_corrected": "the counter went back from 9 to 0"}
    (counters,) = of_type(rows, "counters")
    assert (counters["ecc_corrected_before"], counters["ecc_corrected"]) == (9, None)


def test_driver_that_is_unloaded_meanwhile_is_absent(tmp_path: Path) -> None:
    fake_node(tmp_path)
    file = tmp_path / "sys/devices/system/edac/mc/mc0/ue_count"
    rows = sample(tmp_path, file.unlink)
    assert "no memory controller" in absent(rows)["ecc_uncorrected"]


def amd(root: Path, sockets: int, numa: bool) -> None:
    """Add the sensors of AMD processors to a node; some name a NUMA node."""
    fake_node(root, sockets=sockets, sensors=False)
    for socket in range(sockets):
        chip = f"sys/class/hwmon/hwmon{socket}"
        files: dict[str, object] = {
            f"{chip}/name": "k10temp",
            f"{chip}/temp1_label": "Tctl",
            f"{chip}/temp1_input": 50000 + 1000 * socket,
            f"{chip}/device/numa_node": socket if numa else -1,
            f"sys/devices/system/node/node{socket}/cpulist": f"{2 * socket}-"
            f"{2 * socket + 1}",
        }
        write(root, files)


@pytest.mark.parametrize(
    ("sockets", "numa", "expected"),
    [
        (1, True, {0: 50.0}),
        (1, False, {0: 50.0}),
        (2, True, {0: 50.0, 1: 51.0}),
        (2, False, {None: 51.0}),
    ],
)
def test_socket_of_a_sensor_by_its_numa_node(
    tmp_path: Path, sockets: int, numa: bool, expected: dict[int | None, float]
) -> None:
    amd(tmp_path, sockets, numa)
    assert read_temperatures(tmp_path, read_topology(tmp_path)) == expected


def test_sensors_of_no_known_socket_have_a_row_of_their_own(tmp_path: Path) -> None:
    amd(tmp_path, 2, numa=False)
    rows = of_type(sample(tmp_path), "sensors")
    assert [(row["socket"], row["temperature_max_c"]) for row in rows] == [
        *((0, None), (1, None), (None, 51.0))
    ]
    assert rows[2]["clock_p50_ghz"] is None


def test_thermal_zone_where_no_chip_is_known(tmp_path: Path) -> None:
    fake_node(tmp_path, sensors=False)
    zones = "sys/class/thermal/thermal_zone"
    write(
        tmp_path,
        {
            f"{zones}0/type": "acpitz",
            f"{zones}0/temp": 20000,
            f"{zones}1/type": "x86_pkg_temp",
            f"{zones}1/temp": 57000,
            "sys/class/hwmon/hwmon0/name": "acpitz",
        },
    )
    assert read_temperatures(tmp_path, read_topology(tmp_path)) == {0: 57.0}


def test_missing_sources_are_absent(tmp_path: Path) -> None:
    fake_node(tmp_path, sensors=False)
    topology = read_topology(tmp_path)
    for read in (
        lambda: read_throttling(tmp_path, topology),
        lambda: read_memory_errors(tmp_path, "ce"),
        lambda: read_machine_checks(tmp_path),
        lambda: read_clocks(tmp_path / "nowhere"),
    ):
        with pytest.raises(AbsentError):
            read()


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-I",
            "-m",
            "seatrial.checks.nodesweep.sensors",
            *options,
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def test_program_goes_through_phases_until_its_input_ends(
    program: Callable[..., subprocess.Popen[str]],
) -> None:
    """On this machine, whatever it offers."""
    process = program("--interval", "0.05")
    assert process.stdin is not None
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["type"] == "node"
    time.sleep(0.3)
    for line in ("memlat\nhp", "cc\n"):
        process.stdin.write(line)
        process.stdin.flush()
        time.sleep(0.3)
    output, errors = process.communicate(timeout=20)
    rows = [json.loads(line) for line in output.splitlines()]
    assert (process.returncode, errors) == (0, "")
    phases = [row["phase"] for row in rows if row["type"] == "sensors"]
    assert list(dict.fromkeys(phases)) == ["quiet", "memlat", "hpcc"]
    assert rows[0]["n"] > 1
    assert len([row for row in rows if row["type"] == "counters"]) == 1


def test_program_without_a_topology_says_so(
    program: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = program("--root", str(tmp_path))
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (1, "")
    assert "the node's topology" in errors
    assert len(errors.splitlines()) == 1
