"""From the argument text of a call, as a model wrote it, to one frozen object."""

from __future__ import annotations

from typing import cast

from callboard.json_text import EMPTY, FrozenDict, NotJson, parse

_KINDS: dict[type[object], str] = {
    tuple: "an array",
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}


def read_arguments(raw: str) -> tuple[FrozenDict, str | None]:
    """The arguments, and what is wrong with the text or None. No text, and null, mean none."""
    if not raw or raw.isspace():
        return EMPTY, None
    try:
        value = parse(raw)
        if isinstance(value, str):  # an object sent as JSON text: one level is unwrapped
            value = parse(value, control_characters=True)
    except NotJson as error:
        return EMPTY, f"the arguments are not one JSON object: {error}"
    if type(value) is FrozenDict:
        return value, None
    if value is None:
        return EMPTY, None
    if not isinstance(value, FrozenDict):
        kind = type(cast("object", value))
        return EMPTY, f"the arguments must be an object, not {_KINDS.get(kind, 'a value')}"
    return value, None
