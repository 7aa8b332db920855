"""YAML files as msgspec types; errors name file, line, key and expectation."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec
import yaml
from msgspec import Meta, Struct, UnsetType
from yaml.composer import Composer

from seatrial.errors import SeatrialError
from seatrial.limits import YAML_NODES, YAML_SCALAR, YAML_SIZE

Place = tuple[Any, ...]
"""Keys and indexes from the top of a file to a value."""

Text = Annotated[str, Meta(pattern=r"\S", description="a text")]
Count = Annotated[int, Meta(ge=1, description="a whole number >= 1")]

_T = TypeVar("_T")

_TAG = "tag:yaml.org,2002:"
_DEEPEST = 30
_LONGEST = 100
_MOST_BITS = 64  # a GUID; the third power of such a number is a float, too
_PLAIN = {str: "a text", bool: "true or false", int: "a whole number"}
_PLAIN |= {float: "a number", dict: "a mapping", tuple: "a list", NoneType: "null"}


try:
    from yaml import CSafeLoader
except ImportError:  # PyYAML was built without libyaml
    _LOADERS: tuple[Any, ...] = (yaml.SafeLoader,)
else:

    class _Loader(Composer, CSafeLoader):
        """Reads by libyaml, ten times faster; PyYAML composes, so depth has a limit."""

        def __init__(self, text: str) -> None:
            CSafeLoader.__init__(self, text)
            Composer.__init__(self)

    _LOADERS = (_Loader, yaml.SafeLoader)  # the last one tells better what is wrong


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
    """The plain `data` of a YAML file, and the line of each key and list item.

    `texts` has the scalars as they are written: `off`, where `data` has False.
    Merges (`<<`) are refused: some bytes of them can stand for gigabytes.
    """

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = path
        self.lines: dict[Place, int] = {}
        self.texts: dict[Place, str] = {}
        text = yaml_bytes(path) if content is None else content
        try:
            self.loader, root = _composed(text.decode("utf-8"))
            self.data: Any = None if root is None else self._value(root, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise SeatrialError(
                f"{path}:{line}: not valid YAML: {error.problem}"
            ) from error
        except (yaml.YAMLError, ValueError) as error:
            raise SeatrialError(f"{path}: not valid YAML: {error}") from error
        except RecursionError as error:
            raise SeatrialError(f"{path}: nested too deeply") from error

    def _value(self, node: yaml.Node, place: Place) -> Any:
        """Return the plain value of a node; record the lines of all parts."""
        self.lines.setdefault(place, node.start_mark.line + 1)
        YAML_NODES.check(len(self.lines), self.path)
        if isinstance(node, yaml.ScalarNode):
            YAML_SCALAR.check(len(node.value), self.path)
            self.texts[place] = node.value
            try:
                value = self.loader.construct_object(node)
            except ValueError as error:  # a month 13, for example
                self.refuse(place, f"not valid YAML: {error}")
            if isinstance(value, int | float):
                self.check_size(value, place)
            return value
        if len(place) > _DEEPEST:
            self.refuse(place[:1], "nested too deeply: an alias of what it is in?")
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            parts = enumerate(node.value)
            return [self._value(part, (*place, index)) for index, part in parts]
        if node.tag != f"{_TAG}map":
            self.refuse(place, f"expected no tag, got {node.tag}. Remove it.")
        mapping: dict[Any, Any] = {}
        for key_node, part in node.value:
            if key_node.tag == f"{_TAG}merge":
                self.refuse(place, "merges (<<) are not supported; write the keys out")
            key = self._value(key_node, (*place, None))
            line = self.lines.pop((*place, None))
            self.texts.pop((*place, None), None)
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(place, f"expected texts as keys, got {key!r}.")
            first = self.lines.get((*place, key))
            self.lines[(*place, key)] = line
            if key in mapping:
                self.refuse((*place, key), f"key of line {first} again. Remove one.")
            mapping[key] = self._value(part, (*place, key))
        return mapping

    def convert(self, kind: type[_T], place: Place = ()) -> _T:
        """Convert the value of a place; SeatrialError if one in it has another type."""
        value = self.data
        for key in place:
            value = value[key]
        self._check(kind, value, place)
        return msgspec.convert(value, kind)

    def check_size(self, number: float, place: Place) -> None:
        """Refuse an infinite number, NaN, and one that is too large to compute with."""
        if not abs(number) < 2**_MOST_BITS:
            text = _short(self.texts[place])
            self.refuse(place, f"expected a number below 2^{_MOST_BITS}, got {text}.")

    def refuse(self, place: Place, reason: str) -> NoReturn:
        """Raise SeatrialError with file, line, key and reason."""
        steps = [f"[{key}]" if type(key) is int else f".{key}" for key in place]
        name = "".join(steps).removeprefix(".")
        while place and place not in self.lines:
            place = place[:-1]
        where = f"{self.path}:{self.lines.get(place, 1)}: "
        raise SeatrialError(f"{where}{name}: {reason}" if name else f"{where}{reason}")

    def expected(self, expected: str, value: object, place: Place) -> NoReturn:
        """Raise SeatrialError for a value that is not the expected one."""
        text = "nothing" if value is None and place not in self.lines else repr(value)
        self.refuse(place, f"expected {expected}, got {_short(text)}.")

    def one_of(
        self, noun: str, known: Collection[str], value: object, place: Place
    ) -> None:
        """Refuse an unknown name; the error has the nearest known one."""
        if value not in known:
            nearest = get_close_matches(str(value), known, 1)
            remedy = f" Did you mean {nearest[0]!r}?" if nearest else ""
            names = ", ".join(known)
            self.refuse(
                place, f"expected one of the {noun} {names}, got {value!r}.{remedy}"
            )

    def _check(self, kind: Any, value: Any, place: Place) -> None:
        """Refuse the deepest part of a value that does not fit its type."""
        for option in _options(kind):
            if isinstance(value, dict) and _is_struct(option):
                self._check_keys(option, value, place)
        for key, part, part_kind in _parts(kind, value):
            self._check(part_kind, part, (*place, key))
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            self.expected(_described(kind), value, place)

    def _check_keys(self, kind: type[Struct], value: Any, place: Place) -> None:
        """Refuse unknown keys of a mapping, and report missing ones."""
        fields = {field.encode_name: field for field in _fields(kind)}
        for key in value:
            if kind.__struct_config__.forbid_unknown_fields:
                self.one_of("keys", fields, key, (*place, key))
        for name, field in fields.items():
            if field.required and name not in value:
                self.expected(_described(field.type), None, (*place, name))


def _composed(text: str) -> tuple[Any, yaml.Node | None]:
    """Return a loader and the node of a text; YAMLError if it is no YAML."""
    for kind in _LOADERS[:-1]:
        with suppress(yaml.YAMLError):
            loader = kind(text)
            return loader, loader.get_single_node()
    loader = _LOADERS[-1](text)
    return loader, loader.get_single_node()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_fields = cache(msgspec.structs.fields)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _options(kind: Any) -> Iterator[Any]:
    """Return the alternatives of a type, without their constraints."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        kinds = get_args(kind)
        for option in kinds[:1] if get_origin(kind) is Annotated else kinds:
            yield from _options(option)
    else:
        yield kind


