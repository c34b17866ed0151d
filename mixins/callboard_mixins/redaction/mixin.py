"""The layer that keeps secrets and personal data out of journals, events and model calls."""

from __future__ import annotations

from typing import Any, TypeVar

from callboard.agent import ReActAgent
from callboard.approvals import Deny, SealedCall, Verdict
from callboard.closing import CANCELLED
from callboard.journaling.records import Record
from callboard.json_text import Json
from callboard.messages import Observation, Status, ToolCall
from callboard.model import (
    AttemptDiscarded,
    Delta,
    Model,
    StopDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    WholeDelta,
)
from callboard_mixins.redaction.cleaning import Cleaner
from callboard_mixins.redaction.redactor import Gone, Redaction, Redactor, Restorer, vaulted
from callboard_mixins.redaction.streaming import RedactedModel
from callboard_mixins.redaction.vault import InMemoryVault, Vault

R = TypeVar("R", bound=Record | Delta)

_EVERYTHING = Redaction()
_DELTAS = frozenset(
    {
        TextDelta,
        ThinkingDelta,
        ToolCallDelta,
        UsageDelta,
        StopDelta,
        WholeDelta,
        AttemptDiscarded,
    }
)


class RedactionMixin(ReActAgent):
    """Hides secrets for good, and personal data behind placeholders that tools get resolved.

    What is stored (records, blobs), shown (events, streams) or sent to a model is redacted,
    wherever this layer stands. Tools get the values of placeholders; guards judge the call as it
    would run, with the values. A call with something in its arguments that is hidden for good, or
    whose value the vault has lost, is denied.

    `redaction_vault` keeps the values of this conversation, in memory by default: give a FileVault
    where the journal outlives the process. Images and sound are not looked into.
    """

    def __init__(
        self,
        *,
        redaction: Redaction = _EVERYTHING,
        redaction_vault: Vault | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        vault = InMemoryVault() if redaction_vault is None else redaction_vault
        hide = vaulted(redaction, vault)
        self._redaction = Cleaner(Redactor((*redaction.masked, *redaction.kept), hide))
        self._redaction_restorer = Restorer(redaction, vault)
        self._reasoner.around = self._redaction_around
        self._watchers.clean = self._redaction.clean
        self._calls.revealed = self._redaction_revealed
        if self._keeper is not None:
            self._keeper.clean = self._redaction.clean

    def revealed(self, text: str) -> str:
        """The text with its placeholders resolved, for the people of this conversation."""
        return self._redaction_restorer.text(text)

    def _redaction_around(self, model: Model) -> Model:
        return RedactedModel(model, self._redaction)

    def _committing(self, record: R) -> R:
        if type(record) in _DELTAS:  # redacted in the stream, where they can be held back
            return super()._committing(record)
        return super()._committing(self._redaction.clean(record))

    async def _deciding(self, call: ToolCall) -> Verdict:
        if not _may_hold(call):
            return await super()._deciding(call)
        try:
            arguments = self._redaction_restorer.json(call.arguments)
        except Gone as gone:
            return Deny(
                f"the call was not run: {gone} in its arguments stands for something hidden that"
                " tools do not get; leave it out, or ask the user"
            )
        return await super()._deciding(_with(call, arguments))

    def _redaction_revealed(self, call: ToolCall) -> ToolCall:
        try:
            return _with(call, self._redaction_restorer.json(call.arguments))
        except Gone:
            return call  # `_acting` refuses it

    async def _acting(self, call: SealedCall) -> Observation:
        """A call that was started before a restart, and its vault lost, does not run again."""
        lost = _may_hold(call.call) and self._redaction_restorer.stands_in(call.arguments)
        if lost and not self._redaction_ran(call):
            return Observation.of(CANCELLED, Status.CANCELLED)
        return await super()._acting(call)

    def _redaction_ran(self, call: SealedCall) -> bool:
        round = self._conversation.state.round
        past = round.calls[call.id].attempts if round is not None else []
        return bool(past) and past[-1].observation is not None


def _may_hold(call: ToolCall) -> bool:
    """Whether a placeholder can stand in the arguments: saves a walk through nearly all of them."""
    return "[" in call.raw or "\\" in call.raw


def _with(call: ToolCall, arguments: Json) -> ToolCall:
    return call if arguments == call.arguments else call.with_arguments(arguments)
