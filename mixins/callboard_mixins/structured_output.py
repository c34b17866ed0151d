"""A layer that wants the answer in a form: `reply.output` is a checked value of a type."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.json_text import canonical
from callboard.messages import AssistantMessage, Observation, Status
from callboard.model import ModelRequest, Purpose
from callboard.replies import Outcome, Prompt, PromptLike, Reply
from callboard.tooling.tools import Tool
from callboard.watching import EventStream
from callboard_mixins.output_attempts import TOOL_NAME, Corrections, answers, last_said
from callboard_mixins.output_form import OutputForm, Way, instruction
from callboard_mixins.output_reply import TypedReply, TypedStream, typed

T = TypeVar("T")
TOOL_TEXT = "Give the final answer. Call it once, when you know the answer, and nothing after it."


class StructuredOutputMixin(ReActAgent, Generic[T]):
    """Has the answer of each run in a form: `output=` is a pydantic model, another type that
    pydantic knows, or a JSON schema. `reply.output` is a value of it.

    `output_way` says how: by a tool (the default), by the provider's own structured output, or by
    telling the schema. An answer in another form is corrected `output_corrections` times, calls
    and texts together; then the run fails, with OutputInvalid as the cause and the last problem in
    it. A run that ends at a limit has no output. The journal, and an agent that has this one as a
    tool, get the answer as JSON.
    """

    def __init__(
        self,
        *,
        output: type[T] | Mapping[str, Any],
        output_way: Way | str = Way.TOOL,
        output_corrections: int = 2,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        if output_corrections < 0:
            raise ConfigurationError(f"output_corrections={output_corrections!r}: it is 0 or more")
        try:
            self._structured_output_way = Way(output_way)
        except ValueError:
            ways = ", ".join(Way)
            raise ConfigurationError(f"output_way={output_way!r} is none of {ways}") from None
        self._structured_output_form: OutputForm[T] = OutputForm(output)
        self._structured_output_instruction = instruction(self._structured_output_form)
        self._structured_output_corrections = Corrections(output_corrections)
        self._structured_output_tool = Tool.from_schema(
            name=TOOL_NAME,
            description=TOOL_TEXT,
            parameters=self._structured_output_form.schema,
            run=self._structured_output_given,
            effect="pure",
            terminate=True,
            max_result_bytes=1_000_000,
        )

    async def run(self, prompt: PromptLike) -> TypedReply[T]:
        """As `ReActAgent.run`; `reply.output` is a value of the wanted type."""
        return cast("TypedReply[T]", await super().run(prompt))

    def run_sync(self, prompt: PromptLike) -> TypedReply[T]:
        """As `ReActAgent.run_sync`."""
        return cast("TypedReply[T]", super().run_sync(prompt))

    @asynccontextmanager
    async def stream(self, prompt: PromptLike) -> AsyncGenerator[TypedStream[T], None]:
        """As `ReActAgent.stream`; so is `events.reply`."""
        async with super().stream(prompt) as events:
            yield cast("TypedStream[T]", events)

    async def resume(self) -> TypedReply[T]:
        """As `ReActAgent.resume`."""
        return typed(await super().resume(), self._structured_output_form, warn=self._warn)

    async def _run_in_turn(self, prompt: Prompt, events: EventStream | None) -> TypedReply[T]:
        """What `run` and `stream` give, and a system's `ask`."""
        reply = await super()._run_in_turn(prompt, events)
        return typed(reply, self._structured_output_form, warn=self._warn)

    async def reply(self, prompt: Prompt) -> Reply:
        asked = prompt
        while True:
            reply = await super().reply(asked)
            if reply.outcome is not Outcome.FINISHED:
                return reply
            try:
                output = self._structured_output_read(reply)
            except ValueError as error:
                tool = TOOL_NAME if self._structured_output_way is Way.TOOL else None
                past = self._conversation.state.messages
                asked = self._structured_output_corrections.next(
                    prompt, past, str(error), tool=tool
                )
                continue
            said = last_said(self.messages)
            if said is not None and said.text.strip():  # beside the call of the tool
                reply = replace(reply, text=said.text, message=said)
            return replace(reply, output=output)

    def _tools(self) -> Sequence[Tool]:
        offered = super()._tools()
        if self._structured_output_way is not Way.TOOL:
            return offered
        return (*offered, self._structured_output_tool)

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        if request.purpose is not Purpose.ANSWER:
            return await super()._reasoning(request)
        if self._structured_output_way is Way.TOOL:
            self._structured_output_corrections.check(self._conversation.state.messages)
            return await super()._reasoning(request)
        is_native = self._structured_output_way is Way.NATIVE
        if is_native and request.model.capabilities.output_schema:
            schema = self._structured_output_form.schema
            return await super()._reasoning(replace(request, output_schema=schema))
        told = f"{request.system}\n\n{self._structured_output_instruction}".strip()
        return await super()._reasoning(replace(request, system=told))

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        if self._structured_output_way is Way.TOOL:  # the same wrong answer is a limit, too
            self._structured_output_corrections.check(self._conversation.state.messages)
        return await super()._summarizing(request)

    # -- by a tool -------------------------------------------------------------------------------

    async def _structured_output_given(
        self, arguments: dict[str, Any], context: object
    ) -> Observation:
        """The tool: what it raises, the model reads and corrects."""
        value = self._structured_output_form.checked(arguments)
        return replace(Observation.of(canonical(value)), payload={"value": value})

    def _structured_output_read(self, reply: Reply) -> Any:
        form = self._structured_output_form
        if self._structured_output_way is not Way.TOOL:
            return form.read(reply.text)
        for result in answers(self.messages):
            if result.status is Status.OK:
                return result.payload["value"]
        raise ValueError(f"{TOOL_NAME} was not called")
