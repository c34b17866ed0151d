"""Layers of behaviour for agents: put them before the agent in a class statement.

class MyAgent(StepLogMixin, ReActAgent): ...
"""

from __future__ import annotations

from callboard_mixins.step_log import StepLogMixin

__all__ = ["StepLogMixin"]
