"""`callboard guard`: whether a file of rules is sound, and what a guard would say of a call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from callboard.messages import ToolCall
from callboard.tooling.tools import Effect, Tool
from callboard.workspace import Workspace
from callboard_console.exits import CommandError, Exit
from callboard_console.objects import load_tools
from callboard_mixins.tool_guard.builtin import STRICT_RULES, detectors_for
from callboard_mixins.tool_guard.policy import GuardPolicy, Judgement, Kind
from callboard_mixins.tool_guard.rules import GuardMode, load_rules
from callboard_providers.tools import editing_tools, file_tools, searching_tools, shell_tool

guard = typer.Typer(help="Rules of the tool guard.", no_args_is_help=True, rich_markup_mode=None)
WORDS = {
    Kind.AUTO_DENIED: "denied",
    Kind.NEEDS_APPROVAL: "asks a human",
    Kind.PREAPPROVED: "runs: a rule allows it",
    Kind.UNGUARDED: "runs: nothing speaks against it",
}
CODES = {Kind.AUTO_DENIED: Exit.FAILED, Kind.NEEDS_APPROVAL: Exit.UNANSWERED}
ENDS = "Exit codes: 0 it would run, 1 it would be denied, 5 a human would be asked, 2 wrong usage."


@guard.command("check")
def check_rules(
    rules: Annotated[Path, typer.Argument(metavar="RULES", help="A YAML file.")],
) -> None:
    """Say whether a file of rules is sound, and what it holds. A broken rule is named."""
    found = load_rules(rules)
    print(f"{rules}: {len(found.rules)} rules, mode {found.mode}, default {found.default}")
    for rule in found.rules:
        print(f"  {rule.action:5}  {rule.id}  {rule.reason}".rstrip())


@guard.command("explain", epilog=ENDS)
def explain_call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The name of a tool.")],
    arguments: Annotated[str, typer.Argument(metavar="ARGS", help="Its arguments, as JSON.")],
    *,
    rules: Annotated[
        Path | None, typer.Option(help="A YAML file; the strict rules without it.")
    ] = None,
    mode: Annotated[GuardMode | None, typer.Option(help="Instead of the file's mode.")] = None,
    workspace: Annotated[Path, typer.Option(help="The folder that paths are judged by.")] = Path(),
    effect: Annotated[
        Effect | None, typer.Option(help="What a tool that is not built in declares.")
    ] = None,
    own: Annotated[
        str | None, typer.Option("--tool", metavar="MODULE:FUNCTION", help="A tool of your own.")
    ] = None,
) -> None:
    """Tell what a guard would do with a call: the verdict, the rule, and what was found."""
    root = Workspace(workspace)
    used = _tool(tool, root, effect=effect, own=own)
    policy = _policy(rules, mode, root)
    call = ToolCall(id="explained", name=used.name, raw=arguments)
    checked = used.check(call)
    if not isinstance(checked, ToolCall):
        raise CommandError(f"{arguments!r} are no arguments of {tool}: {checked.text}")
    judgement = policy.judge(checked, used)
    _print(judgement, policy)
    raise typer.Exit(CODES.get(judgement.kind, Exit.ANSWERED))


def _policy(rules: Path | None, mode: GuardMode | None, root: Workspace) -> GuardPolicy:
    detectors = detectors_for(root)
    if rules is None:
        return GuardPolicy(rules=STRICT_RULES, detectors=detectors, mode=mode or GuardMode.ASK)
    read = load_rules(rules)
    return GuardPolicy(
        rules=read.rules, detectors=detectors, mode=mode or read.mode, default=read.default
    )


def _tool(name: str, root: Workspace, *, effect: Effect | None, own: str | None) -> Tool:
    """The tool of this name: the user's own, a built-in one, or one that takes anything."""
    folder = str(root.root)
    known: list[Tool] = [*file_tools(folder), *searching_tools(folder), *editing_tools(folder)]
    known.append(shell_tool(folder))
    if own is not None:
        known = list(load_tools(own))
    for tool in known:
        if tool.name == name:
            return tool
    if own is not None:
        raise CommandError(f"--tool {own!r} has no tool {name!r}")
    return Tool.from_schema(
        name=name,
        description="",
        parameters={"type": "object"},
        run=_never,
        effect=effect or Effect.EFFECT,
    )


def _never(arguments: dict[str, Any], context: object) -> None:
    """Explaining runs nothing."""


def _print(judgement: Judgement, policy: GuardPolicy) -> None:
    print(WORDS[judgement.kind])
    if judgement.reason:
        print(f"  because: {judgement.reason}")
    print(f"  rule: {judgement.rule or '(none)'}; mode: {policy.mode}; default: {policy.default}")
    for finding in judgement.findings:
        place = finding.where or "(all)"
        print(f"  found at {place}: {finding.category}, {finding.severity}: {finding.text}")
        print(f"    it advises to {finding.advice}" if finding.advice != "note" else "    a note")
