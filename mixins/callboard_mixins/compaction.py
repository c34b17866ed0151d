"""A layer that keeps a conversation within the model's window: the old part is summed up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any

from callboard.agent import ReActAgent
from callboard.errors import ErrorCategory, ModelError
from callboard.messages import AssistantMessage, StopReason
from callboard.model import ModelRequest, Purpose
from callboard.replies import RunEnds
from callboard_mixins.checked import check_given
from callboard_mixins.compacted_view import Viewer, head_of
from callboard_mixins.compacting import AS_IT_IS, Compacted, cut_point, newest_prompt
from callboard_mixins.compaction_policy import CompactionPolicy
from callboard_mixins.compaction_size import Measure
from callboard_mixins.summing_up import summary_request
from callboard_mixins.token_estimate import tokens_of

KIND = "compaction"
Ask = Callable[[ModelRequest], Awaitable[AssistantMessage]]


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
        longest = self._compaction_policy.longest_result_bytes
        self._compaction_viewer = Viewer(longest_result_bytes=longest)
        self._compaction_measure = Measure()
        self._compaction_read: tuple[object, Compacted] = (None, AS_IT_IS)  # the last fact

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
        if limit is not None:
            above = self._compaction_tokens(request, shown) - limit
            if above > 0 and await self._compaction_made(request, above=above):
                shown = self._compaction_shown(request)
        try:
            return await ask(shown)
        except ModelError as problem:
            if problem.category is not ErrorCategory.CONTEXT_OVERFLOW:
                raise
            if not await self._compaction_made(request, above=None):
                raise
        return await ask(self._compaction_shown(request))

    # -- what is shown ---------------------------------------------------------------------------

    def _compaction_now(self) -> Compacted:
        """The last compaction: the same object until there is another."""
        facts = self._conversation.state.layers.get(KIND)
        if not facts:
            return AS_IT_IS
        if self._compaction_read[0] is not facts[-1]:
            self._compaction_read = facts[-1], Compacted.of(facts[-1])
        return self._compaction_read[1]

    def _compaction_shown(self, request: ModelRequest) -> ModelRequest:
        now = self._compaction_now()
        if now is AS_IT_IS:
            return request
        shown = self._compaction_viewer.shown(now, request.messages)
        return replace(request, messages=shown)

    def _compaction_tokens(self, request: ModelRequest, shown: ModelRequest) -> int:
        now, messages = self._compaction_now(), request.messages
        fresh = len(messages) - self._compaction_viewer.places(now, messages).fresh_from
        return self._compaction_measure.tokens(shown, now, fresh=fresh)

    # -- compacting ------------------------------------------------------------------------------

    async def _compaction_made(self, request: ModelRequest, *, above: int | None) -> bool:
        """Compact further. False if there is nothing left that may be. `above` is by how many
        tokens the request is too long, or None where the model said so.
        """
        policy, now, messages = self._compaction_policy, self._compaction_now(), request.messages
        start = self._compaction_viewer.places(now, messages).start
        prompt = newest_prompt(messages)
        newest = "" if prompt is None else prompt.id
        if above is None and now.overflow == newest:
            return False  # once for each message of the user
        overflow = newest if above is None else now.overflow
        point = cut_point(messages, start, keep_recent=policy.keep_recent)
        if point <= start:
            return False
        last, end = messages[point - 1].id, messages[-1].id
        if above is not None and self._compaction_saved(request, point) >= above:
            made = replace(now, trimmed=last, newest=end)
        else:
            summary = await self._compaction_summary(request, now, start, point)
            made = Compacted(last, summary, last, end, overflow)
        await self._record(KIND, asdict(made))
        return True

    def _compaction_saved(self, request: ModelRequest, end: int) -> int:
        """The tokens that go when old results are cut which are shown whole today."""
        messages, trim = request.messages, self._compaction_viewer.trim
        start, trimmed_to, _ = self._compaction_viewer.places(self._compaction_now(), messages)
        whole = [messages[at] for at in range(max(start, trimmed_to), end)]
        return sum([tokens_of(message) - tokens_of(trim(message)) for message in whole])

    async def _compaction_summary(
        self, request: ModelRequest, now: Compacted, start: int, end: int
    ) -> str:
        """What the model makes of the messages; "" where it fails, which leaves them out."""
        asked = summary_request(
            request,
            [request.messages[at] for at in range(start, end)],
            head=head_of(now, request.messages, start)[:1],
            instructions=self._compaction_policy.instructions,
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
