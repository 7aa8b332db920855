"""Quantities that ports count, and the counters of each driver that count them.

Sources: Documentation/ABI/stable/sysfs-class-infiniband of Linux (names and meaning;
`port_rcv_data` is in units of 4 octets), drivers/infiniband/core/sysfs.c (width of each
counter), IBTA volume 1, 16.1.3.5 PortCounters (they stop at their greatest value);
Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; the tables
of names in bnxt_ethtool.c, ice_ethtool.c and i40e_ethtool.c, and in hw_counters.c of
bnxt_re, verbs.c of irdma and rxe_hw_counters.c. hfi1 fills the counters of InfiniBand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["error", "transport", "congestion", "data"]


@dataclass(frozen=True)
class Quantity:
    """A quantity that ports count, with the names that drivers have for it.

    Each of `counters` is a counter or a sum; the first that a port has counts. Names
    begin with their source: `ib:` counters of sysfs, `hw:` its hw_counters, `eth:`
    ethtool, `net:` statistics of an interface. `by_query` is that of ibqueryerrors.
    """

    name: str
    role: Role
    meaning: str
    counters: tuple[str, ...]
    by_query: str = ""


_ALL = (
    Quantity(
        "symbol_error",
        "error",
        "symbols that arrived damaged and were not corrected",
        (
            *("eth:rx_pcs_symbol_err_phy", "eth:rx_pcs_symbol_err"),
            *("eth:rx_symbol_err_phy", "ib:symbol_error"),
        ),
        "SymbolErrorCounter",
    ),
    Quantity(
        "link_error_recovery",
        "error",
        "recoveries of the link from errors",
        ("ib:link_error_recovery",),
        "LinkErrorRecoveryCounter",
    ),
    Quantity(
        "link_downed",
        "error",
        "times that the link went down",
        (
            *("eth:link_down_events_phy", "eth:link_down_events"),
            *("hw:link_downed", "ib:link_downed", "net:carrier_down_count"),
        ),
        "LinkDownedCounter",
    ),
    Quantity(
        "port_rcv_errors",
        "error",
        "packets that arrived with an error",
        (
            *("eth:rx_crc_errors_phy", "eth:rx_fcs_err_frames"),
            *("eth:rx_crc_errors.nic", "eth:port.rx_crc_errors"),
            *("eth:rx_crc_errors", "ib:port_rcv_errors"),
        ),
        "PortRcvErrors",
    ),
    Quantity(
        "port_rcv_remote_physical_errors",
        "error",
        "packets that another link had marked as bad",
        ("ib:port_rcv_remote_physical_errors",),
        "PortRcvRemotePhysicalErrors",
    ),
    Quantity(
        "local_link_integrity_errors",
        "error",
        "times that errors of the link exceeded its threshold",
        ("ib:local_link_integrity_errors",),
        "LocalLinkIntegrityErrors",
    ),
    Quantity(
        "excessive_buffer_overrun_errors",
        "error",
        "times that receive buffers overran",
        ("ib:excessive_buffer_overrun_errors",),
        "ExcessiveBufferOverrunErrors",
    ),
    Quantity(
        "port_xmit_discards",
        "error",
        "packets that were not sent: link down or congested",
        (
            *("eth:tx_discards_phy", "eth:tx_stat_discard"),
            *("eth:tx_dropped_link_down.nic", "ib:port_xmit_discards"),
        ),
        "PortXmitDiscards",
    ),
    Quantity(
        "port_xmit_constraint_errors",
        "error",
        "packets that a switch did not send: wrong partition",
        ("ib:port_xmit_constraint_errors",),
        "PortXmitConstraintErrors",
    ),
    Quantity(
        "port_rcv_constraint_errors",
        "error",
        "packets that a switch did not accept: wrong partition",
        ("ib:port_rcv_constraint_errors",),
        "PortRcvConstraintErrors",
    ),
    Quantity(
        "VL15_dropped",
        "error",
        "packets of the subnet manager that were dropped",
        ("ib:VL15_dropped",),
        "VL15Dropped",
    ),
    Quantity(
        "retransmissions",
        "transport",
        "times that an HCA had to send again: NAK or timeout",
        (
            "hw:packet_seq_err + hw:local_ack_timeout_err",
            "hw:seq_err_naks_rcvd + hw:to_retransmits",
            *("hw:RetransSegs", "hw:tcpRetransSegs", "hw:completer_retry_err"),
        ),
    ),
    Quantity(
        "port_xmit_wait",
        "congestion",
        "ticks in which data waited for credits",
        ("ib:port_xmit_wait",),
    ),
    Quantity(
        "congestion_notifications",
        "congestion",
        "congestion notifications (CNP) that slowed a sender",
        ("hw:rp_cnp_handled", "hw:cnpHandled", "hw:rx_cnp_pkts"),
    ),
    Quantity(
        "pause_frames",
        "congestion",
        "pause frames that arrived",
        ("eth:rx_pause_ctrl_phy", "eth:rx_pause_frames", "eth:link_xoff_rx.nic"),
    ),
    Quantity(
        "receive_discards",
        "congestion",
        "packets that arrived and found no buffer",
        ("eth:rx_discards_phy", "eth:rx_stat_discard", "eth:rx_dropped.nic"),
    ),
)
QUANTITIES: Mapping[str, Quantity] = {one.name: one for one in _ALL}

ERRORS = tuple(one.name for one in _ALL if one.role == "error")

OF_BITS = ("symbol_error", "port_rcv_errors")
"""Quantities that bit errors raise; the first that a port counts bounds its rate."""

BITS_RECEIVED: Mapping[str, int] = {
    "eth:rx_bits_phy": 1,
    "eth:rx_bits": 1,
    "eth:rx_bytes_phy": 8,
    "eth:rx_bytes.nic": 8,
    "eth:port.rx_bytes": 8,
    "ib:port_rcv_data": 32,
    "eth:rx_bytes": 8,
    "net:rx_bytes": 8,
}
BITS_SENT: Mapping[str, int] = {
    "eth:tx_bytes_phy": 8,
    "eth:tx_bytes.nic": 8,
    "eth:port.tx_bytes": 8,
    "ib:port_xmit_data": 32,
    "eth:tx_bytes": 8,
    "net:tx_bytes": 8,
}
"""Counters of data and the bits of one count; the first that a port has counts."""

GREATEST: Mapping[str, int] = {
    "ib:symbol_error": 0xFFFF,
    "ib:link_error_recovery": 0xFF,
    "ib:link_downed": 0xFF,
    "ib:port_rcv_errors": 0xFFFF,
    "ib:port_rcv_remote_physical_errors": 0xFFFF,
    "ib:local_link_integrity_errors": 0xF,
    "ib:excessive_buffer_overrun_errors": 0xF,
    "ib:port_xmit_discards": 0xFFFF,
    "ib:port_xmit_constraint_errors": 0xFF,
    "ib:port_rcv_constraint_errors": 0xFF,
    "ib:VL15_dropped": 0xFFFF,
    "ib:port_xmit_wait": 0xFFFF_FFFF,
    "ib:port_rcv_data": 0xFFFF_FFFF,
    "ib:port_xmit_data": 0xFFFF_FFFF,
}
"""Values at which counters of sysfs stop.

Those of data stop only on HCAs without extended counters, whose data have 64 bits.
"""
