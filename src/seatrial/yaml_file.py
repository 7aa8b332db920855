"""A YAML file whose faults are told with file and line."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from seatrial.errors import SeatrialError


class YamlFile:
    """One YAML file as a tree of nodes, which know their lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
            self.root = self.loader.get_single_node()
        except (OSError, UnicodeDecodeError) as error:
            raise SeatrialError(f"{path}: {error}") from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise SeatrialError(
                f"{path}:{line}: not valid YAML: {error.problem}"
            ) from error
        except yaml.YAMLError as error:
            raise SeatrialError(f"{path}: not valid YAML: {error}") from error

    def mapping(
        self, node: yaml.Node | None, expected: str
    ) -> dict[Any, tuple[yaml.Node, yaml.Node]]:
        """Give the entries of a mapping with the nodes of key and value."""
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, f"expected a mapping of {expected}")
        try:
            self.loader.flatten_mapping(node)
        except yaml.MarkedYAMLError as error:
            self.refuse(node, f"not valid YAML: {error}")
        entries: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = self.value(key)
            if not isinstance(name, Hashable) or name in entries:
                self.refuse(key, f"key {name!r}; expected a text that is not yet there")
            entries[name] = (key, value)
        return entries

    def value(self, node: yaml.Node) -> Any:
        """Build the plain value of a node."""
        try:
            return self.loader.construct_object(node, deep=True)
        except (yaml.MarkedYAMLError, ValueError) as error:
            return self.refuse(node, f"not valid YAML: {error}")

    def refuse(self, node: yaml.Node | None, reason: str) -> NoReturn:
        """Raise SeatrialError with file, line and reason."""
        line = node.start_mark.line + 1 if node is not None else 1
        raise SeatrialError(f"{self.path}:{line}: {reason}")
