"""The declaration of HCAs and node settings: hardware.yml of an inventory."""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NoReturn

from seatrial.audit import nvconfig
from seatrial.audit.hardware_types import Firmware, Hardware, HcaModel, HcaSlot
from seatrial.audit.rates import RATES, highest_rate
from seatrial.model.yaml_file import Place, YamlFile

NAME = "group_vars/all/hardware.yml"
"""Of a folder of inventories: Ansible reads it, too."""

ALL = "all"
_SPEEDS = (2.5, 5, 8, 16, 32, 64)
_OF_CLASSES = ("hca_slots", "hca_driver", "node_settings", "ipoib", "roce")
_LINK_TYPES = {"IB(1)": "InfiniBand", "ETH(2)": "Ethernet"}
"""Types of a port in nvconfig, and their link layers."""

_DATAGRAM_MTU = 4092
"""Largest MTU of IPoIB in datagram mode: that of InfiniBand less 4 bytes."""


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
        self._check_settings(classes)

    def slots(self, node_class: str) -> tuple[HcaSlot, ...]:
        """Return the slots of a class: its own, after those of all classes."""
        slots = self.hardware.hca_slots
        return (*slots.get(ALL, ()), *slots.get(node_class, ()))

    def slot_places(self, node_class: str) -> list[Place]:
        """Return the place of each slot of a class."""
        slots = self.hardware.hca_slots
        return [
            ("hca_slots", name, index)
            for name in (ALL, node_class)
            for index, _ in enumerate(slots.get(name, ()))
        ]

    def line(self, variable: str, node_class: str, *keys: object) -> int:
        """Return the line of a setting: of the class, or else of all classes."""
        places = [(variable, name, *keys) for name in (node_class, ALL)]
        return next(
            self.yaml.lines[place] for place in places if place in self.yaml.lines
        )

    def _refuse_templates(self, place: Place, value: object) -> None:
        parts: Iterator[tuple[object, object]] = iter(())
        if isinstance(value, dict):
            parts = iter(value.items())
        elif isinstance(value, list):
            parts = iter(enumerate(value))
        elif isinstance(value, str) and "{{" in value:
            self._refuse(place, "templates are not read here; write the value")
        for key, part in parts:
            if isinstance(key, str) and "{{" in key:
                self._refuse(
                    (*place, key), "templates are not read here; write the name"
                )
            self._refuse_templates((*place, key), part)

    def _refuse(self, place: Place, reason: str) -> NoReturn:
        self.yaml.refuse(place, f"{reason}.")

    def _check_model(self, place: Place, model: HcaModel) -> None:
        versions = [image.version for image in model.previous]
        for index, image in enumerate(model.previous):
            if image.version in versions[:index]:
                self._refuse(
                    (*place, "previous", index, "version"),
                    f"a second image of {image.version}; expected one for each version",
                )
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

    def _check_parameter(
        self, place: Place, name: str, value: str | bool | int
    ) -> None:
        if self.known is None:
            self.unchecked.append(name)
            return
        parameter = nvconfig.find(name, self.known)
        if parameter is None:
            nearest = nvconfig.nearest(name, self.known)
            remedy = f"; did you mean {nearest}?" if nearest else "; remove it."
            self.yaml.refuse(place, f"mstflint knows no such parameter{remedy}")
        if parameter.written(value) is None:
            self.yaml.expected(parameter.allowed, value, place)

    def _check_slots(
        self, name: str, slots: tuple[HcaSlot, ...], shared: tuple[HcaSlot, ...]
    ) -> None:
        seen: Counter[object] = Counter()
        psids: dict[str, str] = {}
        for slot in shared:
            seen.update([slot.name, (slot.bdf, slot.port)])
            psids[slot.bdf] = slot.psid
        for index, slot in enumerate(slots):
            place = ("hca_slots", name, index)
            self._check_slot(place, slot)
            if seen[slot.name]:
                self._refuse((*place, "name"), f"a second slot {slot.name!r}")
            if seen[slot.bdf, slot.port]:
                self._refuse(
                    (*place, "bdf"), f"a second slot at {slot.bdf}, port {slot.port}"
                )
            psid = psids.setdefault(slot.bdf, slot.psid)
            if slot.psid != psid:
                self._refuse(
                    (*place, "psid"),
                    f"{slot.bdf} has {psid} in another slot; one HCA, one PSID",
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
        self._check_link_type(place, slot, model)
        most = highest_rate(model.part or "")
        rates = [rate for rate in RATES if rate <= most]
        if slot.rate is not None and slot.rate not in rates:
            card = model.part if most < RATES[-1] else "an HCA"
            self.yaml.expected(
                f"a rate of {card} in Gbit/s ({', '.join(map(str, rates))})",
                slot.rate,
                (*place, "rate"),
            )

    def _check_link_type(self, place: Place, slot: HcaSlot, model: HcaModel) -> None:
        """Refuse a port whose type in the flash is not its declared link layer."""
        name = f"LINK_TYPE_P{slot.port}"
        value = model.nvconfig.get(name)
        if value is None or slot.link_layer is None:
            return
        layer = next(
            (of for text, of in _LINK_TYPES.items() if nvconfig.same(str(value), text)),
            slot.link_layer,  # another type, such as VPI, allows both
        )
        if layer != slot.link_layer:
            self._refuse(
                (*place, "link_layer"),
                f"{slot.link_layer} contradicts {name} of {slot.psid}, {value}; "
                f"expected {layer}",
            )

    def _check_settings(self, classes: Collection[str]) -> None:
        """Refuse settings that would not be judged, or not as they are meant."""
        for name, settings in self.hardware.node_settings.items():
            place: Place = ("node_settings", name)
            for argument, value in settings.kernel_arguments.items():
                at = (*place, "kernel_arguments", argument)
                text = self.yaml.texts[at]
                if isinstance(value, bool) and text.lower() not in ("true", "false"):
                    self._refuse(
                        at,
                        f"expected true (present), false (absent) or a value, got "
                        f"{text}; write '{text}' in quotes if it is the value",
                    )
            if settings.irq_affinity and not self._slots_of(name, classes):
                self._refuse(
                    (*place, "irq_affinity"),
                    "it is of the HCAs in hca_slots, and there is none; declare them",
                )
        for name in self.hardware.roce:
            layers = {slot.link_layer for slot in self._slots_of(name, classes)}
            if "Ethernet" not in layers:
                self._refuse(
                    ("roce", name),
                    "no slot has link_layer Ethernet; remove it, or correct hca_slots",
                )
        for name, interfaces in self.hardware.ipoib.items():
            for interface, one in interfaces.items():
                if one.mode == "datagram" and (one.mtu or 0) > _DATAGRAM_MTU:
                    self.yaml.expected(
                        f"at most {_DATAGRAM_MTU} in the mode datagram",
                        one.mtu,
                        ("ipoib", name, interface, "mtu"),
                    )

    def _slots_of(self, name: str, classes: Collection[str]) -> list[HcaSlot]:
        """Return the slots of a class, or of all classes."""
        names = classes if name == ALL else (name,)
        return [slot for one in names for slot in self.slots(one)]
