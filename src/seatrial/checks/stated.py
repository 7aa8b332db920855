"""What checks state of themselves, read from their sources without running them."""

import ast
from pathlib import Path
from typing import Any


def stated(folder: Path, *names: str) -> dict[str, dict[str, Any]]:
    """Give, by name and class, what the classes below a folder assign to these names.

    Only literal values are read, and none that a class inherits.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for file in sorted(folder.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            for each in node.body:
                if not isinstance(each, ast.Assign):
                    continue
                for target in each.targets:
                    if isinstance(target, ast.Name) and target.id in found:
                        found[target.id][node.name] = ast.literal_eval(each.value)
    return found
