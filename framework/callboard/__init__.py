"""Callboard: agents that reason and act, in layers, with a journal that is the truth.

The names below are the whole public surface; everything else may move. They are loaded when
they are first used, so that importing one of them does not pay for all.

Words: a *run* answers a prompt; a *turn* is one model call and its tool calls; a *step* is a
method that layers override; an *observation* is what came of a tool call; a *stop reason* is the
model's, an *outcome* the run's; a *record* stands in the journal, an *event* tells a watcher.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Address": "actors.address",
    "Approval": "approvals",
    "Ask": "approvals",
    "AssistantMessage": "messages",
    "AudioBlock": "messages",
    "Blobs": "journaling.blobs",
    "Budget": "budget",
    "CallboardError": "errors",
    "CommitFailed": "errors",
    "CompositionError": "errors",
    "ConfigurationError": "errors",
    "Deny": "approvals",
    "Effect": "tooling.tools",
    "ErrorCategory": "errors",
    "FileBlobs": "journaling.blobs",
    "FileBlock": "messages",
    "Hooks": "hooks",
    "ImageBlock": "messages",
    "InMemoryBlobs": "journaling.blobs",
    "InMemoryJournal": "journaling.journal",
    "Journal": "journaling.journal",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelError": "errors",
    "ModelRequest": "model",
    "ModelSettings": "model",
    "NextTurn": "hooks",
    "Observation": "messages",
    "Outcome": "replies",
    "Proceed": "approvals",
    "Prompt": "replies",
    "QueueMode": "queues",
    "ReActAgent": "agent",
    "Record": "journaling.records",
    "Reply": "replies",
    "RunFailed": "replies",
    "SealedCall": "approvals",
    "SqliteJournal": "journaling.sqlite_journal",
    "Status": "messages",
    "SteeringPolicy": "queues",
    "StopReason": "messages",
    "StopRun": "errors",
    "SystemMessage": "messages",
    "TextBlock": "messages",
    "ThinkingBlock": "messages",
    "Tool": "tooling.tools",
    "ToolCall": "messages",
    "ToolContext": "tooling.tool_context",
    "ToolExecution": "decide",
    "ToolResultMessage": "messages",
    "Toolbox": "tooling.toolbox",
    "Usage": "messages",
    "UserMessage": "messages",
    "Verdict": "approvals",
    "replaces": "composition",
    "tool": "tooling.tools",
}

if TYPE_CHECKING:  # what `__getattr__` loads, spelled out for type checkers
    from callboard.actors.address import Address as Address
    from callboard.agent import ReActAgent as ReActAgent
    from callboard.approvals import Approval as Approval
    from callboard.approvals import Ask as Ask
    from callboard.approvals import Deny as Deny
    from callboard.approvals import Proceed as Proceed
    from callboard.approvals import SealedCall as SealedCall
    from callboard.approvals import Verdict as Verdict
    from callboard.budget import Budget as Budget
    from callboard.composition import replaces as replaces
    from callboard.decide import ToolExecution as ToolExecution
    from callboard.errors import CallboardError as CallboardError
    from callboard.errors import CommitFailed as CommitFailed
    from callboard.errors import CompositionError as CompositionError
    from callboard.errors import ConfigurationError as ConfigurationError
    from callboard.errors import ErrorCategory as ErrorCategory
    from callboard.errors import MissingExtra as MissingExtra
    from callboard.errors import ModelError as ModelError
    from callboard.errors import StopRun as StopRun
    from callboard.hooks import Hooks as Hooks
    from callboard.hooks import NextTurn as NextTurn
    from callboard.journaling.blobs import Blobs as Blobs
    from callboard.journaling.blobs import FileBlobs as FileBlobs
    from callboard.journaling.blobs import InMemoryBlobs as InMemoryBlobs
    from callboard.journaling.journal import InMemoryJournal as InMemoryJournal
    from callboard.journaling.journal import Journal as Journal
    from callboard.journaling.records import Record as Record
    from callboard.journaling.sqlite_journal import SqliteJournal as SqliteJournal
    from callboard.messages import AssistantMessage as AssistantMessage
    from callboard.messages import AudioBlock as AudioBlock
    from callboard.messages import FileBlock as FileBlock
    from callboard.messages import ImageBlock as ImageBlock
    from callboard.messages import Observation as Observation
    from callboard.messages import Status as Status
    from callboard.messages import StopReason as StopReason
    from callboard.messages import SystemMessage as SystemMessage
    from callboard.messages import TextBlock as TextBlock
    from callboard.messages import ThinkingBlock as ThinkingBlock
    from callboard.messages import ToolCall as ToolCall
    from callboard.messages import ToolResultMessage as ToolResultMessage
    from callboard.messages import Usage as Usage
    from callboard.messages import UserMessage as UserMessage
    from callboard.model import Model as Model
    from callboard.model import ModelRequest as ModelRequest
    from callboard.model import ModelSettings as ModelSettings
    from callboard.queues import QueueMode as QueueMode
    from callboard.queues import SteeringPolicy as SteeringPolicy
    from callboard.replies import Outcome as Outcome
    from callboard.replies import Prompt as Prompt
    from callboard.replies import Reply as Reply
    from callboard.replies import RunFailed as RunFailed
    from callboard.tooling.tool_context import ToolContext as ToolContext
    from callboard.tooling.toolbox import Toolbox as Toolbox
    from callboard.tooling.tools import Effect as Effect
    from callboard.tooling.tools import Tool as Tool
    from callboard.tooling.tools import tool as tool

__all__ = [
    "Address",
    "Approval",
    "Ask",
    "AssistantMessage",
    "AudioBlock",
    "Blobs",
    "Budget",
    "CallboardError",
    "CommitFailed",
    "CompositionError",
    "ConfigurationError",
    "Deny",
    "Effect",
    "ErrorCategory",
    "FileBlobs",
    "FileBlock",
    "Hooks",
    "ImageBlock",
    "InMemoryBlobs",
    "InMemoryJournal",
    "Journal",
    "MissingExtra",
    "Model",
    "ModelError",
    "ModelRequest",
    "ModelSettings",
    "NextTurn",
    "Observation",
    "Outcome",
    "Proceed",
    "Prompt",
    "QueueMode",
    "ReActAgent",
    "Record",
    "Reply",
    "RunFailed",
    "SealedCall",
    "SqliteJournal",
    "Status",
    "SteeringPolicy",
    "StopReason",
    "StopRun",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolExecution",
    "ToolResultMessage",
    "Toolbox",
    "Usage",
    "UserMessage",
    "Verdict",
    "replaces",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'callboard' has no attribute {name!r}")
    value = getattr(import_module(f"callboard.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
