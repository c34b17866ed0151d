"""Callables for those who do not want to subclass.

The loop calls each hook once, around the outermost step: never twice, whatever the layers are.
A hook may be async. Hooks run in the task of the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from callboard.approvals import Deny
from callboard.journaling.pairing import paired
from callboard.journaling.transcript import State
from callboard.messages import ConversationMessage, Observation, ToolCall
from callboard.model import Model, ModelSettings
from callboard.replies import PromptLike
from callboard.tooling.tools import Tool

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTurn:
    """What changes from the next request on; None leaves it as it is."""

    model: Model | None = None
    settings: ModelSettings | None = None
    system_prompt: str | None = None
    tools: Sequence[Tool | Callable[..., Any]] | None = None


BeforeTool = Callable[[ToolCall], ToolCall | Deny | Awaitable[ToolCall | Deny | None] | None]
AfterTool = Callable[[ToolCall, Observation], Observation | Awaitable[Observation | None] | None]
TransformContext = Callable[
    [Sequence[ConversationMessage]],
    Sequence[ConversationMessage] | Awaitable[Sequence[ConversationMessage] | None] | None,
]
PrepareNextTurn = Callable[[State], NextTurn | Awaitable[NextTurn | None] | None]
Supplied = Sequence[PromptLike] | None
Supplier = Callable[[], Supplied | Awaitable[Supplied]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of one agent.

    before_tool: before a call is decided, with its checked arguments. Returns the call with other
        arguments (they are checked again), a Deny, or None. Contract: if it raises, the call does
        not run and the model reads why.
    after_tool: after a call that ran and went through the layers. Returns another observation or
        None. Contract: if it raises, this call's result says so; the tool is not run again.
    transform_context: before each model request, on its messages. What it returns is sent and
        not stored; a round that it cut in two is mended. Contract: if it raises, no request is
        sent and the run fails.
    prepare_next_turn: before each turn but the first of a run. Returns what changes from then
        on. Contract: if it raises, no request is sent and the run fails.
    steering_supplier: before each model request, when nothing waits in the agent's own queue.
        Returns messages, which are queued as by `steer`. Contract: if it raises, the run fails.
    follow_up_supplier: when the agent would otherwise be done. As `steering_supplier`.
    """

    before_tool: BeforeTool | None = None
    after_tool: AfterTool | None = None
    transform_context: TransformContext | None = None
    prepare_next_turn: PrepareNextTurn | None = None
    steering_supplier: Supplier | None = None
    follow_up_supplier: Supplier | None = None


async def settled(value: T | Awaitable[T]) -> T:
    """The value, awaited where a hook was async."""
    if inspect.isawaitable(value):
        return await value
    return value


async def transformed(
    transform: TransformContext, messages: Sequence[ConversationMessage]
) -> Sequence[ConversationMessage]:
    """The messages as the hook leaves them; providers refuse a round that is cut in two."""
    changed = await settled(transform(messages))
    return messages if changed is None else paired(changed)[0]
