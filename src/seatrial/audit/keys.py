"""What an audit knows of a node: the keys, by kind of subject.

A subject is `node`, `cpu`, `memory`, `kernel`, `job`, `driver`, an HCA (its rail, or
its PCI address if no slot declares it), or a network interface (`ib0`).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """One key.

    `alike`: nodes of a class are expected to have the same value, so that one that
    differs is odd. `stable`: it changes only by a person, so that it is a fact of the
    node, which explains numbers and outdates baselines.
    """

    meaning: str
    alike: bool = True
    stable: bool = True


_OWN = {"alike": False}
_STATE = {"stable": False}

KEYS: dict[str, dict[str, Key]] = {
    "node": {
        "vendor": Key("manufacturer (DMI)"),
        "product": Key("product name (DMI)"),
        "serial": Key("serial number (DMI)", **_OWN),
        "bios": Key("version and date of the BIOS"),
        "bmc": Key("firmware of the BMC"),
        "os": Key("distribution and its version"),
    },
    "cpu": {
        "model": Key("model name"),
        "microcode": Key("revision of the microcode"),
        "governor": Key("cpufreq governor; several if CPUs differ"),
        "boost": Key("on or off"),
        "c_states": Key("idle states that are not disabled, shallowest first"),
        "smt": Key("on or off, or notsupported"),
    },
    "memory": {
        "size": Key("sum of the DIMMs, GiB"),
        "dimms": Key("number, size, type and configured speed"),
        "numa_balancing": Key("kernel.numa_balancing: 0, 1 or 2"),
        "thp": Key("transparent huge pages: always, madvise or never"),
        "huge_pages.SIZE.NODE": Key("pages of a size (2048kB) on a NUMA node (node0)"),
        "edac_corrected": Key("corrected memory errors since boot", **_STATE),
        "edac_uncorrected": Key("uncorrected memory errors since boot", **_STATE),
        "mce": Key("machine check events since boot", **_STATE),
    },
    "kernel": {
        "release": Key("uname -r"),
        "command_line": Key("arguments, without the boot image and the root device"),
        "argument.NAME": Key("its value; present if it has none; absent"),
        "sysctl.NAME": Key("value, its fields separated by one space"),
        "irqbalance": Key("active or inactive"),
    },
    "job": {
        "memlock": Key("limit of locked memory in a job, KiB, or unlimited"),
    },
    "driver": {
        "source": Key("inbox, DOCA, OFED or other"),
        "version": Key("of the stack, of modules; of inbox, that of the kernel"),
        "option.MODULE.NAME": Key("value of a module's parameter"),
    },
    "hca": {
        "address": Key("PCI address"),
        "device": Key("name of the RDMA device (mlx5_0)"),
        "psid": Key("board: PSID, or PCI subsystem where there is none"),
        "part": Key("part number"),
        "serial": Key("serial number", **_OWN),
        "guid": Key("node GUID", **_OWN),
        "firmware": Key("version that runs; pending: version that is stored"),
        "driver": Key("kernel driver"),
        "firmware.stored": Key("unknown if mstflint cannot read the flash"),
        "nvconfig.all": Key("unknown if none can be read"),
        "nvconfig.NAME": Key("value that runs; pending: value of the next boot"),
        "pcie.width": Key("lanes in use, on every hop"),
        "pcie.speed": Key("GT/s in use, on every hop"),
        "pcie.max_read_request": Key("bytes"),
        "pcie.max_payload": Key("bytes; several if hops differ"),
        "pcie.acs": Key("on or off, on the ports above it"),
        "numa_node": Key("NUMA node"),
        "port": Key("port of the rail"),
        "link_layer": Key("InfiniBand or Ethernet"),
        "state": Key("state of the port (ACTIVE)", **_STATE),
        "physical_state": Key("physical state of the port (LinkUp)", **_STATE),
        "rate": Key("Gbit/s"),
        "mtu": Key("active MTU of the port, bytes"),
        "fec": Key("forward error correction of the link"),
        "irq_affinity": Key("local or remote: CPUs of its IRQs", **_STATE),
        "coalescing.NAME": Key("interrupt coalescing, of its network interface"),
        "roce.trust": Key("pcp or dscp"),
        "roce.pfc": Key("priorities with flow control"),
        "roce.ecn": Key("priorities with congestion control"),
        "roce.dscp.NUMBER": Key("priority of a DSCP"),
        "roce.buffers": Key("sizes of the receive buffers, bytes"),
        "roce.tos": Key("default type of service of rdma_cm"),
    },
    "interface": {
        "mode": Key("of IPoIB: datagram or connected"),
        "mtu": Key("bytes"),
        "driver": Key("kernel driver"),
        "firmware": Key("version"),
        "coalescing.NAME": Key("interrupt coalescing"),
    },
}
"""Keys by kind of subject; a part in capitals stands for any name."""


def key_of(kind: str, name: str) -> Key:
    """Return the key of a name such as `nvconfig.LINK_TYPE_P1`; KeyError if unknown."""
    keys = KEYS[kind]
    if name in keys:
        return keys[name]
    for pattern, key in keys.items():
        fixed = [part for part in pattern.split(".") if not part.isupper()]
        head = ".".join([*fixed, ""])
        if head != pattern + "." and name.startswith(head):
            return key
    raise KeyError(name)
