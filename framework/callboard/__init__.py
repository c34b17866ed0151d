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
    "Actor": "actors.actor",
    "ActorError": "errors",
    "ActorFailed": "errors",
    "ActorRules": "actors.rules",
    "ActorStopped": "errors",
    "ActorSystem": "actors.system",
    "Address": "actors.address",
    "Answer": "approving",
    "Approval": "approvals",
    "ApprovalPolicy": "approving",
    "Approve": "approving",
    "Ask": "approvals",
    "AskCycle": "errors",
    "AskTimeout": "errors",
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
    "Envelope": "actors.envelope",
    "ErrorCategory": "errors",
    "FileBlobs": "journaling.blobs",
    "FileBlock": "messages",
    "GrantScope": "approvals",
    "Hooks": "hooks",
    "ImageBlock": "messages",
    "InMemoryBlobs": "journaling.blobs",
    "InMemoryJournal": "journaling.journal",
    "Journal": "journaling.journal",
    "MailboxFull": "errors",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelError": "errors",
    "ModelRequest": "model",
    "ModelSettings": "model",
    "NextTurn": "hooks",
    "NotAnApprover": "errors",
    "Observation": "messages",
    "OnFailure": "actors.supervision",
    "Outcome": "replies",
    "Proceed": "approvals",
    "ProcessEnd": "tooling.processes",
    "ProcessFailed": "tooling.process_functions",
    "ProcessLimits": "tooling.processes",
    "Prompt": "replies",
    "QueueMode": "queues",
    "ReActAgent": "agent",
    "Record": "journaling.records",
    "Ref": "actors.ref",
    "Refuse": "approving",
    "Reply": "replies",
    "RunFailed": "replies",
    "SealedCall": "approvals",
    "Seat": "actors.system",
    "SqliteJournal": "journaling.sqlite_journal",
    "Status": "messages",
    "SteeringPolicy": "queues",
    "StopReason": "messages",
    "StopRun": "errors",
    "Supervision": "actors.supervision",
    "SystemMessage": "messages",
    "TextBlock": "messages",
    "ThinkingBlock": "messages",
    "Tool": "tooling.tools",
    "ToolCall": "messages",
    "ToolContext": "tooling.tool_context",
    "ToolExecution": "decide",
    "ToolResultMessage": "messages",
    "Toolbox": "tooling.toolbox",
    "UnknownAddress": "errors",
    "Usage": "messages",
    "UserMessage": "messages",
    "Verdict": "approvals",
    "WhenFull": "actors.mailbox",
    "Workspace": "workspace",
    "ask_user": "questions",
    "detached": "lease",
    "forked": "journaling.forking",
    "in_process": "tooling.process_functions",
    "replaces": "composition",
    "run_process": "tooling.processes",
    "tool": "tooling.tools",
}

