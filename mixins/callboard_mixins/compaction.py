"""A layer that keeps a conversation within the model's window: the old part is summed up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from callboard.agent import ReActAgent
from callboard.errors import ErrorCategory, ModelError
from callboard.messages import AssistantMessage, ConversationMessage, StopReason
from callboard.model import ModelRequest, Purpose
from callboard.per_message import PerMessage
from callboard.replies import RunEnds
from callboard_mixins.checked import check_given
from callboard_mixins.compacting import (
    Compacted,
    CompactedView,
    CompactionPolicy,
    Measure,
    cut_point,
    head_of,
    newest_prompt,
    place_after,
    to_sum_up,
    trimmer,
)
from callboard_mixins.token_estimate import around_tokens, tokens_of

KIND = "compaction"
Ask = Callable[[ModelRequest], Awaitable[AssistantMessage]]
_AS_IT_IS = Compacted()


class CompactionMixin(ReActAgent):
    """Shows the model a summary in place of old messages; the conversation itself stays whole.

    Each compaction is a record (`agent.state.layers["compaction"]`), so that a restart shows the
    same. The summary is a model call of its own, which the budget counts and watchers are not
    shown; where it fails, the old messages are left out and say so. When the model says that a
    request is too long, it is compacted and asked for once more, once for each message of the user.
    """

    def __init__(self, *, compaction_policy: CompactionPolicy | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._compaction_policy = compaction_policy or CompactionPolicy()
        check_given("compaction_policy", self._compaction_policy, CompactionPolicy)
        self._compaction_trim = PerMessage(trimmer(self._compaction_policy.longest_result_bytes))
        self._compaction_places: tuple[Compacted, int, int, int] = (_AS_IT_IS, 0, 0, 0)
        self._compaction_measure = Measure()

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        if request.purpose is not Purpose.ANSWER:
            return await super()._reasoning(request)
        return await self._compaction_asked(super()._reasoning, request)

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        summarizing, instruction = super()._summarizing, request.messages[-1]

        async def ask(shown: ModelRequest) -> AssistantMessage:
            return await summarizing(replace(shown, messages=(*shown.messages, instruction)))

        said = request.messages[:-1]  # the instruction is nobody's prompt, and is never stored
        return await self._compaction_asked(ask, replace(request, messages=said))

    async def _compaction_asked(self, ask: Ask, request: ModelRequest) -> AssistantMessage:
        limit = self._compaction_policy.limit(request)
        shown = self._compaction_shown(request)
        is_long = limit is not None and self._compaction_tokens(request, shown) > limit
        if is_long and await self._compaction_made(request, limit=limit):
            shown = self._compaction_shown(request)
        try:
            return await ask(shown)
        except ModelError as problem:
            if problem.category is not ErrorCategory.CONTEXT_OVERFLOW:
                raise
            if not await self._compaction_made(request, limit=None):
                raise
        return await ask(self._compaction_shown(request))

    # -- what is shown ---------------------------------------------------------------------------

    def _compaction_now(self) -> Compacted:
        facts = self.state.layers.get(KIND)
        return Compacted.of(facts[-1]) if facts else _AS_IT_IS

    def _compaction_shown(self, request: ModelRequest) -> ModelRequest:
        now = self._compaction_now()
        if now == _AS_IT_IS:
            return request
        start, trimmed_to, _ = self._compaction_bounds(now, request.messages)
        view = CompactedView(
            request.messages,
            head=head_of(now, request.messages, start),
            start=start,
            trimmed_to=trimmed_to,
            trim=self._compaction_trim,
        )
        return replace(request, messages=view)

    def _compaction_bounds(
        self, now: Compacted, messages: Sequence[ConversationMessage]
    ) -> tuple[int, int, int]:
        """Where the shown part begins, up to where results are cut, and where the messages begin
        that came after the compaction; looked up once.
        """
        if self._compaction_places[0] != now:
            ids = (now.upto, now.trimmed, now.newest)
            start, trimmed_to, fresh_from = [place_after(messages, id) for id in ids]
            self._compaction_places = now, start, trimmed_to, fresh_from
        return self._compaction_places[1:]

    def _compaction_tokens(self, request: ModelRequest, shown: ModelRequest) -> int:
        now = self._compaction_now()
        fresh_from = self._compaction_bounds(now, request.messages)[2]
        fresh = len(request.messages) - fresh_from
        return self._compaction_measure.tokens(shown.messages, now, fresh=fresh)

    # -- compacting ------------------------------------------------------------------------------

    async def _compaction_made(self, request: ModelRequest, *, limit: int | None) -> bool:
        """Compact further. False if there is nothing left that may be. `limit` is None where the
        model said that the request is too long.
        """
        policy, now, messages = self._compaction_policy, self._compaction_now(), request.messages
        start = self._compaction_bounds(now, messages)[0]
        prompt = newest_prompt(messages)
        newest = "" if prompt is None else prompt.id
        if limit is None and now.overflow == newest:
            return False  # once for each message of the user
        overflow = newest if limit is None else now.overflow
        point = cut_point(messages, start, keep_recent=policy.keep_recent)
        if point <= start:
            return False
        last, end = messages[point - 1].id, messages[-1].id
        if limit is not None and self._compaction_saves(request, start, point, limit):
            made = replace(now, trimmed=last, newest=end)
        else:
            summary = await self._compaction_summary(request, now, start, point)
            made = Compacted(last, summary, last, end, overflow)
        await self._record(KIND, asdict(made))
        return True

    def _compaction_saves(self, request: ModelRequest, start: int, end: int, limit: int) -> bool:
        """Whether cutting old results alone is enough."""
        messages = request.messages
        saved = sum(
            [
                tokens_of(messages[at]) - tokens_of(self._compaction_trim(messages[at]))
                for at in range(start, end)
            ]
        )
        kept = sum([tokens_of(messages[at]) for at in range(start, len(messages))])
        return saved > 0 and kept - saved + around_tokens(request) <= limit

    async def _compaction_summary(
        self, request: ModelRequest, now: Compacted, start: int, end: int
    ) -> str:
        """What the model makes of the messages; "" where it fails, which leaves them out."""
        before = head_of(now, request.messages, start)[:1]
        old = (*before, *[request.messages[at] for at in range(start, end)])
        asked = ModelRequest(
            model=request.model,
            messages=(to_sum_up(old),),
            system=self._compaction_policy.instructions,
            settings=request.settings,
            blobs=request.blobs,
            purpose=Purpose.COMPACTION,
        )
        try:
            said = await super()._reasoning(asked)
        except (ModelError, RunEnds) as problem:
            self._warn(f"old messages could not be summed up and are left out: {problem}")
            return ""
        if said.stop_reason is not StopReason.END:
            self._warn(f"a summary ended by {said.stop_reason}, so old messages are left out")
            return ""
        return said.text.strip()
