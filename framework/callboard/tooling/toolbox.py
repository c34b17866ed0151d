"""The tools of one agent, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from callboard.errors import ToolDefinitionError
from callboard.tooling.functions import label
from callboard.tooling.tools import Tool, as_tool


class Toolbox(Mapping[str, Tool]):
    """An ordered mapping of true names to tools that never changes.

    Tools whose schema is unusable are put aside: `quarantined` holds their names and reasons.

    Raises:
        ToolDefinitionError: two tools have one name or one wire name, or a tool is a method
            without its instance.
    """

    __slots__ = ("_tools", "quarantined")

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        by_wire_name: dict[str, Tool] = {}
        quarantined: list[tuple[str, str]] = []
        for one in tools:
            tool: Tool = one if isinstance(one, Tool) else as_tool(one)
            twin = self._tools.get(tool.name) or by_wire_name.get(tool.wire_name)
            if twin is not None:
                raise _collision(tool, twin)
            if tool.unbound:
                raise ToolDefinitionError(
                    f"{label(tool.function)} is a method without its instance: "
                    f"take it from an object, object.{tool.name}"
                )
            defect = tool.defect
            if defect is not None:
                quarantined.append((tool.name, defect))
                continue
            self._tools[tool.name] = tool
            by_wire_name[tool.wire_name] = tool
        self.quarantined = tuple(quarantined)

    def near(self, name: str) -> list[str]:
        """Names of tools that look like this one, the most similar first: at most three."""
        lower = {known.lower(): known for known in self._tools}
        wanted = name.lower()
        found = difflib.get_close_matches(wanted, lower, n=3, cutoff=0.5)
        if not found:  # models put a namespace in front: "functions.echo"
            found = difflib.get_close_matches(wanted.rpartition(".")[2], lower, n=3, cutoff=0.5)
        return [lower[match] for match in found]

    def get(self, name: str, default: Any = None, /) -> Any:
        """The tool of this name, or the default (Mapping's own takes 1 us)."""
        return self._tools.get(name, default)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"Toolbox({list(self._tools)!r})"


def _collision(tool: Tool, twin: Tool) -> ToolDefinitionError:
    if tool.name == twin.name:
        what = f"two tools have the name {tool.name!r}"
    else:
        what = f"the tools {twin.name!r} and {tool.name!r} both become {tool.wire_name!r}"
    return ToolDefinitionError(
        f"{what}: {label(twin.function)} and {label(tool.function)}; "
        "give one of them another name: tool(name=...)"
    )
