"""Virtual machines of the lab: their kernel, devices, files and accelerator."""

import lzma
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from seatrial.errors import SeatrialError
from seatrial.system.lab import fabric, kernel, machine
from seatrial.system.lab.kernel import Kernel
from seatrial.system.lab.node_files import machine_files, write_node_files
from seatrial.system.lab.state import LabState

KERNEL = Kernel(Path("/k/vmlinux"), Path("/k/initrd"))
FOLDERS = {"image": Path("/i"), "node": Path("/n"), "home": Path("/h")}


def module(folder: Path, name: str, depends: str) -> None:
    content = b"ELF\0name=x\0depends=" + depends.encode() + b"\0vermagic=6.1\0"
    packed = lzma.compress(content) if name.endswith(".xz") else content
    (folder / name).write_bytes(packed)


def test_modules_load_after_those_that_they_need(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    module(tmp_path, "rdma-rxe.ko", "ib_core,udp_tunnel,ip6-udp")
    module(tmp_path / "net", "ib_core.ko.xz", "")
    module(tmp_path / "net", "ip6_udp.ko", "udp_tunnel")
    module(tmp_path, "unused.ko", "")
    (tmp_path / "modules.builtin").write_text("kernel/net/udp-tunnel.ko\n")
    order = kernel.load_order(
        kernel.module_files(tmp_path), kernel.built_in(tmp_path), ["rdma_rxe"]
    )
    assert list(order) == ["ib_core", "ip6_udp", "rdma_rxe"]
    assert order["ib_core"].startswith(b"ELF")


def test_a_kernel_without_a_module_is_refused(tmp_path: Path) -> None:
    module(tmp_path, "rdma_rxe.ko", "ib_core")
    files = kernel.module_files(tmp_path)
    with pytest.raises(SeatrialError, match="has no module ib_core"):
        kernel.load_order(files, set(), ["rdma_rxe"])


def test_a_compressed_kernel_is_unpacked() -> None:
    packed = b"MZ boot sector" + lzma.compress(b"the kernel") + b"trailer"
    assert kernel.uncompressed(packed) == b"the kernel"
    assert kernel.uncompressed(b"MZ zstd") == b"MZ zstd"


def options(number: int, name: str) -> list[str]:
    words = list(machine._devices(number, FOLDERS, [7, 8, 9]))
    return [value for key, value in pairwise(words) if key == name]


def test_only_the_shared_home_can_be_written() -> None:
    shares = options(11, "-virtfs")
    writable = [share for share in shares if "readonly=on" not in share]
    assert len(shares) == 3
    assert len(writable) == 1
    assert writable[0].startswith("local,path=/h,mount_tag=home,")


def test_each_rail_has_a_slot_and_an_address_of_its_own() -> None:
    cards = [card for card in options(11, "-device") if "virtio-net" in card]
    slots = [slot for slot in options(11, "-device") if "root-port" in slot]
    assert options(11, "-netdev") == [
        "tap,id=host0,fd=7",
        "tap,id=rail0,fd=8",
        "tap,id=rail1,fd=9",
    ]
    assert ["bus=slot" in card for card in cards] == [False, True, True]
    assert len({slot.partition("x-speed")[2] for slot in slots}) == len(slots) == 2
    others = [card for card in options(12, "-device") if "virtio-net" in card]
    macs = [card.partition("mac=")[2] for card in (*cards, *others)]
    assert len(set(macs)) == 6
    assert [card.partition("host_mtu=")[2][:4] for card in cards] == [
        "1500",
        "4500",
        "4500",
    ]


def test_rails_are_soft_roce_with_addresses_of_their_own() -> None:
    nodes = {"rhead": "10.98.0.1", "rn01": "10.98.0.11"}
    files = machine_files(LabState("/home", "boot", nodes), "rn01")
    network, slurmd = files.values()
    for index, rail in enumerate(fabric.RAILS):
        assert f"10.98.{index + 1}.11/24 dev {rail.device}\n" in network
        assert f"rdma link add rxe{index} type rxe netdev {rail.device}\n" in network
    assert '"SLURMD_OPTIONS=--conf-server rhead"' in slurmd
    assert "LimitMEMLOCK=infinity" in slurmd


@pytest.mark.parametrize(
    ("probe", "accelerator"),
    [("true", "kvm"), ("false", "tcg"), ("exec sleep 60", "tcg"), (None, "tcg")],
)
def test_kvm_is_used_only_where_a_kernel_runs(
    probe: str | None,
    accelerator: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def no_namespace(_: int) -> Iterator[int]:
        yield 0

    if probe is not None:
        (tmp_path / "kvm").touch()
    monkeypatch.setattr(machine, "_KVM", tmp_path / "kvm")
    monkeypatch.setattr(machine, "PROBE_SECONDS", 0.5)
    monkeypatch.setattr(machine, "_user_namespace", no_namespace)
    monkeypatch.setattr(machine, "_enter", lambda _: ("sh", "-c", probe))
    assert machine.accelerator(KERNEL, 1000) == accelerator


def test_init_is_a_shell_script(tmp_path: Path) -> None:
    file = tmp_path / "init"
    file.write_text(kernel.INIT)
    subprocess.run(["sh", "-n", file], check=True)
    assert "seatrial.probe" in " ".join(machine._qemu(KERNEL, "kvm", "seatrial.probe"))
    assert "seatrial.probe" in kernel.INIT


def test_all_nodes_have_one_munge_key_marked_as_ours(tmp_path: Path) -> None:
    (tmp_path / "id_ed25519.pub").write_text("ssh-ed25519 key\n")
    nodes = {"rhead": "10.98.0.1", "rn01": "10.98.0.11"}
    state = LabState(str(tmp_path), "boot", nodes, machines=["rn01"])
    keys = set()
    for node in nodes:
        (tmp_path / node).mkdir()
        write_node_files(state, node, tmp_path / node)
        munge = tmp_path / node / "etc/munge"
        check = ("sha256sum", "--check", "--status", "seatrial.sha256")
        subprocess.run(check, cwd=munge, check=True)
        keys.add((munge / "munge.key").read_text())
    assert len(keys) == 1
    assert len(keys.pop()) == 128
