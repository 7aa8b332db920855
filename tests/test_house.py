"""Limits of the package's size that keep it readable."""

import ast
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))


def test_no_module_has_more_than_300_lines() -> None:
    lengths = {file.name: len(file.read_text().splitlines()) for file in SOURCES}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}


def test_no_function_has_more_than_60_lines() -> None:
    long = {
        f"{file.name}:{node.name}": length
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > 60
    }
    assert long == {}
