"""Whether a rule is about a call. What is too long to be searched is not let by."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from callboard.messages import ToolCall
from callboard.tooling.tools import Tool
from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.leaves import Leaf, TooMany, escape, leaves_of
from callboard_mixins.tool_guard.rule_programs import begins, reaches
from callboard_mixins.tool_guard.rules import GuardAction, GuardRule
from callboard_mixins.tool_guard.shell_parse import Script, ShellCommand
from callboard_mixins.tool_guard.shell_texts import COMMAND_PARAMETERS, folded, scripts_in

LONGEST = 65_536  # characters of one text that patterns look at
_ORDER = tuple(Severity)


class Matcher:
    """A rule with its patterns compiled."""

    __slots__ = ("_exclude", "_names", "_patterns", "rule")

    def __init__(self, rule: GuardRule) -> None:
        self.rule = rule
        self._names = frozenset(map(folded, rule.parameters))
        self._patterns = [re.compile(pattern) for pattern in rule.patterns]
        self._exclude = [re.compile(pattern) for pattern in rule.exclude]

    @staticmethod
    def names(rule: GuardRule, tool: Tool) -> bool:
        """Whether the rule is about this tool at all."""
        if rule.tools and not any([fnmatchcase(tool.name, name) for name in rule.tools]):
            return False
        if rule.effects and tool.effect not in rule.effects:
            return False
        return rule.sandboxed is None or rule.sandboxed is tool.sandboxed

    def fits(self, call: ToolCall, findings: Sequence[Finding]) -> bool:
        """Whether the rule is about this call of a tool that it names."""
        rule = self.rule
        if rule.categories and not any([_names(rule, finding) for finding in findings]):
            return False
        if rule.patterns and not self._found(call):
            return False
        return not rule.programs or self._runs(call)

    def is_unsure(self, call: ToolCall, findings: Sequence[Finding]) -> bool:
        """Whether a rule about programs might be about this call, which only the run can tell."""
        rule = self.rule
        if not rule.programs or rule.action is GuardAction.ALLOW:
            return False
        if rule.categories and not any([_names(rule, finding) for finding in findings]):
            return False
        if rule.patterns and not self._found(call):
            return False
        scripts = self._scripts(call)
        if not scripts:
            return bool(rule.tools) and bool(leaves_of(call.arguments))
        if any([script.problem is not None for script in scripts]):
            return True
        commands = [command for script in scripts for command in script.commands]
        return any([one.reads_commands or self._reaches(one) is None for one in commands])

    def _scripts(self, call: ToolCall) -> list[Script]:
        return scripts_in(call.arguments, self.rule.parameters or COMMAND_PARAMETERS)

    def _found(self, call: ToolCall) -> bool:
        strict = self.rule.action is not GuardAction.ALLOW
        try:
            leaves = [*leaves_of(call.arguments), *_numbers(call.arguments)]
        except TooMany:
            return strict
        return any([self._found_in(leaf, strict=strict) for leaf in leaves])

    def _found_in(self, leaf: Leaf, *, strict: bool) -> bool:
        above = [part.replace("~1", "/").replace("~0", "~") for part in leaf.where.split("/")]
        if self._names and not any([folded(part) in self._names for part in (*above, leaf.name)]):
            return False
        if len(leaf.text) > LONGEST:
            return strict
        if any([pattern.search(leaf.text) for pattern in self._exclude]):
            return False
        shown = {leaf.text, _as_read(leaf.text)} if strict else {leaf.text}
        return any([pattern.search(text) for pattern in self._patterns for text in shown])

    def _runs(self, call: ToolCall) -> bool:
        scripts = self._scripts(call)
        commands = [command for script in scripts for command in script.commands]
        named = [command for command in commands if command.program != ""]
        if self.rule.action is not GuardAction.ALLOW:
            return any([self._reaches(one) for one in named])
        if not named or any([script.problem is not None for script in scripts]):
            return False
        if any([redirection.writes for one in commands for redirection in one.redirections]):
            return False
        if any([one.assignments or "/" in one.written for one in commands]):
            return False  # another program of that name, or another place to look for it
        return all([self._is_named(one) for one in named])

    def _is_named(self, command: ShellCommand) -> bool:
        return any([begins(wanted.split(), command) for wanted in self.rule.programs])

    def _reaches(self, command: ShellCommand) -> bool | None:
        """Whether a command is one of those that the rule names; None where it depends."""
        found = [reaches(wanted.split(), command) for wanted in self.rule.programs]
        return True if True in found else None if None in found else False


def _numbers(value: Any, where: str = "") -> list[Leaf]:
    """The numbers and truth values in the arguments, as texts."""
    if isinstance(value, bool | int | float):
        return [Leaf(where, "", json.dumps(value))]
    found: list[Leaf] = []
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            found += _numbers(item, f"{where}/{escape(key)}")
    elif isinstance(value, list | tuple):
        for at, item in enumerate(cast("Sequence[Any]", value)):
            found += _numbers(item, f"{where}/{at}")
    return found


def _as_read(text: str) -> str:
    """A text as a reader sees it: without invisible letters, and full-width ones as plain ones."""
    if text.isascii():
        return text
    seen = "".join([letter for letter in text if unicodedata.category(letter) != "Cf"])
    return unicodedata.normalize("NFKC", seen)


def _names(rule: GuardRule, finding: Finding) -> bool:
    severe = _ORDER.index(finding.severity) >= _ORDER.index(rule.at_least)
    return severe and any([fnmatchcase(finding.category, name) for name in rule.categories])


def lifted(finding: Finding, matching: Sequence[GuardRule]) -> bool:
    """Whether a rule allows what a finding would ask about. A refusal is never lifted."""
    if finding.advice != "ask":
        return False
    return any(
        [
            rule.action is GuardAction.ALLOW and bool(rule.categories) and _names(rule, finding)
            for rule in matching
        ]
    )
