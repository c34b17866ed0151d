"""Rules of the guard as data: one schema for YAML files and for Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from callboard.errors import ConfigurationError, MissingExtra
from callboard.tooling.tools import Effect
from callboard_mixins.tool_guard.findings import Severity


class GuardAction(StrEnum):
    """What a rule does with a call that it is about. The strictest of all rules counts."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class GuardMode(StrEnum):
    """How a guard treats what its rules say."""

    ASK = "ask"  # as they say
    DONT_ASK = "dont_ask"  # nobody is there: what would be asked about is denied
    ACCEPT_EDITS = "accept_edits"  # edits of files inside the workspace pass without asking
    EXPLORE = "explore"  # only tools that change nothing
    OFF = "off"  # everything runs


class GuardRule(BaseModel):
    """One rule. It is about a call where everything that it names fits; what it leaves out fits.

    - `tools`: names, with `*` and `?`. `effects`: what the tool declares. `sandboxed`: whether it
      says that the system shuts in what it runs.
    - `patterns`: regular expressions, of which one is found in a text of the arguments, and none
      of `exclude` in the same text. `parameters`: only in these arguments, by their names.
    - `programs`: of the shell commands in the call, such as "git" or "git push". An `allow` holds
      only if every command is one of these by its bare name, no variable is set, nothing is
      redirected into a file, and all of the text is understood; the others if any command is one.
      Where that cannot be told, a `deny` or `ask` asks. `parameters` names the arguments that are
      shell texts, if they have other names than the usual ones.
    - `categories`: of findings, with `*`, such as "shell.network"; `at_least` so severe. An `allow`
      that names categories lifts the questions of these findings, and never a refusal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    action: GuardAction
    reason: str = ""
    tools: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    sandboxed: bool | None = None
    parameters: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    at_least: Severity = Severity.INFO
    severity: Severity = Severity.MEDIUM

    @field_validator("id", "reason", mode="before")
    @classmethod
    def _trimmed(cls, text: object) -> object:
        return text.strip() if isinstance(text, str) else text

    @field_validator("patterns", "exclude")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                compiled = re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
            if not pattern or (info.field_name == "exclude" and compiled.search("")):
                raise ValueError(f"{pattern!r} is found in every text")
        return patterns

    @model_validator(mode="after")
    def _is_whole(self) -> GuardRule:
        if self.exclude and not self.patterns:
            raise ValueError("exclude goes with patterns, and there are none")
        if self.parameters and not (self.patterns or self.programs):
            raise ValueError("parameters go with patterns or programs, and there are none")
        if self.at_least is not Severity.INFO and not self.categories:
            raise ValueError("at_least goes with categories, and there are none")
        return self

    @property
    def text(self) -> str:
        """What a human reads: the reason, or else what it does."""
        return self.reason or f"rule {self.id!r} says {self.action}"


class RuleSet(BaseModel):
    """What a file of rules holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[GuardRule, ...] = ()
    mode: GuardMode = GuardMode.ASK
    default: GuardAction = GuardAction.ASK


def read_rules(given: Mapping[str, Any] | Iterable[Any], *, source: str = "rules") -> RuleSet:
    """A rule set from plain data: a mapping with `rules`, `mode`, `default`, or a list of rules.

    Raises:
        ConfigurationError: a word is unknown, a value is wrong, or two rules have one id; the text
            names the rule.
    """
    whole: dict[str, Any] = {"rules": given}
    if isinstance(given, Mapping):
        whole = dict(cast("Mapping[str, Any]", given))
    if whole.get("mode") is False:  # YAML reads a bare `off` so
        whole["mode"] = GuardMode.OFF
    rules: Any = whole.get("rules")
    rules = [] if rules is None else rules
    if not isinstance(rules, list | tuple):
        raise ConfigurationError(f"{source}: rules must be a list, and is {rules!r}")
    seen: set[str] = set()
    made: list[GuardRule] = []
    for at, entry in enumerate(cast("list[Any]", rules), 1):
        rule = _rule(entry, f"{source}: rule {at}")
        if rule.id in seen:
            raise ConfigurationError(f"{source}: two rules have the id {rule.id!r}: rename one")
        seen.add(rule.id)
        made.append(rule)
    try:
        return RuleSet.model_validate({**whole, "rules": made})
    except ValidationError as error:
        raise ConfigurationError(f"{source}: {_told(error, RuleSet)}") from None


def load_rules(path: str | Path) -> RuleSet:
    """The rule set in a YAML file.

    Raises:
        ConfigurationError: the file cannot be read, or as `read_rules`.
        MissingExtra: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtra("pyyaml", extra="guard") from None
    try:
        text = Path(path).read_text("utf-8")
        found: Any = yaml.safe_load(text)
        doubled = _doubled(yaml.compose(text, Loader=yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ConfigurationError(f"{path} is nested too deeply") from None
    if doubled is not None:
        raise ConfigurationError(f"{path}: the word {doubled!r} stands twice in one place")
    if not isinstance(found, dict | list):
        raise ConfigurationError(f"{path} holds {found!r}; a rule file is a list of rules")
    return read_rules(cast("dict[str, Any] | list[Any]", found), source=str(path))


def _rule(entry: Any, where: str) -> GuardRule:
    if isinstance(entry, GuardRule):
        return entry
    named = cast("Mapping[str, Any]", entry).get("id") if isinstance(entry, Mapping) else None
    try:
        return GuardRule.model_validate(entry)
    except ValidationError as error:
        name = f" ({named!r})" if named else ""
        raise ConfigurationError(f"{where}{name}: {_told(error, GuardRule)}") from None


def _doubled(node: Any) -> str | None:
    """A key that stands twice in one mapping; YAML takes the last, and so would a mistake."""
    value = getattr(node, "value", None)
    if not isinstance(value, list):
        return None
    items = cast("Sequence[Any]", value)
    is_mapping = getattr(node, "id", "") == "mapping"
    keys: list[Any] = [item[0].value for item in items] if is_mapping else []
    for key in keys:
        if keys.count(key) > 1:
            return str(key)
    inner: list[Any] = [item[1] for item in items] if is_mapping else list(items)
    return next((twice for one in inner if (twice := _doubled(one)) is not None), None)


def _told(error: ValidationError, kind: type[BaseModel]) -> str:
    """What is wrong, in one line: each place with its problem and, for a word, the known ones."""
    told: list[str] = []
    for problem in error.errors(include_url=False):
        place = ".".join(str(part) for part in problem["loc"]) or "the rule"
        text = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            text = f"unknown word; there are: {', '.join(kind.model_fields)}"
        told.append(f"{place}: {text} (got {problem['input']!r:.80})")
    return "; ".join(told)
