"""A strict policy for agents that work in a folder: read freely, ask before anything changes."""

from __future__ import annotations

from callboard.tooling.tools import Effect
from callboard.workspace import Workspace
from callboard_mixins.tool_guard.detectors import (
    network_detector,
    path_detector,
    secret_detector,
    shell_detector,
)
from callboard_mixins.tool_guard.findings import Detector
from callboard_mixins.tool_guard.policy import GuardPolicy
from callboard_mixins.tool_guard.rules import GuardAction, GuardMode, GuardRule

SHELL_TOOLS = ("run_command", "shell", "bash", "sh", "terminal", "execute_command")
STRICT_RULES = (
    GuardRule(
        id="shell-in-a-sandbox",
        action=GuardAction.ALLOW,
        tools=SHELL_TOOLS,
        sandboxed=True,
        reason="a sandbox shuts in what it runs",
    ),
    GuardRule(
        id="shell-without-a-sandbox",
        action=GuardAction.ASK,
        tools=SHELL_TOOLS,
        sandboxed=False,
        reason="this command would run without a sandbox",
    ),
    GuardRule(
        id="delete-files",
        action=GuardAction.ASK,
        tools=("delete_*", "remove_*"),
        reason="this deletes files",
    ),
    GuardRule(
        id="read-only-tools",
        action=GuardAction.ALLOW,
        effects=(Effect.PURE,),
        reason="the tool says that it changes nothing",
    ),
)


def detectors_for(workspace: Workspace) -> tuple[Detector, ...]:
    """All detectors that come with the guard. Raises MissingExtra without tree-sitter."""
    return (
        shell_detector(workspace=workspace),
        path_detector(workspace=workspace),
        network_detector(),
        secret_detector(),
    )


def strict_policy(workspace: Workspace, *, mode: GuardMode = GuardMode.ASK) -> GuardPolicy:
    """Tools that change nothing run, as do commands in a sandbox; all else is asked about.

    Whatever a detector objects to is asked about or refused, also in these. `mode` may be
    `accept_edits` for edits inside the workspace.

    Raises:
        MissingExtra: tree-sitter is not installed (extra `guard`).
    """
    return GuardPolicy(rules=STRICT_RULES, detectors=detectors_for(workspace), mode=mode)
