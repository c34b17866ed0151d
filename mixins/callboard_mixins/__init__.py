"""Layers of behaviour for agents: put them before the agent in a class statement.

class MyAgent(StepLogMixin, ReActAgent): ...

Names are loaded when they are first used: a layer may need an extra that is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "AuditMixin": "audit.mixin",
    "AuditTrail": "audit.trail",
    "CompactionMixin": "compaction",
    "CompactionPolicy": "compaction_policy",
    "FallbackMixin": "fallback",
    "FallbackPolicy": "fallback",
    "FileVault": "redaction.vault",
    "GuardAction": "tool_guard.rules",
    "GuardMode": "tool_guard.rules",
    "GuardPolicy": "tool_guard.policy",
    "GuardRule": "tool_guard.rules",
    "InMemoryVault": "redaction.vault",
    "Judgement": "judging",
    "JsonLinesTrail": "audit.json_lines_trail",
    "MediaFilterMixin": "media.media_filter",
    "MediaPolicy": "media.policy",
    "PERSONAL": "redaction.patterns",
    "OutputInvalid": "output_form",
    "Pattern": "redaction.patterns",
    "PlanAndSolveMixin": "plan_and_solve",
    "PlanPolicy": "planning",
    "RateLimit": "rate_window",
    "RateLimitMixin": "rate_limit",
    "RateLimiter": "rate_limiter",
    "Redaction": "redaction.redactor",
    "RedactionMixin": "redaction.mixin",
    "ReflexionMixin": "reflexion",
    "ReflexionPolicy": "judging",
    "RetryMixin": "retry",
    "RetryPolicy": "retry_policy",
    "SECRETS": "redaction.patterns",
    "SigningKey": "audit.keys",
    "SqliteTrail": "audit.sqlite_trail",
    "StepLogMixin": "step_log",
    "StructuredOutputMixin": "structured_output",
    "ToolGuardMixin": "tool_guard.mixin",
    "TracingMixin": "tracing",
    "Vault": "redaction.vault",
    "strict_policy": "tool_guard.builtin",
}

if TYPE_CHECKING:  # what `__getattr__` loads, spelled out for type checkers
    from callboard_mixins.audit.json_lines_trail import JsonLinesTrail as JsonLinesTrail
    from callboard_mixins.audit.keys import SigningKey as SigningKey
    from callboard_mixins.audit.mixin import AuditMixin as AuditMixin
    from callboard_mixins.audit.sqlite_trail import SqliteTrail as SqliteTrail
    from callboard_mixins.audit.trail import AuditTrail as AuditTrail
    from callboard_mixins.compaction import CompactionMixin as CompactionMixin
    from callboard_mixins.compaction_policy import CompactionPolicy as CompactionPolicy
    from callboard_mixins.fallback import FallbackMixin as FallbackMixin
    from callboard_mixins.fallback import FallbackPolicy as FallbackPolicy
    from callboard_mixins.judging import Judgement as Judgement
    from callboard_mixins.judging import ReflexionPolicy as ReflexionPolicy
    from callboard_mixins.media.media_filter import MediaFilterMixin as MediaFilterMixin
    from callboard_mixins.media.policy import MediaPolicy as MediaPolicy
    from callboard_mixins.output_form import OutputInvalid as OutputInvalid
    from callboard_mixins.plan_and_solve import PlanAndSolveMixin as PlanAndSolveMixin
    from callboard_mixins.planning import PlanPolicy as PlanPolicy
    from callboard_mixins.rate_limit import RateLimitMixin as RateLimitMixin
    from callboard_mixins.rate_limiter import RateLimiter as RateLimiter
    from callboard_mixins.rate_window import RateLimit as RateLimit
    from callboard_mixins.redaction.mixin import RedactionMixin as RedactionMixin
    from callboard_mixins.redaction.patterns import PERSONAL as PERSONAL
    from callboard_mixins.redaction.patterns import SECRETS as SECRETS
    from callboard_mixins.redaction.patterns import Pattern as Pattern
    from callboard_mixins.redaction.redactor import Redaction as Redaction
    from callboard_mixins.redaction.vault import FileVault as FileVault
    from callboard_mixins.redaction.vault import InMemoryVault as InMemoryVault
    from callboard_mixins.redaction.vault import Vault as Vault
    from callboard_mixins.reflexion import ReflexionMixin as ReflexionMixin
    from callboard_mixins.retry import RetryMixin as RetryMixin
    from callboard_mixins.retry_policy import RetryPolicy as RetryPolicy
    from callboard_mixins.step_log import StepLogMixin as StepLogMixin
    from callboard_mixins.structured_output import (
        StructuredOutputMixin as StructuredOutputMixin,
    )
    from callboard_mixins.tool_guard.builtin import strict_policy as strict_policy
    from callboard_mixins.tool_guard.mixin import ToolGuardMixin as ToolGuardMixin
    from callboard_mixins.tool_guard.policy import GuardPolicy as GuardPolicy
    from callboard_mixins.tool_guard.rules import GuardAction as GuardAction
    from callboard_mixins.tool_guard.rules import GuardMode as GuardMode
    from callboard_mixins.tool_guard.rules import GuardRule as GuardRule
    from callboard_mixins.tracing import TracingMixin as TracingMixin


__all__ = [
    "PERSONAL",
    "SECRETS",
    "AuditMixin",
    "AuditTrail",
    "CompactionMixin",
    "CompactionPolicy",
    "FallbackMixin",
    "FallbackPolicy",
    "FileVault",
    "GuardAction",
    "GuardMode",
    "GuardPolicy",
    "GuardRule",
    "InMemoryVault",
    "JsonLinesTrail",
    "Judgement",
    "MediaFilterMixin",
    "MediaPolicy",
    "OutputInvalid",
    "Pattern",
    "PlanAndSolveMixin",
    "PlanPolicy",
    "RateLimit",
    "RateLimitMixin",
    "RateLimiter",
    "Redaction",
    "RedactionMixin",
    "ReflexionMixin",
    "ReflexionPolicy",
    "RetryMixin",
    "RetryPolicy",
    "SigningKey",
    "SqliteTrail",
    "StepLogMixin",
    "StructuredOutputMixin",
    "ToolGuardMixin",
    "TracingMixin",
    "Vault",
    "strict_policy",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'callboard_mixins' has no attribute {name!r}")
    value = getattr(import_module(f"callboard_mixins.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
