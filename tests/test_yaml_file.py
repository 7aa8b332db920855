"""YAML files are read by libyaml, with the values, lines and errors of PyYAML."""

from pathlib import Path

import pytest
import yaml

from seatrial.errors import SeatrialError
from seatrial.model import yaml_file
from seatrial.model.yaml_file import YamlFile

HOME = Path(__file__).resolve().parents[1]
FILES = sorted(
    path
    for folder in ("reference-data", "reframe-checks/campaigns")
    for path in (HOME / folder).rglob("*.yaml")
)


def read_by_pyyaml(
    monkeypatch: pytest.MonkeyPatch, path: Path, content: bytes
) -> YamlFile:
    with monkeypatch.context() as patch:
        patch.setattr(yaml_file, "_LOADERS", (yaml.SafeLoader,))
        return YamlFile(path, content)


def test_values_texts_and_lines_are_those_of_pyyaml(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(FILES) > 50
    for path in FILES:
        fast = YamlFile(path)
        plain = read_by_pyyaml(monkeypatch, path, path.read_bytes())
        assert fast.data == plain.data, path
        assert (fast.lines, fast.texts) == (plain.lines, plain.texts), path
        assert type(fast.loader) is not type(plain.loader)


DAMAGED = {
    "flow": "a: [1\nb: 2",
    "alias": "a: *y",
    "tab": "\ta: 1",
    "bell": "\x07",
    "colons": "{a: b: c}",
    "version": "%YAML 3.0\n---\na",
    "lists": "[" * 100_000,
    "items": "- " * 100_000,
    "mappings": "{a: " * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_errors_are_those_of_pyyaml(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SeatrialError) as fast:
        YamlFile(Path("x.yaml"), text.encode())
    with pytest.raises(SeatrialError) as plain:
        read_by_pyyaml(monkeypatch, Path("x.yaml"), text.encode())
    assert str(fast.value) == str(plain.value)


@pytest.mark.parametrize(
    "number",
    [
        "1" + 400 * "0",
        "-1" + 400 * "0",
        "0x1" + 16 * "0",
        "0x" + 5000 * "f",
        *("1.0e+400", "-1.0e+400", ".inf", ".nan"),
    ],
)
def test_numbers_that_no_float_can_hold_are_refused(number: str) -> None:
    shown = number if len(number) <= 100 else f"{number[:100]}..."
    with pytest.raises(SeatrialError) as error:
        YamlFile(Path("x.yaml"), f"a: 1\nb: [2, {number}]".encode())
    assert str(error.value) == (
        f"x.yaml:2: b[1]: expected a number below 2^64, got {shown}."
    )


def test_large_numbers_are_read() -> None:
    guid = "0xffffffffffffffff"
    assert YamlFile(Path("x.yaml"), f"[{guid}, 1.0e+18]".encode()).data == [
        2**64 - 1,
        1e18,
    ]
