"""Trees of /sys and /proc as a node has them, for the tests of its sensors."""

from collections.abc import Mapping
from pathlib import Path

CPUS = "sys/devices/system/cpu"
INTERRUPTS = """\
           CPU0       CPU1
  1:          0          9   IO-APIC   1-edge      i8042
NMI:          0          0   Non-maskable interrupts
MCE:          1          2   Machine check exceptions
MCP:        500        501   Machine check polls
ERR:          0
"""


def cpu_stat(throttled: int) -> str:
    """Return cpu.stat of a control group after a number of throttled periods."""
    return f"usage_usec 5\nnr_periods 900\nnr_throttled {throttled}\nnr_bursts 0"


def write(root: Path, files: Mapping[str, object]) -> None:
    """Write files below a root, each with a newline at its end."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")


def fake_node(
    root: Path,
    sockets: int = 1,
    cores: int = 2,
    threads: int = 1,
    *,
    packages: tuple[int, ...] = (),
    memory_gib: int = 64,
    mhz: float = 2600.0,
    sensors: bool = True,
) -> Path:
    """Build a node with a number of cores in each socket; return its root.

    CPUs are numbered as Linux does it: a thread of every core of every socket first.
    `sensors`: with cpufreq, coretemp, throttling, quotas, EDAC and machine checks,
    which all tell of an untroubled node at 45 degrees.
    """
    packages = packages or tuple(range(sockets))
    cpus = range(sockets * cores * threads)
    memory = memory_gib << 20
    files: dict[str, object] = {
        f"{CPUS}/online": f"0-{cpus[-1]}",
        "proc/meminfo": f"MemTotal: {memory} kB\nMemAvailable: {memory - 1024} kB",
        "proc/self/status": f"Name: python\nCpus_allowed_list:\t0-{cpus[-1]}",
        "proc/cpuinfo": "".join(
            f"processor\t: {cpu}\nmodel name\t: Fake\ncpu MHz\t\t: {mhz:.3f}\n\n"
            for cpu in cpus
        ),
    }
    for cpu in cpus:
        files |= _topology(cpu, packages, sockets, cores, threads)
        if sensors:
            throttle = f"{CPUS}/cpu{cpu}/thermal_throttle"
            files |= {
                f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq": round(1e3 * mhz),
                f"{throttle}/core_throttle_count": 0,
                f"{throttle}/package_throttle_count": 0,
            }
    if sensors:
        files |= _sensors(packages)
    write(root, files)
    return root


def _topology(
    cpu: int, packages: tuple[int, ...], sockets: int, cores: int, threads: int
) -> dict[str, object]:
    """Return socket, sibling threads and caches of a CPU."""
    count = sockets * cores
    core = cpu % count
    socket = core // cores
    siblings = ",".join(str(core + count * thread) for thread in range(threads))
    folder = f"{CPUS}/cpu{cpu}"
    return {
        f"{folder}/topology/physical_package_id": packages[socket],
        f"{folder}/topology/thread_siblings_list": siblings,
        f"{folder}/cache/index0/level": 1,
        f"{folder}/cache/index0/size": "48K",
        f"{folder}/cache/index0/shared_cpu_list": siblings,
        f"{folder}/cache/index3/level": 3,
        f"{folder}/cache/index3/size": "32768K",
        f"{folder}/cache/index3/shared_cpu_list": (
            f"{socket * cores}-{(socket + 1) * cores - 1}"
        ),
    }


def _sensors(packages: tuple[int, ...]) -> dict[str, object]:
    """Return interrupts, quotas, temperatures and memory errors of a node."""
    files: dict[str, object] = {
        "proc/interrupts": INTERRUPTS,
        "proc/self/cgroup": "0::/system.slice/job_1",
        "sys/fs/cgroup/cgroup.procs": "",
        "sys/fs/cgroup/system.slice/job_1/cpu.stat": cpu_stat(0),
        "sys/class/hwmon/hwmon0/name": "nvme",
        "sys/class/hwmon/hwmon0/temp1_input": 90000,
    }
    for socket, package in enumerate(packages):
        chip = f"sys/class/hwmon/hwmon{socket + 1}"
        controller = f"sys/devices/system/edac/mc/mc{socket}"
        files |= {
            f"{chip}/name": "coretemp",
            f"{chip}/temp1_label": f"Package id {package}",
            f"{chip}/temp1_input": 45000,
            f"{chip}/temp2_label": "Core 0",
            f"{chip}/temp2_input": 44000,
            f"{controller}/ce_count": 0,
            f"{controller}/ue_count": 0,
        }
    return files