def _parts(kind: Any, value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Return key or index, value and type of the parts of a value.

    A field that may be left out, with None as default, must not be null.
    """
    for option in _options(kind):
        origin, kinds = get_origin(option), get_args(option)
        if isinstance(value, list) and origin in (list, tuple):
            yield from ((index, part, kinds[0]) for index, part in enumerate(value))
        elif isinstance(value, dict) and origin is dict:
            yield from ((key, key, kinds[0]) for key in value)
            yield from ((key, part, kinds[1]) for key, part in value.items())
        elif isinstance(value, dict) and _is_struct(option):
            for field in _fields(option):
                if field.encode_name in value:
                    kinds = tuple(o for o in get_args(field.type) if o is not NoneType)
                    may_be_null = field.default is not None
                    yield (
                        field.encode_name,
                        value[field.encode_name],
                        field.type if may_be_null else reduce(or_, kinds),
                    )


def _described(kind: Any) -> str:
    """Describe the values of a type in a few words."""
    origin, kinds = get_origin(kind), get_args(kind)
    if origin is Annotated:
        texts = [meta.description for meta in kinds[1:] if meta.description]
        return texts[0] if texts else _described(kinds[0])
    if origin in (Union, UnionType):
        options = (option for option in kinds if option is not UnsetType)
        return " or ".join(map(_described, options))
    if origin is Literal:
        return f"one of {', '.join(map(str, kinds))}" if kinds[1:] else str(kinds[0])
    if _is_struct(kind):
        return f"a mapping of {', '.join(kind.__struct_encode_fields__)}"
    return _PLAIN.get(origin or kind, "a plain value")
