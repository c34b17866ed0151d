"""The layer that traces: spans of OpenTelemetry for attempts, model calls and tool calls."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from callboard.agent import ReActAgent
from callboard.approvals import Ask, Deny, SealedCall, Verdict
from callboard.errors import MissingExtra, ModelError, StopRun
from callboard.messages import AssistantMessage, Observation, Status, ToolCall
from callboard.model import ModelRequest
from callboard.replies import Prompt, Reply, RunEnds
from callboard_mixins.tracing_facts import (
    Attributes,
    content_of,
    known,
    message_facts,
    names_of,
    request_facts,
    tool_facts,
)

try:
    from opentelemetry.trace import (
        NoOpTracerProvider,
        ProxyTracerProvider,
        Span,
        SpanKind,
        StatusCode,
        Tracer,
        TracerProvider,
        get_current_span,
        get_tracer_provider,
    )
except ModuleNotFoundError as missing:
    raise MissingExtra("opentelemetry-api", extra="otel") from missing


class TracingMixin(ReActAgent):
    """Spans `invoke_agent`, `chat` and `execute_tool`, each below what it is a part of.

    `tracing_provider` is a TracerProvider; by default it is the process's own. While none is set
    up, nothing is made. Spans hold no content unless `tracing_content` is True, and then what
    watchers may see: with a RedactionMixin, the redacted. What was said in an error is content.
    """

    def __init__(
        self,
        *,
        tracing_provider: TracerProvider | None = None,
        tracing_content: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self._tracing_given = tracing_provider
        self._tracing_content = tracing_content
        self._tracing: Tracer | None = None  # of the attempt that goes on, if somebody listens
        self._tracing_last: tuple[TracerProvider, Tracer] | None = None

    async def reply(self, prompt: Prompt) -> Reply:
        tracer = self._tracing = self._tracing_tracer()
        if tracer is None:
            return await super().reply(prompt)
        provider, model = names_of(self.state.model.name)
        facts: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.agent.name": self.name,
            "gen_ai.agent.id": str(self.address),
            "gen_ai.conversation.id": str(self.address),
            "callboard.prompt.id": prompt.id,
        }
        with self._tracing_span(tracer, f"invoke_agent {self.name}", SpanKind.INTERNAL) as span:
            span.set_attributes(facts)
            reply = await super().reply(prompt)
            span.set_attribute("callboard.outcome", str(reply.outcome))
        return reply

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        tracer = self._tracing
        if tracer is None:
            return await super()._reasoning(request)
        with self._tracing_chat(tracer, request) as span:
            message = await super()._reasoning(request)
            self._tracing_answer(span, message)
        return message

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        tracer = self._tracing
        if tracer is None:
            return await super()._summarizing(request)
        with self._tracing_chat(tracer, request) as span:
            message = await super()._summarizing(request)
            self._tracing_answer(span, message)
        return message

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if self._tracing is not None and isinstance(verdict, (Deny, Ask)):
            name = "denied" if isinstance(verdict, Deny) else "asked"
            facts = {"gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.id}
            told = known({**facts, "callboard.rule": verdict.rule})
            get_current_span().add_event(f"callboard.{name}", told)
        return verdict

    async def _acting(self, call: SealedCall) -> Observation:
        tracer = self._tracing
        if tracer is None:
            return await super()._acting(call)
        with self._tracing_span(tracer, f"execute_tool {call.name}", SpanKind.INTERNAL) as span:
            span.set_attributes(tool_facts(call.id, call.tool))
            observation = await super()._acting(call)
            if observation.status is not Status.OK:
                _fail(span, str(observation.status))
            if self._tracing_content and span.is_recording():
                arguments = self._watchers.shown(call.call).sendable_raw
                span.set_attribute("gen_ai.tool.call.arguments", arguments)
                text = self._watchers.shown(observation).text
                span.set_attribute("gen_ai.tool.call.result", text)
        return observation

    def _tracing_tracer(self) -> Tracer | None:
        """The tracer, where somebody listens. Asked once an attempt, as it takes 2 us."""
        provider = self._tracing_given or get_tracer_provider()
        last = self._tracing_last
        if last is not None and last[0] is provider:
            return last[1]
        if isinstance(provider, (ProxyTracerProvider, NoOpTracerProvider)):
            return None
        tracer = provider.get_tracer("callboard")
        self._tracing_last = provider, tracer
        return tracer

    @contextmanager
    def _tracing_span(self, tracer: Tracer, name: str, kind: SpanKind) -> Generator[Span]:
        """A span that ends with what the step ends with."""
        with tracer.start_as_current_span(
            name, kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except StopRun as end:
                outcome = end.outcome if isinstance(end, RunEnds) else "stopped"
                span.set_attribute("callboard.outcome", str(outcome))
                raise
            except Exception as error:
                _fail(span, _kind_of(error))
                if self._tracing_content:
                    said = self._watchers.shown(str(error))
                    span.add_event("exception", {"exception.message": said})
                raise
            except BaseException:  # a cancellation, or the end of the process
                _fail(span, "cancelled")
                raise

    @contextmanager
    def _tracing_chat(self, tracer: Tracer, request: ModelRequest) -> Generator[Span]:
        model = names_of(request.model.name)[1]
        with self._tracing_span(tracer, f"chat {model}", SpanKind.CLIENT) as span:
            if span.is_recording():
                facts = request_facts(request)
                facts["gen_ai.conversation.id"] = str(self.address)
                facts["callboard.purpose"] = str(request.purpose)
                span.set_attributes(facts)
            if self._tracing_content and span.is_recording():
                asked = [self._watchers.shown(message) for message in request.messages]
                span.set_attribute("gen_ai.input.messages", content_of(asked))
            yield span

    def _tracing_answer(self, span: Span, message: AssistantMessage) -> None:
        if not span.is_recording():
            return
        span.set_attributes(message_facts(message))
        if self._tracing_content:
            said = content_of([self._watchers.shown(message)])
            span.set_attribute("gen_ai.output.messages", said)


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, kind)


def _kind_of(error: Exception) -> str:
    return str(error.category) if isinstance(error, ModelError) else type(error).__name__
