"""A layer that tells a log what the agent does, step by step: turn, duration, and what came of it.

`callboard ask --log-level debug` puts it around the agent; it is also a small example of a layer.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog

from callboard.agent import ReActAgent
from callboard.approvals import Proceed, SealedCall, Verdict
from callboard.journaling.records import Observed, Record
from callboard.messages import AssistantMessage, Observation, ToolCall
from callboard.model import Delta, ModelRequest
from callboard.replies import Prompt, Reply

R = TypeVar("R", bound=Record | Delta)
MOST_CHARACTERS = 120  # of a result or an argument text in the log


class StepLogMixin(ReActAgent):
    """Logs reasoning, deciding, acting, result and summarizing at debug level.

    `step_log` is a structlog logger; without one it is "callboard.steps". A step that raises is
    logged with the name of the error (a cancellation too) and changes nothing.
    """

    def __init__(self, *, step_log: Any = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._step_log = step_log or structlog.get_logger("callboard.steps")
        self._step_log_turn = 0

    async def reply(self, prompt: Prompt) -> Reply:
        self._step_log_turn = 0
        return await super().reply(prompt)

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        self._step_log_turn += 1
        with self._step_log_timed("reasoning", messages=len(request.messages)) as facts:
            message = await super()._reasoning(request)
            facts.update(_message_facts(message))
        return message

    async def _deciding(self, call: ToolCall) -> Verdict:
        with self._step_log_timed("deciding", call=call.id, tool=call.name) as facts:
            verdict = await super()._deciding(call)
            facts["verdict"] = type(verdict).__name__.lower()
            if not isinstance(verdict, Proceed):
                facts["reason"] = verdict.reason
        return verdict

    async def _acting(self, call: SealedCall) -> Observation:
        arguments = _shorten(self._watchers.shown(call.call).raw)
        with self._step_log_timed("acting", call=call.id, tool=call.name, arguments=arguments):
            return await super()._acting(call)

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        with self._step_log_timed("summarizing", messages=len(request.messages)) as facts:
            message = await super()._summarizing(request)
            facts.update(_message_facts(message))
        return message

    def _committing(self, record: R) -> R:
        kept = super()._committing(record)
        if isinstance(kept, Observed):
            self._step_log.debug(
                "result",
                turn=self._step_log_turn,
                call=kept.call_id,
                status=str(kept.observation.status),
                text=_shorten(kept.observation.text),
            )
        return kept

    @contextmanager
    def _step_log_timed(self, step: str, **facts: Any) -> Generator[dict[str, Any]]:
        begun = time.perf_counter()
        turn = self._step_log_turn
        try:
            yield facts
        except BaseException as error:
            facts["raised"] = type(error).__name__
            raise
        finally:
            took_ms = round((time.perf_counter() - begun) * 1000, 1)
            self._step_log.debug(step, turn=turn, took_ms=took_ms, **facts)


def _message_facts(message: AssistantMessage) -> dict[str, Any]:
    facts: dict[str, Any] = {"stop_reason": str(message.stop_reason)}
    if message.calls:
        facts["calls"] = [call.name for call in message.calls]
    if message.usage.output_tokens is not None:
        facts["output_tokens"] = message.usage.output_tokens
    return facts


def _shorten(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
