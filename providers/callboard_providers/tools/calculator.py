"""Arithmetic as a tool: a safe evaluator over Python's syntax tree, with bounded work."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from callboard.tooling.tools import tool

Number = int | float
MOST_CHARACTERS = 1_000
MOST_DIGITS = 1_000
MOST_BITS = int(MOST_DIGITS * math.log2(10))

CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi, "e": math.e, "tau": math.tau})


def _factorial(number: int) -> int:
    if number > 400:  # 400! has 869 digits
        raise ValueError("factorial goes up to 400 here")
    return math.factorial(number)


def _round(number: Number, digits: int = 0) -> Number:
    if abs(digits) > MOST_DIGITS:
        raise ValueError(f"round goes up to {MOST_DIGITS} digits")
    return round(number, digits) if digits else round(number)


_ALIKE = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh degrees exp fabs floor fmod gcd "
    "hypot lcm log log10 log2 radians sin sinh sqrt tan tanh trunc"
)
Function = Callable[..., Any]
_SAME_NAME: dict[str, Function] = {name: getattr(math, name) for name in _ALIKE.split()}
_OTHERS: dict[str, Function] = {
    "abs": abs,
    "max": max,
    "min": min,
    "round": _round,
    "factorial": _factorial,
}
FUNCTIONS: Mapping[str, Function] = MappingProxyType(_SAME_NAME | _OTHERS)


def _power(base: Number, exponent: Number) -> Number:
    """A power whose size is known before it is computed."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and exponent * math.log2(abs(base)) > MOST_BITS:
        raise ValueError(f"the result would have more than {MOST_DIGITS} digits")
    return base**exponent


def _divide(left: Number, right: Number) -> Number:
    return left / right


def _floor_divide(left: Number, right: Number) -> Number:
    return left // right


_OPERATORS: dict[type[ast.AST], Function] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
OPERATORS: Mapping[type[ast.AST], Function] = MappingProxyType(_OPERATORS)
_AS_TYPED = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})


@tool(effect="pure")
def calculate(expression: str) -> str:
    """Compute an arithmetic expression; knows sqrt, log, sin, round, min, max and the like.

    Args:
        expression: Numbers and operators only, such as "(12 + 30) * 2".
    """
    return write(evaluate(expression))


def evaluate(expression: str) -> Number:
    """The value of an expression.

    Raises:
        ValueError: saying what is wrong with it.
    """
    text = expression.strip().translate(_AS_TYPED)
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the expression is longer than {MOST_CHARACTERS} characters")
    try:
        return _value(ast.parse(text, mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is not an expression: {error.msg}") from None
    except ZeroDivisionError:
        raise ValueError(f"{expression!r} divides by zero") from None
    except OverflowError:
        raise ValueError(f"the result of {expression!r} is too large") from None
    except (RecursionError, MemoryError):
        raise ValueError("the expression is nested too deeply") from None
    except TypeError as error:
        raise ValueError(f"{expression!r} cannot be computed: {error}") from None


def write(value: Number) -> str:
    """A number as people write it: up to 15 significant digits, no needless point."""
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in OPERATORS:
            return _bounded(OPERATORS[type(sign)](_value(operand)))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return _bounded(OPERATORS[type(sign)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _bounded(FUNCTIONS[name](*map(_value, arguments)))
        case _:
            raise ValueError(_refusal(node))


def _bounded(value: Number | complex) -> Number:
    """A result that is a real number of bearable size."""
    if isinstance(value, complex):
        raise ValueError("the result is not a real number")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError(f"a number has more than {MOST_DIGITS} digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("the result is not a finite number")
    return value


def _refusal(node: ast.expr) -> str:
    text = ast.unparse(node)
    match node:
        case ast.BinOp(op=ast.BitXor()):
            return f"{text!r}: a power is written with **, not ^"
        case ast.Tuple():
            return f"{text!r}: write numbers without commas between their digits"
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            near = get_close_matches(name, [*FUNCTIONS, *CONSTANTS])
            known = f"did you mean {' or '.join(near)}?" if near else "give numbers, not names"
            return f"{name!r} is not known here; {known}"
        case _:
            return f"{text!r} is not arithmetic"
