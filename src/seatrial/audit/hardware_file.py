"""The declaration of HCAs and node settings: hardware.yml of an inventory."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from seatrial.audit import nvconfig
from seatrial.audit.hardware_types import Firmware, Hardware, HcaModel, HcaSlot
from seatrial.model.yaml_file import Place, YamlFile

NAME = "group_vars/all/hardware.yml"
"""Of a folder of inventories: Ansible reads it, too."""

ALL = "all"
RATES = (10, 20, 25, 40, 50, 56, 100, 200, 400, 800)
"""Gbit/s of the ports of HCAs: QDR, FDR and the rates of Ethernet, EDR ... XDR."""

_HIGHEST = {"MCX3": 56, "MCX4": 100, "MCX5": 100, "MCX6": 200, "MCX7": 400, "MCX8": 800}
"""Highest rate by the begin of NVIDIA's part number: ConnectX-3 to ConnectX-8."""

_SPEEDS = (2.5, 5, 8, 16, 32, 64)
_OF_CLASSES = ("hca_slots", "hca_driver", "node_settings", "ipoib", "roce")
_PORT = re.compile(r"_P(\d+)$")


class HardwareFile:
    """A declaration that has been validated.

    `unchecked` are parameters of nvconfig that mstflint could not check, because it is
    not installed here.
    """

    def __init__(
        self,
        file: Path,
        classes: Collection[str],
        database: Path = nvconfig.DATABASE,
    ) -> None:
        """Read the file; without it, nothing is declared.

        Raises SeatrialError with file and line for all that cannot be true.
        """
        self.hardware = Hardware()
        self.unchecked: list[str] = []
        self.known: dict[str, nvconfig.Parameter] | None = None
        if not file.is_file():
            return
        self.yaml = YamlFile(file)
        if self.yaml.data is None:
            return
        self._refuse_templates((), self.yaml.data)
        self.hardware = self.yaml.convert(Hardware)
        self.known = nvconfig.parameters(database)
        for psid, model in self.hardware.hca_models.items():
            self._check_model(("hca_models", psid), model)
        for variable in _OF_CLASSES:
            for name in getattr(self.hardware, variable):
                self.yaml.one_of("classes", [ALL, *classes], name, (variable, name))
        for name, slots in self.hardware.hca_slots.items():
            shared = self.hardware.hca_slots.get(ALL, ()) if name != ALL else ()
            self._check_slots(name, slots, shared)

    def slots(self, node_class: str) -> tuple[HcaSlot, ...]:
        """Return the slots of a class: its own, after those of all classes."""
        slots = self.hardware.hca_slots
        return (*slots.get(ALL, ()), *slots.get(node_class, ()))

    def _refuse_templates(self, place: Place, value: object) -> None:
        parts: Iterator[tuple[object, object]] = iter(())
        if isinstance(value, dict):
            parts = iter(value.items())
        elif isinstance(value, list):
            parts = iter(enumerate(value))
        elif isinstance(value, str) and "{{" in value:
            self._refuse(place, "templates are not read here; write the value")
        for key, part in parts:
            self._refuse_templates((*place, key), part)

    def _refuse(self, place: Place, reason: str) -> NoReturn:
        self.yaml.refuse(place, f"{reason}.")

    def _check_model(self, place: Place, model: HcaModel) -> None:
        for index, image in enumerate(model.previous):
            self._check_image((*place, "previous", index), image)
            if image.file is None:
                self.yaml.expected(
                    "file, the image for the way back",
                    None,
                    (*place, "previous", index, "file"),
                )
            if model.firmware and image.version == model.firmware.version:
                self._refuse(
                    (*place, "previous", index, "version"),
                    f"{image.version} is the declared firmware; name an image of an "
                    "earlier version",
                )
        if model.firmware:
            self._check_image((*place, "firmware"), model.firmware)
        if model.pcie.speed is not None and model.pcie.speed not in _SPEEDS:
            self.yaml.expected(
                "2.5, 5, 8, 16, 32 or 64 (GT/s)",
                model.pcie.speed,
                (*place, "pcie", "speed"),
            )
        for name, value in model.nvconfig.items():
            self._check_parameter((*place, "nvconfig", name), name, value)

    def _check_image(self, place: Place, image: Firmware) -> None:
        if image.file is not None and image.sha256 is None:
            self.yaml.expected(
                f"the checksum of {image.file} (sha256sum prints it)",
                None,
                (*place, "sha256"),
            )

    def _check_parameter(self, place: Place, name: str, value: object) -> None:
        if self.known is None:
            self.unchecked.append(name)
            return
        parameter = nvconfig.find(name, self.known)
        if parameter is None:
            of_port = _PORT.search(name)
            suffix = of_port[0] if of_port else ""
            nearest = get_close_matches(name, [f"{k}{suffix}" for k in self.known], 1)
            remedy = f"; did you mean {nearest[0]}?" if nearest else ""
            self.yaml.refuse(place, f"mstflint knows no such parameter{remedy}")
        for part in value if isinstance(value, tuple) else (value,):
            if parameter.written(part) is None:
                self.yaml.expected(parameter.allowed, value, place)

    def _check_slots(
        self, name: str, slots: tuple[HcaSlot, ...], shared: tuple[HcaSlot, ...]
    ) -> None:
        seen: Counter[object] = Counter()
        for slot in shared:
            seen.update([slot.name, (slot.bdf, slot.port)])
        for index, slot in enumerate(slots):
            place = ("hca_slots", name, index)
            self._check_slot(place, slot)
            if seen[slot.name]:
                self._refuse((*place, "name"), f"a second slot {slot.name!r}")
            if seen[slot.bdf, slot.port]:
                self._refuse(
                    (*place, "bdf"), f"a second slot at {slot.bdf}, port {slot.port}"
                )
            seen.update([slot.name, (slot.bdf, slot.port)])

    def _check_slot(self, place: Place, slot: HcaSlot) -> None:
        model = self.hardware.hca_models.get(slot.psid)
        if model is None:
            known = ", ".join(self.hardware.hca_models) or "none"
            self._refuse(
                (*place, "psid"),
                f"no model {slot.psid} in hca_models (it has {known}); add it there",
            )
        most = _HIGHEST.get((model.part or "")[:4], RATES[-1])
        rates = [rate for rate in RATES if rate <= most]
        if slot.rate is not None and slot.rate not in rates:
            card = model.part if most < RATES[-1] else "an HCA"
            self.yaml.expected(
                f"a rate of {card} in Gbit/s ({', '.join(map(str, rates))})",
                slot.rate,
                (*place, "rate"),
            )
