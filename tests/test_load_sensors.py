"""Power, temperature and throttling beside a load: hand-made trees of /sys.

No machine of these tests has RAPL: trees, commands and rows of Slurm's accounting are
written by hand, as the documentation of Linux and Slurm describes them.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_energy import SPAN_UJ, counter, energy_node
from fake_home import fake_program
from fake_node import CPUS, fake_node, write

from seatrial.campaign import slurm_energy
from seatrial.campaign.slurm_energy import JobEnergy, Loads, parse_energies
from seatrial.checks import load_sensed
from seatrial.checks.load_sensed import LoadSensed
from seatrial.checks.loadsensors.__main__ import LoadSensors
from seatrial.checks.loadsensors.energy import Board, Rapl, parse_watts, printed_watts
from seatrial.checks.nodesweep.readings import AbsentError, read_power_limits
from seatrial.checks.nodesweep.topology import read_topology
from seatrial.model.cases import Case
from seatrial.model.energy import work_rates
from seatrial.model.records import Sample
from seatrial.parsers.errors import ParseError
from seatrial.parsers.load_sensors import parse_load_sensors

LOAD = {
    "type": "load",
    "node": "cn01",
    "seconds": 10.0,
    "samples": 3,
    "rapl": {"joules": 4000.0, "mean_w": 400.0, "peak_w": 420.0},
    "board": None,
    "temperature_max_c": 71.0,
    "throttle_events": 0,
    "power_limit_events": 2,
    "absent": {"board": "no power_command in the class of nodes"},
}


def load(node: str, **changed: Any) -> str:
    return json.dumps({**LOAD, "node": node, **changed})


def test_packages_and_dram_add_up_and_nothing_counts_twice(tmp_path: Path) -> None:
    rapl = Rapl(energy_node(tmp_path), 100.0)
    grown = {"0": 600, "0:0": 500, "0:1": 40, "1": 300, "1:1": 60, "psys": 2000}
    for zone, joules in grown.items():
        write(tmp_path, {counter(zone): 1_000_000 + joules * 1_000_000})
    rapl.read(102.0)
    assert rapl.energy.joules == 1000.0
    assert (rapl.energy.mean_w, rapl.energy.peak_w) == (500.0, 500.0)
    rapl.read(112.0)  # nothing more: the mean falls, the peak stays
    assert (rapl.energy.mean_w, rapl.energy.peak_w) == (1000 / 12, 500.0)


def test_counter_that_wraps_goes_on(tmp_path: Path) -> None:
    energy_node(tmp_path, packages=1)
    write(tmp_path, {counter("0"): SPAN_UJ - 3_000_000})
    rapl = Rapl(tmp_path, 0.0)
    write(tmp_path, {counter("0"): 7_000_000})
    rapl.read(10.0)
    assert rapl.energy.joules == pytest.approx(10.0)


def test_counter_that_goes_back_without_a_known_range_is_no_energy(
    tmp_path: Path,
) -> None:
    energy_node(tmp_path, packages=1)
    (tmp_path / counter("0")).with_name("max_energy_range_uj").unlink()
    rapl = Rapl(tmp_path, 0.0)
    write(tmp_path, {counter("0"): 5})
    with pytest.raises(AbsentError, match="went back from 1000000 to 5"):
        rapl.read(1.0)


def test_short_span_sets_no_peak(tmp_path: Path) -> None:
    rapl = Rapl(energy_node(tmp_path, packages=1), 0.0)
    write(tmp_path, {counter("0"): 2_000_000})
    rapl.read(0.01)
    assert (rapl.energy.joules, rapl.energy.peak_w) == (1.0, None)


def test_node_without_rapl_and_user_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AbsentError, match=r"no package in /sys/class/powercap"):
        Rapl(fake_node(tmp_path / "plain"), 0.0)
    root = energy_node(tmp_path / "closed")
    plain = Path.read_text

    def refuse(file: Path, *args: Any, **options: Any) -> str:
        if file.name == "energy_uj":  # mode 0400 stops no test that runs as root
            raise PermissionError(13, "Permission denied")
        return plain(file, *args, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    sensors = LoadSensors(root, read_topology(root), "", 0.0)
    row = sensors.row("cn01", 5.0)
    assert row["rapl"] is None
    assert "readable by root only (permission denied)" in row["absent"]["rapl"]


@pytest.mark.parametrize(
    ("text", "watts"),
    [("412", 412.0), (" 412.5 W\n", 412.5), ("3 Watts", 3.0), ("88watt", 88.0)],
)
def test_watts_of_a_command(text: str, watts: float) -> None:
    assert parse_watts(text) == watts


@pytest.mark.parametrize(
    "text",
    ["", "0", "-3 W", "nan", "1e9", "412 kW", "Power: 412", "412\n413", "1" * 99],
)
def test_other_output_is_no_power(text: str) -> None:
    with pytest.raises(AbsentError, match="expected watts between 0 and 100000"):
        parse_watts(text)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo no BMC >&2; exit 3", "exit status 3: no BMC"),
        ("seatrial-no-such-command", "exit status 127"),
        ("exec cat /dev/zero | head -c 0", "got ''"),
    ],
)
def test_command_that_fails_is_no_power(command: str, reason: str) -> None:
    with pytest.raises(AbsentError, match=reason):
        printed_watts(command)


def readings(*watts: float | None) -> Callable[[], float]:
    """Return a command that prints these watts in turn; None: it fails."""
    left = iter(watts)

    def read() -> float:
        value = next(left)
        if value is None:
            raise AbsentError("power_command: exit status 1")
        return value

    return read


def test_energy_of_a_board_is_its_power_over_time() -> None:
    board = Board(readings(300.0, 500.0, 400.0), 0.0)
    board.read(10.0)
    board.read(20.0)
    energy = board.energy
    assert (energy.joules, energy.mean_w, energy.peak_w) == (8500.0, 425.0, 500.0)


def test_board_fills_short_gaps_only() -> None:
    board = Board(readings(300.0, None, 300.0, None, None), 0.0)
    board.read(5.0)
    board.read(10.0)
    assert board.energy.joules == 3000.0
    board.read(40.0)
    with pytest.raises(AbsentError):
        board.read(71.0)
    with pytest.raises(AbsentError):
        Board(readings(None), 0.0)


def test_throttling_by_heat_and_by_power_are_told_apart(tmp_path: Path) -> None:
    root = energy_node(tmp_path)
    topology = read_topology(root)
    assert read_power_limits(root, topology) == 4 * 3 + 2 * 4
    sensors = LoadSensors(root, topology, "", 0.0)
    folder = f"{CPUS}/cpu1/thermal_throttle"
    write(root, {f"{folder}/core_throttle_count": 6})
    write(root, {f"{folder}/core_power_limit_count": 5})
    write(root, {"sys/class/hwmon/hwmon1/temp2_input": 93500})
    sensors.read(5.0)
    write(root, {"sys/class/hwmon/hwmon1/temp2_input": 60000})
    sensors.read(10.0)
    row = sensors.row("cn01", 10.0)
    assert (row["throttle_events"], row["power_limit_events"]) == (6, 2)
    assert (row["temperature_max_c"], row["samples"]) == (93.5, 2)
    assert row["rapl"] == {"joules": 0.0, "mean_w": 0.0, "peak_w": 0.0}
    assert row["absent"] == {"board": "no power_command in the class of nodes"}


def test_what_a_node_lacks_is_null_with_a_reason(tmp_path: Path) -> None:
    root = fake_node(tmp_path, sensors=False)
    row = LoadSensors(root, read_topology(root), "exit 1", 0.0).row("cn01", 1.0)
    names = ("rapl", "board", "temperature_max_c", "throttle_events")
    assert [row[name] for name in names] == [None] * 4
    assert {*row["absent"]} == {
        *("rapl", "board", "temperature", "throttle_events", "power_limit_events")
    }


def test_counters_that_were_set_back_are_no_growth(tmp_path: Path) -> None:
    root = energy_node(tmp_path)
    sensors = LoadSensors(root, read_topology(root), "", 0.0)
    for cpu in range(4):
        folder = f"{CPUS}/cpu{cpu}/thermal_throttle"
        write(root, {f"{folder}/core_power_limit_count": 0})
    row = sensors.row("cn01", 1.0)
    assert row["power_limit_events"] is None
    assert row["absent"]["power_limit_events"] == "the counter went back from 20 to 8"


def test_program_reads_from_its_start_to_the_signal(tmp_path: Path) -> None:
    root = energy_node(tmp_path / "tree")
    fake_program(tmp_path, "watts", "echo 250 W")
    command = [sys.executable, "-I", "-m", "seatrial.checks.loadsensors"]
    command += ["--root", str(root), "--power-command", str(tmp_path / "watts")]
    process = subprocess.Popen(
        [*command, "--interval", "0.05"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SLURMD_NODENAME": "cn07"},
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"type": "began", "node": "cn07"}
    write(root, {counter("1"): 9_000_000})
    process.send_signal(signal.SIGUSR1)
    rest, _ = process.communicate(timeout=30)
    (read,) = parse_load_sensors(rest, ["cn07"]).loads
    assert process.returncode == 0
    assert read.rapl is not None
    assert read.rapl.joules == 8.0
    assert read.board is not None
    assert read.board.mean_w == pytest.approx(250.0)
    assert read.temperature_max_c == 45.0


def test_node_without_cpus_has_a_reason_and_lets_the_load_begin(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-m", "seatrial.checks.loadsensors"]
    done = subprocess.run(
        [*command, "--root", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "SLURMD_NODENAME": "cn07"},
        timeout=60,
        check=False,
    )
    assert json.loads(done.stdout.splitlines()[0])["type"] == "began"
    readings = parse_load_sensors(done.stdout, ["cn07"])
    (reason,) = readings.absent
    assert reason.startswith("the CPUs of the node are unknown: ")
    assert [*readings.samples(1, {"gflop": 1.0})] == []


def test_numbers_of_all_nodes_and_work_per_joule() -> None:
    began = json.dumps({"type": "began", "node": "cn01"})
    text = "\n".join([began, load("cn01"), load("cn02", temperature_max_c=None)])
    readings = parse_load_sensors(text, ["cn01", "cn02"])
    assert readings.absent == {LOAD["absent"]["board"]: ["cn01", "cn02"]}  # type: ignore[index]
    samples = [*readings.samples(2, {"gflop": 1600.0})]
    assert Sample("rapl_energy", 8000.0) in samples
    assert Sample("gflop_per_rapl_joule", 2.0) in samples
    assert Sample("rapl_power", 420.0, None, "max", 3, "cn02") in samples
    assert not [one for one in samples if "board" in one.metric]
    hot = [one for one in samples if one.metric == "temperature_max"]
    assert hot == [Sample("temperature_max", 71.0, None, "max", 3, "cn01")]
    limits = [one.value for one in samples if one.metric == "power_limit_events"]
    assert limits == [2.0, 2.0]


def test_energy_of_some_nodes_is_no_energy_of_the_case() -> None:
    text = "\n".join([load("cn01"), load("cn02", rapl=None, absent={"rapl": "x"})])
    readings = parse_load_sensors(text, ["cn01", "cn02", "cn03"])
    names = {sample.metric for sample in readings.samples(3, {"gflop": 1.0})}
    assert names == {
        *("rapl_power", "temperature_max", "throttle_events", "power_limit_events")
    }
    assert readings.absent["x"] == ["cn02"]
    late = "the sensors did not begin, or did not end in time"
    assert readings.absent[late] == ["cn03"]


@pytest.mark.parametrize(
    "text",
    [
        "srun: error",
        load("cn09"),
        load("cn01", seconds="x"),
        f"{load('cn01')}\n{load('cn01')}",
        load("cn01")[:-9],
        "[]",
    ],
)
def test_damaged_rows_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_load_sensors(text, ["cn01"])


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([("HPL_Tflops", "Tflop/s", 2.0), ("x", "%", 9.0)], {"gflop": 2000.0}),
        ([("hpl", "Gflop/s", 30.0), ("hpl", "Gflop/s", 34.0)], {"gflop": 64.0}),
        ([("Mops_total", "Mop/s", 5.0)], {"mop": 5.0}),
        ([("hpl", "Gflop/s", 30.0)] * 3, {}),  # of three places on two nodes
        ([("HPL_Tflops", "Tflop/s", 2.0), ("MPIFFT_Gflops", "Gflop/s", 2.0)], {}),
        ([("Mops_total", "Mop/s", 5.0), ("u", "GUP/s", 1.0)], {}),
        ([("u", "GUP/s", 1.0)], {}),
        ([("mem_bw", "GB/s", 5.0)], {}),
    ],
)
def test_work_of_a_job_with_one_rate(
    rates: list[tuple[str, str, float]], expected: dict[str, float]
) -> None:
    assert work_rates(rates, 2) == expected


ACCOUNTING = """\
17|rfm_Hpl|700|999999
17.batch|batch|700|5
17.extern|extern|700|900000
17.0|seatrial-loadsensors|660|400000
17.1|xhpl|600|240000
18.0|xhpl|600|0
19.0|xhpl|20|4000
20.0|xhpl|600|18446744073709551614
21.0|a|60|6000
21.1|b|0|
21.2|c|60|
"""


def test_energy_by_the_steps_of_slurm() -> None:
    rows = [line.split("|", 3) for line in ACCOUNTING.splitlines()]
    assert parse_energies(rows) == {
        "17": JobEnergy(240000.0, 600),
        "19": JobEnergy(4000.0, 20),
    }
    assert [*JobEnergy(240000.0, 600).samples({"gflop": 800.0})] == [
        Sample("slurm_energy", 240000.0),
        Sample("slurm_power", 400.0),
        Sample("gflop_per_slurm_joule", 2.0),
    ]
    assert [*JobEnergy(4000.0, 20).samples({"gflop": 1.0})] == [
        Sample("slurm_energy", 4000.0)
    ]


def case(job_id: str) -> Case:
    return Case("s", 1, "Hpl", "Hpl", "lab:cpu", "gnu", {}, "pass", job_id=job_id)


def test_slurm_that_counts_nothing_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    slurm_energy.energy_plugin.cache_clear()
    none = "AcctGatherEnergyType    = acct_gather_energy/none"
    fake_program(tmp_path, "scontrol", f"echo '{none}'")
    loads = Loads()
    record = {"absent_sensors": {"a": ""}, "work_rates": {"gflop": 1.0}}
    for job_id in ("17", "18"):
        loads.add(case(job_id), record)
    loads.add(case("19"), {"check": "OsuLatency"})  # no load
    assert [*loads.slurm_samples()] == []
    reason = "Slurm: AcctGatherEnergyType is acct_gather_energy/none"
    assert loads.absent == {"a": "", reason: ""}
    slurm_energy.energy_plugin.cache_clear()


def test_slurm_that_counts_gives_each_job_its_energy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    slurm_energy.energy_plugin.cache_clear()
    plugin = "AcctGatherEnergyType    = acct_gather_energy/ipmi"
    fake_program(tmp_path, "scontrol", f"echo '{plugin}'")
    fake_program(tmp_path, "sacct", f"cat <<'END'\n{ACCOUNTING}END")
    loads = Loads()
    for job_id in ("17", "18", "40", "40"):
        loads.add(case(job_id), {"absent_sensors": {}, "work_rates": {}})
    ((of, samples),) = loads.slurm_samples()
    assert (of.job_id, samples[0]) == ("17", Sample("slurm_energy", 240000.0))
    assert sorted(loads.absent) == [
        "Slurm: acct_gather_energy/ipmi counted nothing in a job",
        "Slurm: cases that share a job have no energy of their own",
    ]
    slurm_energy.energy_plugin.cache_clear()


HANGS = """
trap '' USR1
trap '{on_term}' TERM
for _ in $(seq 100); do sleep 0.1; done &
wait $!; wait $!
"""


@pytest.mark.parametrize(
    ("on_term", "told"), [("touch told; kill $!; exit 0", True), ("", False)]
)
def test_sensors_that_hang_end_with_their_load(
    on_term: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM lets srun end its tasks; KILL ends an srun that does not answer."""
    monkeypatch.setattr(load_sensed, "_END_TENTHS", 3)
    monkeypatch.setattr(load_sensed, "_TERM_TENTHS", 20 if told else 3)
    load: Any = SimpleNamespace(_is_load=True, _shares_machine=False)
    fake_program(tmp_path, "sensors", HANGS.format(on_term=on_term))
    lines = ["./sensors >/dev/null 2>&1 & seatrial_sensors=$!", "disown", "sleep 0.5"]
    lines += LoadSensed.sensors_end(load)
    lines += ["sleep 0.2", "kill -0 $seatrial_sensors 2>/dev/null && echo alive"]
    done = subprocess.run(
        ["bash", "-c", "\n".join([*lines, "true"])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == ""
    assert (tmp_path / "told").exists() == told
