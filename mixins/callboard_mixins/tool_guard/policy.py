"""The guard's decision about one call: pure, and the same whenever it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from callboard.errors import ConfigurationError
from callboard.messages import ToolCall
from callboard.tooling.tools import Effect, Tool
from callboard_mixins.tool_guard.findings import Detector, Finding
from callboard_mixins.tool_guard.matching import Matcher, lifted
from callboard_mixins.tool_guard.rules import (
    GuardAction,
    GuardMode,
    GuardRule,
    RuleSet,
    load_rules,
    read_rules,
)

EDITING_TOOLS = frozenset({"write_file", "edit_file", "move_file"})


class Kind(StrEnum):
    """What the guard says of a call."""

    AUTO_DENIED = "auto_denied"
    NEEDS_APPROVAL = "needs_approval"
    PREAPPROVED = "preapproved"  # a rule allows it
    UNGUARDED = "unguarded"  # nothing speaks against it, and that is enough


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision, and why. `rule` is the id of the rule that decided, if one did."""

    kind: Kind
    reason: str = ""
    rule: str | None = None
    findings: tuple[Finding, ...] = ()


MOST_TOOLS = 1_000  # that are remembered
UNGUARDED = Judgement(Kind.UNGUARDED)
NOTHING_ALLOWS = "no rule allows this call"
NOBODY = "nobody is asked in this mode (dont_ask)"
READING_ONLY = "only tools that change nothing may run in this mode (explore)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPolicy:
    """What a guard goes by. The strictest counts: deny, then ask, then allow, then `default`.

    `rules` are Rules, or the plain data of them. `detectors` look into the arguments; what they
    advise counts as a rule would, and one that raises denies. `editing_tools` are those that the
    mode `accept_edits` lets pass where no rule and no detector objects.

    Raises:
        ConfigurationError: a rule or a word is wrong, or the mode `accept_edits` has no detector
            that could tell what stands inside the workspace.
    """

    rules: tuple[GuardRule, ...] = ()
    detectors: tuple[Detector, ...] = ()
    mode: GuardMode = GuardMode.ASK
    default: GuardAction = GuardAction.ASK
    editing_tools: frozenset[str] = EDITING_TOOLS
    _judges: dict[int, _Judge] = field(
        default_factory=dict[int, "_Judge"], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        given: dict[str, Any] = {"rules": list(self.rules), "mode": self.mode}
        read = read_rules({**given, "default": self.default}, source="GuardPolicy")
        for name in ("rules", "mode", "default"):
            object.__setattr__(self, name, getattr(read, name))
        object.__setattr__(self, "detectors", tuple(self.detectors))
        if not all([callable(detector) for detector in self.detectors]):
            raise ConfigurationError(f"detectors={self.detectors!r}: each must be a function")
        if self.mode is GuardMode.ACCEPT_EDITS and not self.detectors:
            raise ConfigurationError(
                "mode accept_edits needs the path detector, which tells what stands inside the "
                "workspace: detectors=[path_detector(workspace=...)]"
            )

    @classmethod
    def load(cls, path: str | Path, *, detectors: Iterable[Detector] = ()) -> GuardPolicy:
        """The policy of a rule file. Raises what `load_rules` raises."""
        return cls.of(load_rules(path), detectors=detectors)

    @classmethod
    def of(cls, rules: RuleSet, *, detectors: Iterable[Detector] = ()) -> GuardPolicy:
        """The policy of a rule set."""
        return cls(
            rules=rules.rules, mode=rules.mode, default=rules.default, detectors=tuple(detectors)
        )

    def judge(self, call: ToolCall, tool: Tool) -> Judgement:
        """Decide on a call as it would run. Raises what a detector raises."""
        judge = self._judges.get(id(tool))
        if judge is None or judge.tool is not tool:
            if len(self._judges) >= MOST_TOOLS:  # of layers that make their tools anew
                self._judges.clear()
            judge = self._judges[id(tool)] = _Judge(self, tool)
        return UNGUARDED if judge.is_idle else judge.judge(call)


class _Judge:
    """What of a policy is about one tool, found out once. `is_idle`: nothing at all."""

    __slots__ = ("_default", "_edits", "_matchers", "_policy", "is_idle", "tool")

    def __init__(self, policy: GuardPolicy, tool: Tool) -> None:
        self.tool = tool
        self._policy = policy
        self._matchers = tuple([Matcher(rule) for rule in policy.rules if _is_about(rule, tool)])
        self._edits = policy.mode is GuardMode.ACCEPT_EDITS and tool.name in policy.editing_tools
        open_to_all = policy.default is GuardAction.ALLOW and policy.mode is not GuardMode.EXPLORE
        unwatched = not self._matchers and not policy.detectors
        self.is_idle = policy.mode is GuardMode.OFF or (open_to_all and unwatched)

    def judge(self, call: ToolCall) -> Judgement:
        policy = self._policy
        if policy.mode is GuardMode.EXPLORE and self.tool.effect is not Effect.PURE:
            return Judgement(Kind.AUTO_DENIED, READING_ONLY)
        findings = tuple([one for look in policy.detectors for one in look(call, self.tool)])
        matching = [matcher.rule for matcher in self._matchers if matcher.fits(call, findings)]
        unsure = [one.rule for one in self._matchers if one.is_unsure(call, findings)]
        judgement = self._strictest(matching, findings, unsure)
        if judgement.kind is Kind.NEEDS_APPROVAL and policy.mode is GuardMode.DONT_ASK:
            reason = f"{judgement.reason}; {NOBODY}"
            return Judgement(Kind.AUTO_DENIED, reason, judgement.rule, findings)
        return judgement

    def _strictest(
        self, matching: list[GuardRule], findings: tuple[Finding, ...], unsure: list[GuardRule]
    ) -> Judgement:
        for action, kind in (
            (GuardAction.DENY, Kind.AUTO_DENIED),
            (GuardAction.ASK, Kind.NEEDS_APPROVAL),
        ):
            for rule in matching:
                if rule.action is action:
                    return Judgement(kind, rule.text, rule.id, findings)
            for finding in findings:
                if finding.advice == action and not lifted(finding, matching):
                    return Judgement(kind, finding.text, None, findings)
        for rule in unsure:
            reason = f"only the run can tell whether rule {rule.id!r} is about this command"
            return Judgement(Kind.NEEDS_APPROVAL, reason, rule.id, findings)
        for rule in matching:
            if rule.action is GuardAction.ALLOW:
                return Judgement(Kind.PREAPPROVED, rule.text, rule.id, findings)
        if self._edits and self._policy.default is GuardAction.ASK:
            reason = "edits inside the workspace pass in this mode (accept_edits)"
            return Judgement(Kind.PREAPPROVED, reason, None, findings)
        return _BY_DEFAULT[self._policy.default](findings)


def _is_about(rule: GuardRule, tool: Tool) -> bool:
    return Matcher.names(rule, tool)


_BY_DEFAULT: dict[GuardAction, Callable[[tuple[Finding, ...]], Judgement]] = {
    GuardAction.DENY: lambda found: Judgement(Kind.AUTO_DENIED, NOTHING_ALLOWS, None, found),
    GuardAction.ASK: lambda found: Judgement(Kind.NEEDS_APPROVAL, NOTHING_ALLOWS, None, found),
    GuardAction.ALLOW: lambda found: Judgement(Kind.UNGUARDED, "", None, found),
}
