"""A stand-in for HCAs and the programs that burn them, with modes of failure.

Called as `mstflint`, `mstconfig` or `boot`, beside a folder `tools` in ROOT. Output
follows the formats of the real programs (tests/data/hardware). State of ROOT/hcas.json:
{ADDRESS: {psid, running, stored, guid, device, settings: {NAME: [current, next]}}}.
ROOT/mode is a word: what goes wrong. An image is a text: its PSID and its version.
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / "hcas.json"
NAMES = {
    "SRIOV_EN": {"0": "False", "1": "True"},
    "LINK_TYPE_P1": {"1": "IB", "2": "ETH"},
}
QUERY = """\
Image type:            FS4
FW Version:            {stored}
{running}FW Release Date:       11.11.2024
Product Version:       {stored}
Description:           UID                GuidsNumber
Base GUID:             {guid}        4
Base MAC:              {mac}            4
Image VSD:             N/A
Device VSD:            N/A
PSID:                  {psid}
Security Attributes:   N/A
"""
FS2 = """\
Image type:            FS2
FW Version:            {stored}
FW Release Date:       5.9.2017
Product Version:       {stored}
Rom Info:              type=PXE version=3.4.752
Device ID:             4099
Description:           Node             Port1            Port2            Sys image
GUIDs:                 {guid} {guid} {guid} {guid}
MACs:                                       {mac}     {mac}
VSD:
PSID:                  {psid}
"""
CONFIG = """
Device #1:
----------

Device type:    ConnectX6
Name:           MCX653105A-ECA_Ax
Description:    ConnectX-6 VPI adapter card
Device:         {address}

Configurations:                              Default         Current         Next Boot
"""


def load() -> dict[str, Any]:
    state: dict[str, Any] = json.loads(STATE.read_text())
    return state


def save(state: dict[str, Any]) -> None:
    new = STATE.with_suffix(".new")
    new.write_text(json.dumps(state, indent=1))
    new.rename(STATE)


def mode() -> str:
    file = ROOT / "mode"
    return file.read_text().strip() if file.exists() else ""


def fail(text: str) -> NoReturn:
    print(f"-E- {text}")
    sys.exit(1)


def query(
    stored: str, psid: str, guid: str = "0000000000000000", running: str = ""
) -> None:
    line = f"FW Version(Running):   {running}\n" if running not in ("", stored) else ""
    texts = {"stored": stored, "running": line, "psid": psid}
    form = FS2 if mode() == "fs2" else QUERY  # FS2 tells of the flash alone
    sys.stdout.write(form.format(guid=guid, mac=guid[:6] + guid[-6:], **texts))


def image(file: str) -> tuple[str, str]:
    psid, _, version = Path(file).read_text().strip().partition(" ")
    if not version:
        fail(f"Failed to open {file}: Invalid Firmware Format")
    return psid, version


def mstflint(arguments: list[str]) -> None:
    if arguments == ["-v"]:
        print("mstflint, mstflint 4.21.0")
    elif arguments[0] == "-i":
        psid, version = image(arguments[1])
        if arguments[-1] == "verify":
            print("-I- FW image verification succeeded. Image is bootable.")
        else:
            query(version, psid)
    else:
        flint_device(arguments[1], arguments)


def flint_device(address: str, arguments: list[str]) -> None:
    state = load()
    if address not in state:
        fail(f"Cannot open Device: {address}. No such file or directory.")
    hca = state[address]
    if arguments[-1] == "query" and mode() == "query-hangs":
        time.sleep(600)
    if arguments[-1] == "query" and mode() == "query-fails":
        fail(f"Cannot open Device: {address}. MFE_CR_ERROR.")
    if arguments[-1] == "query":
        query(hca["stored"], hca["psid"], hca["guid"], hca["running"])
        return
    assert arguments[-2:] == ["-y", "burn"], arguments
    psid, version = image(arguments[3])
    if psid != hca["psid"]:
        fail(f"PSID mismatch. The PSID on flash ({hca['psid']}) differs ({psid}).")
    if mode() == "burn-hangs":
        time.sleep(600)
    if mode() != "burn-does-nothing":
        hca["stored"] = version
        save(state)
    print("-I- Image burn completed successfully.")
    if mode() == "burn-ends-with-1":
        sys.exit(1)


def named(name: str, number: str) -> str:
    return f"{NAMES[name][number]}({number})" if name in NAMES else number


def mstconfig(arguments: list[str]) -> None:
    if arguments == ["-v"]:
        print("mstconfig, mstflint 4.21.0")
        return
    state = load()
    if arguments[1] not in state:
        fail(f"Failed to open device: {arguments[1]}")
    hca = state[arguments[1]]
    if arguments[-1] == "query":
        sys.stdout.write(CONFIG.format(address=arguments[1]))
        for name, (now, after) in hca["settings"].items():
            star = "*" if now != after else " "
            texts = (named(name, text) for text in (now, now, after))
            print(f"{star}        {name:<36}" + "".join(f"{t:<16}" for t in texts))
        print(
            "The '*' shows parameters with next value different from default/current."
        )
    elif arguments[-1] == "backup":
        Path(arguments[3]).write_text(json.dumps(hca["settings"]))
    else:
        assert arguments[2:4] == ["-y", "set"], arguments
        for assignment in arguments[4:]:
            name, _, number = assignment.partition("=")
            if mode() != "set-does-nothing":
                hca["settings"][name][1] = number
        save(state)


def boot(_: list[str]) -> None:
    """Let what is stored run, as a reboot does, in the state and in sysfs."""
    state = load()
    for address, hca in state.items():
        folder = ROOT / "sys/class/infiniband" / hca["device"]
        if mode() != "reset-refused":
            hca["running"] = hca["stored"]
            (folder / "fw_ver").write_text(hca["running"] + "\n")
        for values in hca["settings"].values():
            if mode() == "setting-lost":
                values[1] = values[0]
            values[0] = values[1]
        if mode() == "link-down":
            (folder / "ports/1/state").write_text("1: DOWN\n")
            (folder / "ports/1/phys_state").write_text("2: Polling\n")
        if mode() == "hca-gone":
            (ROOT / "sys/class/infiniband" / hca["device"]).unlink()
            pci = (ROOT / "sys/bus/pci/devices" / address).resolve()
            shutil.rmtree(pci / "infiniband")
    save(state)


if __name__ == "__main__":
    PROGRAMS = {"mstflint": mstflint, "mstconfig": mstconfig, "boot": boot}
    PROGRAMS[Path(sys.argv[0]).name](sys.argv[1:])
