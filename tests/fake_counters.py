"""Ports with counters, as trees of sysfs: names of real drivers, made by hand.

Names are those of the sources that `fabric/quantities.py` lists. No tree is recorded.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fake_home import fake_program, write

from seatrial.fabric.node_counters import NodeCounters, node_script, parse_node_counters

IB_ERRORS = (
    *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"),
    *("port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors"),
    *("port_xmit_discards", "port_xmit_constraint_errors"),
    *("port_rcv_constraint_errors", "local_link_integrity_errors"),
    *("excessive_buffer_overrun_errors", "VL15_dropped"),
)


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device; `device` is '' for an interface without one."""

    device: str
    counters: Mapping[str, int | str] = field(default_factory=dict)
    hardware: Mapping[str, int] = field(default_factory=dict)
    link_layer: str = "InfiniBand"
    interface: str = ""
    net: Mapping[str, int] = field(default_factory=dict)
    ethtool: Mapping[str, int] | str = field(default_factory=dict)
    of_device: bool = False
    number: int = 1
    state: str = "4: ACTIVE"

    def counting(self, kind: str, **changed: int) -> "Port":
        """Return the port with other values of some counters."""
        counts: Any = {**getattr(self, kind), **changed}
        return replace(self, **{kind: counts})


MLX5_IB = Port(
    "mlx5_0",
    {
        **dict.fromkeys(IB_ERRORS, 0),
        **{"port_rcv_data": 237159415345822, "port_xmit_data": 238334949937759},
        **{"port_rcv_packets": 801977655075, "port_xmit_wait": 4294967295},
    },
    {"packet_seq_err": 3, "local_ack_timeout_err": 2, "out_of_sequence": 4},
)
MLX5_ROCE = Port(
    "mlx5_2",
    {**dict.fromkeys(IB_ERRORS, 0), "port_rcv_data": 100, "port_xmit_data": 100},
    {"packet_seq_err": 0, "local_ack_timeout_err": 0, "rp_cnp_handled": 5},
    "Ethernet",
    "ens1f0np0",
    {"rx_bytes": 10, "tx_bytes": 10, "rx_crc_errors": 0},
    {
        **{"rx_packets": 3, "rx_bytes": 10, "tx_bytes": 10, "rx0_packets": 1},
        **{"ch0_events": 7, "rx_bytes_phy": 8000, "tx_bytes_phy": 9000},
        **{"rx_crc_errors_phy": 0, "rx_symbol_err_phy": 0, "tx_discards_phy": 0},
        **{"rx_discards_phy": 1, "rx_pcs_symbol_err_phy": 0},
        **{"link_down_events_phy": 1, "rx_pause_ctrl_phy": 0, "rx_prio3_pause": 2},
    },
)
IRDMA = Port(
    "irdma0",
    {},
    {"InRdmaWrites": 5, "cnpHandled": 2, "RetransSegs": 1, "RNR sent": 0},
    "Ethernet",
    "ens2",
    {"rx_bytes": 10, "rx_crc_errors": 0, "carrier_down_count": 2},
    {
        **{"tx_queue_0_packets": 1, "rx_bytes.nic": 500, "tx_bytes.nic": 600},
        **{"rx_crc_errors.nic": 1, "link_xoff_rx.nic": 0, "rx_dropped.nic": 0},
        **{"tx_dropped_link_down.nic": 0, "mac_local_faults.nic": 4},
    },
    of_device=True,
)
BNXT_RE = Port(
    "bnxt_re0",
    {},
    {"seq_err_naks_rcvd": 1, "to_retransmits": 2, "rx_cnp_pkts": 3},
    "Ethernet",
    "eth4",
    {"rx_bytes": 10},
    {
        **{"[0]: rx_ucast_packets": 7, "rx_fcs_err_frames": 0, "rx_bytes": 70},
        **{"tx_bytes": 80, "rx_pause_frames": 0, "rx_stat_discard": 0},
        **{"tx_stat_discard": 0, "link_down_events": 1, "rx_bits": 1000},
        **{"rx_pcs_symbol_err": 0},
    },
)
HFI1 = Port(
    "hfi1_0",
    {
        **dict.fromkeys(IB_ERRORS, 0),
        **{"link_error_recovery": 1, "port_rcv_data": 50, "port_xmit_data": 60},
        **{"port_xmit_wait": 9},
    },
    {"DcRecvErr": 0},
)
DRIVERS = (MLX5_IB, MLX5_ROCE, IRDMA, BNXT_RE, HFI1)


def write_ports(root: Path, *ports: Port, boot: str = "boot-1") -> Path:
    """Write the tree of a node; earlier files of it stay."""
    write(root / "proc/sys/kernel/random/boot_id", f"{boot}\n")
    (root / "sys").mkdir(exist_ok=True)
    for port in ports:
        if port.device:
            _write_device(root / "sys/class/infiniband" / port.device, port)
        of_link = root / "sys/class/net" / port.interface
        for name, count in port.net.items():
            folder = "" if name == "carrier_down_count" else "statistics"
            write(of_link / folder / name, f"{count}\n")
        if port.interface:
            write(of_link / "operstate", "up\n")
            _write_ethtool(root / "tools", port)
    return root


def _write_device(device: Path, port: Port) -> None:
    folder = device / "ports" / str(port.number)
    write(folder / "link_layer", f"{port.link_layer}\n")
    write(folder / "state", f"{port.state}\n")
    if port.interface:
        write(folder / "gid_attrs/ndevs/0", f"{port.interface}\n")
    hardware = (device if port.of_device else folder) / "hw_counters"
    write(hardware / "lifespan", "10\n")
    for name, count in port.hardware.items():
        write(hardware / name, f"{count}\n")
    for name, text in port.counters.items():
        write(folder / "counters" / name, f"{text}\n")


def _write_ethtool(tools: Path, port: Port) -> None:
    text = port.ethtool
    if not isinstance(text, str):
        lines = [f"     {name}: {count}\n" for name, count in text.items()]
        text = "".join(["NIC statistics:\n", *lines])
    write(tools / f"{port.interface}.txt", text)
    fake_program(tools, "ethtool", '[ -s tools/$2.txt ] && cat "tools/$2.txt"')


def text_of(root: Path, *interfaces: str) -> str:
    """Run the node's script on a tree."""
    command = ["sh", "-c", node_script(), "counters.sh", str(root), *interfaces]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(root: Path, *ports: Port, boot: str = "boot-1", at: float = 0) -> NodeCounters:
    """Write a tree and read it; its time is `at`."""
    text = text_of(write_ports(root, *ports, boot=boot))
    found = parse_node_counters(text)
    return NodeCounters(at, found.boot, found.ports)
