"""YAML with errors that name file and line."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from seatrial.errors import SeatrialError
from seatrial.limits import YAML_NODES, YAML_SCALAR, YAML_SIZE

_MERGE = "tag:yaml.org,2002:merge"


def yaml_bytes(file: Path) -> bytes:
    """Read the bytes of a YAML file; SeatrialError if that fails or it is too large."""
    try:
        with file.open("rb") as stream:
            content = stream.read(YAML_SIZE.most + 1)
    except OSError as error:
        raise SeatrialError(f"{file}: {error.strerror}") from error
    YAML_SIZE.check(len(content), file)
    return content


class YamlFile:
    """One YAML file as a tree of nodes, which know their lines.

    `content` are its bytes. Merges (`<<`) are refused: some bytes of them can stand for
    gigabytes.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        try:
            self.loader = yaml.SafeLoader(content.decode("utf-8"))
            self.root = self.loader.get_single_node()
        except UnicodeDecodeError as error:
            raise SeatrialError(f"{path}: {error}") from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise SeatrialError(
                f"{path}:{line}: not valid YAML: {error.problem}"
            ) from error
        except yaml.YAMLError as error:
            raise SeatrialError(f"{path}: not valid YAML: {error}") from error
        except RecursionError as error:
            raise SeatrialError(f"{path}: nested too deeply") from error
        self._check_size()

    def mapping(
        self, node: yaml.Node | None, expected: str
    ) -> dict[Any, tuple[yaml.Node, yaml.Node]]:
        """Return the entries of a mapping with the nodes of key and value."""
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, f"expected a mapping of {expected}")
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

    def _check_size(self) -> None:
        """Refuse merges, long values, and aliases that stand for too many values."""
        try:
            values = 0 if self.root is None else self._count(self.root, {})
        except RecursionError as error:
            raise SeatrialError(f"{self.path}: nested too deeply") from error
        YAML_NODES.check(values, self.path)

    def _count(self, node: yaml.Node, counts: dict[int, int]) -> int:
        """Count the values below a node; one with several aliases counts each time."""
        known = counts.get(id(node))
        if known is not None:
            return known or self.refuse(node, "an alias of what it is in; write it out")
        if node.tag == _MERGE:
            self.refuse(node, "merges (<<) are not supported; write the keys out")
        if isinstance(node, yaml.ScalarNode):
            YAML_SCALAR.check(len(node.value), self.path)
            return 1
        counts[id(node)] = 0
        parts = (
            (part for pair in node.value for part in pair)
            if isinstance(node, yaml.MappingNode)
            else iter(node.value)
        )
        counts[id(node)] = 1 + sum(self._count(part, counts) for part in parts)
        return counts[id(node)]
