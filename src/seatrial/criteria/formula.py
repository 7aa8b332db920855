"""Formulas of limits and of availability: arithmetic of numbers, and of names."""

import ast
import math
import operator
from collections.abc import Mapping
from types import MappingProxyType

_MOST_CHARACTERS = 200
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def evaluate(formula: str, names: Mapping[str, float] = MappingProxyType({})) -> float:
    """Compute a formula of + - * / ** and brackets; ValueError on anything else.

    `names` are the values of names in it.
    """
    known = f", and {', '.join(names)}" if names else ""
    expected = f"expected numbers{known} with + - * / ** and brackets"
    if len(formula) > _MOST_CHARACTERS:
        raise ValueError(f"more than {_MOST_CHARACTERS} characters; {expected}")
    try:
        value = _value(ast.parse(formula.strip(), mode="eval").body, names)
    except (SyntaxError, RecursionError, TypeError) as error:
        raise ValueError(expected) from error
    except ArithmeticError as error:
        raise ValueError(f"no number comes out: {error}") from error
    if not math.isfinite(value):
        raise ValueError(f"{value} comes out; expected a number")
    return value


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if type(number) is not bool:
            return float(number)
        case ast.Name(id=name) if name in names:
            return float(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            # A root of a negative number is complex: float() raises TypeError.
            return float(
                _OPERATORS[type(op)](_value(left, names), _value(right, names))
            )
    raise TypeError(f"{ast.dump(node)} is no arithmetic")
