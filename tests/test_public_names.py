"""The names that users import, pinned: a change here is a change of the public interface."""

from __future__ import annotations

import callboard

NAMES = """
    Actor ActorError ActorFailed ActorRules ActorStopped ActorSystem Address Answer Approval
    ApprovalPolicy Approve Ask AskCycle AskTimeout AssistantMessage AudioBlock Blobs Budget
    CallboardError CommitFailed CompositionError ConfigurationError Deny Effect Envelope
    ErrorCategory FileBlobs FileBlock GrantScope Hooks ImageBlock InMemoryBlobs InMemoryJournal
    Journal MailboxFull MissingExtra Model ModelError ModelRequest ModelSettings NextTurn
    NotAnApprover Observation OnFailure Outcome Proceed ProcessEnd ProcessFailed ProcessLimits
    Prompt QueueMode ReActAgent Record Ref Refuse Reply RunFailed SealedCall Seat SqliteJournal
    Status SteeringPolicy StopReason StopRun Supervision SystemMessage TextBlock ThinkingBlock
    Tool ToolCall ToolContext ToolExecution ToolResultMessage Toolbox UnknownAddress Usage
    UserMessage Verdict WhenFull Workspace ask_user detached forked in_process replaces run_process
    tool
""".split()


def test_the_public_names_are_these() -> None:
    assert sorted(callboard.__all__) == sorted(NAMES)


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in callboard.__all__ if not hasattr(callboard, name)] == []
