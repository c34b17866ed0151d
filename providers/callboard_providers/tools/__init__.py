"""Tools that need nothing but this machine: a clock, a calculator, files, a shell."""

from __future__ import annotations

from callboard_providers.tools.calculator import calculate
from callboard_providers.tools.clock import current_time
from callboard_providers.tools.editing import editing_tools
from callboard_providers.tools.files import file_tools
from callboard_providers.tools.searching import searching_tools
from callboard_providers.tools.shell import shell_tool

__all__ = [
    "calculate",
    "current_time",
    "editing_tools",
    "file_tools",
    "searching_tools",
    "shell_tool",
]
