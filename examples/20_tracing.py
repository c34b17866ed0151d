"""Spans of OpenTelemetry: an attempt, its model calls, its tool calls, and no content in them.

Last line: chat scripted: gen_ai.response.finish_reasons=('stop',)
"""

from __future__ import annotations

import anyio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callboard import ReActAgent, tool
from callboard.testing import ScriptedModel, call
from callboard_mixins import TracingMixin


@tool
async def weather(city: str) -> str:
    """Look up the weather."""
    return f"rain in {city}"


class Traced(TracingMixin, ReActAgent):
    """An agent that is traced."""


async def main() -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    model = ScriptedModel([call("weather", city="Oslo"), "Take an umbrella."])
    agent = Traced(name="guide", model=model, tools=[weather], tracing_provider=provider)
    await agent.run("An umbrella?")
    spans = kept.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    for span in spans:
        above = names.get(span.parent.span_id, "") if span.parent is not None else "(nothing)"
        print(f"{span.name} below {above}")
    last = [span for span in spans if span.name.startswith("chat")][-1]
    reasons = dict(last.attributes or {})["gen_ai.response.finish_reasons"]
    print(f"{last.name}: gen_ai.response.finish_reasons={reasons}")


if __name__ == "__main__":
    anyio.run(main)
