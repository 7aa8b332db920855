"""Data rates of PCI Express and InfiniBand links: what nothing measured can exceed."""

from seatrial.model.units import to_mb_per_s

PCIE_LANES = {
    2.5: (8, 10),
    5.0: (8, 10),
    8.0: (128, 130),
    16.0: (128, 130),
    32.0: (128, 130),
}
"""Payload bits in coded bits, by GT/s of a lane: PCIe 1 to 5."""

INFINIBAND_LANES = {
    "SDR": (2.5, (8, 10)),
    "DDR": (5.0, (8, 10)),
    "QDR": (10.0, (8, 10)),
    "FDR10": (10.3125, (64, 66)),
    "FDR": (14.0625, (64, 66)),
    "EDR": (25.78125, (64, 66)),
    "HDR": (53.125, (512, 544)),
    "NDR": (106.25, (512, 544)),
}
"""Signalling rate of a lane in Gbit/s, and payload bits in coded bits."""

LANES = (1, 2, 4, 8, 12, 16, 32)


def pcie_rate(gt_per_s: float, lanes: int) -> float:
    """Return the data rate of a PCI Express link in MB/s, one direction.

    `gt_per_s` is that of a lane, 2.5 to 32, as sysfs says in current_link_speed. The
    coding is taken off, the headers of packets are not: 8 lanes of PCIe 1.1 are 2000
    MB/s (Liu et al. 2005, Subramoni et al. 2009, PCI Express Base Specification).
    ValueError on rates and widths that there are not.
    """
    if gt_per_s not in PCIE_LANES:
        known = ", ".join(f"{rate:g}" for rate in PCIE_LANES)
        raise ValueError(f"{gt_per_s} GT/s is no PCI Express rate; expected {known}")
    return _data_rate(gt_per_s, lanes, PCIE_LANES[gt_per_s])


def infiniband_rate(name: str, lanes: int = 4) -> float:
    """Return the data rate of an InfiniBand link in MB/s, one direction.

    `name` is SDR to NDR. The coding is taken off, the headers of packets are not: 4X
    SDR is 1000 MB/s, DDR 2000, QDR 4000 (Liu et al. 2005, Subramoni et al. 2009,
    InfiniBand Architecture Specification). ValueError on rates and widths that there
    are not.
    """
    if name not in INFINIBAND_LANES:
        known = ", ".join(INFINIBAND_LANES)
        raise ValueError(f"{name!r} is no InfiniBand rate; expected one of {known}")
    gbit_per_s, coding = INFINIBAND_LANES[name]
    return _data_rate(gbit_per_s, lanes, coding)


def _data_rate(gbit_per_s: float, lanes: int, coding: tuple[int, int]) -> float:
    if lanes not in LANES:
        raise ValueError(f"{lanes} lanes, expected one of {', '.join(map(str, LANES))}")
    payload, coded = coding
    return to_mb_per_s(gbit_per_s * lanes * payload / coded, "Gbit/s")
