"""Spans tell of attempts, model calls and tool calls, each below what it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode, get_current_span

from callboard import Deny, ModelSettings, ReActAgent, RunFailed, ToolCall, Verdict
from callboard.errors import ErrorCategory
from callboard.testing import ScriptedModel, call, error, say, stream
from callboard.testing.script import usage
from callboard_mixins import RedactionMixin, TracingMixin

pytestmark = pytest.mark.anyio


class TracedAgent(TracingMixin, ReActAgent):
    """An agent with the layer under test."""


class Spans:
    """A provider that keeps what it is told."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self._kept.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name.startswith(name)]

    def attributes(self, name: str) -> dict[str, Any]:
        return dict(self.named(name)[0].attributes or {})


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


async def nap(ms: int) -> str:
    """Sleep."""
    await anyio.sleep(ms / 1000)
    return f"slept {ms}"


async def fail() -> None:
    """Fail."""
    raise ValueError("the password is hunter2")


async def traced(
    script: Sequence[Any], spans: Spans, *, kind: Any = TracedAgent, **more: Any
) -> Any:
    agent = kind(
        model=ScriptedModel(script), tools=[nap, fail], tracing_provider=spans.provider, **more
    )
    return await agent.run("go")


async def test_spans_lie_below_what_they_are_a_part_of() -> None:
    """Also those of tools that overlap: the later one starts and ends inside the first."""
    spans = Spans()
    await traced([say(call("nap", ms=50), call("nap", ms=10)), "done"], spans)
    (attempt,) = spans.named("invoke_agent agent")
    parents = [span.parent and span.parent.span_id for span in spans.ended if span is not attempt]
    assert parents == [id_of(attempt)] * 4
    assert [span.name for span in spans.ended] == [
        "chat scripted",
        "execute_tool nap",
        "execute_tool nap",
        "chat scripted",
        "invoke_agent agent",
    ]


async def test_a_tool_works_inside_its_span() -> None:
    inside: list[int] = []

    async def look() -> None:
        """Look."""
        inside.append(get_current_span().get_span_context().span_id)

    spans = Spans()
    model = ScriptedModel([call("look"), "done"])
    await TracedAgent(model=model, tools=[look], tracing_provider=spans.provider).run("go")
    assert inside == [id_of(span) for span in spans.named("execute_tool")]


async def test_a_model_call_is_told_by_the_conventions() -> None:
    spans = Spans()
    answer = stream("done", usage(7, 3, cached_tokens=2))
    await traced([answer], spans, settings=ModelSettings(temperature=0.5, max_tokens=9))
    told = spans.attributes("chat")
    assert told["gen_ai.response.id"].startswith("m_")
    del told["gen_ai.response.id"]
    assert told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 2,
        "gen_ai.conversation.id": "agent/agent",
        "callboard.purpose": "answer",
    }


async def test_a_tool_call_is_told_without_its_content() -> None:
    spans = Spans()
    await traced([call("nap", "a", ms=1), "done"], spans)
    assert spans.attributes("execute_tool") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "nap",
        "gen_ai.tool.call.id": "a",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Sleep.",
    }


async def test_an_attempt_is_told_with_its_agent_and_outcome() -> None:
    spans = Spans()
    await traced([call("nap", ms=1), "so far"], spans, name="shop", max_iters=1)
    told = spans.attributes("invoke_agent shop")
    assert told["gen_ai.agent.id"] == "agent/shop"
    assert told["callboard.outcome"] == "max_iters"
    assert spans.attributes("chat")["callboard.purpose"] == "answer"
    assert [dict(s.attributes or {})["callboard.purpose"] for s in spans.named("chat")] == [
        "answer",
        "summary",
    ]


async def test_a_tool_that_failed_is_an_error_without_its_words() -> None:
    spans = Spans()
    await traced([call("fail"), "done"], spans)
    (span,) = spans.named("execute_tool")
    assert span.status.status_code is StatusCode.ERROR
    assert spans.attributes("execute_tool")["error.type"] == "failed"
    assert "hunter2" not in span.to_json()