if TYPE_CHECKING:  # what `__getattr__` loads, spelled out for type checkers
    from callboard.actors.actor import Actor as Actor
    from callboard.actors.address import Address as Address
    from callboard.actors.envelope import Envelope as Envelope
    from callboard.actors.mailbox import WhenFull as WhenFull
    from callboard.actors.ref import Ref as Ref
    from callboard.actors.rules import ActorRules as ActorRules
    from callboard.actors.supervision import OnFailure as OnFailure
    from callboard.actors.supervision import Supervision as Supervision
    from callboard.actors.system import ActorSystem as ActorSystem
    from callboard.actors.system import Seat as Seat
    from callboard.agent import ReActAgent as ReActAgent
    from callboard.approvals import Approval as Approval
    from callboard.approvals import Ask as Ask
    from callboard.approvals import Deny as Deny
    from callboard.approvals import GrantScope as GrantScope
    from callboard.approvals import Proceed as Proceed
    from callboard.approvals import SealedCall as SealedCall
    from callboard.approvals import Verdict as Verdict
    from callboard.approving import Answer as Answer
    from callboard.approving import ApprovalPolicy as ApprovalPolicy
    from callboard.approving import Approve as Approve
    from callboard.approving import Refuse as Refuse
    from callboard.budget import Budget as Budget
    from callboard.composition import replaces as replaces
    from callboard.decide import ToolExecution as ToolExecution
    from callboard.errors import ActorError as ActorError
    from callboard.errors import ActorFailed as ActorFailed
    from callboard.errors import ActorStopped as ActorStopped
    from callboard.errors import AskCycle as AskCycle
    from callboard.errors import AskTimeout as AskTimeout
    from callboard.errors import CallboardError as CallboardError
    from callboard.errors import CommitFailed as CommitFailed
    from callboard.errors import CompositionError as CompositionError
    from callboard.errors import ConfigurationError as ConfigurationError
    from callboard.errors import ErrorCategory as ErrorCategory
    from callboard.errors import MailboxFull as MailboxFull
    from callboard.errors import MissingExtra as MissingExtra
    from callboard.errors import ModelError as ModelError
    from callboard.errors import NotAnApprover as NotAnApprover
    from callboard.errors import StopRun as StopRun
    from callboard.errors import UnknownAddress as UnknownAddress
    from callboard.hooks import Hooks as Hooks
    from callboard.hooks import NextTurn as NextTurn
    from callboard.journaling.blobs import Blobs as Blobs
    from callboard.journaling.blobs import FileBlobs as FileBlobs
    from callboard.journaling.blobs import InMemoryBlobs as InMemoryBlobs
    from callboard.journaling.forking import forked as forked
    from callboard.journaling.journal import InMemoryJournal as InMemoryJournal
    from callboard.journaling.journal import Journal as Journal
    from callboard.journaling.records import Record as Record
    from callboard.journaling.sqlite_journal import SqliteJournal as SqliteJournal
    from callboard.lease import detached as detached
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
    from callboard.questions import ask_user as ask_user
    from callboard.queues import QueueMode as QueueMode
    from callboard.queues import SteeringPolicy as SteeringPolicy
    from callboard.replies import Outcome as Outcome
    from callboard.replies import Prompt as Prompt
    from callboard.replies import Reply as Reply
    from callboard.replies import RunFailed as RunFailed
    from callboard.tooling.process_functions import ProcessFailed as ProcessFailed
    from callboard.tooling.process_functions import in_process as in_process
    from callboard.tooling.processes import ProcessEnd as ProcessEnd
    from callboard.tooling.processes import ProcessLimits as ProcessLimits
    from callboard.tooling.processes import run_process as run_process
    from callboard.tooling.tool_context import ToolContext as ToolContext
    from callboard.tooling.toolbox import Toolbox as Toolbox
    from callboard.tooling.tools import Effect as Effect
    from callboard.tooling.tools import Tool as Tool
    from callboard.tooling.tools import tool as tool
    from callboard.workspace import Workspace as Workspace

__all__ = [
    "Actor",
    "ActorError",
    "ActorFailed",
    "ActorRules",
    "ActorStopped",
    "ActorSystem",
    "Address",
    "Answer",
    "Approval",
    "ApprovalPolicy",
    "Approve",
    "Ask",
    "AskCycle",
    "AskTimeout",
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
    "Envelope",
    "ErrorCategory",
    "FileBlobs",
    "FileBlock",
    "GrantScope",
    "Hooks",
    "ImageBlock",
    "InMemoryBlobs",
    "InMemoryJournal",
    "Journal",
    "MailboxFull",
    "MissingExtra",
    "Model",
    "ModelError",
    "ModelRequest",
    "ModelSettings",
    "NextTurn",
    "NotAnApprover",
    "Observation",
    "OnFailure",
    "Outcome",
    "Proceed",
    "ProcessEnd",
    "ProcessFailed",
    "ProcessLimits",
    "Prompt",
    "QueueMode",
    "ReActAgent",
    "Record",
    "Ref",
    "Refuse",
    "Reply",
    "RunFailed",
    "SealedCall",
    "Seat",
    "SqliteJournal",
    "Status",
    "SteeringPolicy",
    "StopReason",
    "StopRun",
    "Supervision",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolExecution",
    "ToolResultMessage",
    "Toolbox",
    "UnknownAddress",
    "Usage",
    "UserMessage",
    "Verdict",
    "WhenFull",
    "Workspace",
    "ask_user",
    "detached",
    "forked",
    "in_process",
    "replaces",
    "run_process",
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
