"""The names that users import, pinned: a change here is a change of the public interface."""

from __future__ import annotations

import callboard

NAMES = """
    Address Approval Ask AssistantMessage AudioBlock Blobs Budget CallboardError CommitFailed
    CompositionError ConfigurationError Deny Effect ErrorCategory FileBlobs FileBlock Hooks
    ImageBlock InMemoryBlobs InMemoryJournal Journal MissingExtra Model ModelError ModelRequest
    ModelSettings NextTurn Observation Outcome Proceed Prompt QueueMode ReActAgent Record Reply
    RunFailed SealedCall SqliteJournal Status SteeringPolicy StopReason StopRun SystemMessage
    TextBlock ThinkingBlock Tool ToolCall ToolContext ToolExecution ToolResultMessage Toolbox
    Usage UserMessage Verdict replaces tool
""".split()


def test_the_public_names_are_these() -> None:
    assert sorted(callboard.__all__) == sorted(NAMES)


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in callboard.__all__ if not hasattr(callboard, name)] == []