async def test_a_model_that_failed_is_an_error_of_its_category() -> None:
    spans = Spans()
    with pytest.raises(RunFailed):
        await traced([stream(error("key abc", category=ErrorCategory.AUTH))], spans)
    assert spans.attributes("chat")["error.type"] == "auth"
    assert spans.attributes("invoke_agent")["error.type"] == "auth"
    assert "abc" not in spans.named("chat")[0].to_json()


async def test_content_is_told_where_it_is_asked_for() -> None:
    spans = Spans()
    await traced([call("nap", "a", ms=1), "done"], spans, tracing_content=True)
    assert spans.attributes("execute_tool")["gen_ai.tool.call.arguments"] == '{"ms":1}'
    assert spans.attributes("execute_tool")["gen_ai.tool.call.result"] == "slept 1"
    asked = '[{"parts":[{"content":"go","type":"text"}],"role":"user"}]'
    assert spans.attributes("chat")["gen_ai.input.messages"] == asked


@pytest.mark.parametrize("order", [(TracingMixin, RedactionMixin), (RedactionMixin, TracingMixin)])
async def test_content_is_redacted_in_either_order(order: tuple[type[ReActAgent], ...]) -> None:
    spans = Spans()
    kind: Any = type("Both", order, {})

    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    model = ScriptedModel([call("send", to="[EMAIL_1]"), "done"])
    agent = kind(model=model, tools=[send], tracing_provider=spans.provider, tracing_content=True)
    await agent.run("mail ada@example.org")
    assert "ada@" not in "".join([span.to_json() for span in spans.ended])
    assert spans.attributes("execute_tool")["gen_ai.tool.call.result"] == "sent to [EMAIL_1]"


async def test_a_denied_call_is_an_event_of_its_attempt() -> None:
    spans = Spans()
    await traced([call("nap", "a", ms=1), "done"], spans, kind=_denying())
    (event,) = spans.named("invoke_agent")[0].events
    assert event.name == "callboard.denied"
    assert (event.attributes or {})["callboard.rule"] == "never"


def _denying() -> type[ReActAgent]:
    class NoMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            await super()._deciding(call)
            return Deny("no", rule="never")

    class Traced(TracingMixin, NoMixin):
        """Tracing outside of a guard."""

    return Traced


async def test_loop_06_a_stream_that_is_left_ends_its_spans_as_cancelled() -> None:
    """The one who left has no span of the run in its context."""
    spans = Spans()
    agent = TracedAgent(
        model=ScriptedModel([call("nap", ms=60_000)]), tools=[nap], tracing_provider=spans.provider
    )
    async with agent.stream("go") as events:
        async for event in events:
            assert not get_current_span().get_span_context().is_valid
            if event.kind == "tool_start":
                break
    kinds = {span.name: dict(span.attributes or {}).get("error.type") for span in spans.ended}
    assert kinds["invoke_agent agent"] == "cancelled"
    assert not get_current_span().get_span_context().is_valid


async def test_parking_is_an_outcome_and_no_error() -> None:
    class AskMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            verdict: Any = await super()._deciding(call)
            return verdict.ask("sure?")  # type: ignore[no-any-return]  # nothing denies here

    class Asking(TracingMixin, AskMixin):
        """Tracing outside of a guard that asks."""

    spans = Spans()
    await traced([call("nap", ms=1)], spans, kind=Asking)
    (attempt,) = spans.named("invoke_agent")
    assert attempt.status.status_code is StatusCode.UNSET
    assert (attempt.attributes or {})["callboard.outcome"] == "awaiting_approval"


async def test_nothing_is_made_while_nobody_listens() -> None:
    agent = TracedAgent(model=ScriptedModel([call("nap", ms=1), "done"]), tools=[nap])
    assert (await agent.run("go")).text == "done"
    assert agent._tracing_tracer() is None


async def test_what_is_not_sampled_costs_no_attributes() -> None:
    spans = Spans()
    spans.provider.sampler = ALWAYS_OFF
    await traced([call("nap", ms=1), "done"], spans, tracing_content=True)
    assert spans.ended == ()
