"""The layer that audits: one entry for each decision and each execution, or it does not happen."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from callboard.agent import ReActAgent
from callboard.journaling.record_codec import encode
from callboard.journaling.records import Record, ToolStarted
from callboard.json_text import Json
from callboard.model import Delta
from callboard.tooling.tools import Effect
from callboard_mixins.audit.chain import twin_of
from callboard_mixins.audit.entries import (
    AUDITED,
    MOST_CHARACTERS,
    Facts,
    cut_to,
    facts_of,
)
from callboard_mixins.audit.trail import AuditTrail
from callboard_mixins.redaction.patterns import SECRETS, Pattern
from callboard_mixins.redaction.redactor import Redactor, keyed_masking

R = TypeVar("R", bound=Record | Delta)

_PROCESS_KEY = secrets.token_bytes(32)


class AuditMixin(ReActAgent):
    """Writes what is decided and done to `audit`, ahead of the journal.

    Calls that were denied, unknown or invalid are written too, and who approved what. An entry
    that cannot be written ends the run with CommitFailed before the effect. Secrets
    (`audit_patterns`) are hidden behind keyed digests before an entry is hashed. `audit_log`, a
    structlog logger, is told each entry as well.
    """

    def __init__(
        self,
        *,
        audit: AuditTrail,
        audit_patterns: Sequence[Pattern] = SECRETS,
        audit_log: Any = None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self._audit = audit
        self._audit_agent = str(self.address)
        self._audit_log = None if audit_log is None else audit_log.bind(agent=self._audit_agent)
        self._audit_key: bytes = getattr(self.journal, "digest_key", None) or _PROCESS_KEY
        self._audit_redactor = Redactor(audit_patterns, keyed_masking(self._audit_key))

    def _committing(self, record: R) -> R:
        written = super()._committing(record)
        if type(written) in AUDITED:
            self._audit_write(cast(Record, written))
        return written

    def _audit_write(self, record: Record) -> None:
        facts = facts_of(record)
        if facts is None:
            return
        going = self._conversation.state.run
        run = facts.get("run") or (None if going is None else going.run_id)
        facts = self._audit_redactor.json(facts)
        encoded = encode(record)
        if len(encoded) > MOST_CHARACTERS:  # else no text of it is longer
            facts = _bounded(facts)
        body = {
            "kind": record.kind,
            "run": run,
            "journal": self._conversation.number,
            "twin": twin_of(encoded, self._audit_key),
            "facts": facts,
        }
        is_intent = isinstance(record, ToolStarted) and record.effect is Effect.EFFECT
        self._audit.write(self._audit_agent, body, is_intent=is_intent)
        if self._audit_log is not None:
            self._audit_log.info(record.kind, **{"run": run, **facts})


def _bounded(value: Json) -> Json:
    """The facts with their long texts cut, once nothing in them is secret."""
    if isinstance(value, str):
        return cut_to(value)
    if isinstance(value, dict):
        return {name: _bounded(item) for name, item in cast(Facts, value).items()}
    if isinstance(value, (list, tuple)):
        return [_bounded(item) for item in cast(Sequence[Json], value)]
    return value
