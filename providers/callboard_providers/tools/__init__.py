"""Tools that need nothing but this machine: a clock, a calculator, files below a folder."""

from __future__ import annotations

from callboard_providers.tools.calculator import calculate
from callboard_providers.tools.clock import current_time
from callboard_providers.tools.files import file_tools

__all__ = ["calculate", "current_time", "file_tools"]
